//! What one request, one task and one worker may take.

use std::time::Duration;

use carrel_domain::ByteSize;

/// Steps of one task.
pub const MAX_STEPS: usize = 100;

/// Bytes of all steps of a task together, contents of files included.
pub const MAX_TASK_BYTES: ByteSize = ByteSize::mib(32);

/// Bytes of one command line.
pub const MAX_COMMAND_BYTES: usize = 64 * 1024;

/// Bytes of a path, an address or a branch.
pub const MAX_TEXT_BYTES: usize = 4096;

/// Characters of an idempotency key, a correlation id or a kind of task.
pub const MAX_WORD_CHARS: usize = 255;

/// The shortest, the usual and the longest time of a task.
pub const TASK_SECONDS: (u64, u64, u64) = (10, 300, 3600);

/// The usual and the largest number of attempts of a task.
pub const ATTEMPTS: (u32, u32) = (3, 10);

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
