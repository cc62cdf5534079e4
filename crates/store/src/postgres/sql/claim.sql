WITH served AS (
    SELECT w.id, w.turn, w.running FROM workspaces w
    WHERE w.queued > 0 AND w.running < $1::int8 AND (w.volume IS NULL OR w.volume = $2::uuid)
        AND EXISTS (
            SELECT FROM task_executions t
            WHERE t.workspace_id = w.id AND t.status = 'queued' AND t.due_at <= $3::int8
        )
    ORDER BY w.turn, w.id LIMIT cardinality($4::uuid[])
), chosen AS (
    -- Round robin: every workspace gets one task before any gets a second.
    SELECT next.sequence, s.id AS workspace_id,
           row_number() OVER (ORDER BY next.round, s.turn, s.id) AS place
    FROM served s CROSS JOIN LATERAL (
        SELECT t.sequence, row_number() OVER (ORDER BY t.priority, t.sequence) AS round
        FROM task_executions t
        WHERE t.workspace_id = s.id AND t.status = 'queued' AND t.due_at <= $3
        ORDER BY t.priority, t.sequence
        LIMIT least(cardinality($4), $1 - s.running)
    ) next
    ORDER BY place LIMIT cardinality($4)
), turned AS (
    UPDATE workspaces w SET
        turn = t.turn + c.place, volume = coalesce(w.volume, $2)
    FROM (SELECT workspace_id, max(place) AS place FROM chosen GROUP BY workspace_id) c,
         (SELECT nextval('workspace_turns') * 1000 AS turn) t
    WHERE w.id = c.workspace_id
), taken AS (
    UPDATE task_executions t SET
        status = 'running', attempt = t.attempt + 1, worker_id = $5::text,
        lease_until = $6::int8, started_at = $3, claim_token = ($4)[c.place::int],
        last_event = t.last_event + 1
    FROM chosen c WHERE t.sequence = c.sequence
    RETURNING c.place, t.*
), inserted AS (
    INSERT INTO task_events (task, number, kind, data, at)
    SELECT sequence, last_event, 'status_changed',
           json_build_object('status', status, 'attempt', attempt, 'worker_id', worker_id)::text, $3
    FROM taken
)
SELECT id, workspace_id, task_type, priority, status, configuration, timeout_ms, correlation_id,
       submitted_at, started_at, completed_at, attempt, max_attempts, worker_id, cancel_requested,
       result, error_message, execution_time_ms, last_event, sequence
FROM taken ORDER BY place
