//! Facts about an answer: its source, its completeness, and its age.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carrel_code::{Refreshed, SkipReason};
use carrel_domain::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::symbol_indexes::FreshIndex;

/// The files outside the index that a note names.
const MAX_NAMED_FILES: usize = 3;

/// The source of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum AnswerSource {
    /// Syntax trees and names.
    Syntactic,
}

/// The source of an answer, its completeness and its age.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct AnswerFacts {
    /// `semantic` from a language server, or `syntactic` from syntax trees and names.
    source: AnswerSource,
    /// False if something is known to be missing.
    complete: bool,
    /// The part that is missing.
    missing: Option<String>,
    /// Every write before this time is in the answer.
    as_of: Timestamp,
}

impl AnswerFacts {
    /// Returns the facts of an answer from one file that was just read.
    pub(super) fn of_file() -> Self {
        let as_of = timestamp(SystemTime::now());
        Self { source: AnswerSource::Syntactic, complete: true, missing: None, as_of }
    }

    /// Returns the facts of an answer from the symbol index.
    pub(super) fn of_index(fresh: &FreshIndex) -> Self {
        let missing = missing(fresh);
        Self {
            source: AnswerSource::Syntactic,
            complete: missing.is_none(),
            missing,
            as_of: timestamp(fresh.refreshed.as_of),
        }
    }

    /// Returns a line for the text of a reply if something is missing.
    pub(super) fn note(&self) -> Option<String> {
        self.missing.as_ref().map(|missing| format!("[incomplete: {missing}]"))
    }
}

fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Returns the part of the workspace that the index does not have.
fn missing(fresh: &FreshIndex) -> Option<String> {
    let Refreshed { pending, files, is_cut, .. } = fresh.refreshed;
    let mut parts = Vec::new();
    if pending > 0 {
        let seconds = fresh.remaining.max(Duration::from_secs(1)).as_secs();
        let total = files + pending;
        parts.push(format!(
            "{pending} of {total} files are not indexed yet; all will be in about {seconds} s"
        ));
    }
    if is_cut {
        parts.push("some directories could not be read, or the tree has too many files".to_owned());
    }
    parts.extend(skipped(&fresh.view().skipped()));
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns the files that hold code and are not in the index.
fn skipped(all: &[(PathBuf, SkipReason)]) -> Option<String> {
    let first = all.iter().take(MAX_NAMED_FILES);
    let named: Vec<_> =
        first.map(|(path, reason)| format!("{} ({})", path.display(), reason.as_str())).collect();
    let rest = all.len().checked_sub(MAX_NAMED_FILES).filter(|rest| *rest > 0);
    let rest = rest.map_or(String::new(), |rest| format!(" and {rest} more"));
    (!named.is_empty()).then(|| format!("left out: {}{rest}", named.join(", ")))
}
