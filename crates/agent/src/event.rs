//! What an agent is heard to do.

use serde::Serialize;
use serde_json::Value;

/// Something that an agent was heard to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A turn has begun.
    SessionStarted {
        /// The conversation and the turn in it.
        session: String,
        /// The conversation.
        thread: String,
        /// The process that is spoken to, if its number means anything outside its walls.
        pid: Option<u32>,
    },
    /// What the session has used so far, in all.
    Usage(Tokens),
    /// What the provider says about its limits.
    RateLimits {
        /// As it was said.
        limits: Value,
    },
    /// Anything else.
    Other {
        /// What kind of event it was.
        kind: String,
        /// What it said, in a line for people.
        message: Option<String>,
    },
}

/// Tokens that were used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Those that were read.
    pub input: u64,
    /// Those that were written.
    pub output: u64,
    /// All, as the agent counts them.
    pub total: u64,
}
