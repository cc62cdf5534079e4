//! The tool `run_script`.

use carrel_domain::{Code, Failure, ToolGroup};
use carrel_verify::plan::{ScriptError, plan_script};
use carrel_verify::{Profile, parse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::project_choice::{ProjectChoice, ProjectQuery};
use super::project_command::{Bounds, run};
use super::run_tests::word;
use crate::response::Reply;
use crate::shell::{CommandFacts, NetworkChoice, strip_control};
use crate::text::line;
use crate::tool::{About, Tool, ToolResult, WorkspaceChoice};
use crate::tool_context::ToolContext;

const SHOWN_BYTES: usize = 50 * 1024;

pub(super) struct RunScript;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The name of a script of package.json, a target of the Makefile, or similar.
    #[schemars(extend("x-brief" = ""))]
    name: String,
    /// A file or directory; the scripts of its nearest project are used.
    #[schemars(extend("x-brief" = ""))]
    path: Option<String>,
    /// The language, if the project has several.
    #[schemars(extend("x-brief" = ""))]
    language: Option<String>,
    /// Timeout in seconds; 300 by default, at most 1800.
    #[schemars(extend("x-brief" = ""))]
    timeout: Option<u64>,
    /// The network it gets; at most what the operator allows.
    #[schemars(extend("x-brief" = ""))]
    network: Option<NetworkChoice>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    /// `passed`, `failed` or `could_not_run`.
    verdict: &'static str,
    /// The reason for `could_not_run`.
    reason: Option<String>,
    argv: Vec<String>,
    /// For `BashOutput`, which returns the whole output.
    shell_id: Option<String>,
    #[serde(flatten)]
    command: Option<CommandFacts>,
}

impl Tool for RunScript {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "run_script",
        title: "Run a script of the project",
        group: ToolGroup::Verify,
        workspaces: WorkspaceChoice::OneOrAll,
        description: "Runs a script that the project defines: of package.json, Deno, cargo \
            aliases, the Makefile. An unknown name is answered with the known ones.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        let query = ProjectQuery { path: input.path, language: input.language, package: None };
        let chosen = ProjectChoice::of(context, query).await?;
        let bounds = Bounds::of_scripts(input.timeout, input.network);
        // The first project with the script; if none has it, the refusal of the first.
        let plan = |profile: &Profile| plan_script(profile, &input.name);
        let (first, others) = chosen.profiles.split_first().ok_or_else(|| {
            let message = "no supported project detected in workspace root";
            Failure::new(Code::ProjectNotDetected, message)
        })?;
        let planned = plan(first)
            .or_else(|error| others.iter().find_map(|profile| plan(profile).ok()).ok_or(error));
        let invocation = planned.map_err(|error| no_script(&error))?;
        let ran = run(context, &invocation, bounds).await?;
        let (verdict, reason) = word(&parse::command(&invocation, &ran.outcome()));
        let mut text = strip_control(&shortened(&ran.stdout));
        if !ran.stderr.is_empty() {
            line(
                &mut text,
                &format!("--- stderr ---\n{}", strip_control(&shortened(&ran.stderr)).trim_end()),
            );
        }
        if let Some(reason) = &reason {
            line(&mut text, reason);
        }
        ran.add_notes(&mut text);
        line(&mut text, &format!("exit: {}", ran.exit));
        let facts =
            Facts { verdict, reason, argv: ran.argv, shell_id: ran.shell_id, command: ran.facts };
        Ok(Reply::text(text, facts))
    }
}

fn no_script(error: &ScriptError) -> Failure {
    let code = match error {
        ScriptError::NoName => Code::InvalidArguments,
        ScriptError::Unknown { .. } | ScriptError::Unsupported { .. } => Code::ScriptNotFound,
        ScriptError::Broken { .. } => Code::ProjectNotDetected,
    };
    Failure::new(code, error.to_string())
}

/// Shortens a text to its two ends.
pub(super) fn shortened(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.len() <= SHOWN_BYTES {
        return text.into_owned();
    }
    let head = text.floor_char_boundary(SHOWN_BYTES / 2);
    let tail = text.ceil_char_boundary(text.len() - SHOWN_BYTES / 2);
    let missing = tail - head;
    format!(
        "{}\n[… {missing} bytes omitted; BashOutput has all of it …]\n{}",
        &text[..head],
        &text[tail..]
    )
}
