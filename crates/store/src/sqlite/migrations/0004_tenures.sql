-- Who writes about a scope. Each tenure has a greater number than all before it.
CREATE TABLE conductor_tenures (
    scope TEXT PRIMARY KEY,
    number INTEGER NOT NULL CHECK (number > 0),
    holder TEXT NOT NULL,
    taken_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What tells the tracker that is built in from that of any other database.
CREATE TABLE tracker_name (
    name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

INSERT INTO tracker_name (name) VALUES (lower(hex(randomblob(16))));
