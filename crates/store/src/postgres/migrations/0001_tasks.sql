CREATE TABLE workspaces (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    layout text NOT NULL CHECK (layout IN ('plain', 'tenant')),
    network text CHECK (network IN ('none', 'loopback', 'full')),
    quota_bytes bigint NOT NULL CHECK (quota_bytes >= 0),
    created_at bigint NOT NULL,
    volume uuid,
    -- How many of its tasks wait and run. Kept by triggers, so that finding work never counts.
    queued bigint NOT NULL DEFAULT 0 CHECK (queued >= 0),
    running bigint NOT NULL DEFAULT 0 CHECK (running >= 0),
    -- When it was last given a worker. The one that has waited longest is next.
    turn bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

CREATE SEQUENCE workspace_turns;

CREATE INDEX workspaces_waiting ON workspaces (turn, id) WHERE queued > 0;
CREATE INDEX workspaces_of_volume ON workspaces (volume) WHERE volume IS NOT NULL;

CREATE TABLE task_executions (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    workspace_id uuid NOT NULL REFERENCES workspaces (id),
    task_type text NOT NULL,
    priority smallint NOT NULL CHECK (priority BETWEEN 0 AND 3),
    status text NOT NULL CHECK (
        status IN ('queued', 'running', 'completed', 'failed', 'cancelled', 'timed_out', 'dead')
    ),
    configuration text NOT NULL,
    timeout_ms bigint NOT NULL,
    correlation_id text,
    submitted_at bigint NOT NULL,
    started_at bigint,
    completed_at bigint,
    due_at bigint NOT NULL,
    attempt integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    -- How many attempts were lost; the others were given back in peace.
    lost integer NOT NULL DEFAULT 0 CHECK (lost BETWEEN 0 AND attempt),
    max_attempts integer NOT NULL CHECK (max_attempts >= 1),
    worker_id text,
    lease_until bigint,
    -- Made up by whoever claims, to find out whether a claim succeeded whose answer was lost.
    claim_token uuid,
    cancel_requested boolean NOT NULL DEFAULT false,
    result text,
    error_message text,
    execution_time_ms bigint,
    last_event bigint NOT NULL DEFAULT 0,
    CHECK ((status = 'running') = (lease_until IS NOT NULL)),
    CHECK ((status IN ('queued', 'running')) = (completed_at IS NULL)),
    CHECK (status IN ('queued', 'cancelled', 'failed') OR attempt >= 1)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

-- What lives is found by these, whatever the history has grown to.
CREATE INDEX tasks_queued ON task_executions (workspace_id, priority, sequence)
    WHERE status = 'queued';
CREATE INDEX tasks_waiting ON task_executions (priority, sequence) WHERE status = 'queued';
CREATE INDEX tasks_running ON task_executions (lease_until) WHERE status = 'running';
CREATE INDEX tasks_delayed ON task_executions (due_at) WHERE status = 'queued' AND attempt > 0;

CREATE INDEX tasks_of_workspace ON task_executions (workspace_id, sequence);
CREATE INDEX tasks_finished ON task_executions (completed_at) WHERE completed_at IS NOT NULL;

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER a_task_begins_queued BEFORE INSERT ON task_executions
    FOR EACH ROW WHEN (NEW.status <> 'queued')
    EXECUTE FUNCTION refuse_change('a task begins queued');

CREATE TRIGGER what_is_terminal_is_final BEFORE UPDATE OF status ON task_executions
    FOR EACH ROW WHEN (OLD.status NOT IN ('queued', 'running'))
    EXECUTE FUNCTION refuse_change('a terminal state is final');

-- One change of a workspace for each statement, however many tasks that moves.
CREATE FUNCTION count_the_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE workspaces w SET queued = w.queued + n.tasks
    FROM (SELECT workspace_id, count(*) AS tasks FROM new_rows GROUP BY workspace_id) n
    WHERE w.id = n.workspace_id;
    RETURN NULL;
END $$;

CREATE TRIGGER count_the_new AFTER INSERT ON task_executions
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_the_new();

CREATE FUNCTION count_the_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE workspaces w SET queued = w.queued + n.queued, running = w.running + n.running
    FROM (
        SELECT workspace_id, sum(queued) AS queued, sum(running) AS running
        FROM (
            SELECT workspace_id, (status = 'queued')::int AS queued,
                   (status = 'running')::int AS running
            FROM new_rows
            UNION ALL
            SELECT workspace_id, -(status = 'queued')::int, -(status = 'running')::int
            FROM old_rows
        ) moved
        GROUP BY workspace_id
        HAVING sum(queued) <> 0 OR sum(running) <> 0
    ) n
    WHERE w.id = n.workspace_id;
    RETURN NULL;
END $$;

CREATE TRIGGER count_the_moved AFTER UPDATE ON task_executions
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_the_moved();

CREATE TABLE task_events (
    task bigint NOT NULL REFERENCES task_executions (sequence),
    number bigint NOT NULL CHECK (number >= 1),
    kind text NOT NULL CHECK (kind IN ('status_changed', 'progress_update', 'log_line', 'error')),
    data text NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (task, number)
);

CREATE TABLE replies (
    scope text NOT NULL,
    key text NOT NULL,
    digest bytea NOT NULL CHECK (length(digest) = 32),
    -- The answer, or the task that a submission made.
    status integer,
    body text,
    task_id uuid,
    at bigint NOT NULL,
    PRIMARY KEY (scope, key),
    CHECK ((task_id IS NULL) = (status IS NOT NULL AND body IS NOT NULL))
);

CREATE INDEX replies_by_age ON replies (at);
CREATE INDEX replies_of_tasks ON replies (task_id) WHERE task_id IS NOT NULL;

CREATE TABLE credentials (
    workspace_id uuid NOT NULL REFERENCES workspaces (id),
    name text NOT NULL,
    sealed bytea NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (workspace_id, name)
);

CREATE TABLE workers (
    id text PRIMARY KEY,
    volume uuid NOT NULL,
    address text,
    concurrency integer NOT NULL CHECK (concurrency >= 0),
    seen_at bigint NOT NULL
);
