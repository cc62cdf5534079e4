//! Reads settings out of a value tree and records every problem on the way.

use std::path::Path;
use std::time::Duration;

use carrel_domain::{ByteSize, Code};

use super::{Schema, Setting, Syntax, value_kind};
use crate::diagnostic::{Diagnostic, Position};
use crate::environment::Environment;
use crate::value_tree::{Map, Node};
use crate::workflow_error::Problem;

/// Reads settings by their entry in the table.
///
/// A value that breaks its rule is recorded as a problem and read as absent, so that one pass finds every
/// problem. Settings read this way are valid only if [`SettingReader::finish`] returns no problems.
#[derive(Debug)]
pub(crate) struct SettingReader<'a> {
    pub(crate) map: &'a Map,
    /// The directory from which relative paths start.
    pub(crate) directory: &'a Path,
    pub(crate) environment: &'a Environment,
    pub(crate) syntax: Syntax,
    invalid: Code,
    problems: Vec<Problem>,
    pub(crate) warnings: Vec<Diagnostic>,
}

impl<'a> SettingReader<'a> {
    pub(crate) fn new(
        schema: &Schema,
        map: &'a Map,
        directory: &'a Path,
        environment: &'a Environment,
    ) -> Self {
        Self {
            map,
            directory,
            environment,
            syntax: schema.syntax,
            invalid: schema.invalid,
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Returns the value that the file gives to a setting; a null counts as absent.
    pub(crate) fn written(&self, key: &Setting) -> Option<&'a Node> {
        self.map.find(key.path)
    }

    pub(crate) fn position(&self, key: &Setting) -> Option<Position> {
        self.written(key).map(|node| node.position)
    }

    pub(crate) fn text(&mut self, key: &Setting) -> Option<String> {
        self.read(key, |node| node.as_text().map(str::to_owned))
    }

    pub(crate) fn choice<T>(
        &mut self,
        key: &Setting,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        self.read(key, |node| node.as_text().and_then(&parse))
    }

    /// Reads an integer whose rule allows none below zero.
    pub(crate) fn count(&mut self, key: &Setting) -> Option<u64> {
        self.read(key, value_kind::integer).and_then(|integer| u64::try_from(integer).ok())
    }

    /// Reads milliseconds that have a default.
    pub(crate) fn millis(&mut self, key: &Setting) -> Duration {
        Duration::from_millis(self.count(key).unwrap_or_default())
    }

    pub(crate) fn number(&mut self, key: &Setting) -> Option<f64> {
        self.read(key, value_kind::number)
    }

    pub(crate) fn flag(&mut self, key: &Setting) -> bool {
        self.read(key, value_kind::flag).unwrap_or_default()
    }

    pub(crate) fn texts(&mut self, key: &Setting) -> Option<Vec<String>> {
        self.read(key, value_kind::texts)
    }

    pub(crate) fn time(&mut self, key: &Setting) -> Option<Duration> {
        self.read(key, value_kind::time)
    }

    /// Reads a time that has a default, or zero for one that is turned off.
    pub(crate) fn time_or_off(&mut self, key: &Setting) -> Duration {
        self.read(key, value_kind::time_or_off).unwrap_or_default()
    }

    /// Reads a limit; `None` if it is turned off.
    pub(crate) fn limit(&mut self, key: &Setting) -> Option<u64> {
        self.count(key).filter(|limit| *limit > 0)
    }

    pub(crate) fn size(&mut self, key: &Setting) -> Option<ByteSize> {
        self.read(key, value_kind::size)
    }

    pub(crate) fn json(&mut self, key: &Setting) -> Option<serde_json::Value> {
        self.read(key, |node| Some(node.to_json()))
    }

    fn read<T>(&mut self, key: &Setting, cast: impl Fn(&Node) -> Option<T>) -> Option<T> {
        let Some(node) = self.written(key) else {
            return key.default_node(self.syntax).as_ref().and_then(cast);
        };
        if key.kind.accepts(node) {
            return cast(node);
        }
        self.reject(key, node);
        None
    }

    /// Records that a value, or a part of it, breaks the setting's rule.
    pub(crate) fn reject(&mut self, key: &Setting, node: &Node) {
        let complaint = key.kind.complaint(node, self.syntax);
        self.problem_at(key, Some(node.position), complaint);
    }

    /// Records an error of a setting: `<path> <complaint>`.
    pub(crate) fn problem(&mut self, key: &Setting, complaint: impl AsRef<str>) {
        self.problem_at(key, self.position(key), complaint);
    }

    pub(crate) fn problem_at(
        &mut self,
        key: &Setting,
        position: Option<Position>,
        complaint: impl AsRef<str>,
    ) {
        let message = format!("{} {}", key.path, complaint.as_ref());
        self.record(self.invalid, Diagnostic::about(key.path, position, message));
    }

    pub(crate) fn record(&mut self, code: Code, diagnostic: Diagnostic) {
        self.problems.push(Problem { code, diagnostic });
    }

    pub(crate) fn record_invalid(&mut self, diagnostic: Diagnostic) {
        self.record(self.invalid, diagnostic);
    }

    pub(crate) fn warn(&mut self, key: &Setting, message: String) {
        self.warn_at(key, self.position(key), message);
    }

    pub(crate) fn warn_at(&mut self, key: &Setting, position: Option<Position>, message: String) {
        self.warnings.push(Diagnostic::about(key.path, position, message));
    }

    /// Returns the problems and the warnings, each in the order of the file.
    pub(crate) fn finish(mut self) -> (Vec<Problem>, Vec<Diagnostic>) {
        self.problems.sort_by_key(|problem| problem.diagnostic.position);
        self.warnings.sort_by_key(|warning| warning.position);
        (self.problems, self.warnings)
    }
}
