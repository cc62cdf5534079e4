//! Tests with real language servers, in the sandbox.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests build projects and change them as commands would, and fail by panicking"
)]

/// Changes of files behind the back of servers.
mod changes;
/// Start, end and replacement of servers.
mod lifecycle;
/// Servers of further languages.
mod more_servers;
/// Random changes, with a fresh server as the oracle.
mod oracle;
/// Each server on a small project: what it finds, before and after changes.
mod servers;
/// Workspaces with projects, and servers for them.
mod test_environment;
