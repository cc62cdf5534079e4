//! Redaction: masks in place of known secrets.
//!
//! Only values that the operator or the caller configured are masked, never text that merely looks like a
//! secret. A guess would rewrite source code, and a file that was shown with a mask in it could no longer
//! be edited. For the same reason a write that contains a mask is refused ([`Redactor::check_write`]): it
//! would replace the secret by its mask.
//!
//! All values are searched in one pass (Aho-Corasick); where one secret contains another, the longer one is
//! masked.

use std::sync::Arc;

use aho_corasick::AhoCorasick;
use carrel_domain::{Code, Failure, Secret};
use carrel_exec::Captured;
use serde_json::Value;

use crate::response::{ToolContent, ToolResponse};

/// Shorter values occur in too many other words to be masked.
const MIN_SECRET_BYTES: usize = 6;

const MASK_START: &str = "[masked secret ";
const MASK_END: &str = "]";

/// The known secrets of a server or of one call, and their masks.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    /// None if there are no secrets.
    finder: Option<AhoCorasick>,
    values: Vec<String>,
    masks: Vec<String>,
}

impl Redactor {
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a Secret)>) -> Self {
        let mut values = Vec::new();
        let mut masks = Vec::new();
        for (name, secret) in secrets {
            for value in spellings(secret.expose()) {
                masks.push(format!("{MASK_START}{name}{MASK_END}"));
                values.push(value);
            }
        }
        if values.is_empty() {
            return Self::default();
        }
        let builder = AhoCorasick::builder()
            .match_kind(aho_corasick::MatchKind::LeftmostLongest)
            .build(&values);
        Self { finder: builder.ok(), values, masks }
    }

    pub(crate) fn redact_text(&self, text: &mut String) {
        if let Some(finder) = &self.finder
            && finder.is_match(text.as_str())
        {
            *text = finder.replace_all(text, &self.masks);
        }
    }

    /// Returns the length of the longest end of a text with which a secret begins that is cut there.
    fn begun_at_end(&self, text: &[u8]) -> usize {
        let begun = |value: &String| {
            let value = value.as_bytes();
            (1..value.len()).rev().find(|length| text.ends_with(&value[..*length]))
        };
        self.values.iter().filter_map(begun).max().unwrap_or(0)
    }

    /// Returns the length of the longest start of a text with which a secret ends that was cut there.
    fn ended_at_start(&self, text: &[u8]) -> usize {
        let ended = |value: &String| {
            let value = value.as_bytes();
            (1..value.len())
                .find(|cut| text.starts_with(&value[*cut..]))
                .map(|cut| value.len() - cut)
        };
        self.values.iter().filter_map(ended).max().unwrap_or(0)
    }

    /// Returns the end of the secret that a position is inside of.
    fn end_around(&self, text: &[u8], position: usize) -> Option<usize> {
        let mut all = self.finder.as_ref()?.find_iter(text);
        let found = all.find(|found| found.start() < position && position < found.end());
        found.map(|found| found.end())
    }

    fn longest(&self) -> usize {
        self.values.iter().map(String::len).max().unwrap_or(0)
    }

    pub(crate) fn redact_response(&self, response: &mut ToolResponse) {
        for block in &mut response.content {
            if let ToolContent::Text(text) = block {
                self.redact_text(text);
            }
        }
        self.redact_value(&mut response.structured);
        response.data.iter_mut().for_each(|data| self.redact_value(data));
    }

    pub(crate) fn redact_failure(&self, failure: &mut Failure) {
        self.redact_text(&mut failure.message);
        self.redact_value(&mut failure.detail);
    }

    /// Masks secrets in the strings of a JSON value; keys are left as they are.
    pub(crate) fn redact_value(&self, value: &mut Value) {
        if self.finder.is_none() {
            return;
        }
        match value {
            Value::String(text) => self.redact_text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.redact_value(value)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|value| self.redact_value(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Refuses to write a mask into a file, where it would replace the secret.
    pub(crate) fn check_write(&self, text: &str, path: &str) -> Result<(), Failure> {
        match self.masks.iter().find(|mask| text.contains(mask.as_str())) {
            None => Ok(()),
            Some(mask) => {
                let message = format!(
                    "refusing to write {mask} to {path}: it stands for a secret that was masked in \
                     an output, and the real value would be lost"
                );
                Err(Failure::new(Code::MaskedWrite, message).with("path", path))
            }
        }
    }
}

/// Keeps parts of secrets out of texts that are cut. What a cut leaves of a secret is no longer recognised as
/// one when replies are masked.
#[derive(Debug)]
pub(crate) struct CutGuard {
    redactors: [Arc<Redactor>; 2],
}

impl CutGuard {
    /// Makes the guard for the secrets of a server and of one call.
    pub(crate) fn new(redactors: [Arc<Redactor>; 2]) -> Self {
        Self { redactors }
    }

    /// Masks secrets in a text that is about to be cut.
    pub(crate) fn mask(&self, text: &mut String) {
        self.redactors.iter().for_each(|redactor| redactor.redact_text(text));
    }

    /// Returns the output of a command, without the parts of secrets beside a gap in it.
    pub(crate) fn output(&self, captured: &Captured, limit: usize) -> String {
        captured.to_text_trimmed(limit, |head, tail| {
            (self.most(|one| one.begun_at_end(head)), self.most(|one| one.ended_at_start(tail)))
        })
    }

    /// Returns the number of bytes at the end of a text that may be the beginning of a secret.
    pub(crate) fn begun_at_end(&self, text: &[u8]) -> usize {
        self.most(|redactor| redactor.begun_at_end(text))
    }

    /// Returns the end of the secret that a position is inside of.
    pub(crate) fn end_around(&self, text: &[u8], position: usize) -> Option<usize> {
        self.redactors.iter().filter_map(|redactor| redactor.end_around(text, position)).max()
    }

    /// Returns the number of bytes before a position that can be of the same secret as those after it.
    pub(crate) fn reach(&self) -> usize {
        self.most(Redactor::longest)
    }

    fn most(&self, count: impl Fn(&Redactor) -> usize) -> usize {
        self.redactors.iter().map(|redactor| count(redactor)).max().unwrap_or(0)
    }
}

/// Returns the forms in which programs print a value: as it is, trimmed, and escaped as in JSON.
fn spellings(value: &str) -> Vec<String> {
    if value.len() < MIN_SECRET_BYTES {
        return Vec::new();
    }
    let mut all = vec![value.to_owned(), value.trim().to_owned()];
    if let Ok(quoted) = serde_json::to_string(value) {
        all.push(quoted.trim_matches('"').to_owned());
    }
    all.retain(|spelling| spelling.len() >= MIN_SECRET_BYTES);
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn known_values_are_masked_everywhere_and_code_that_looks_alike_is_left_alone() {
        let secret = Secret::new("hunter2-value");
        let redactor = Redactor::new([("db", &secret)]);
        let text = "token = lexer.next()\npassword=hunter2-value\n";
        let mut response = ToolResponse {
            content: vec![ToolContent::Text(text.into())],
            structured: json!({ "lines": ["hunter2-value", 7] }),
            data: Some(json!({ "stdout": text })),
            is_error: false,
        };
        redactor.redact_response(&mut response);
        assert_eq!(response.data, Some(json!({ "stdout": response.text() })));
        assert_eq!(response.text(), "token = lexer.next()\npassword=[masked secret db]\n");
        assert_eq!(response.structured, json!({ "lines": ["[masked secret db]", 7] }));
    }

    #[test]
    fn what_a_cut_leaves_of_a_secret_is_found_at_the_edges() {
        let redactor = Redactor::new([("db", &Secret::new("hunter2-value"))]);
        let begun = |text: &str| redactor.begun_at_end(text.as_bytes());
        assert_eq!([begun("x=hunter2"), begun("hunte"), begun("xh"), begun("unter")], [7, 5, 1, 0]);
        assert_eq!(begun("x=hunter2-value"), 0, "whole");
        let ended = |text: &str| redactor.ended_at_start(text.as_bytes());
        assert_eq!([ended("2-value\n"), ended("e\n"), ended("valu")], [7, 1, 0]);
        assert_eq!(redactor.end_around(b"x=hunter2-value;", 5), Some(15));
        assert_eq!(redactor.end_around(b"x=hunter2-value;", 2), None, "before it");
    }

    #[test]
    fn a_mask_is_never_written_back() {
        let redactor = Redactor::new([("db", &Secret::new("hunter2-value"))]);
        assert_eq!(redactor.check_write("plain", "a"), Ok(()));
        let refused = redactor.check_write("x=[masked secret db]", "a").unwrap_err();
        assert_eq!(refused.code, Code::MaskedWrite);
        assert_eq!(redactor.check_write("[masked secret other]", "a"), Ok(()), "not one of ours");
    }
}
