//! One look at the tracker, and what came of it.

use crate::event::{End, Event};
use crate::state::{Stage, State, Then};

use super::memory::outcome;

/// What came of a conductor's work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many runs ended well.
    pub succeeded: usize,
    /// What did not: whose it was, and why.
    pub failed: Vec<(String, String)>,
    /// How many issues were left because there was no place for them.
    pub left: usize,
}

impl Report {
    /// Takes note of what an event means for it, before the event is decided upon.
    pub(super) fn hear(&mut self, state: &State, event: &Event) {
        match event {
            Event::Polled(_, Err(fault)) | Event::Read(_, _, Err(fault)) => {
                self.failed.push(("the tracker".to_owned(), fault.message.clone()));
            }
            Event::Ended(run, end) => {
                let entry = state
                    .entries
                    .values()
                    .find(|entry| entry.stage.run().is_some_and(|there| there.id == *run));
                let Some(entry) = entry else { return };
                match trouble(&entry.stage, end) {
                    None => self.succeeded += 1,
                    Some(why) => self.failed.push((entry.issue.identifier.clone(), why)),
                }
            }
            _ => {}
        }
    }
}

/// Says why a run is no success, if it is none.
fn trouble(stage: &Stage, end: &End) -> Option<String> {
    match stage {
        Stage::Stopping { then: Then::Release | Then::Clean | Then::Continue, .. } => None,
        Stage::Stopping { then: Then::Fail(_, error), .. } => Some(error.clone()),
        Stage::Stopping { then: Then::Tomorrow, .. } => {
            Some("today's budget is used up".to_owned())
        }
        Stage::Stopping { then: Then::Block(reason), .. } => Some(format!("{reason:?}")),
        _ => match end {
            End::Well => None,
            End::Failed(_) | End::RateLimited(_) | End::Blocked(_) => {
                let (word, error) = outcome(end);
                Some(error.unwrap_or_else(|| word.to_owned()))
            }
        },
    }
}
