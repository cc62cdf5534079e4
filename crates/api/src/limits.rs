//! Limits of requests, callers and connections.

use std::num::NonZeroU32;
use std::time::Duration;

use carrel_domain::ByteSize;

/// The largest JSON body. The largest use is a file that is written.
pub const MAX_JSON_BODY: ByteSize = ByteSize::mib(32);

/// Memory of all JSON bodies together, in MiB.
pub const MAX_BUFFERED_MEBIBYTES: usize = 256;

/// Bodies up to this size do not count against [`MAX_BUFFERED_MEBIBYTES`]: the number of connections bounds
/// them.
pub const MIN_COUNTED_BODY: ByteSize = ByteSize::kib(64);

/// Commands, searches and writes over HTTP that run at the same time.
pub const MAX_CONCURRENT_WORK: usize = 16;

/// Time that a request waits for a permit before it is answered with 429.
pub const PERMIT_WAIT: Duration = Duration::from_secs(2);

/// Raw uploads that are received at the same time.
pub const MAX_UPLOADS: usize = 16;

/// Raw downloads that are sent at the same time.
pub const MAX_DOWNLOADS: usize = 64;

/// The lowest average rate of an upload in bytes per second, after the first minute.
pub const MIN_UPLOAD_RATE: u64 = 16 << 10;

/// Refusals of one caller that are audited at once; after them, one per second. A caller that is refused
/// without end must not push the events of others out of the log.
pub const REFUSAL_AUDIT_BURST: NonZeroU32 = NonZeroU32::new(100).expect("more than none");

/// Callers whose refusals are counted separately.
pub const MAX_REFUSED_CALLERS: usize = 1000;

/// Open event streams of one workspace.
pub const MAX_STREAMS_PER_WORKSPACE: usize = 1024;

/// Interval of the comments that keep a silent stream open.
pub const STREAM_HEARTBEAT: Duration = Duration::from_secs(15);

/// Time that a request to cancel waits for the end of the task, before it answers 202.
pub const CANCEL_WAIT: Duration = Duration::from_secs(2);

/// Time that open requests have to end when the server stops.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// Open connections; more are not accepted until one closes.
pub const MAX_CONNECTIONS: usize = 4096;

/// Time until the head of a request has arrived.
pub const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(15);

/// Time until a JSON body has arrived.
pub const BODY_READ_TIMEOUT: Duration = Duration::from_mins(1);

/// Time that a client may leave the response unread before its connection is closed.
pub const WRITE_STALL: Duration = Duration::from_secs(30);
