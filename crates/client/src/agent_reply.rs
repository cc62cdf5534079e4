//! Answers in the words that agents know.

use carrel_domain::message_of;
use serde_json::{Value, json};

use crate::error::ClientError;

/// Returns what an agent is told of an action: the answer itself, or `success` and `error`.
///
/// An answer that has no `success` of its own gets none here: a command that failed is no failed call.
pub fn agent_reply(action: &str, outcome: Result<Value, ClientError>) -> Value {
    match outcome {
        Ok(answer) => answer,
        Err(ClientError::Api(refusal)) => {
            json!({ "success": false, "error": refusal.message, "status_code": refusal.status })
        }
        Err(ClientError::Unreachable { source, .. }) => {
            let why = message_of(&source);
            json!({ "success": false, "error": format!("Workspace worker unreachable ({action}): {why}") })
        }
        Err(error @ ClientError::Protocol { .. }) => {
            json!({ "success": false, "error": format!("Workspace worker failed ({action}): {error}") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ApiError;
    use crate::http_client::SendError;
    use pretty_assertions::assert_eq;
    use std::time::Duration;

    #[test]
    fn agents_are_told_in_the_words_they_know() {
        let refused = ClientError::Api(Box::new(ApiError {
            status: 404,
            code: "E_NOT_FOUND".to_owned(),
            message: "no such file: a".to_owned(),
            detail: json!({}),
            retry_after: None,
        }));
        let late = SendError::Timeout { within: Duration::from_mins(1) };
        let unreachable = ClientError::Unreachable { server: "http://w".to_owned(), source: late };
        let strange =
            ClientError::Protocol { server: "http://w".to_owned(), what: "no JSON".to_owned() };
        for (outcome, told) in [
            (Ok(json!({"exit_code": 1})), json!({"exit_code": 1})),
            (
                Err(refused),
                json!({"success": false, "error": "no such file: a", "status_code": 404}),
            ),
            (
                Err(unreachable),
                json!({"success": false, "error": "Workspace worker unreachable (read_file): no answer within 60 s"}),
            ),
            (
                Err(strange),
                json!({"success": false, "error": "Workspace worker failed (read_file): http://w does not answer as Carrel does: no JSON"}),
            ),
        ] {
            assert_eq!(agent_reply("read_file", outcome), told);
        }
    }
}
