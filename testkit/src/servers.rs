//! Real servers for tests, each on a port of its own and stopped with the test.
//!
//! `setpriv --pdeathsig` makes the kernel end a server when the test process dies, so that a killed test leaves
//! none behind. `scripts/install-test-tools` installs the programs; a test panics without them.

mod authority;
mod postgres;
mod process;
mod redis;

pub use authority::TestAuthority;
pub use postgres::PostgresServer;
pub use redis::RedisServer;
