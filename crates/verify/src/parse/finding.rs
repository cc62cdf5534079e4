//! Findings of compilers, linters, type checkers and formatters.

use serde::{Deserialize, Serialize};

/// The severity of a finding, as the tool reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the tools")]
pub enum Severity {
    Error,
    Warning,
    Info,
}

/// One diagnostic of a tool, with its location. Lines and columns are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the summary defines lines and columns")]
pub struct Finding {
    /// Path relative to the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u64>,
    /// Column after the last character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_column: Option<u64>,
    pub severity: Severity,
    /// Name of the violated rule, such as `unused_variables`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    pub message: String,
    /// True if the tool can fix it automatically.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fixable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl Finding {
    pub(crate) fn new(severity: Severity, message: impl Into<String>) -> Self {
        Self {
            file: None,
            line: None,
            column: None,
            end_line: None,
            end_column: None,
            severity,
            rule: None,
            message: message.into(),
            fixable: false,
            url: None,
        }
    }

    pub(crate) fn at(mut self, file: String, line: Option<u64>, column: Option<u64>) -> Self {
        (self.file, self.line, self.column) = (Some(file), line, column);
        self
    }

    pub(crate) fn until(mut self, line: Option<u64>, column: Option<u64>) -> Self {
        (self.end_line, self.end_column) = (line, column);
        self
    }

    pub(crate) fn rule(mut self, rule: Option<String>) -> Self {
        self.rule = rule;
        self
    }

    pub(crate) fn fixable(mut self, fixable: bool) -> Self {
        self.fixable = fixable;
        self
    }

    pub(crate) fn url(mut self, url: Option<String>) -> Self {
        self.url = url;
        self
    }
}
