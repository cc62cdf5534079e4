//! The tool `format`.

use carrel_sandbox::Denial;
use carrel_verify::plan::plan_check;
use carrel_verify::{ProfileField, parse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::project_choice::{ProjectChoice, ProjectQuery};
use super::project_command::{Bounds, run};
use super::run_script::shortened;
use super::run_tests::{no_plan, word};
use super::writer_turn::as_writer;
use crate::response::Reply;
use crate::shell::strip_control;
use crate::text::line;
use crate::tool::{About, Effect, Tool, ToolResult, WorkspaceChoice};
use crate::tool_context::ToolContext;

pub(super) struct Format;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// Only this file or directory; its nearest project is used.
    path: Option<String>,
    /// Only report files that are not formatted, and change nothing.
    #[serde(default)]
    check: bool,
    /// The language, if the project has several; `all` for each in turn.
    language: Option<String>,
    /// Timeout in seconds; 120 by default, at most 600.
    timeout: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    sections: Vec<Section>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Section {
    language: &'static str,
    directory: String,
    /// `passed`, `failed` or `could_not_run`.
    verdict: &'static str,
    /// The reason for `could_not_run`.
    reason: Option<String>,
    /// Operations that the sandbox denied.
    #[schemars(with = "Vec<Map<String, Value>>")]
    denials: Vec<Denial>,
    command: Vec<String>,
}

impl Tool for Format {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "format",
        title: "Format files",
        effect: Effect { destructive: true, idempotent: true, open_world: false },
        workspaces: WorkspaceChoice::OneOrAll,
        description: "Runs the formatter that the project's files name, for a file or the whole \
            project; with check it only reports unformatted files. Read files again afterwards: their \
            lines may have moved.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        let field = if input.check { ProfileField::FormatCheck } else { ProfileField::Format };
        let bounds = Bounds::of_formatters(input.timeout);
        let query = ProjectQuery { path: input.path, language: input.language, package: None };
        let chosen = ProjectChoice::of(context, query).await?;
        let mut text = String::new();
        let mut sections = Vec::new();
        for profile in &chosen.profiles {
            let invocation = plan_check(profile, field, chosen.scope(profile))
                .map_err(|error| no_plan(&error))?;
            let ran = if input.check {
                run(context, &invocation, bounds).await?
            } else {
                let planned = invocation.clone();
                as_writer(
                    context,
                    move |context| async move { run(&context, &planned, bounds).await },
                )
                .await?
            };
            let verdict = if input.check {
                parse::check(&invocation, &ran.outcome()).verdict
            } else {
                parse::command(&invocation, &ran.outcome())
            };
            let (verdict, reason) = word(&verdict);
            let suffix = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
            line(
                &mut text,
                &format!("{} in {}: {verdict}{suffix}", profile.ecosystem.as_str(), profile.root),
            );
            for stream in [&ran.stdout, &ran.stderr] {
                let shown = strip_control(&shortened(stream));
                if !shown.trim().is_empty() {
                    line(&mut text, shown.trim_end());
                }
            }
            ran.add_notes(&mut text);
            line(&mut text, &format!("command: {}", ran.argv.join(" ")));
            line(&mut text, &format!("exit: {}", ran.exit));
            sections.push(Section {
                language: profile.ecosystem.as_str(),
                directory: profile.root.clone(),
                verdict,
                reason,
                denials: ran.denials().to_vec(),
                command: ran.argv,
            });
        }
        Ok(Reply::text(text, Facts { sections }))
    }
}
