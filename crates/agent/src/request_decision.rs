//! Decisions about an agent's requests, and their replies.

use serde_json::Value;

use crate::failure::{AgentFailure, FailureKind, Result};
use crate::reporter::Reporter;
use crate::rpc::Connection;

#[derive(Debug, PartialEq)]
pub(crate) enum RequestDecision {
    /// Allow it, for the whole session where the protocol can say so.
    Approve {
        reply: Value,
        subject: String,
    },
    /// Decline it; the turn continues.
    Skip {
        reply: Value,
        subject: String,
    },
    /// Decline it and end the turn: an operator has to decide.
    Stop {
        reply: Value,
        failure: AgentFailure,
    },
    /// Call a tool; the reply follows its result.
    CallTool {
        tool: String,
        arguments: Value,
    },
    Unsupported,
}

impl RequestDecision {
    pub(crate) fn stop(reply: Value, kind: FailureKind, message: impl Into<String>) -> Self {
        Self::Stop { reply, failure: AgentFailure::new(kind, message) }
    }

    /// Reports the decision and replies to the request. Fails if the turn has to end, and returns the tool
    /// and its arguments if the reply has to wait for a call. `hint` tells of an alternative to methods that
    /// are not supported.
    pub(crate) async fn reply(
        self,
        (id, method): (&Value, &str),
        hint: &str,
        rpc: &mut Connection,
        reporter: &Reporter,
    ) -> Result<Option<(String, Value)>> {
        match self {
            Self::Approve { reply, subject } => {
                reporter.event("approval_auto_approved", Some(&subject)).await;
                rpc.reply(id, reply).await?;
            }
            Self::Skip { reply, subject } => {
                reporter.event("input_not_given", Some(&subject)).await;
                rpc.reply(id, reply).await?;
            }
            Self::Stop { reply, failure } => {
                reporter.failure(&failure).await;
                rpc.reply(id, reply).await?;
                return Err(failure);
            }
            Self::CallTool { tool, arguments } => return Ok(Some((tool, arguments))),
            Self::Unsupported => {
                reporter.event("unknown_request", Some(method)).await;
                let message = format!("{method} is not supported by this client{hint}");
                rpc.reject(id, &message).await?;
            }
        }
        Ok(None)
    }
}
