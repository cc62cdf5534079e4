//! Results of API calls in the shape that agents expect.
//!
//! Agents that were written against the service read a JSON object in every case: the reply of the route, or
//! `success: false` with an `error` text. The texts for unreachable workers are part of that contract.

use carrel_domain::message_of;
use serde_json::{Value, json};

use crate::error::{ClientError, Result};

/// Returns the reply of a call, or `success: false` with the error's message and status.
///
/// A reply without a field `success` gets none: a command that exits with an error is a successful call.
pub fn agent_reply(action: &str, outcome: Result<Value>) -> Value {
    match outcome {
        Ok(response) => response,
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
    fn results_have_the_shape_that_agents_expect() {
        let refused = ClientError::Api(Box::new(ApiError {
            status: 404,
            code: "E_NOT_FOUND".to_owned(),
            message: "no such file: a".to_owned(),
            detail: json!({}),
            retry_after: None,
        }));
        let timeout = SendError::Timeout { within: Duration::from_mins(1) };
        let unreachable =
            ClientError::Unreachable { server: "http://w".to_owned(), source: timeout };
        let foreign =
            ClientError::Protocol { server: "http://w".to_owned(), what: "no JSON".to_owned() };
        for (outcome, expected) in [
            (Ok(json!({"exit_code": 1})), json!({"exit_code": 1})),
            (
                Err(refused),
                json!({"success": false, "error": "no such file: a", "status_code": 404}),
            ),
            (
                Err(unreachable),
                json!({"success": false, "error": "Workspace worker unreachable (read_file): no response within 60 s"}),
            ),
            (
                Err(foreign),
                json!({"success": false, "error": "Workspace worker failed (read_file): http://w does not answer as Carrel does: no JSON"}),
            ),
        ] {
            assert_eq!(agent_reply("read_file", outcome), expected);
        }
    }
}
