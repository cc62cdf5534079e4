//! Validation and normalisation of local issues.

use carrel_store::{IssueChange, NewIssue};

use super::LocalError;
use crate::normal;

/// The size of a description or comment in bytes. Longer texts belong into a file.
pub const MAX_TEXT_BYTES: usize = 256 << 10;

/// The length of a title in characters; it is shown in one line.
const MAX_TITLE_CHARS: usize = 300;

/// The length of a state or label in characters.
const MAX_NAME_CHARS: usize = 64;

/// Labels or blockers in one change; a change is one transaction.
const MAX_LISTED: usize = 100;

pub(super) fn checked(new: NewIssue) -> Result<NewIssue, LocalError> {
    if let Some(other) = new.priority.filter(|priority| !(0..=4).contains(priority)) {
        let rule = format!("is {other}; write 1 for the most urgent to 4, or 0 for none");
        return Err(LocalError::Refused { what: "the priority", rule });
    }
    Ok(NewIssue {
        title: line("the title", &new.title, MAX_TITLE_CHARS)?,
        description: new.description.map(|body| text("the description", &body)).transpose()?,
        state: line("the state", &new.state, MAX_NAME_CHARS)?,
        priority: new.priority,
        labels: labels(&new.labels)?,
        blocked_by: at_most("the blockers", new.blocked_by)?,
    })
}

pub(super) fn checked_change(number: u64, change: IssueChange) -> Result<IssueChange, LocalError> {
    if change.add_blockers.contains(&number) {
        let rule = "name the issue itself; it cannot wait for its own end".to_owned();
        return Err(LocalError::Refused { what: "the blockers", rule });
    }
    let state = change.state.map(|state| line("the state", &state, MAX_NAME_CHARS)).transpose()?;
    Ok(IssueChange {
        state,
        add_labels: labels(&change.add_labels)?,
        remove_labels: labels(&change.remove_labels)?,
        add_blockers: at_most("the blockers", change.add_blockers)?,
        remove_blockers: at_most("the blockers", change.remove_blockers)?,
    })
}

pub(super) fn text(what: &'static str, text: &str) -> Result<String, LocalError> {
    let refused = |rule: String| Err(LocalError::Refused { what, rule });
    if text.trim().is_empty() {
        return refused("is empty; write something".to_owned());
    }
    if text.len() > MAX_TEXT_BYTES {
        let most = MAX_TEXT_BYTES >> 10;
        return refused(format!("is longer than {most} KiB; put it into a file and name that"));
    }
    if text.contains('\0') {
        return refused("contains a NUL byte; leave it out".to_owned());
    }
    Ok(text.to_owned())
}

fn line(what: &'static str, text: &str, most: usize) -> Result<String, LocalError> {
    let refused = |rule: String| Err(LocalError::Refused { what, rule });
    let text = text.trim();
    if text.is_empty() {
        return refused("is empty; write something".to_owned());
    }
    if text.chars().any(char::is_control) {
        return refused("has a line break or control character; write one plain line".to_owned());
    }
    if text.chars().count() > most {
        return refused(format!("is longer than {most} characters; shorten it"));
    }
    Ok(text.to_owned())
}

/// Normalises labels: trimmed, lower case, each once.
fn labels(labels: &[String]) -> Result<Vec<String>, LocalError> {
    let mut unique = Vec::new();
    for label in labels {
        let label = normal(&line("a label", label, MAX_NAME_CHARS)?);
        if !unique.contains(&label) {
            unique.push(label);
        }
    }
    at_most("the labels", unique)
}

fn at_most<T>(what: &'static str, listed: Vec<T>) -> Result<Vec<T>, LocalError> {
    if listed.len() > MAX_LISTED {
        let rule = format!("are {}; give at most {MAX_LISTED} at once", listed.len());
        return Err(LocalError::Refused { what, rule });
    }
    Ok(listed)
}
