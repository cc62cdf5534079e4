WITH asked AS (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::int2[], $5::text[], $6::int8[],
                         $7::text[], $8::int8[], $9::int4[], $10::int8[], $11::text[], $12::text[],
                         $13::bytea[])
        WITH ORDINALITY AS a (id, workspace_id, task_type, priority, configuration, timeout_ms,
                              correlation_id, now, max_attempts, max_waiting, scope, key, digest,
                              place)
), known AS (
    SELECT a.*, w.queued, r.digest AS first_digest, coalesce(r.task_id, a.id) AS first_id,
           t.id IS NOT NULL AS there
    FROM asked a
    LEFT JOIN workspaces w ON w.id = a.workspace_id
    LEFT JOIN replies r ON r.scope = a.scope AND r.key = a.key
    LEFT JOIN task_executions t ON t.id = coalesce(r.task_id, a.id)
), judged AS (
    SELECT *, CASE
        WHEN first_digest <> digest THEN 'mismatch'
        WHEN there THEN 'there'
        WHEN queued IS NULL THEN 'no_workspace'
        WHEN queued + row_number() OVER (PARTITION BY workspace_id, there ORDER BY place)
             > max_waiting THEN 'full'
        ELSE 'created'
    END AS verdict
    FROM known
), remembered AS (
    INSERT INTO replies (scope, key, digest, task_id, at)
    SELECT scope, key, digest, id, now FROM judged WHERE verdict = 'created' AND key IS NOT NULL
    ON CONFLICT (scope, key) DO UPDATE SET
        digest = excluded.digest, task_id = excluded.task_id, at = excluded.at,
        status = NULL, body = NULL
), made AS (
    INSERT INTO task_executions (id, workspace_id, task_type, priority, status, configuration,
        timeout_ms, correlation_id, submitted_at, due_at, max_attempts, last_event)
    SELECT id, workspace_id, task_type, priority, 'queued', configuration, timeout_ms,
           correlation_id, now, now, max_attempts, 1
    FROM judged WHERE verdict = 'created' ORDER BY place
    RETURNING sequence, submitted_at
), inserted AS (
    INSERT INTO task_events (task, number, kind, data, at)
    SELECT sequence, 1, 'status_changed', '{"status":"queued"}', submitted_at FROM made
)
SELECT verdict, first_id FROM judged ORDER BY place
