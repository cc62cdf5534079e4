-- What the conductor remembers of the issues of one tracker, which is its scope.
CREATE TABLE conductor_entries (
    scope TEXT NOT NULL,
    issue TEXT NOT NULL,
    entry TEXT NOT NULL CHECK (json_valid(entry)),
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (scope, issue)
) STRICT, WITHOUT ROWID;

CREATE TABLE conductor_ledgers (
    scope TEXT PRIMARY KEY,
    ledger TEXT NOT NULL CHECK (json_valid(ledger))
) STRICT, WITHOUT ROWID;

CREATE TABLE conductor_runs (
    scope TEXT NOT NULL,
    run INTEGER NOT NULL CHECK (run > 0),
    issue TEXT NOT NULL,
    identifier TEXT NOT NULL,
    attempt INTEGER NOT NULL CHECK (attempt >= 0),
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    outcome TEXT,
    error TEXT,
    workspace TEXT,
    thread TEXT,
    session TEXT,
    transcript TEXT,
    PRIMARY KEY (scope, run),
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_of_issue ON conductor_runs (scope, issue, run);
CREATE INDEX runs_that_go_on ON conductor_runs (scope, run) WHERE ended_at IS NULL;

-- The tracker that is built in. The numbers of issues that are gone are not given again.
CREATE TABLE issues (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL,
    description TEXT,
    state TEXT NOT NULL,
    -- The state in the spelling that states are compared in.
    normal_state TEXT NOT NULL,
    priority INTEGER,
    labels TEXT NOT NULL CHECK (json_valid(labels)),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE INDEX issues_in_state ON issues (normal_state, number);

CREATE TABLE issue_blockers (
    issue INTEGER NOT NULL REFERENCES issues (number),
    blocker INTEGER NOT NULL REFERENCES issues (number),
    PRIMARY KEY (issue, blocker),
    CHECK (issue <> blocker)
) STRICT, WITHOUT ROWID;

CREATE TABLE issue_comments (
    id INTEGER PRIMARY KEY,
    issue INTEGER NOT NULL REFERENCES issues (number),
    author TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX comments_of_issue ON issue_comments (issue, id);
