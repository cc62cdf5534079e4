//! One thing that a tool found.

use serde::{Deserialize, Serialize};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It must be mended.
    Error,
    /// It should be looked at.
    Warning,
    /// It is worth knowing.
    Info,
}

/// Something that a tool found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The file, relative to the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The character in the line, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// The last line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u64>,
    /// The character behind the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_column: Option<u64>,
    /// How bad it is.
    pub severity: Severity,
    /// The rule that was broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What is wrong.
    pub message: String,
    /// Whether the tool could mend it itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fixable: bool,
    /// Where the rule is explained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl Finding {
    /// A finding without a place.
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
