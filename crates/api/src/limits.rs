//! What one request and one caller may take.

use std::num::NonZeroU32;
use std::time::Duration;

use carrel_domain::ByteSize;

/// A body of JSON, such as a file that is written.
pub const MAX_JSON_BODY: ByteSize = ByteSize::mib(32);

/// Bodies of JSON that are held in memory at once, in MiB.
pub const MAX_BUFFERED_MEBIBYTES: usize = 256;

/// A smaller body is not counted: connections bound their number.
pub const MIN_COUNTED_BODY: ByteSize = ByteSize::kib(64);

/// Commands, searches and writes over HTTP that run at once.
pub const MAX_CONCURRENT_WORK: usize = 16;

/// How long one more waits for a place before it is turned away.
pub const PERMIT_WAIT: Duration = Duration::from_secs(2);

/// Files that arrive in parts at once.
pub const MAX_UPLOADS: usize = 16;

/// The slowest that such a file may arrive after the first minute, in bytes a second.
pub const MIN_UPLOAD_RATE: u64 = 16 << 10;

/// Refusals of one caller that are written down at once; after them it is one a second. Whoever is refused
/// must not be able to push out of the log what others did.
pub const REFUSAL_AUDIT_BURST: NonZeroU32 = NonZeroU32::new(100).expect("more than none");

/// Callers whose refusals are counted at a time.
pub const MAX_REFUSED_CALLERS: usize = 1000;

/// Event streams of one workspace that are open at once.
pub const MAX_STREAMS_PER_WORKSPACE: usize = 1024;

/// How often a stream says that it is still there.
pub const STREAM_HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a request to cancel waits to say that the task is over.
pub const CANCEL_WAIT: Duration = Duration::from_secs(2);

/// How long what is open may take to end when the server stops.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// Connections that are open at once.
pub const MAX_CONNECTIONS: usize = 4096;

/// How long a client may take to send the head of a request.
pub const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a client may take to send a body.
pub const BODY_READ_TIMEOUT: Duration = Duration::from_mins(1);

/// How long a client may leave what it is sent unread.
pub const WRITE_STALL: Duration = Duration::from_secs(30);
