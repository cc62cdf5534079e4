WITH asked AS (
    SELECT * FROM unnest($1::uuid[], $2::int4[], $3::int8[], $4::int8[])
        WITH ORDINALITY AS a (task, attempt, after, more, place)
), held AS (
    -- Rows are locked in one order everywhere, which prevents deadlocks.
    SELECT a.*, t.sequence, t.last_event
    FROM asked a JOIN task_executions t ON t.id = a.task AND t.attempt = a.attempt
    WHERE t.status = 'running'
    ORDER BY t.sequence FOR NO KEY UPDATE OF t
), moved AS (
    UPDATE task_executions t SET last_event = h.after + h.more
    FROM held h WHERE t.sequence = h.sequence AND h.last_event = h.after
    RETURNING h.place, h.after, t.sequence
), inserted AS (
    INSERT INTO task_events (task, number, kind, data, at)
    SELECT m.sequence, m.after + n.number, n.kind, n.data, n.at
    FROM unnest($5::int8[], $6::int8[], $7::text[], $8::text[], $9::int8[])
        AS n (place, number, kind, data, at)
    JOIN moved m ON m.place = n.place
)
SELECT place FROM moved
