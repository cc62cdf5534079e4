//! The tool `profile`.

use carrel_domain::{Code, Failure, ToolGroup};
use carrel_verify::Profile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::project_choice::{ProjectChoice, ProjectQuery};
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult, WorkspaceChoice};
use crate::tool_context::ToolContext;

pub(super) struct ShowProfile;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// A file or directory, whose nearest project is described. By default, every project of the
    /// workspace.
    #[schemars(extend("x-brief" = ""))]
    path: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    #[schemars(with = "Vec<Map<String, Value>>")]
    profiles: Vec<Profile>,
}

impl Tool for ShowProfile {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "profile",
        title: "Describe the project",
        group: ToolGroup::Verify,
        workspaces: WorkspaceChoice::OneOrAll,
        description: "Describes the projects of the workspace: ecosystem, and the commands that \
            install, format, lint, typecheck and test.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        let profiles = ProjectChoice::everything(context, input.path).await?;
        let mut text = String::new();
        for profile in &profiles {
            show(&mut text, profile);
        }
        if profiles.is_empty() {
            line(&mut text, "no supported project detected");
        }
        Ok(Reply::text(text, Facts { profiles }))
    }
}

fn show(text: &mut String, profile: &Profile) {
    let manager =
        profile.package_manager.map_or(String::new(), |one| format!(", {}", one.as_str()));
    line(text, &format!("{} in {}{manager}", profile.ecosystem.as_str(), profile.root));
    for (&fact, command) in &profile.commands {
        let argv = match &command.file_argv {
            Some(argv) if command.argv.is_empty() => format!("{} FILE", argv.join(" ")),
            _ => command.argv.join(" "),
        };
        let from = profile.evidence_of(fact).unwrap_or("the usual for such projects");
        line(text, &format!("  {:<14}{argv}  ({from})", fact.as_str()));
    }
    for problem in &profile.problems {
        line(text, &format!("  problem: {problem}"));
    }
}

impl ProjectChoice {
    /// Returns the projects of a path or of the workspace, in every language.
    async fn everything(
        context: &ToolContext,
        path: Option<String>,
    ) -> Result<Vec<Profile>, Failure> {
        if path.is_none() {
            return Self::all(context).await;
        }
        let query = ProjectQuery { path, language: Some("all".into()), package: None };
        match Self::of(context, query).await {
            Err(failure) if failure.code == Code::ProjectNotDetected => Ok(Vec::new()),
            chosen => Ok(chosen?.profiles),
        }
    }
}
