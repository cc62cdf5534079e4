WITH asked AS (
    SELECT * FROM unnest($1::uuid[], $2::int4[], $3::int8[])
        WITH ORDINALITY AS a (task, attempt, until, place)
), held AS (
    -- Rows are locked in one order everywhere, which prevents deadlocks.
    SELECT a.place, a.until, t.sequence
    FROM asked a JOIN task_executions t ON t.id = a.task AND t.attempt = a.attempt
    WHERE t.status = 'running'
    ORDER BY t.sequence FOR NO KEY UPDATE OF t
)
UPDATE task_executions t SET lease_until = greatest(t.lease_until, h.until)
FROM held h WHERE t.sequence = h.sequence
RETURNING h.place, t.cancel_requested
