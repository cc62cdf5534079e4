//! The tool behind the task step `create_directory`. It is in no toolset.

use carrel_domain::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::blocking::blocking;
use crate::files::{WorkspaceFiles, shown};
use crate::redaction::{RedactFacts, Redactor};
use crate::response::Reply;
use crate::tool::{About, CallRules, Class, Effect, Tool, WorkspaceChoice};
use crate::tool_context::ToolContext;

/// The mode of new directories, before the umask.
const MODE: u32 = 0o777;

/// The tool behind the task step `create_directory`.
#[derive(Debug)]
pub struct CreateDirectory;

/// The input of [`CreateDirectory`].
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateDirectoryInput {
    /// The directory, relative to the workspace. Missing parents are created.
    pub path: String,
}

/// The facts about a created directory.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DirectoryFacts {
    /// The directory, relative to the workspace.
    pub path: String,
}

impl RedactFacts for DirectoryFacts {
    fn redact(&mut self, redactor: &Redactor) {
        redactor.redact_text(&mut self.path);
    }
}

impl Tool for CreateDirectory {
    type Input = CreateDirectoryInput;
    type Facts = DirectoryFacts;

    const ABOUT: About = About {
        name: "create_directory",
        title: "Create a directory",
        class: Class::Write,
        effect: Effect { destructive: false, idempotent: true, open_world: false },
        workspaces: WorkspaceChoice::One,
        rules: CallRules::WRITE,
        description: "Creates a directory of the workspace with its missing parents.",
    };

    async fn call(
        &self,
        context: &ToolContext,
        input: CreateDirectoryInput,
    ) -> Result<Reply<DirectoryFacts>, Failure> {
        let files = WorkspaceFiles::of(context);
        let interface = context.options.interface;
        blocking(move || {
            let path = files.workspace.relative(&input.path);
            // Names of credential files are refused for directories as they are for files.
            if let Err(error) = files.root().browse().metadata(&path)
                && error.problem() == carrel_fsroot::Problem::Sensitive
            {
                return Err(error.into());
            }
            files.root().create_directories(&path, MODE)?;
            let text = format!("created {}\n", input.path);
            let data = |_: &DirectoryFacts| json!({ "created": true, "path": input.path });
            Ok(Reply::text(text, DirectoryFacts { path: shown(&path) }).with_data(interface, data))
        })
        .await
    }
}
