//! A planned command line and the reports it leaves.

use serde::Serialize;

use crate::plan::{ReportFormat, TreeAccess};
use crate::tool::ProjectTool;

/// Placeholder in arguments for the artifact directory: outside of the workspace, empty before the
/// run, and removed after it. [`Invocation::with_artifacts`] replaces it by the real path.
pub const ARTIFACTS: &str = "{artifacts}";

/// A command line that is ready to run, except for the path of the artifact directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the types define the other fields")]
pub struct Invocation {
    /// Arguments. A program with a slash is relative to `directory`.
    pub argv: Vec<String>,
    /// Working directory, relative to the workspace.
    pub directory: String,
    pub environment: Vec<(String, String)>,
    pub report: ReportFormat,
    /// Report files to read after the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Tool that is run in the end, behind launchers and scripts.
    pub tool: ProjectTool,
    /// Directory of relative file names in the report, relative to the workspace.
    pub base: String,
    /// Name of the Go module, the prefix of import paths in the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    pub install_hint: String,
    /// Access to the files of the project.
    pub access: TreeAccess,
}

/// A report file of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[expect(missing_docs, reason = "the variants define their fields")]
pub enum Artifact {
    Private {
        name: String,
    },
    /// Files of the project that match a pattern with `*` and `**`, relative to `directory`, and
    /// were written during the run.
    Project {
        pattern: String,
    },
}

impl Invocation {
    /// Replaces the placeholder in arguments and variables by the path of the artifact directory.
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
