//! What holds of tokens and repositories, with GitHub and Composio on loopback.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests fail by panicking")]

/// Tokens of an app's installations.
mod app;
/// HttpClient at Composio, and the operator's own token.
mod other_sources;
/// GitHub and Composio, as far as they are needed.
mod provider;
