//! Prompts of a run.
//!
//! The first turn gets the workflow file's rendered template. In a resumed conversation the agent knows it
//! already, and gets an operator's answer or a note about the interruption instead. Further turns get
//! guidance, preceded by the template for agents that keep no conversation.

use carrel_config::{Prompt, TemplateError};
use serde_json::{Map, json};

use crate::effect::Dispatch;
use carrel_tracker::Issue;

/// Renders the template of the workflow file with `issue` and `attempt`.
pub(super) fn initial(prompt: &Prompt, start: &Dispatch) -> Result<String, TemplateError> {
    let mut variables = Map::new();
    variables.insert("issue".to_owned(), json!(start.issue));
    variables.insert("attempt".to_owned(), json!(start.attempt));
    prompt.render(&variables)
}

pub(super) fn first_turn(first: &str, start: &Dispatch, resumed: bool) -> String {
    match (&start.answer, resumed) {
        (Some(answer), true) => answered(answer),
        (Some(answer), false) => format!("{first}\n\n{}", answered(answer)),
        (None, true) => format!(
            "Your work on {} was interrupted from outside, maybe in the middle of a step. See what is \
             in the workspace, and go on from there. What you were told before still holds.",
            start.issue.identifier
        ),
        (None, false) => first.to_owned(),
    }
}

fn answered(answer: &str) -> String {
    format!("You had asked something. This is the answer, go on with it:\n\n{answer}")
}

/// Returns the prompt of a further turn. `known` says that the agent has the conversation so far.
pub(super) fn next_turn(first: &str, issue: &Issue, turn: u64, most: u64, known: bool) -> String {
    let Issue { identifier, state, .. } = issue;
    let guidance = format!(
        "This is turn {turn} of at most {most}. The turn before it ended without an error, and \
         {identifier} (it was {state:?}) still waits to be worked on. Go on from what is in the \
         workspace instead of beginning again, and do what is left. End your turn early only if you \
         lack something that you cannot get, and say then what it is."
    );
    if known { guidance } else { format!("{first}\n\n{guidance}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_without_a_conversation_gets_the_whole_prompt_again() {
        let issue: Issue = serde_json::from_value::<Issue>(issue()).unwrap();
        let with = next_turn("FIRST", &issue, 2, 20, true);
        let without = next_turn("FIRST", &issue, 2, 20, false);
        assert!(!with.contains("FIRST") && with.contains("turn 2 of at most 20"), "{with}");
        assert_eq!(without, format!("FIRST\n\n{with}"));
    }

    fn issue() -> serde_json::Value {
        json!({
            "id": "1", "identifier": "ABC-1", "title": "t", "state": "Todo", "labels": [],
            "blocked_by": [], "dispatchable": true
        })
    }
}
