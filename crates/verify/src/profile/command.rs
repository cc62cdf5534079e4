//! A command line of a project, before it is pointed at anything.

use serde::Serialize;

use crate::tool::ProjectTool;

/// The smallest thing a command can be pointed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// Single files.
    Files,
    /// A package, crate or directory.
    Package,
    /// Only the project as a whole.
    Project,
}

/// How options that ask for a machine-readable report reach the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionPassing {
    /// They are part of the command line.
    Direct,
    /// They follow the name of a script and reach its last command.
    Script,
    /// They follow the name of a script and a `--`.
    ScriptAfterDashes,
    /// They cannot reach it, so the report is text.
    Impossible,
}

/// A command line of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProjectCommand {
    /// The tool that it runs in the end.
    pub tool: ProjectTool,
    /// Covers the whole project; empty for a tool that needs to be given files. A first word
    /// with a slash is relative to `directory`.
    pub argv: Vec<String>,
    /// Covers the files whose names, relative to `directory`, are added at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_argv: Option<Vec<String>>,
    /// Where it runs, relative to the workspace.
    pub directory: String,
    /// The smallest thing it can be pointed at.
    pub scope: Granularity,
    /// The endings of the files it understands; empty when any will do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Variables it needs beside the usual ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<(String, String)>,
    /// Whether nothing in the project names the tool: it is what such projects usually have.
    /// Fit for an answer to a question, not for remarks that nobody asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// How options reach the tool.
    #[serde(skip_serializing_if = "is_direct")]
    pub injection: OptionPassing,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_direct(injection: &OptionPassing) -> bool {
    *injection == OptionPassing::Direct
}

impl ProjectCommand {
    /// A command for the project as a whole.
    pub(crate) fn new(tool: ProjectTool, directory: &str, argv: &[&str]) -> Self {
        Self::from_args(tool, directory, args(argv))
    }

    pub(crate) fn from_args(tool: ProjectTool, directory: &str, argv: Vec<String>) -> Self {
        Self {
            tool,
            argv,
            file_argv: None,
            directory: directory.to_owned(),
            scope: Granularity::Project,
            extensions: Vec::new(),
            environment: Vec::new(),
            assumed: false,
            injection: OptionPassing::Direct,
        }
    }

    /// Adds the form for single files.
    pub(crate) fn per_file(mut self, argv: Vec<String>, extensions: &[&str]) -> Self {
        self.file_argv = Some(argv);
        self.scope = Granularity::Files;
        self.extensions(extensions)
    }

    /// Says that it can be pointed at a package.
    pub(crate) fn per_package(mut self, extensions: &[&str]) -> Self {
        self.scope = Granularity::Package;
        self.extensions(extensions)
    }

    pub(crate) fn extensions(mut self, extensions: &[&str]) -> Self {
        self.extensions = args(extensions);
        self
    }

    /// Says that nothing in the project names the tool.
    pub(crate) fn assumed(mut self) -> Self {
        self.assumed = true;
        self
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Tells whether the tool understands a file.
    pub fn understands(&self, path: &str) -> bool {
        let extension = crate::paths::extension(path);
        self.extensions.is_empty() || self.extensions.iter().any(|known| known == extension)
    }
}

/// Makes owned words of literal ones.
pub(crate) fn args(argv: &[&str]) -> Vec<String> {
    argv.iter().map(|&word| word.to_owned()).collect()
}
