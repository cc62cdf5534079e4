-- Keys of requests that are being answered somewhere, until then if nobody says more.
CREATE TABLE replies_under_way (
    scope text NOT NULL,
    key text NOT NULL,
    holder text NOT NULL,
    held_until timestamptz NOT NULL,
    PRIMARY KEY (scope, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
