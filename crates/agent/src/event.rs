//! Events of an agent, common to all protocols.

use serde::Serialize;
use serde_json::Value;

/// An event of an agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A turn has started. Sent once for every turn and not only for the first one of a session: what the
    /// wire format calls a session is one turn.
    SessionStarted {
        /// The id of the turn: the conversation's id and the turn's.
        session: String,
        /// The id of the conversation.
        thread: String,
        /// The agent's process id; `None` in a sandbox with a pid namespace, where it means nothing outside.
        pid: Option<u32>,
    },
    /// The tokens of the session so far, as a total that never falls.
    Usage(Tokens),
    /// The provider's rate limits have changed.
    RateLimits {
        /// The limits in the provider's format.
        limits: Value,
    },
    /// Any other event.
    Other {
        /// The agent's or Carrel's name for the kind of event.
        kind: String,
        /// A one-line summary.
        message: Option<String>,
    },
}

/// Token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// All tokens as the agent counts them; input plus output if it reports no total.
    pub total: u64,
}
