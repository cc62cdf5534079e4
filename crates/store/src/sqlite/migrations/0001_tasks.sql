CREATE TABLE workspaces (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    name TEXT NOT NULL,
    layout TEXT NOT NULL CHECK (layout IN ('plain', 'tenant')),
    network TEXT CHECK (network IN ('none', 'loopback', 'full')),
    quota_bytes INTEGER NOT NULL CHECK (quota_bytes >= 0),
    created_at INTEGER NOT NULL,
    -- How many of its tasks wait and run. Kept by triggers, so that finding work never counts.
    queued INTEGER NOT NULL DEFAULT 0 CHECK (queued >= 0),
    running INTEGER NOT NULL DEFAULT 0 CHECK (running >= 0),
    -- When it was last given a worker. The one that has waited longest is next.
    turn INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE INDEX workspaces_waiting ON workspaces (turn) WHERE queued > 0;

CREATE TABLE task_executions (
    sequence INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    workspace_id BLOB NOT NULL REFERENCES workspaces (id),
    task_type TEXT NOT NULL,
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 3),
    status TEXT NOT NULL CHECK (
        status IN ('queued', 'running', 'completed', 'failed', 'cancelled', 'timed_out', 'dead')
    ),
    configuration TEXT NOT NULL,
    timeout_ms INTEGER NOT NULL,
    correlation_id TEXT,
    submitted_at INTEGER NOT NULL,
    started_at INTEGER,
    completed_at INTEGER,
    due_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    -- How many attempts were lost; the others were given back in peace.
    lost INTEGER NOT NULL DEFAULT 0 CHECK (lost BETWEEN 0 AND attempt),
    max_attempts INTEGER NOT NULL CHECK (max_attempts >= 1),
    worker_id TEXT,
    lease_until INTEGER,
    cancel_requested INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1)),
    result TEXT,
    error_message TEXT,
    execution_time_ms INTEGER,
    last_event INTEGER NOT NULL DEFAULT 0,
    CHECK ((status = 'running') = (lease_until IS NOT NULL)),
    CHECK ((status IN ('queued', 'running')) = (completed_at IS NULL)),
    CHECK (status IN ('queued', 'cancelled', 'failed') OR attempt >= 1)
) STRICT;

-- What lives is found by these, whatever the history has grown to.
CREATE INDEX tasks_queued ON task_executions (workspace_id, priority, sequence)
    WHERE status = 'queued';
CREATE INDEX tasks_running ON task_executions (lease_until) WHERE status = 'running';
CREATE INDEX tasks_delayed ON task_executions (due_at) WHERE status = 'queued' AND attempt > 0;

CREATE INDEX tasks_of_workspace ON task_executions (workspace_id, sequence);
CREATE INDEX tasks_finished ON task_executions (completed_at) WHERE completed_at IS NOT NULL;

CREATE TRIGGER a_task_begins_queued BEFORE INSERT ON task_executions
WHEN NEW.status <> 'queued'
BEGIN
    SELECT RAISE(ABORT, 'a task begins queued');
END;

CREATE TRIGGER what_is_terminal_is_final BEFORE UPDATE OF status ON task_executions
WHEN OLD.status NOT IN ('queued', 'running')
BEGIN
    SELECT RAISE(ABORT, 'a terminal state is final');
END;

CREATE TRIGGER count_the_new AFTER INSERT ON task_executions
BEGIN
    UPDATE workspaces SET queued = queued + 1 WHERE id = NEW.workspace_id;
END;

CREATE TRIGGER count_the_moved AFTER UPDATE OF status ON task_executions
WHEN OLD.status <> NEW.status
BEGIN
    UPDATE workspaces SET
        queued = queued - (OLD.status = 'queued') + (NEW.status = 'queued'),
        running = running - (OLD.status = 'running') + (NEW.status = 'running')
    WHERE id = NEW.workspace_id;
END;

CREATE TABLE task_events (
    task INTEGER NOT NULL REFERENCES task_executions (sequence),
    number INTEGER NOT NULL CHECK (number >= 1),
    kind TEXT NOT NULL
        CHECK (kind IN ('status_changed', 'progress_update', 'log_line', 'error')),
    data TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (task, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE replies (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    -- The answer, or the task that a submission made.
    status INTEGER,
    body TEXT,
    task_id BLOB,
    at INTEGER NOT NULL,
    PRIMARY KEY (scope, key),
    CHECK ((task_id IS NULL) = (status IS NOT NULL AND body IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX replies_by_age ON replies (at);

CREATE TABLE credentials (
    workspace_id BLOB NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    sealed BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, name)
) STRICT, WITHOUT ROWID;
