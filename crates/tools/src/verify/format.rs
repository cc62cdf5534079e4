//! The tool `format`.

use carrel_domain::ToolGroup;
use carrel_sandbox::Denial;
use carrel_verify::plan::plan_check;
use carrel_verify::{ProfileField, parse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::effects;
use super::project_choice::{ProjectChoice, ProjectQuery};
use super::project_command::{Bounds, run};
use super::run_script::shortened;
use super::run_tests::{no_plan, word};
use super::writer_turn::as_writer;
use crate::response::Reply;
use crate::shell::strip_control;
use crate::snapshots;
use crate::text::line;
use crate::tool::{About, Effect, Tool, ToolResult, WorkspaceChoice};
use crate::tool_context::ToolContext;

pub(super) struct Format;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// Only this file or directory; its nearest project is used.
    #[schemars(extend("x-brief" = ""))]
    path: Option<String>,
    /// Only report files that are not formatted, and change nothing.
    #[serde(default)]
    #[schemars(extend("x-brief" = "only report"))]
    check: bool,
    /// The language, if the project has several; `all` for each in turn.
    #[schemars(extend("x-brief" = ""))]
    language: Option<String>,
    /// Timeout in seconds; 120 by default, at most 600.
    #[schemars(extend("x-brief" = ""))]
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
        group: ToolGroup::Verify,
        effect: Effect { destructive: true, idempotent: true, open_world: false },
        workspaces: WorkspaceChoice::OneOrAll,
        description: "Runs the project's formatter on a file or the project. Read changed files \
            again.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        if !input.check {
            context.refuse_frozen().await?;
            snapshots::before(context, "before files are formatted").await;
        }
        let field = if input.check { ProfileField::FormatCheck } else { ProfileField::Format };
        let bounds = Bounds::of_formatters(input.timeout);
        let query = ProjectQuery { path: input.path, language: input.language, package: None };
        let chosen = ProjectChoice::of(context, query).await?;
        let mut text = String::new();
        let mut sections = Vec::new();
        for profile in &chosen.profiles {
            let invocation = plan_check(profile, field, chosen.scope(profile))
                .map_err(|error| no_plan(&error))?;
            let (ran, verdict) = if input.check {
                let ran = run(context, &invocation, bounds).await?;
                let verdict = parse::check(&invocation, &ran.outcome()).verdict;
                (ran, verdict)
            } else {
                let files = effects::files_of(chosen.scope(profile), profile);
                as_writer(context, move |context| async move {
                    effects::format(&context, &invocation, files, bounds).await
                })
                .await?
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
