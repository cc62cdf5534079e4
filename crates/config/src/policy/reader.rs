//! Reads settings out of a policy file and collects everything that is wrong with them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use carrel_domain::ByteSize;
use toml::de::DeValue;

use super::document::{Document, Value, quoted, sort};
use super::inspect::inspect;
use super::keys::{self, Key};
use super::kind::{self, Kind};
use super::operator_policy::ToolchainChoice;
use super::policy_paths::{self, PathUse};
use super::toolchain::{self, Toolchain};
use crate::diagnostic::Diagnostic;
use crate::environment::{Environment, is_variable_name};
use crate::secrets::is_withheld;
use crate::suggest;

/// Variables that Carrel sets for every command, and what to write instead.
const OWN_VARIABLES: &[(&str, &str)] = &[
    ("PATH", "add directories with path = [\"/opt/tool/bin\"]"),
    ("HOME", "it is the workspace; take it out"),
    ("TMPDIR", "it is the workspace's own; take it out"),
    ("GIT_CONFIG_GLOBAL", "git reads a file of Carrel's own; take it out"),
];

/// Reads settings by their entry in the table.
///
/// A value that breaks its rule is recorded as a problem and read as absent, so
/// that one pass finds every problem. The result counts only without problems.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    document: &'a Document<'a>,
    environment: &'a Environment,
    /// The files that no command may change.
    protected: &'a [&'a Path],
    problems: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    /// A reader over a file, which looks for misspelt keys first.
    pub(crate) fn new(
        document: &'a Document<'a>,
        environment: &'a Environment,
        protected: &'a [&'a Path],
    ) -> Self {
        let problems = inspect(document);
        Self { document, environment, protected, problems, warnings: Vec::new() }
    }

    /// Reads one of several words.
    pub(crate) fn choice<T>(&mut self, key: &Key, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.read(key, |value| value.as_str().and_then(parse))
    }

    /// Reads a time.
    pub(crate) fn time(&mut self, key: &Key) -> Option<Duration> {
        let Kind::Time { min, max } = key.kind else { return None };
        self.read(key, |value| kind::time(value, min, max))
    }

    /// Reads a size.
    pub(crate) fn size(&mut self, key: &Key) -> Option<ByteSize> {
        let Kind::Size { min, max } = key.kind else { return None };
        self.read(key, |value| kind::size(value, min, max))
    }

    /// Reads a whole number.
    pub(crate) fn count(&mut self, key: &Key) -> Option<u64> {
        let Kind::Count { min, max } = key.kind else { return None };
        self.read(key, |value| kind::count(value, min, max))
    }

    fn read<T>(&mut self, key: &Key, cast: impl FnOnce(&DeValue<'_>) -> Option<T>) -> Option<T> {
        let value = self.document.find(key.path)?;
        let read = cast(value.get_ref());
        if read.is_none() {
            self.complain(key, value);
        }
        read
    }

    /// Reads a list of paths, each once.
    pub(crate) fn paths(&mut self, key: &Key, purpose: PathUse) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for (text, value) in self.texts(key).unwrap_or_default() {
            let shown = quoted(text);
            match policy_paths::resolve(text, purpose, self.environment, self.protected) {
                Ok(resolved) => {
                    for warning in resolved.warnings {
                        let message = format!("{} {shown} {warning}", key.path);
                        self.warnings.push(self.diagnostic(key.path, value, message));
                    }
                    if !paths.contains(&resolved.path) {
                        paths.push(resolved.path);
                    }
                }
                Err(reason) => {
                    self.problem(key.path, value, format!("cannot hold {shown}: {reason}"));
                }
            }
        }
        paths
    }

    /// Reads which toolchains are shared.
    pub(crate) fn toolchains(&mut self, key: &Key) -> Option<ToolchainChoice> {
        let value = self.document.find(key.path)?;
        if value.get_ref().as_str() == Some("auto") {
            return Some(ToolchainChoice::Auto);
        }
        let mut chosen: Vec<&'static Toolchain> = Vec::new();
        for (name, value) in self.texts(key)? {
            match toolchain::named(name) {
                Some(toolchain) if chosen.iter().any(|other| other.name == toolchain.name) => {}
                Some(toolchain) => chosen.push(toolchain),
                None => self.problem(key.path, value, unknown_toolchain(name)),
            }
        }
        Some(ToolchainChoice::Only(chosen))
    }

    /// Reads a list of texts.
    fn texts(&mut self, key: &Key) -> Option<Vec<(&'a str, &'a Value<'a>)>> {
        let value = self.document.find(key.path)?;
        let Some(items) = value.get_ref().as_array() else {
            self.complain(key, value);
            return None;
        };
        let mut texts = Vec::new();
        for item in items {
            match item.get_ref().as_str() {
                Some(text) => texts.push((text, item)),
                None => self.complain(key, item),
            }
        }
        Some(texts)
    }

    /// Reads the variables for commands.
    pub(crate) fn variables(&mut self, key: &Key) -> Environment {
        let Some(value) = self.document.find(key.path) else { return Environment::default() };
        let Some(table) = value.get_ref().as_table() else {
            self.complain(key, value);
            return Environment::default();
        };
        let mut pairs = Vec::new();
        for (name, value) in table {
            let path = format!("{}.{}", key.path, name.get_ref());
            match variable(name.get_ref(), value.get_ref()) {
                Ok(text) => pairs.push((name.get_ref().to_string(), text.to_owned())),
                Err(complaint) => {
                    let position = self.document.position(&name.span());
                    let message = format!("{path} {complaint}");
                    self.problems.push(Diagnostic::about(path, Some(position), message));
                }
            }
        }
        Environment::from_pairs(pairs)
    }

    fn complain(&mut self, key: &Key, value: &Value<'_>) {
        self.problem(key.path, value, key.kind.complaint(value.get_ref()));
    }

    fn problem(&mut self, path: &str, value: &Value<'_>, complaint: impl AsRef<str>) {
        let message = format!("{path} {}", complaint.as_ref());
        self.problems.push(self.diagnostic(path, value, message));
    }

    /// Records that settings contradict each other, at the place of one that is written.
    pub(crate) fn contradiction(&mut self, keys: &[&Key], complaint: &str) {
        let Some(key) = keys.first() else { return };
        let written = keys.iter().find_map(|key| self.document.find(key.path));
        let position = written.map(|value| self.document.position(&value.span()));
        let message = format!("{} {complaint}", key.path);
        self.problems.push(Diagnostic::about(key.path, position, message));
    }

    fn diagnostic(&self, path: &str, value: &Value<'_>, message: String) -> Diagnostic {
        Diagnostic::about(path, Some(self.document.position(&value.span())), message)
    }

    /// Returns the problems and the warnings, each in the order of the file.
    pub(crate) fn finish(mut self) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        self.problems.sort_by_key(|diagnostic| diagnostic.position);
        self.warnings.sort_by_key(|diagnostic| diagnostic.position);
        (self.problems, self.warnings)
    }
}

fn unknown_toolchain(name: &str) -> String {
    let names = toolchain::names();
    let way_out = match suggest::nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("there are {}; for another, use readable and path", names.join(", ")),
    };
    format!("cannot hold {}: there is no such toolchain; {way_out}", quoted(name))
}

/// Judges a variable. Its value may be a secret and is never shown.
fn variable<'v>(name: &str, value: &'v DeValue<'_>) -> Result<&'v str, String> {
    if let Some((_, way_out)) = OWN_VARIABLES.iter().find(|(own, _)| *own == name) {
        return Err(format!("is set by Carrel; {way_out}"));
    }
    if keys::all().any(|key| key.path == name) {
        return Err(
            "is a setting and would be a variable here; write it above the first [table]".into()
        );
    }
    if !is_variable_name(name) {
        return Err(
            "does not name a variable; use letters, digits and _, and no digit first".into()
        );
    }
    if is_withheld(name) || name.starts_with("CARREL_") {
        return Err("belongs to the server and is kept from commands; take it out".into());
    }
    let Some(text) = value.as_str() else {
        return Err(format!("must be text, found {}; put it in quotes", sort(value)));
    };
    if text.contains('\0') {
        return Err("contains a NUL byte, which no variable can hold; take it out".into());
    }
    Ok(text)
}
