-- What the conductor remembers of the issues of one tracker, which is its scope.
CREATE TABLE conductor_entries (
    scope text NOT NULL,
    issue text NOT NULL,
    entry text NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (scope, issue)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE conductor_ledgers (
    scope text PRIMARY KEY,
    ledger text NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE conductor_runs (
    scope text NOT NULL,
    run bigint NOT NULL CHECK (run > 0),
    issue text NOT NULL,
    identifier text NOT NULL,
    attempt bigint NOT NULL CHECK (attempt >= 0),
    started_at bigint NOT NULL,
    ended_at bigint,
    outcome text,
    error text,
    workspace text,
    thread text,
    session text,
    transcript text,
    PRIMARY KEY (scope, run),
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
) WITH (fillfactor = 80);

CREATE INDEX runs_of_issue ON conductor_runs (scope, issue, run);
CREATE INDEX runs_that_go_on ON conductor_runs (scope, run) WHERE ended_at IS NULL;

-- Who writes about a scope. Each tenure has a greater number than all before it. Whether the last one
-- still holds is told by an advisory lock of its connection.
CREATE TABLE conductor_tenures (
    scope text PRIMARY KEY,
    number bigint NOT NULL CHECK (number > 0),
    holder text NOT NULL,
    taken_at bigint NOT NULL
);

-- The tracker that is built in.
CREATE TABLE issues (
    number bigint PRIMARY KEY CHECK (number > 0),
    -- Made up by whoever adds it, to find out whether that succeeded when the answer was lost.
    token uuid NOT NULL UNIQUE,
    title text NOT NULL,
    description text,
    state text NOT NULL,
    -- The state in the spelling that states are compared in.
    normal_state text NOT NULL,
    priority bigint,
    labels text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);

CREATE INDEX issues_in_state ON issues (normal_state, number);

CREATE TABLE issue_blockers (
    issue bigint NOT NULL REFERENCES issues (number),
    blocker bigint NOT NULL REFERENCES issues (number),
    PRIMARY KEY (issue, blocker),
    CHECK (issue <> blocker)
);

CREATE TABLE issue_comments (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    token uuid NOT NULL UNIQUE,
    issue bigint NOT NULL REFERENCES issues (number),
    author text NOT NULL,
    body text NOT NULL,
    created_at bigint NOT NULL
);

CREATE INDEX comments_of_issue ON issue_comments (issue, id);

-- The last number that an issue was given, so that none is given twice and none left out, and what
-- tells the tracker from that of any other database.
CREATE TABLE tracker (
    name text PRIMARY KEY,
    last_number bigint NOT NULL
);

CREATE UNIQUE INDEX there_is_one_tracker ON tracker ((true));

INSERT INTO tracker (name, last_number)
VALUES (md5(random()::text || random()::text || clock_timestamp()::text || pg_backend_pid()), 0);
