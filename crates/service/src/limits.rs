//! Bounds of requests and tasks, and the intervals of leases.

use std::time::Duration;

use carrel_domain::ByteSize;

/// The largest configuration of a task as JSON, file contents included.
pub const MAX_TASK_BYTES: ByteSize = ByteSize::mib(32);

/// The most queued tasks of one workspace. Further submissions are refused until some have run.
pub const MAX_WAITING_TASKS: u64 = 100_000;

/// The most log-line events of a task. The end of the output is in the result in any case.
pub const MAX_LOG_LINES: usize = 5000;

/// The longest log line, in bytes; the rest of the line is cut.
pub const MAX_LINE_BYTES: usize = 4096;

/// The time after the last heartbeat when a task may be given to another worker.
pub const LEASE: Duration = Duration::from_secs(30);

/// The interval of heartbeats, which extend the lease and bring cancellations: five can fail before a
/// lease expires.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// The most tasks of one workspace that run at once.
pub const RUNNING_PER_WORKSPACE: u32 = 8;

/// The time for which a reply is stored for requests with the same idempotency key.
pub const REPLY_RETENTION: Duration = Duration::from_hours(24);

/// The time that a stopping worker gives its running tasks before it releases them to other workers.
pub const DRAIN: Duration = Duration::from_secs(20);
