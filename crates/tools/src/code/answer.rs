//! Facts about an answer: its source, its completeness, and its age.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carrel_code::{Refreshed, SkipReason};
use carrel_domain::Timestamp;
use carrel_lsp::Answer;
use schemars::JsonSchema;
use serde::Serialize;

use super::symbol_indexes::FreshIndex;

/// The files outside the index that a note names.
const MAX_NAMED_FILES: usize = 3;

/// The source of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum AnswerSource {
    /// A language server.
    Semantic,
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
    /// The server of a semantic answer.
    server: Option<&'static str>,
    /// The reason for which an answer that can be semantic is syntactic.
    unanswered: Option<String>,
    /// Every write before this time is in the answer.
    as_of: Timestamp,
}

impl AnswerFacts {
    /// Returns the facts of an answer from one file that was just read.
    pub(super) fn of_file() -> Self {
        let as_of = timestamp(SystemTime::now());
        Self { as_of, ..Self::complete(AnswerSource::Syntactic) }
    }

    /// Returns the facts of an answer from the symbol index.
    pub(super) fn of_index(fresh: &FreshIndex) -> Self {
        let missing = missing(fresh);
        Self {
            complete: missing.is_none(),
            missing,
            as_of: timestamp(fresh.refreshed.as_of),
            ..Self::complete(AnswerSource::Syntactic)
        }
    }

    /// Returns the facts of a language server's answer.
    pub(super) fn of_server<T>(answer: &Answer<T>) -> Self {
        Self {
            complete: answer.is_complete(),
            missing: answer.incomplete.clone(),
            server: Some(answer.server),
            as_of: timestamp(answer.as_of),
            ..Self::complete(AnswerSource::Semantic)
        }
    }

    /// Adds a later answer of the same server about another file.
    #[must_use]
    pub(super) fn and(self, later: &Self) -> Self {
        let complete = self.complete && later.complete;
        Self { complete, missing: self.missing.or_else(|| later.missing.clone()), ..self }
    }

    /// Returns true unless something is known to be missing.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Adds the reason for which no server answered.
    #[must_use]
    pub(super) fn without_server(self, reason: Option<String>) -> Self {
        Self { unanswered: reason, ..self }
    }

    fn complete(source: AnswerSource) -> Self {
        let as_of = Timestamp::from_millis(0);
        Self { source, complete: true, missing: None, server: None, unanswered: None, as_of }
    }

    /// Returns lines for the text of a reply about its source and about the part that is missing.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let by_name = |reason: &String| {
            if reason.is_empty() {
                "[by name alone]".to_owned()
            } else {
                format!("[by name alone: {reason}]")
            }
        };
        let server = self.server.map(|server| format!("[by {server}]"));
        let missing = self.missing.as_ref().map(|missing| format!("[incomplete: {missing}]"));
        [server, self.unanswered.as_ref().map(by_name), missing].into_iter().flatten()
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
