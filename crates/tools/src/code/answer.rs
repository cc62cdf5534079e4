//! Facts about an answer: its source, its completeness, and its age.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carrel_code::{Refreshed, SkipReason};
use carrel_domain::Timestamp;
use carrel_lsp::Answer;
use schemars::JsonSchema;
use serde::Serialize;

use super::semantics::Reason;
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
    /// A compiler.
    Compiler,
}

/// The source of an answer, its completeness and its age.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct AnswerFacts {
    /// `semantic` from a language server, `syntactic` from syntax trees and names, or `compiler`.
    source: AnswerSource,
    /// False if something is known to be missing.
    complete: bool,
    /// The part that is missing.
    missing: Option<String>,
    /// The server of a semantic answer.
    server: Option<&'static str>,
    /// The reason for which an answer that can be semantic is syntactic.
    unanswered: Option<String>,
    /// The session was told of that reason before, so that texts leave it out.
    #[serde(skip)]
    is_told: bool,
    /// Every write before this time is in the answer.
    as_of: Timestamp,
}

impl AnswerFacts {
    /// Returns the facts of an answer from one file that was just read.
    pub(super) fn of_file() -> Self {
        let as_of = timestamp(SystemTime::now());
        Self { as_of, ..Self::complete(AnswerSource::Syntactic) }
    }

    /// Returns the facts of an answer from files that were looked at after this time.
    pub(super) fn of_files(since: SystemTime, missing: Option<String>) -> Self {
        Self {
            complete: missing.is_none(),
            missing,
            as_of: timestamp(since),
            ..Self::complete(AnswerSource::Syntactic)
        }
    }

    /// Returns the facts of a compiler's answer about files that it read after this time.
    pub(super) fn of_compiler(since: SystemTime) -> Self {
        Self { as_of: timestamp(since), ..Self::complete(AnswerSource::Compiler) }
    }

    /// Returns the facts of an answer from the symbol index.
    pub(super) fn of_index(fresh: &FreshIndex) -> Self {
        let missing = fresh.missing();
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
    pub(super) fn without_server(self, reason: Option<Reason>) -> Self {
        let is_told = reason.as_ref().is_some_and(|reason| reason.is_told);
        Self { unanswered: reason.map(|reason| reason.words), is_told, ..self }
    }

    /// Adds a part that is missing.
    #[must_use]
    pub(super) fn but(self, part: &str) -> Self {
        let missing = self.missing.map_or(part.to_owned(), |missing| format!("{missing}; {part}"));
        Self { complete: false, missing: Some(missing), ..self }
    }

    /// Replaces the facts of the index by those of a later look at it, and keeps the reason for which no server answered.
    #[must_use]
    pub(super) fn with_index(self, now: Self) -> Self {
        Self { unanswered: self.unanswered, is_told: self.is_told, ..now }
    }

    fn complete(source: AnswerSource) -> Self {
        let as_of = Timestamp::from_millis(0);
        Self {
            source,
            complete: true,
            missing: None,
            server: None,
            unanswered: None,
            is_told: false,
            as_of,
        }
    }

    /// Returns lines for the text of a reply about its source and about the part that is missing.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let by_name = |reason: &String| {
            if self.is_told {
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

/// The files of an answer that could not be read any more when it was written.
#[derive(Debug, Default)]
pub(super) struct GoneFiles(Vec<PathBuf>);

impl GoneFiles {
    pub(super) fn add(&mut self, path: &Path) {
        self.0.push(path.to_owned());
    }

    /// Adds the files to the part of an answer that is missing.
    pub(super) fn told(self, answer: AnswerFacts) -> AnswerFacts {
        if self.0.is_empty() {
            return answer;
        }
        let named: Vec<_> =
            self.0.iter().take(MAX_NAMED_FILES).map(|path| path.display().to_string()).collect();
        let rest = self.0.len().saturating_sub(MAX_NAMED_FILES);
        let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        let gone = format!("gone or unreadable meanwhile: {}{rest}", named.join(", "));
        answer.but(&gone)
    }
}

fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl FreshIndex {
    /// Returns the part of the workspace that the index does not have.
    pub(super) fn missing(&self) -> Option<String> {
        let parts = [self.unread(), left_out(&self.view().skipped())];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Returns the part that the index has not looked at yet, or cannot list.
    pub(super) fn unread(&self) -> Option<String> {
        let reason = "some directories could not be read, or the tree has too many files";
        let cut = self.refreshed.is_cut.then(|| reason.to_owned());
        let parts: Vec<_> = [self.pending(), cut].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Returns the part that the index has not looked at yet, and will have soon.
    pub(super) fn pending(&self) -> Option<String> {
        let Refreshed { pending, files, .. } = self.refreshed;
        let seconds = self.remaining.max(Duration::from_secs(1)).as_secs();
        let total = files + pending;
        (pending > 0).then(|| {
            format!(
                "{pending} of {total} files are not indexed yet; all will be in about {seconds} s"
            )
        })
    }
}

/// Returns the files that hold code and are not in the index.
fn left_out(all: &[(PathBuf, SkipReason)]) -> Option<String> {
    let first = all.iter().take(MAX_NAMED_FILES);
    let named: Vec<_> =
        first.map(|(path, reason)| format!("{} ({})", path.display(), reason.as_str())).collect();
    let rest = all.len().checked_sub(MAX_NAMED_FILES).filter(|rest| *rest > 0);
    let rest = rest.map_or(String::new(), |rest| format!(" and {rest} more"));
    (!named.is_empty()).then(|| format!("left out: {}{rest}", named.join(", ")))
}
