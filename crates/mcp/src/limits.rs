//! Every bound of the two doors, with what it protects.

use std::time::Duration;

/// The largest message a client may send, by line or by request body. It bounds what one message
/// can make the server hold, and lets a whole large file through `Write`.
pub const MAX_MESSAGE_BYTES: usize = 32 * 1024 * 1024;

/// How many calls one client may have running at once. A full client is told so.
pub const MAX_IN_FLIGHT: usize = 256;

/// How many sessions may exist at once. Past it, `initialize` is answered with 503.
pub const MAX_SESSIONS: usize = 1024;

/// How many sessions one caller may have where a server tells callers apart. Past it, the one that was used
/// longest ago and does nothing is ended, so that nobody takes the places of all others.
pub const MAX_SESSIONS_PER_OWNER: usize = 128;

/// How many connections may be open at once. Past it, new ones wait in the kernel's queue.
pub const MAX_CONNECTIONS: usize = 4096;

/// How long a session without running calls and open streams is kept. Long enough for a person to
/// come back from lunch, short enough that clients which never say goodbye do not pile up.
pub const SESSION_IDLE: Duration = Duration::from_hours(1);

/// How long the events of a finished stream stay available to a client that lost its connection.
pub const STREAM_RETENTION: Duration = Duration::from_mins(2);

/// How many finished streams a session keeps for resumption.
pub(crate) const MAX_FINISHED_STREAMS: usize = 16;

/// How many events a stream keeps. Past it, the oldest are forgotten; a response never is.
pub(crate) const MAX_STREAM_EVENTS: usize = 256;

/// How many bytes of events a stream keeps, under the same rule.
pub(crate) const MAX_STREAM_BYTES: usize = 8 * 1024 * 1024;

/// How long a call may take before its reply becomes an event stream. Below it the reply is plain
/// JSON; above it the client is better served by a stream that pings and can be resumed.
pub const JSON_REPLY_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a handler may take for a handshake.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_mins(1);

/// How often a quiet event stream sends a comment, so that nothing on the way takes it for dead.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long a client should wait before it opens a lost stream again, in milliseconds.
pub(crate) const RETRY_MILLIS: u32 = 1000;

/// How long a client may take for the head of a request. It also ends connections that are idle.
pub const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a client may take for the body of a request.
pub const BODY_READ_TIMEOUT: Duration = Duration::from_mins(1);

/// How long a client may leave the server unable to write. Its connection is then dropped.
pub const WRITE_STALL: Duration = Duration::from_mins(1);

/// How long calls may go on after the client of the standard streams closed its end. Clients kill
/// a server about two seconds after they close its input, so this and [`SHUTDOWN_GRACE`] together
/// stay below that.
pub const EOF_GRACE: Duration = Duration::from_millis(500);

/// How long cancelled calls may take to clean up when the server stops.
pub const SHUTDOWN_GRACE: Duration = Duration::from_millis(1300);

/// How often sessions are looked at for expiry.
pub(crate) const EXPIRY_INTERVAL: Duration = Duration::from_secs(15);

/// How many messages may wait between two parts of a door.
pub(crate) const CHANNEL_CAPACITY: usize = 64;
