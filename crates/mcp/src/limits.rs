//! The bounds of both transports, each with the resource that it protects.

use std::time::Duration;

/// The largest message of a client, a line or a request body. It bounds the memory that one message
/// takes, and is large enough to `Write` a whole large file.
pub const MAX_MESSAGE_BYTES: usize = 32 * 1024 * 1024;

/// Calls of one client that run at once. Further ones are rejected with a retryable error.
pub const MAX_IN_FLIGHT: usize = 256;

/// Sessions that are open at once. Past it, `initialize` is answered with 503.
pub const MAX_SESSIONS: usize = 1024;

/// Sessions of one owner that are open at once, where callers are authenticated. Past it, the owner's
/// least recently used idle session is ended, so that one owner cannot fill the table.
pub const MAX_SESSIONS_PER_OWNER: usize = 128;

/// Connections that are open at once. Further ones wait in the kernel's backlog.
pub const MAX_CONNECTIONS: usize = 4096;

/// The time without use after which a session expires: long enough for a person to come back from
/// lunch, short enough that clients which never send `DELETE` do not pile up.
pub const SESSION_IDLE: Duration = Duration::from_hours(1);

/// The time for which the events of a finished stream stay available to a client that lost its
/// connection.
pub const STREAM_RETENTION: Duration = Duration::from_mins(2);

/// Finished streams that a session retains for resumption.
pub(crate) const MAX_FINISHED_STREAMS: usize = 16;

/// Events that a stream retains. Past it the oldest are dropped, but never the reply.
pub(crate) const MAX_STREAM_EVENTS: usize = 256;

/// Bytes of events that a stream retains, under the same rule.
pub(crate) const MAX_STREAM_BYTES: usize = 8 * 1024 * 1024;

/// The time after which the response of a call becomes an event stream. A faster reply is cheaper as
/// plain JSON; a slower one needs keep-alive comments and resumption.
pub const JSON_REPLY_TIMEOUT: Duration = Duration::from_millis(500);

/// The time that a handler may take for `initialize`.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_mins(1);

/// The interval of comments on a silent event stream. It is below the idle timeouts of usual proxies,
/// which begin at 30 seconds.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The delay before a client should reconnect a lost stream, in milliseconds, as `retry:` has it.
pub(crate) const RETRY_MILLIS: u32 = 1000;

/// The time in which the head of a request must arrive. It also ends idle connections.
pub const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The time in which the body of a request must arrive.
pub const BODY_READ_TIMEOUT: Duration = Duration::from_mins(1);

/// The time for which a client may leave a response unread. Its connection is then dropped.
pub const WRITE_STALL: Duration = Duration::from_mins(1);

/// The time that calls may go on after a stdio client closed its end. Clients kill a server about two
/// seconds after that, so this and [`SHUTDOWN_GRACE`] together stay below two seconds.
pub const EOF_GRACE: Duration = Duration::from_millis(500);

/// The time that cancelled calls may take to clean up when the server stops.
pub const SHUTDOWN_GRACE: Duration = Duration::from_millis(1300);

/// The interval of scans for expired sessions.
pub(crate) const EXPIRY_INTERVAL: Duration = Duration::from_secs(15);

/// Messages that wait in a channel inside a transport.
pub(crate) const CHANNEL_CAPACITY: usize = 64;
