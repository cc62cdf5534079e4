//! Redaction: masks in place of known secrets.
//!
//! Only values that the operator or the caller configured are masked, never text that merely looks like a
//! secret. A guess would rewrite source code, and a file that was shown with a mask in it could no longer
//! be edited. For the same reason a write that contains a mask is refused ([`Redactor::check_write`]): it
//! would replace the secret by its mask.
//!
//! All values are searched in one pass (Aho-Corasick); where one secret contains another, the longer one is
//! masked.

use aho_corasick::AhoCorasick;
use carrel_domain::{Code, Failure, Secret};
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
        Self { finder: builder.ok(), masks }
    }

    pub(crate) fn redact_text(&self, text: &mut String) {
        if let Some(finder) = &self.finder
            && finder.is_match(text.as_str())
        {
            *text = finder.replace_all(text, &self.masks);
        }
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
    fn a_mask_is_never_written_back() {
        let redactor = Redactor::new([("db", &Secret::new("hunter2-value"))]);
        assert_eq!(redactor.check_write("plain", "a"), Ok(()));
        let refused = redactor.check_write("x=[masked secret db]", "a").unwrap_err();
        assert_eq!(refused.code, Code::MaskedWrite);
        assert_eq!(redactor.check_write("[masked secret other]", "a"), Ok(()), "not one of ours");
    }
}
