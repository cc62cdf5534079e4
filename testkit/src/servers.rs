//! Real servers for tests, each on a port of its own and stopped with the test.

mod authority;
mod postgres;
mod process;
mod redis;

pub use authority::TestAuthority;
pub use postgres::PostgresServer;
pub use redis::RedisServer;
