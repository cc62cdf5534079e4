//! Reads settings out of the front matter and collects everything that is wrong with them.

use std::path::Path;
use std::time::Duration;

use carrel_domain::Code;

use crate::diagnostic::{Diagnostic, Position};
use crate::environment::Environment;
use crate::schema::{Key, kind};
use crate::workflow_error::Problem;
use crate::yaml::{Map, Node};

/// Reads settings by their entry in the table.
///
/// A value that breaks its rule is recorded as a problem and read as absent, so
/// that one pass finds every problem. The result counts only without problems.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) map: &'a Map,
    /// The directory of the workflow file, where relative paths start.
    pub(crate) directory: &'a Path,
    pub(crate) environment: &'a Environment,
    problems: Vec<Problem>,
    warnings: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    /// A reader over the top of the front matter.
    pub(crate) fn new(map: &'a Map, directory: &'a Path, environment: &'a Environment) -> Self {
        Self { map, directory, environment, problems: Vec::new(), warnings: Vec::new() }
    }

    /// Returns the value that the file gives to a setting; a null counts as absent.
    pub(crate) fn written(&self, key: &Key) -> Option<&'a Node> {
        self.map.find(key.path)
    }

    /// Returns where a setting is written.
    pub(crate) fn position(&self, key: &Key) -> Option<Position> {
        self.written(key).map(|node| node.position)
    }

    /// Reads a text.
    pub(crate) fn text(&mut self, key: &Key) -> Option<String> {
        self.read(key, |node| node.as_text().map(str::to_owned))
    }

    /// Reads one of several words.
    pub(crate) fn choice<T: Default>(&mut self, key: &Key, parse: fn(&str) -> Option<T>) -> T {
        self.read(key, |node| node.as_text().and_then(parse)).unwrap_or_default()
    }

    /// Reads a whole number.
    pub(crate) fn integer(&mut self, key: &Key) -> Option<i64> {
        self.read(key, kind::integer)
    }

    /// Reads a whole number whose rule allows none below zero.
    pub(crate) fn count(&mut self, key: &Key) -> Option<u64> {
        self.integer(key).and_then(|integer| u64::try_from(integer).ok())
    }

    /// Reads a time that has a default.
    pub(crate) fn millis(&mut self, key: &Key) -> Duration {
        Duration::from_millis(self.count(key).unwrap_or_default())
    }

    /// Reads a number.
    pub(crate) fn number(&mut self, key: &Key) -> Option<f64> {
        self.read(key, kind::number)
    }

    /// Reads true or false.
    pub(crate) fn flag(&mut self, key: &Key) -> bool {
        self.read(key, kind::flag).unwrap_or_default()
    }

    /// Reads a list of texts.
    pub(crate) fn texts(&mut self, key: &Key) -> Option<Vec<String>> {
        self.read(key, kind::texts)
    }

    /// Reads what is handed on as it is written.
    pub(crate) fn json(&mut self, key: &Key) -> Option<serde_json::Value> {
        self.read(key, |node| Some(node.to_json()))
    }

    fn read<T>(&mut self, key: &Key, cast: impl Fn(&Node) -> Option<T>) -> Option<T> {
        let Some(node) = self.written(key) else {
            return key.default_node().as_ref().and_then(cast);
        };
        if key.kind.accepts(node) {
            return cast(node);
        }
        self.problem(key, key.kind.complaint(node));
        None
    }

    /// Records that a setting is wrong: `<key> <complaint>`.
    pub(crate) fn problem(&mut self, key: &Key, complaint: impl AsRef<str>) {
        let message = format!("{} {}", key.path, complaint.as_ref());
        let diagnostic = Diagnostic::about(key.path, self.position(key), message);
        self.record(Code::WorkflowInvalid, diagnostic);
    }

    /// Records a problem of any kind.
    pub(crate) fn record(&mut self, code: Code, diagnostic: Diagnostic) {
        self.problems.push(Problem { code, diagnostic });
    }

    /// Records something doubtful about a setting.
    pub(crate) fn warn(&mut self, key: &Key, message: String) {
        self.warn_at(key, self.position(key), message);
    }

    /// Records something doubtful about a part of a setting.
    pub(crate) fn warn_at(&mut self, key: &Key, position: Option<Position>, message: String) {
        self.warnings.push(Diagnostic::about(key.path, position, message));
    }

    /// Returns everything that was recorded.
    pub(crate) fn finish(self) -> (Vec<Problem>, Vec<Diagnostic>) {
        (self.problems, self.warnings)
    }
}
