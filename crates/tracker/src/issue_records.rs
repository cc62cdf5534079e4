//! Reading of issues from a tracker's JSON.
//!
//! The members that every issue needs are checked once, by [`IssueRecords`]. Any other member that is
//! missing or malformed reads as absent, so that it never hides an issue.

use std::collections::{HashMap, HashSet};

use carrel_domain::Timestamp;
use serde_json::Value;

use crate::error::{Result, TrackerError};
use crate::issue::{Issue, IssueId, normal};

/// Returns the string at a JSON pointer, unless it is blank.
pub(crate) fn text(value: &Value, path: &str) -> Option<String> {
    let text = value.pointer(path)?.as_str()?;
    (!text.trim().is_empty()).then(|| text.to_owned())
}

/// Returns the string or integer at a JSON pointer, as a string.
pub(crate) fn word(value: &Value, path: &str) -> Option<String> {
    match value.pointer(path)? {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the RFC 3339 time at a JSON pointer.
pub(crate) fn time(value: &Value, path: &str) -> Option<Timestamp> {
    let text = value.pointer(path)?.as_str()?;
    let written: jiff::Timestamp = text.trim().parse().ok()?;
    Some(Timestamp::from_millis(written.as_millisecond()))
}

/// Returns the array at a JSON pointer; empty if there is none.
pub(crate) fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    value.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the `http` or `https` URL at a JSON pointer. Other schemes could run code in a browser.
pub(crate) fn link(value: &Value, path: &str) -> Option<String> {
    text(value, path).filter(|url| url.starts_with("https://") || url.starts_with("http://"))
}

/// Returns labels in the form of [`normal`], each once.
pub(crate) fn labels(names: impl Iterator<Item = impl AsRef<str>>) -> Vec<String> {
    let mut seen = HashSet::new();
    let names = names.map(|name| normal(name.as_ref()));
    names.filter(|name| !name.is_empty() && seen.insert(name.clone())).collect()
}

/// Issues of one or more pages, and the number of malformed records.
#[derive(Clone, Debug, Default)]
pub(crate) struct IssueRecords {
    pub(crate) issues: Vec<Issue>,
    malformed: usize,
    /// The size of the issues as JSON.
    pub(crate) bytes: u64,
}

impl IssueRecords {
    /// Reads the records of a list. `read` returns `None` for a malformed one.
    pub(crate) fn read<'a>(
        list: impl IntoIterator<Item = &'a Value>,
        read: impl Fn(&'a Value) -> Option<Issue>,
    ) -> Self {
        let mut records = Self::default();
        list.into_iter().for_each(|record| records.add(read(record)));
        records
    }

    /// Adds an issue, or counts a record that could not be read as one or lacks a required member.
    pub(crate) fn add(&mut self, read: Option<Issue>) {
        match read.filter(Issue::is_well_formed) {
            Some(issue) => {
                let json = serde_json::to_vec(&issue).expect("an issue can be written as JSON");
                self.bytes += json.len() as u64;
                self.issues.push(issue);
            }
            None => self.malformed += 1,
        }
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.issues.extend(other.issues);
        self.malformed += other.malformed;
        self.bytes += other.bytes;
    }

    /// Returns the issues, each once, and logs the number of malformed records. For lists: one bad record
    /// must not hide the others.
    pub(crate) fn lenient(self, provider: &'static str) -> Vec<Issue> {
        if self.malformed > 0 {
            tracing::warn!(
                provider,
                records = self.malformed,
                "skipped records of issues without id, identifier, title or state"
            );
        }
        let mut seen = HashSet::new();
        self.issues.into_iter().filter(|issue| seen.insert(issue.id.clone())).collect()
    }

    /// Returns the issues in the order of these ids, or an error if a record was malformed. For reads of
    /// claimed issues: a missing one would be released.
    pub(crate) fn strict(self, provider: &str, ids: &[IssueId]) -> Result<Vec<Issue>> {
        if self.malformed > 0 {
            let what = "the id, identifier, title or state of an issue";
            return Err(TrackerError::malformed(provider, what));
        }
        let mut found: HashMap<IssueId, Issue> =
            self.issues.into_iter().map(|issue| (issue.id.clone(), issue)).collect();
        Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
    }
}

/// Returns the ids that have the tracker's format, each once. Others cannot exist there.
pub(crate) fn valid_ids(ids: &[IssueId], fits: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut seen = HashSet::new();
    ids.iter().map(|id| id.0.as_str()).filter(|id| fits(id) && seen.insert(*id)).collect()
}

/// Returns true for a positive decimal number of at most 18 digits.
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
    fn malformed_members_read_as_absent() {
        let json = json!({ "a": 7, "b": " ", "c": "x", "d": ["y"], "e": "javascript:alert(1)" });
        assert_eq!(text(&json, "/a"), None);
        assert_eq!(text(&json, "/b"), None);
        assert_eq!(word(&json, "/a").as_deref(), Some("7"));
        assert_eq!(word(&json, "/d"), None);
        assert_eq!(list(&json, "/c"), &[] as &[Value]);
        assert_eq!(link(&json, "/e"), None);
        assert_eq!(time(&json, "/c"), None);
    }

    #[test]
    fn times_are_read_as_every_tracker_writes_them() {
        for written in [
            "2024-01-15T10:30:00.000Z",
            "2024-01-15T10:30:00.000+0000",
            "2024-01-15T11:30:00+01:00",
        ] {
            let json = json!({ "at": written });
            assert_eq!(
                time(&json, "/at").unwrap().to_string(),
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
