//! The files that a call by structure could not look at.

use std::collections::BTreeMap;
use std::time::SystemTime;

use carrel_code::Language;
use carrel_domain::{Code, Failure};
use carrel_search::FileList;

use super::answer::AnswerFacts;
use crate::files::shown;

/// Files, and languages, that a note names.
const MAX_NAMED: usize = 3;

/// Files that the facts of a reply name.
const MAX_LISTED: usize = 100;

/// The files that were not looked at, by their reasons.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    /// Files that could not be read or parsed, with the reason.
    files: Vec<String>,
    /// Languages whose grammar does not understand the rule, with the number of their files.
    languages: BTreeMap<Language, usize>,
    /// Further files that exist and were not listed.
    walk: Option<String>,
}

impl LeftOut {
    /// Notes what the walk over a directory did not list.
    pub(super) fn of_walk(list: &FileList) -> Self {
        let mut parts = Vec::new();
        if list.is_cut {
            parts.push(
                "the directory has too many files, of which the first were listed".to_owned(),
            );
        }
        if let Some(first) = list.unreadable.first.first() {
            let (path, total) = (shown(&first.path), list.unreadable.total);
            parts.push(format!("{total} could not be read, such as {path} ({})", first.reason));
        }
        let walk = (!parts.is_empty()).then(|| parts.join("; "));
        Self { walk, ..Self::default() }
    }

    /// Adds a file and the reason for which it was not looked at.
    pub(super) fn add(&mut self, name: &str, reason: &str) {
        self.files.push(format!("{name} ({reason})"));
    }

    /// Adds a file that could not be loaded. One that vanished since it was listed is not left out.
    pub(super) fn add_unread(&mut self, name: &str, failure: &Failure) {
        if failure.code != Code::NotFound {
            self.add(name, failure.message.trim_start_matches(name).trim_start_matches([':', ' ']));
        }
    }

    /// Adds a file whose language does not understand the rule.
    pub(super) fn add_language(&mut self, language: Language) {
        *self.languages.entry(language).or_default() += 1;
    }

    /// Returns the files for the facts of a reply.
    pub(super) fn files(&self) -> Vec<String> {
        self.files.iter().take(MAX_LISTED).cloned().collect()
    }

    /// Returns the facts of an answer from the files that were looked at after this time. `rest` names what is missing
    /// for another reason.
    pub(super) fn answer(&self, since: SystemTime, rest: Option<&str>) -> AnswerFacts {
        let parts = [self.missing(), rest.map(str::to_owned)].into_iter().flatten();
        let parts = parts.collect::<Vec<_>>().join("; ");
        let skipped = || (!self.files.is_empty()).then(|| "the files in `skipped`".to_owned());
        let missing = Some(parts).filter(|parts| !parts.is_empty()).or_else(skipped);
        AnswerFacts::of_files(since, missing)
    }

    /// Returns what else was left out, for the facts of a reply.
    pub(super) fn missing(&self) -> Option<String> {
        let count = |(language, files): (&Language, &usize)| format!("{files} in {language}");
        let languages = self.languages.iter().map(count).collect::<Vec<_>>().join(", ");
        let languages = (!languages.is_empty())
            .then(|| format!("files whose language does not understand the pattern: {languages}"));
        let parts: Vec<_> = languages.into_iter().chain(self.walk.clone()).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Returns lines for the text of a reply. `verb` is what was not done, such as "scanned".
    pub(super) fn notes(&self, verb: &str) -> impl Iterator<Item = String> {
        let named = self.files.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>();
        let rest = self.files.len().checked_sub(MAX_NAMED).filter(|rest| *rest > 0);
        let rest = rest.map_or(String::new(), |rest| format!(" and {rest} more"));
        let files =
            (!named.is_empty()).then(|| format!("[not {verb}: {}{rest}]", named.join(", ")));
        let missing = self.missing().map(|missing| format!("[not {verb}: {missing}]"));
        files.into_iter().chain(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_search::{ReadFailure, ReadFailures};
    use pretty_assertions::assert_eq;

    #[test]
    fn everything_that_was_left_out_is_named() {
        let reason = "permission denied".to_owned();
        let first = vec![ReadFailure { path: "secret".into(), reason }];
        let list = FileList {
            files: Vec::new(),
            unreadable: ReadFailures { total: 2, first },
            is_cut: true,
        };
        let mut left_out = LeftOut::of_walk(&list);
        for number in 0..4 {
            left_out.add(&format!("f{number}.py"), "not UTF-8");
        }
        left_out.add_unread("gone.py", &Failure::new(Code::NotFound, "gone.py: no such file"));
        left_out.add_unread("a.py", &Failure::new(Code::Io, "a.py: permission denied"));
        left_out.add_language(Language::Go);
        left_out.add_language(Language::Go);
        assert_eq!(
            left_out.notes("scanned").collect::<Vec<_>>(),
            [
                "[not scanned: f0.py (not UTF-8), f1.py (not UTF-8), f2.py (not UTF-8) and 2 more]",
                "[not scanned: files whose language does not understand the pattern: 2 in go; the directory has too \
                 many files, of which the first were listed; 2 could not be read, such as secret (permission denied)]"
            ]
        );
        assert_eq!(left_out.files()[4], "a.py (permission denied)");
        assert_eq!(LeftOut::default().notes("scanned").count(), 0);
    }
}
