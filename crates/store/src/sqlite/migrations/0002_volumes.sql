ALTER TABLE workspaces ADD COLUMN volume BLOB CHECK (length(volume) = 16);

CREATE INDEX workspaces_of_volume ON workspaces (volume) WHERE volume IS NOT NULL;

CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    volume BLOB NOT NULL CHECK (length(volume) = 16),
    address TEXT,
    concurrency INTEGER NOT NULL CHECK (concurrency >= 0),
    seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX tasks_waiting ON task_executions (priority, sequence) WHERE status = 'queued';

CREATE INDEX replies_of_tasks ON replies (task_id) WHERE task_id IS NOT NULL;
