//! What one request, one task and one worker may take.

use std::time::Duration;

use carrel_domain::ByteSize;

/// Bytes of all steps of a task together, contents of files included.
pub const MAX_TASK_BYTES: ByteSize = ByteSize::mib(32);

/// The usual time of a step, if the task leaves it that much.
pub const STEP_SECONDS: u64 = 120;

/// Tasks of one workspace that may wait. More are refused until some have run.
pub const MAX_WAITING_TASKS: u64 = 100_000;

/// OutputLines that one task tells while it runs. The rest is in the result.
pub const MAX_LOG_LINES: usize = 5000;

/// Bytes of one line that is told; the rest of the line is cut.
pub const MAX_LINE_BYTES: usize = 4096;

/// How long a claim holds without a sign of life.
pub const LEASE: Duration = Duration::from_secs(30);

/// How often a worker gives a sign of life, and looks whether somebody asked for the task's end.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// Tasks of one workspace that run at once.
pub const RUNNING_PER_WORKSPACE: u32 = 8;

/// How long an answer is remembered for those who ask again with the same key.
pub const REMEMBER_REPLIES: Duration = Duration::from_hours(24);

/// How long a worker that stops waits for its tasks before it gives them back.
pub const DRAIN: Duration = Duration::from_secs(20);
