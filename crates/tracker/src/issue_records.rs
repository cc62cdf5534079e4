//! What trackers say of an issue, read with forgiveness.
//!
//! What an issue cannot be without is checked once, by [`IssueRecords`]. Everything else that makes no sense is
//! as good as not there: it never hides an issue.

use std::collections::{HashMap, HashSet};
use std::io;

use carrel_domain::Timestamp;
use serde_json::Value;

use crate::error::TrackerError;
use crate::issue::{Issue, IssueId, normal};

/// Returns the text at a place, if there is one that says something.
pub(crate) fn text(value: &Value, place: &str) -> Option<String> {
    let text = value.pointer(place)?.as_str()?;
    (!text.trim().is_empty()).then(|| text.to_owned())
}

/// Returns the text or whole number at a place, as text.
pub(crate) fn word(value: &Value, place: &str) -> Option<String> {
    match value.pointer(place)? {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the point in time at a place.
pub(crate) fn time(value: &Value, place: &str) -> Option<Timestamp> {
    let text = value.pointer(place)?.as_str()?;
    let written: jiff::Timestamp = text.trim().parse().ok()?;
    Some(Timestamp::from_millis(written.as_millisecond()))
}

/// Returns what is listed at a place; nothing if that is no list.
pub(crate) fn list<'a>(value: &'a Value, place: &str) -> &'a [Value] {
    value.pointer(place).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the address at a place, if people can follow it.
pub(crate) fn link(value: &Value, place: &str) -> Option<String> {
    text(value, place).filter(|url| url.starts_with("https://") || url.starts_with("http://"))
}

/// Returns labels as they are compared: trimmed, lower case, each once.
pub(crate) fn labels<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = HashSet::new();
    names.map(normal).filter(|name| !name.is_empty() && seen.insert(name.clone())).collect()
}

/// Issues that were read, and how many records were none.
#[derive(Clone, Debug, Default)]
pub(crate) struct IssueRecords {
    issues: Vec<Issue>,
    malformed: usize,
    /// How long the issues are, as JSON.
    bytes: u64,
}

impl IssueRecords {
    /// Takes what was read of a record.
    pub(crate) fn add(&mut self, read: Option<Issue>) {
        match read.filter(Issue::is_well_formed) {
            Some(issue) => {
                self.bytes += length(&issue);
                self.issues.push(issue);
            }
            None => self.malformed += 1,
        }
    }

    /// Takes what was read of other records.
    pub(crate) fn append(&mut self, other: Self) {
        self.issues.extend(other.issues);
        self.malformed += other.malformed;
        self.bytes += other.bytes;
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.issues.len()
    }

    /// Returns the issues, each once, and writes down how many records are left out.
    pub(crate) fn forgiving(self, provider: &'static str) -> Vec<Issue> {
        if self.malformed > 0 {
            tracing::warn!(
                provider,
                records = self.malformed,
                "left out records of issues that have no id, identifier, title or state"
            );
        }
        let mut seen = HashSet::new();
        self.issues.into_iter().filter(|issue| seen.insert(issue.id.clone())).collect()
    }

    /// Returns the issues in the order of these ids, unless a record makes no sense.
    pub(crate) fn exacting(
        self,
        provider: &str,
        ids: &[IssueId],
    ) -> Result<Vec<Issue>, TrackerError> {
        if self.malformed > 0 {
            return Err(TrackerError::strange(
                provider,
                "the id, identifier, title or state of an issue",
            ));
        }
        let mut found: HashMap<IssueId, Issue> =
            self.issues.into_iter().map(|issue| (issue.id.clone(), issue)).collect();
        Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
    }
}

/// Counts what is written.
struct Counter(u64);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn length(issue: &Issue) -> u64 {
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, issue).expect("an issue can be written as JSON");
    counter.0
}

/// Returns ids, each once, if they are of the kind that the tracker knows. Others cannot be seen there.
pub(crate) fn plausible(ids: &[IssueId], fits: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut seen = HashSet::new();
    ids.iter().map(|id| id.0.as_str()).filter(|id| fits(id) && seen.insert(*id)).collect()
}

/// Tells whether a text is a number as trackers give them.
pub(crate) fn is_number(text: &str) -> bool {
    (1..=18).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && !text.starts_with('0')
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn what_makes_no_sense_is_not_there() {
        let told = json!({ "a": 7, "b": " ", "c": "x", "d": ["y"], "e": "javascript:alert(1)" });
        assert_eq!(text(&told, "/a"), None);
        assert_eq!(text(&told, "/b"), None);
        assert_eq!(word(&told, "/a").as_deref(), Some("7"));
        assert_eq!(word(&told, "/d"), None);
        assert_eq!(list(&told, "/c"), &[] as &[Value]);
        assert_eq!(link(&told, "/e"), None);
        assert_eq!(time(&told, "/c"), None);
    }

    #[test]
    fn times_are_read_as_every_tracker_writes_them() {
        for written in [
            "2024-01-15T10:30:00.000Z",
            "2024-01-15T10:30:00.000+0000",
            "2024-01-15T11:30:00+01:00",
        ] {
            let told = json!({ "at": written });
            assert_eq!(
                time(&told, "/at").unwrap().to_string(),
                "2024-01-15T10:30:00.000Z",
                "{written}"
            );
        }
    }

    #[test]
    fn labels_are_lower_case_and_each_once() {
        assert_eq!(labels(["Bug", " bug ", "", "ÄRGER"].into_iter()), ["bug", "ärger"]);
    }
}
