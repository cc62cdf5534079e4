//! Bounds of requests that both the schemas and the handlers state.

/// Entries of one page of a list.
pub const MAX_PAGE: u32 = 100;

/// Entries of a page when the request does not set `limit`.
pub const DEFAULT_PAGE: u32 = 20;

/// Characters of a workspace's name.
pub const MAX_NAME_CHARS: usize = 200;

/// The smallest quota in GiB: 1 MiB.
pub const MIN_QUOTA_GB: f64 = 1.0 / 1024.0;

/// The largest quota in GiB: 1 PiB.
pub const MAX_QUOTA_GB: u32 = 1 << 20;

/// Characters of a command line over HTTP.
pub const MAX_COMMAND_CHARS: usize = 4096;

/// Seconds that a command over HTTP may run when the request does not set `timeout`.
pub const DEFAULT_EXEC_SECONDS: u64 = 120;

/// The longest `timeout` of a command over HTTP, in seconds. Longer work belongs into a task.
pub const MAX_EXEC_SECONDS: u64 = 300;

/// Characters of a branch name.
pub const MAX_BRANCH_CHARS: usize = 255;

/// Repositories of one page; GitHub's own limit.
pub const MAX_REPOSITORIES: u32 = 100;

/// Repositories of a page when the request does not set `per_page`; GitHub's own default.
pub const DEFAULT_REPOSITORIES: u32 = 30;

/// Steps of one task.
pub const MAX_STEPS: usize = 100;

/// Bytes of the command line of a step.
pub const MAX_STEP_COMMAND_BYTES: usize = 64 * 1024;

/// Bytes of a path, a URL or a tool name of a step.
pub const MAX_STEP_TEXT_BYTES: usize = 4096;

/// Credentials that one step may name.
pub const MAX_STEP_CREDENTIALS: usize = 10;

/// Characters of a task type, a correlation id or an idempotency key of a task.
pub const MAX_LABEL_CHARS: usize = 255;

/// The shortest `timeout_seconds` of a task.
pub const MIN_TASK_SECONDS: u64 = 10;

/// The `timeout_seconds` of a task that does not set it.
pub const DEFAULT_TASK_SECONDS: u64 = 300;

/// The longest `timeout_seconds` of a task.
pub const MAX_TASK_SECONDS: u64 = 3600;

/// The attempts of a task that does not set `max_attempts`.
pub const DEFAULT_ATTEMPTS: u32 = 3;

/// The largest `max_attempts`.
pub const MAX_ATTEMPTS: u32 = 10;

/// Characters of an answer to an agent's question.
pub const MAX_ANSWER_CHARS: usize = 20_000;

/// The most bytes of a fork's patch in a reply.
pub const MAX_PATCH_BYTES: usize = 1 << 20;

/// The most changes of a fork that a reply lists.
pub const MAX_LISTED_CHANGES: usize = 1000;
