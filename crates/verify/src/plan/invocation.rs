//! A command line that is ready to be run.

use serde::Serialize;

use crate::plan::ReportFormat;
use crate::tool::ProjectTool;

/// Stands in arguments for a private directory, empty before the run, in which the tool
/// leaves its report. [`Invocation::with_artifacts`] puts the real path there.
pub const ARTIFACTS: &str = "{artifacts}";

/// A command line that is ready to be run, but for the place of its artifacts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Invocation {
    /// The words. A first one with a slash is relative to `directory`.
    pub argv: Vec<String>,
    /// Where it runs, relative to the workspace.
    pub directory: String,
    /// Variables that are set beside the usual ones.
    pub environment: Vec<(String, String)>,
    /// How its output is to be read.
    pub report: ReportFormat,
    /// Files to be read afterwards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The tool that runs in the end.
    pub tool: ProjectTool,
    /// The directory that relative names in its report start from, relative to the workspace.
    pub base: String,
    /// The name of the Go module, with which the report's import paths begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// What to do when the tool is missing.
    pub install_hint: String,
}

/// A file that a tool leaves behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Artifact {
    /// A file in the private directory.
    Private {
        /// Its name.
        name: String,
    },
    /// Files of the project that match a pattern relative to `directory`, as far as
    /// they were written during the run.
    Project {
        /// The pattern, with `*` and `**`.
        pattern: String,
    },
}

impl Invocation {
    /// Puts the path of the private directory into arguments and variables.
    #[must_use]
    pub fn with_artifacts(mut self, directory: &str) -> Self {
        for word in self.argv.iter_mut().chain(self.environment.iter_mut().map(|(_, value)| value))
        {
            if word.contains(ARTIFACTS) {
                *word = word.replace(ARTIFACTS, directory);
            }
        }
        self
    }
}
