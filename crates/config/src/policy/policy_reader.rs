//! Reads the kinds of settings that only a policy has: paths, toolchains and variables.

use std::path::{Path, PathBuf};

use super::operator_policy::ToolchainChoice;
use super::policy_keys::SCHEMA;
use super::policy_paths::{self, PathUse};
use super::toolchain::{self, Toolchain};
use crate::diagnostic::Diagnostic;
use crate::environment::{Environment, is_variable_name};
use crate::schema::{Setting, SettingReader, check_keys};
use crate::secrets::is_withheld;
use crate::suggest;
use crate::value_tree::{Map, Node, quoted};

/// Variables that Carrel sets for every command, and what to write instead.
const OWN_VARIABLES: &[(&str, &str)] = &[
    ("PATH", "add directories with path = [\"/opt/tool/bin\"]"),
    ("HOME", "it is the workspace; take it out"),
    ("TMPDIR", "it is the workspace's own; take it out"),
    ("GIT_CONFIG_GLOBAL", "git reads a file of Carrel's own; take it out"),
];

/// A reader of a policy file. Every unknown key is a problem.
#[derive(Debug)]
pub(crate) struct PolicyReader<'a> {
    pub(super) settings: SettingReader<'a>,
    protected: &'a [&'a Path],
}

impl<'a> PolicyReader<'a> {
    /// Checks the keys of a file and prepares to read its values.
    pub(crate) fn new(
        map: &'a Map,
        environment: &'a Environment,
        protected: &'a [&'a Path],
    ) -> Self {
        // Relative paths are errors here, so the directory is never used.
        let mut settings = SettingReader::new(&SCHEMA, map, Path::new("/"), environment);
        let check = check_keys(&SCHEMA, map);
        for diagnostic in check.unknown.into_iter().chain(check.rejected) {
            settings.record_invalid(diagnostic);
        }
        Self { settings, protected }
    }

    pub(crate) fn paths(&mut self, key: &Setting, usage: PathUse) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for (text, node) in self.texts(key).unwrap_or_default() {
            let shown = quoted(text);
            match policy_paths::resolve(text, usage, self.settings.environment, self.protected) {
                Ok(resolved) => {
                    for warning in resolved.warnings {
                        let message = format!("{} {shown} {warning}", key.path);
                        self.settings.warn_at(key, Some(node.position), message);
                    }
                    if !paths.contains(&resolved.path) {
                        paths.push(resolved.path);
                    }
                }
                Err(reason) => {
                    let complaint = format!("cannot hold {shown}: {reason}");
                    self.settings.problem_at(key, Some(node.position), complaint);
                }
            }
        }
        paths
    }

    pub(crate) fn toolchains(&mut self, key: &Setting) -> Option<ToolchainChoice> {
        if self.settings.written(key)?.as_text() == Some("auto") {
            return Some(ToolchainChoice::Auto);
        }
        let mut chosen: Vec<&'static Toolchain> = Vec::new();
        for (name, node) in self.texts(key)? {
            match toolchain::named(name) {
                Some(toolchain) if chosen.iter().any(|other| other.name == toolchain.name) => {}
                Some(toolchain) => chosen.push(toolchain),
                None => {
                    let complaint = unknown_toolchain(name);
                    self.settings.problem_at(key, Some(node.position), complaint);
                }
            }
        }
        Some(ToolchainChoice::Only(chosen))
    }

    /// Reads a list of texts, with the node of each; other items are recorded one by one.
    fn texts(&mut self, key: &Setting) -> Option<Vec<(&'a str, &'a Node)>> {
        let node = self.settings.written(key)?;
        let Some(items) = node.as_list() else {
            self.settings.reject(key, node);
            return None;
        };
        let mut texts = Vec::new();
        for item in items {
            match item.as_text() {
                Some(text) => texts.push((text, item)),
                None => self.settings.reject(key, item),
            }
        }
        Some(texts)
    }

    pub(crate) fn variables(&mut self, key: &Setting) -> Environment {
        let Some(node) = self.settings.written(key) else { return Environment::default() };
        let Some(map) = node.as_map() else {
            self.settings.reject(key, node);
            return Environment::default();
        };
        let mut pairs = Vec::new();
        for entry in &map.0 {
            match self.variable(&entry.key, &entry.value) {
                Ok(text) => pairs.push((entry.key.clone(), text.to_owned())),
                Err(complaint) => {
                    let path = format!("{}.{}", key.path, entry.key);
                    let message = format!("{path} {complaint}");
                    let diagnostic = Diagnostic::about(path, Some(entry.position), message);
                    self.settings.record_invalid(diagnostic);
                }
            }
        }
        Environment::from_pairs(pairs)
    }

    /// Checks a variable. Its value may be a secret and is never shown.
    fn variable<'v>(&self, name: &str, value: &'v Node) -> Result<&'v str, String> {
        if let Some((_, instead)) = OWN_VARIABLES.iter().find(|(own, _)| *own == name) {
            return Err(format!("is set by Carrel; {instead}"));
        }
        if SCHEMA.settings().any(|setting| setting.path == name) {
            return Err(
                "is a setting and would be a variable here; write it above the first [table]"
                    .into(),
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
        let Some(text) = value.as_text() else {
            let type_name = value.type_name(self.settings.syntax);
            return Err(format!("must be text, found {type_name}; put it in quotes"));
        };
        if text.contains('\0') {
            return Err("contains a NUL byte, which no variable can hold; take it out".into());
        }
        Ok(text)
    }

    /// Records that settings contradict each other, at the position of the first one that is written.
    pub(crate) fn contradiction(&mut self, keys: &[&Setting], complaint: &str) {
        let Some(key) = keys.first() else { return };
        let position = keys.iter().find_map(|key| self.settings.position(key));
        self.settings.problem_at(key, position, complaint);
    }

    /// Returns the problems and the warnings, each in the order of the file.
    pub(crate) fn finish(self) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let (problems, warnings) = self.settings.finish();
        (problems.into_iter().map(|problem| problem.diagnostic).collect(), warnings)
    }
}

fn unknown_toolchain(name: &str) -> String {
    let names = toolchain::names();
    let hint = match suggest::nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("there are {}; for another, use readable and path", names.join(", ")),
    };
    format!("cannot hold {}: there is no such toolchain; {hint}", quoted(name))
}
