//! What the client waits for, and how much it takes.

use std::time::Duration;

use carrel_domain::ByteSize;

/// How long a server may take to accept a connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a server may take to begin its answer, unless the request is for work that takes longer.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);

/// How long a server may pause inside an answer.
pub const BODY_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an event stream may be silent. The service says something every 15 seconds.
pub const STREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(45);

/// How long an unused connection is kept. The service ends those that are silent for 15 seconds, and
/// a request must not meet one that is just being closed.
pub const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Unused connections to one server that are kept.
pub const MAX_IDLE_CONNECTIONS: usize = 32;

/// An answer that is read into memory. Files over the API have at most 2 MiB, commands less.
pub const MAX_RESPONSE: ByteSize = ByteSize::mib(64);

/// What is read of the answer of a server that refuses something.
pub const MAX_ERROR_RESPONSE: ByteSize = ByteSize::mib(1);

/// One event of a stream.
pub const MAX_EVENT_SIZE: ByteSize = ByteSize::mib(4);
