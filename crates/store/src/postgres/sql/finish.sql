WITH asked AS (
    SELECT * FROM unnest($1::uuid[], $2::int4[], $3::text[], $4::text[], $5::text[], $6::int8[],
                         $7::int8[], $8::int8[], $9::int8[])
        WITH ORDINALITY AS a (task, attempt, status, result, error, took, now, after, more, place)
), held AS (
    -- Rows are locked in one order everywhere, which prevents deadlocks.
    SELECT a.*, t.sequence, t.last_event
    FROM asked a JOIN task_executions t ON t.id = a.task AND t.attempt = a.attempt
    WHERE t.status = 'running'
    ORDER BY t.sequence FOR NO KEY UPDATE OF t
), ended AS (
    UPDATE task_executions t SET
        -- A requested cancellation was acknowledged and wins over the worker's status.
        status = CASE WHEN t.cancel_requested THEN 'cancelled' ELSE h.status END,
        result = h.result, error_message = h.error, execution_time_ms = h.took,
        completed_at = h.now, lease_until = NULL, claim_token = NULL,
        last_event = h.after + h.more + 1
    FROM held h WHERE t.sequence = h.sequence AND h.last_event = h.after
    RETURNING h.place, h.after, h.took, h.now, t.sequence, t.status, t.last_event
), inserted AS (
    INSERT INTO task_events (task, number, kind, data, at)
    SELECT e.sequence, e.after + n.number, n.kind, n.data, n.at
    FROM unnest($10::int8[], $11::int8[], $12::text[], $13::text[], $14::int8[])
        AS n (place, number, kind, data, at)
    JOIN ended e ON e.place = n.place
    UNION ALL
    SELECT sequence, last_event, 'status_changed',
           '{"status":"' || status || '","execution_time_ms":' || took || '}', now
    FROM ended
)
SELECT place, status FROM ended
