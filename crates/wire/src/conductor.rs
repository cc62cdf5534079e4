//! `/api/v1`: requests to a conductor.
//!
//! Its replies are the views of `conductor::snapshot`, which the dashboard and the state file use as well.

use carrel_domain::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::MAX_ANSWER_CHARS;

/// The issue of a request, for identifiers that are also the name of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IssueQuery {
    /// The tracker's id of the issue; for `/api/v1/issue`.
    pub id: Option<String>,
    /// The identifier of the issue, such as `ABC-123`; for `/api/v1/issue`.
    pub identifier: Option<String>,
}

/// The query of the conductor's event stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConductorEventsQuery {
    /// The number of the last event that was received, for clients that cannot send the header.
    #[schemars(range(min = 0, max = u64::MAX))]
    pub last_event_id: Option<u64>,
}

/// The answer to a question of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerRequest {
    /// The text that the agent gets.
    #[schemars(length(min = 1, max = MAX_ANSWER_CHARS))]
    pub answer: String,
}

/// The acknowledgement of a request to poll the tracker now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefreshReply {
    /// `true`: a poll follows.
    pub queued: bool,
    /// `true` if a poll was running or due already, and serves this request as well.
    pub coalesced: bool,
    /// The time of the request.
    pub requested_at: Timestamp,
    /// The operations of a poll: `poll` and `reconcile`.
    pub operations: [String; 2],
}
