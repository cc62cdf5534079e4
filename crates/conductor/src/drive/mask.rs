//! Keeping secrets out of whatever is shown, logged and written down.

use carrel_domain::Secret;

use crate::entry::Reason;
use crate::event::{End, Event, News};
use carrel_tracker::Fault;

/// Blanks known secrets out of the texts of an event, before anybody sees them.
pub(super) fn event(event: Event, secrets: &[Secret]) -> Event {
    if secrets.is_empty() {
        return event;
    }
    let text = |text: String| secrets.iter().fold(text, |text, secret| secret.mask(&text));
    let fault = |fault: Fault| Fault { message: text(fault.message), ..fault };
    match event {
        Event::Heard(run, News::Something { event, message }) => {
            let (event, message) = (text(event), message.map(text));
            Event::Heard(run, News::Something { event, message })
        }
        Event::Ended(run, End::Failed(error)) => Event::Ended(run, End::Failed(text(error))),
        Event::Ended(run, End::Blocked(Reason::Input(asked))) => {
            Event::Ended(run, End::Blocked(Reason::Input(text(asked))))
        }
        Event::Ended(run, End::Blocked(Reason::Approval(wanted))) => {
            Event::Ended(run, End::Blocked(Reason::Approval(text(wanted))))
        }
        Event::Cleaned(issue, Err(error)) => Event::Cleaned(issue, Err(text(error))),
        Event::Polled(question, Err(error)) => Event::Polled(question, Err(fault(error))),
        Event::Read(question, ids, Err(error)) => Event::Read(question, ids, Err(fault(error))),
        Event::Broken(error) => Event::Broken(text(error)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::RunId;
    use carrel_tracker::FaultKind;

    #[test]
    fn no_text_that_people_see_holds_a_secret() {
        let secrets = [Secret::new("hunter2-hunter2")];
        let leak = || "token hunter2-hunter2 is wrong".to_owned();
        let question = crate::state::Question(1);
        let events = [
            Event::Heard(RunId(1), News::Something { event: leak(), message: Some(leak()) }),
            Event::Ended(RunId(1), End::Failed(leak())),
            Event::Ended(RunId(1), End::Blocked(Reason::Input(leak()))),
            Event::Ended(RunId(1), End::Blocked(Reason::Approval(leak()))),
            Event::Cleaned(carrel_tracker::IssueId("1".to_owned()), Err(leak())),
            Event::Polled(question, Err(Fault::new(FaultKind::Request, leak()))),
            Event::Read(question, Vec::new(), Err(Fault::new(FaultKind::Request, leak()))),
            Event::Broken(leak()),
        ];
        for leaking in events {
            let shown = format!("{:?}", event(leaking, &secrets));
            assert!(!shown.contains("hunter2") && shown.contains("***"), "{shown}");
        }
    }
}
