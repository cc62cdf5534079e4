//! Findings of compilers, linters, type checkers and formatters.

use serde::{Deserialize, Serialize};

use crate::parse::text;

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

    /// Creates an error with a message of bounded length.
    pub(crate) fn error(message: &str) -> Self {
        Self::new(Severity::Error, text::truncated(message))
    }

    /// Collects findings without duplicates, in order.
    pub(crate) fn distinct(findings: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for finding in findings {
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
        found
    }

    pub(crate) fn at(mut self, file: String, line: Option<u64>, column: Option<u64>) -> Self {
        (self.file, self.line, self.column) = (Some(file), line, column);
        self
    }

    /// Sets the file and line, if they are known.
    pub(crate) fn at_line(self, location: Option<(String, u64)>) -> Self {
        match location {
            Some((file, line)) => self.at(file, Some(line), None),
            None => self,
        }
    }

    pub(crate) fn until(mut self, line: Option<u64>, column: Option<u64>) -> Self {
        (self.end_line, self.end_column) = (line, column);
        self
    }

    pub(crate) fn rule(self, rule: Option<&str>) -> Self {
        Self { rule: rule.map(str::to_owned), ..self }
    }

    pub(crate) fn fixable(self, fixable: bool) -> Self {
        Self { fixable, ..self }
    }

    pub(crate) fn url(self, url: Option<&str>) -> Self {
        Self { url: url.map(str::to_owned), ..self }
    }
}
