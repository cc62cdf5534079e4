//! The tests of the stores.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

/// TLS connections to PostgreSQL, and certificates that are refused.
mod encryption;
/// A server that is killed, silent, or cut off in the middle of a transaction.
mod outages;
/// The store suite on a PostgreSQL server, and what only a server has.
mod postgres;
/// The store suite on a SQLite file, and what only a file has.
mod sqlite;
/// Tenures of conductors, and writes of a superseded one.
mod tenure;
