//! The trust check and the quota watcher, on real directories. Everything that runs a command is
//! tested through the `carrel` command.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests build the state that a command leaves behind, and fail by panicking"
)]

/// The watcher of a workspace's disk use.
mod quota_watcher;
/// Files that run later, outside the sandbox.
mod trust;
/// The same against a command that fights back.
mod trust_hostile;
/// Links where directories are watched, and what is moved away and back.
mod trust_links;
