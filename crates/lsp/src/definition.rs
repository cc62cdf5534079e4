//! Language servers as data: the terms of their table.
//!
//! A row has all that differs between servers: languages, program, settings, the directory that is its project,
//! when its answers are complete, and what has to be done when files change behind its back. Code elsewhere asks the
//! row and knows no server by name. An operator can add and change rows ([`definitions`]).

mod operator;
mod settings;
mod table;

use std::path::Path;
use std::time::Duration;

use carrel_code::Language;
use carrel_domain::ByteSize;
use serde_json::Value;

use crate::position::LineBreaks;
pub(crate) use operator::{definitions, is_known};
#[cfg(test)]
pub(crate) use table::DEFINITIONS;

/// A language server and its use.
#[derive(Clone, Debug)]
pub(crate) struct ServerDefinition {
    /// The name in answers and errors.
    pub(crate) name: &'static str,
    pub(crate) languages: &'static [Language],
    /// The programs that are looked for, in this order.
    pub(crate) programs: &'static [&'static str],
    /// A program of the project is the first choice. Where an operator names the program, it is none.
    pub(crate) is_of_project: bool,
    /// The memory that it takes for a project of medium size.
    pub(crate) expected_memory: ByteSize,
    pub(crate) arguments: &'static [&'static str],
    /// Variables in addition to those of every command. [`KEPT_CACHE`] stands for a directory that stays with the
    /// workspace.
    pub(crate) environment: &'static [(&'static str, &'static str)],
    /// `initializationOptions`.
    pub(crate) options: ServerSettings,
    /// The answers to `workspace/configuration`, by section.
    pub(crate) settings: ServerSettings,
    pub(crate) root: RootRule,
    /// Names of files, other than sources, whose change matters to the server.
    pub(crate) project_files: &'static [&'static str],
    pub(crate) readiness: Readiness,
    pub(crate) changes: ChangeRules,
    pub(crate) diagnostics: DiagnosticSource,
    /// The reason for which diagnostics are not all that there are.
    pub(crate) unchecked: Option<&'static str>,
    /// Definitions in files that are not open are found by the index; without it, declarations stand for them.
    pub(crate) defines_by_index: bool,
    /// Its search misses uses after changes, though it knows them when it is asked about their places.
    pub(crate) misses_uses: bool,
    pub(crate) line_breaks: LineBreaks,
    /// Without one of these files above the document, answers about other files are not complete.
    pub(crate) completeness: Option<Completeness>,
    /// One line that says how to get it.
    pub(crate) installation: &'static str,
}

/// Settings as data.
#[derive(Clone, Debug)]
pub(crate) enum ServerSettings {
    BuiltIn(fn() -> Value),
    /// Of an operator.
    Given(Value),
}

impl ServerSettings {
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::BuiltIn(value) => value(),
            Self::Given(value) => value.clone(),
        }
    }
}

/// Replaced by the path of a directory for caches that stay with the workspace.
pub(crate) const KEPT_CACHE: &str = "{carrel:cache}";

/// The directory that a server takes for its project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RootRule {
    /// The workspace.
    Workspace,
    /// The nearest directory above the file that has one of these.
    Nearest(&'static [&'static str]),
    /// The outermost one.
    Outermost(&'static [&'static str]),
    /// The nearest one whose marker has a line that begins so, and the nearest one with a marker otherwise.
    Declared { marker: &'static str, line: &'static str },
}

/// The sign that answers are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// Requests wait in the server for what they need. Work that it reports is waited for all the same.
    Requests,
    /// `experimental/serverStatus` says that it is quiescent.
    QuiescentStatus,
    /// Work with a progress report has begun and ended, if the project has what `completeness` names.
    WorkReported,
    /// A notification has come: its method, and the value of `type` in it if that matters.
    Notified { method: &'static str, kind: Option<&'static str> },
    /// A message with this text was logged.
    Logged(&'static str),
    /// Nothing is certain: an answer counts when it comes twice with this time between.
    Settled(Duration),
}

/// The needs of a server when files change that it has not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangeRules {
    /// A source file has gone.
    pub(crate) deleted: ChangeRule,
    /// A project file has changed, come or gone.
    pub(crate) project: ChangeRule,
    /// Names of source files, and of directories above them, whose coming or going changes the project.
    pub(crate) targets: &'static [&'static str],
    /// The push of diagnostics about a changed document is the sign that the index has its new text.
    pub(crate) is_indexed_before_push: bool,
    /// A new text of an open document comes with the range of the old one. Without it, the server keeps the last lines
    /// of an old text that had more of them.
    pub(crate) is_replaced_by_range: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeRule {
    /// It is told, and takes the change in before the next request.
    Notify,
    /// It is told, and has taken the change in when it refuses this request about the file.
    AwaitRefusal(&'static str),
    /// It may answer from before the change for a while, so that a new one takes its place.
    Restart,
}

/// The source of diagnostics where a server cannot be asked for them by the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiagnosticSource {
    /// Each push has the version of its document.
    VersionedPush,
    /// Pushes come in parts without a version; they are complete when none has come for this time.
    QuietPush(Duration),
    /// A command passes requests through to TypeScript's own server, which answers for the present texts.
    TypeScriptCommand,
}

/// A condition of complete answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completeness {
    /// Files of which one must be in the project's directory or above the document.
    pub(crate) files: &'static [&'static str],
    /// The reason that an answer gives without them.
    pub(crate) otherwise: &'static str,
}

impl ServerDefinition {
    /// Returns whether a file is a source or project file of the server.
    pub(crate) fn concerns(&self, path: &Path) -> bool {
        self.is_source(path) || self.is_project_file(path)
    }

    pub(crate) fn is_source(&self, path: &Path) -> bool {
        Language::of_path(path).is_some_and(|language| self.languages.contains(&language))
    }

    /// Returns whether the project is another one with a source file than without it.
    pub(crate) fn is_target(&self, path: &Path) -> bool {
        let directory = path.parent().and_then(Path::file_name);
        let above = path.parent().and_then(Path::parent).and_then(Path::file_name);
        let names = [path.file_name(), directory, above].into_iter().flatten();
        let mut names = names.filter_map(|name| name.to_str());
        names.any(|name| self.changes.targets.contains(&name))
    }

    pub(crate) fn is_project_file(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| self.project_files.contains(&name))
    }
}

/// Returns the protocol's name of a file's language.
pub(crate) fn language_id(path: &Path) -> &'static str {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match (Language::of_path(path), extension) {
        (Some(Language::JavaScript), Some("jsx")) => "javascriptreact",
        (Some(Language::Tsx), _) => "typescriptreact",
        (Some(Language::Bash), _) => "shellscript",
        (Some(language), _) => language.as_str(),
        (None, _) => "plaintext",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use std::collections::BTreeSet;

    #[test]
    fn candidates_of_a_language_come_in_the_order_of_the_table() {
        let names = |language| {
            let rows = DEFINITIONS.iter().filter(|row| row.languages.contains(&language));
            rows.map(|row| row.name).collect::<Vec<_>>()
        };
        assert_eq!(names(Language::Python), ["ty", "basedpyright"]);
        assert_eq!(names(Language::Tsx), ["typescript-language-server", "vtsls"]);
        assert_eq!(names(Language::Cpp), ["clangd"]);
        assert!(names(Language::Json).is_empty());
    }

    #[test]
    fn rows_have_unique_names_and_say_how_to_get_the_server() {
        let names: BTreeSet<_> = DEFINITIONS.iter().map(|definition| definition.name).collect();
        assert_eq!(names.len(), DEFINITIONS.len());
        for definition in DEFINITIONS {
            assert!(!definition.installation.is_empty() && !definition.programs.is_empty());
            assert!(definition.installation.lines().count() == 1, "{}", definition.name);
        }
    }

    #[test]
    fn the_protocol_has_names_of_its_own_for_some_languages() {
        for (path, id) in [
            ("a.jsx", "javascriptreact"),
            ("a.mjs", "javascript"),
            ("a.tsx", "typescriptreact"),
            ("a.sh", "shellscript"),
            ("a.hpp", "cpp"),
            ("a.h", "c"),
            ("a", "plaintext"),
        ] {
            assert_eq!(language_id(Path::new(path)), id);
        }
    }

    #[test]
    fn project_files_are_known_by_their_whole_names() {
        let go = DEFINITIONS.iter().find(|row| row.name == "gopls").unwrap();
        for (path, concerns) in
            [("a/b.go", true), ("a/go.mod", true), ("a/xgo.mod", false), ("a.rs", false)]
        {
            assert_eq!(go.concerns(Path::new(path)), concerns, "{path}");
        }
    }
}
