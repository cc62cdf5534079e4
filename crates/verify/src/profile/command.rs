//! The commands of a project, before they are narrowed to a part of it.

use serde::Serialize;

use crate::tool::ProjectTool;

/// The smallest unit that a command can be limited to. A package may also be a crate or a
/// directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the variants are the units")]
pub enum Granularity {
    Files,
    Package,
    Project,
}

/// The way in which options for a machine-readable report reach the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionPassing {
    /// As arguments of the tool itself.
    Direct,
    /// After the name of a script, whose last command receives them.
    Script,
    /// After the name of a script and `--`, as npm requires.
    ScriptAfterDashes,
    /// Not at all, so the report is text.
    Impossible,
}

/// A command of a project, for the whole project and for single files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the type defines the environment")]
pub struct ProjectCommand {
    /// Tool that is run in the end, behind launchers and scripts.
    pub tool: ProjectTool,
    /// Arguments for the whole project; empty for a tool that needs files. A program with a slash
    /// is relative to `directory`.
    pub argv: Vec<String>,
    /// Arguments for single files, whose names relative to `directory` are appended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_argv: Option<Vec<String>>,
    /// Working directory, relative to the workspace.
    pub directory: String,
    /// Smallest unit that it can be limited to.
    pub scope: Granularity,
    /// Extensions of the files it accepts; empty for any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<(String, String)>,
    /// True if nothing in the project names the tool, which is only usual for the ecosystem. Such
    /// commands run on request and never automatically after an edit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// True if the project configures no exclusions for its linter, so that a check of the whole
    /// project leaves out environments, build output and fixtures.
    #[serde(skip)]
    pub leave_out: bool,
    /// Way in which options reach the tool.
    #[serde(skip_serializing_if = "is_direct")]
    pub injection: OptionPassing,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_direct(injection: &OptionPassing) -> bool {
    *injection == OptionPassing::Direct
}

impl ProjectCommand {
    pub(crate) fn new(tool: ProjectTool, directory: &str, argv: Vec<String>) -> Self {
        Self {
            tool,
            argv,
            file_argv: None,
            directory: directory.to_owned(),
            scope: Granularity::Project,
            extensions: Vec::new(),
            environment: Vec::new(),
            assumed: false,
            leave_out: false,
            injection: OptionPassing::Direct,
        }
    }

    /// Creates the command of a script that options cannot reach.
    pub(crate) fn script(directory: &str, argv: Vec<String>) -> Self {
        let command = Self::new(ProjectTool::Script, directory, argv).with("CI", "1");
        Self { injection: OptionPassing::Impossible, ..command }
    }

    /// Creates a command that takes paths: `paths` for the whole project, or the names of files.
    pub(crate) fn for_files(
        tool: ProjectTool,
        directory: &str,
        argv: Vec<String>,
        paths: &str,
        extensions: &str,
    ) -> Self {
        let whole = [argv.clone(), words(paths)].concat();
        Self::new(tool, directory, whole).per_file(argv, extensions)
    }

    /// Allows single files, whose names are appended to `argv`. Extensions are separated by spaces.
    pub(crate) fn per_file(self, argv: Vec<String>, extensions: &str) -> Self {
        Self { file_argv: Some(argv), scope: Granularity::Files, ..self.extensions(extensions) }
    }

    pub(crate) fn per_package(self, extensions: &str) -> Self {
        Self { scope: Granularity::Package, ..self.extensions(extensions) }
    }

    pub(crate) fn extensions(self, extensions: &str) -> Self {
        Self { extensions: words(extensions), ..self }
    }

    pub(crate) fn assumed(self) -> Self {
        Self { assumed: true, ..self }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns true if the tool accepts a file, by its extension.
    pub fn understands(&self, path: &str) -> bool {
        let extension = crate::paths::extension(path);
        self.extensions.is_empty() || self.extensions.iter().any(|known| known == extension)
    }
}

pub(crate) fn args(argv: &[&str]) -> Vec<String> {
    argv.iter().map(|&word| word.to_owned()).collect()
}

/// Splits a list of words that contain no spaces, such as a fixed command line.
pub(crate) fn words(list: &str) -> Vec<String> {
    list.split_whitespace().map(str::to_owned).collect()
}

/// Returns true if a list of words contains a word.
pub(crate) fn has_word(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}
