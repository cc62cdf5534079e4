//! Redaction of known secrets in events.
//!
//! Events are redacted before they are decided upon, so the state, the journal, notices and snapshots never
//! hold a secret. Transcripts are redacted by their writer.

use carrel_domain::Secret;

use crate::event::{AgentUpdate, Event, RunEnd};
use carrel_tracker::TrackerError;

pub(super) fn event(event: Event, secrets: &[Secret]) -> Event {
    if secrets.is_empty() {
        return event;
    }
    let text = |text: String| secrets.iter().fold(text, |text, secret| secret.mask(&text));
    let fault = |fault: TrackerError| TrackerError { message: text(fault.message), ..fault };
    match event {
        Event::AgentUpdated(run, AgentUpdate::Other { event, message }) => {
            let (event, message) = (text(event), message.map(text));
            Event::AgentUpdated(run, AgentUpdate::Other { event, message })
        }
        Event::RunEnded(run, RunEnd::Failed(error)) => {
            Event::RunEnded(run, RunEnd::Failed(text(error)))
        }
        Event::RunEnded(run, RunEnd::Blocked(reason)) => {
            Event::RunEnded(run, RunEnd::Blocked(reason.map_detail(text)))
        }
        Event::Cleaned(issue, Err(error)) => Event::Cleaned(issue, Err(text(error))),
        Event::Polled(query, Err(error)) => Event::Polled(query, Err(fault(error))),
        Event::Read(query, ids, Err(error)) => Event::Read(query, ids, Err(fault(error))),
        Event::WorkflowInvalid(error) => Event::WorkflowInvalid(text(error)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claimed_issue::{BlockReason, RunId};
    use carrel_tracker::TrackerErrorKind;

    #[test]
    fn no_text_that_people_see_holds_a_secret() {
        let secrets = [Secret::new("hunter2-hunter2")];
        let leak = || "token hunter2-hunter2 is wrong".to_owned();
        let query = crate::state::QueryId(1);
        let events = [
            Event::AgentUpdated(
                RunId(1),
                AgentUpdate::Other { event: leak(), message: Some(leak()) },
            ),
            Event::RunEnded(RunId(1), RunEnd::Failed(leak())),
            Event::RunEnded(RunId(1), RunEnd::Blocked(BlockReason::Input(leak()))),
            Event::RunEnded(RunId(1), RunEnd::Blocked(BlockReason::Approval(leak()))),
            Event::Cleaned(carrel_tracker::IssueId("1".to_owned()), Err(leak())),
            Event::Polled(query, Err(TrackerError::new(TrackerErrorKind::Request, leak()))),
            Event::Read(
                query,
                Vec::new(),
                Err(TrackerError::new(TrackerErrorKind::Request, leak())),
            ),
            Event::WorkflowInvalid(leak()),
        ];
        for leaking in events {
            let shown = format!("{:?}", event(leaking, &secrets));
            assert!(!shown.contains("hunter2") && shown.contains("***"), "{shown}");
        }
    }
}
