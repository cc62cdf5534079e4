//! Timeouts and size limits of the client.

use std::time::Duration;

use carrel_domain::ByteSize;

/// Time until a TCP connection is established.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time until the response head arrives, for requests that run no command.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);

/// The longest pause between two chunks of a response.
pub const BODY_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest silence of an event stream: three of the heartbeats that the service sends every 15 seconds.
pub const STREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(45);

/// Time after which an idle connection is closed. The service closes idle connections after 15 seconds, and a
/// request must not meet one that is being closed.
pub const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Idle connections that are kept for one server.
pub const MAX_IDLE_CONNECTIONS: usize = 32;

/// The largest response that is read into memory. Files over the API have at most 2 MiB, output of a command
/// 150 KB.
pub const MAX_RESPONSE: ByteSize = ByteSize::mib(64);

/// The largest error response that is read.
pub const MAX_ERROR_RESPONSE: ByteSize = ByteSize::mib(1);

/// The largest event of a stream.
pub const MAX_EVENT_SIZE: ByteSize = ByteSize::mib(4);
