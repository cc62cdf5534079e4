//! Masks known secrets in what goes out.
//!
//! Only values that the operator configured are masked, never what merely looks like a secret: a
//! guess would rewrite source code, and what was rewritten could not be edited any more.

use aho_corasick::AhoCorasick;
use carrel_domain::{Code, Secret};
use serde_json::Value;

use crate::failure::Failure;
use crate::response::{ToolContent, ToolResponse};

/// A shorter value is part of too many other words to be masked.
const MIN_SECRET_BYTES: usize = 6;

/// What stands around the name of a secret in its mask.
const MASK_START: &str = "[masked secret ";
const MASK_END: &str = "]";

/// Finds known secrets.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    /// None if there are no secrets.
    finder: Option<AhoCorasick>,
    masks: Vec<String>,
}

impl Redactor {
    /// Learns the secrets, with the names that their masks show.
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a Secret)>) -> Self {
        let (mut values, mut masks) = (Vec::new(), Vec::new());
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
        Self { finder: builder.ok(), masks }
    }

    /// Masks what is in facts alone.
    pub(crate) fn clean_facts(&self, facts: &mut Value) {
        if let Some(finder) = &self.finder {
            self.clean_value(finder, facts);
        }
    }

    /// Masks what is in an answer.
    pub(crate) fn clean(&self, answer: &mut ToolResponse) {
        let Some(finder) = &self.finder else { return };
        for content in &mut answer.content {
            match content {
                ToolContent::Text(text) => self.clean_text(finder, text),
                ToolContent::Image { .. } => {}
            }
        }
        self.clean_value(finder, &mut answer.structured);
        if let Some(data) = &mut answer.data {
            self.clean_value(finder, data);
        }
    }

    fn clean_text(&self, finder: &AhoCorasick, text: &mut String) {
        if finder.is_match(text.as_str()) {
            *text = finder.replace_all(text, &self.masks);
        }
    }

    fn clean_value(&self, finder: &AhoCorasick, value: &mut Value) {
        match value {
            Value::String(text) => self.clean_text(finder, text),
            Value::Array(values) => {
                for value in values {
                    self.clean_value(finder, value);
                }
            }
            Value::Object(fields) => {
                for value in fields.values_mut() {
                    self.clean_value(finder, value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Refuses to write a mask where a secret was.
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

/// Returns the ways in which a value is often printed.
fn spellings(value: &str) -> Vec<String> {
    if value.len() < MIN_SECRET_BYTES {
        return Vec::new();
    }
    let mut all = vec![value.to_owned(), value.trim().to_owned()];
    // As JSON writes it.
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
        let mut answer = ToolResponse {
            content: vec![ToolContent::Text(text.into())],
            structured: json!({ "lines": ["hunter2-value", 7] }),
            data: Some(json!({ "stdout": text })),
            is_error: false,
        };
        redactor.clean(&mut answer);
        assert_eq!(answer.data, Some(json!({ "stdout": answer.text() })));
        assert_eq!(answer.text(), "token = lexer.next()\npassword=[masked secret db]\n");
        assert_eq!(answer.structured, json!({ "lines": ["[masked secret db]", 7] }));
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
