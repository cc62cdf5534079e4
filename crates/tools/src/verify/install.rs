//! The tool `install`.
//!
//! An installation downloads packages, and runs their scripts, in the sandbox of the workspace with the network that
//! the cap allows. Without a network a package manager tries again for minutes before it gives up, so an
//! installation that needs one is refused before it starts.

use carrel_domain::{Failure, Network, NetworkRequest, ToolGroup};
use carrel_sandbox::Denial;
use carrel_verify::Profile;
use carrel_verify::plan::{Invocation, PlanError, needs_network, plan_install};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::changed_files::{ChangedFiles, TreeState};
use super::effects;
use super::project_choice::{ProjectChoice, ProjectQuery};
use super::project_command::{Bounds, FinishedCommand};
use super::run_script::shortened;
use super::run_tests::{no_plan, word};
use crate::reply_limit::shorten;
use crate::response::Reply;
use crate::shell::strip_control;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult, WorkspaceChoice};
use crate::tool_context::ToolContext;

pub(super) struct Install;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// A file or directory; its nearest project is used.
    path: Option<String>,
    /// The language, if the project has several; `all` for each in turn.
    language: Option<String>,
    /// Timeout in seconds; 600 by default, at most 1800.
    timeout: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    sections: Vec<Section>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct Section {
    language: &'static str,
    directory: String,
    /// `passed`, `failed` or `could_not_run`.
    verdict: &'static str,
    /// The reason for `could_not_run`.
    reason: Option<String>,
    /// Files that it created, changed or deleted, without ignored ones; null if the tree is too large to compare.
    changed_files: Option<Vec<String>>,
    /// Number of further changed files.
    changed_files_omitted: usize,
    /// Operations that the sandbox denied.
    #[schemars(with = "Vec<Map<String, Value>>")]
    denials: Vec<Denial>,
    command: Vec<String>,
    /// For `BashOutput`, which returns the whole output.
    shell_id: Option<String>,
}

impl Tool for Install {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "install",
        title: "Install dependencies",
        group: ToolGroup::Verify,
        workspaces: WorkspaceChoice::OneOrAll,
        description: "Runs the command that installs the dependencies of the project, and lists the \
            files that it changed.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        context.refuse_frozen().await?;
        let bounds = Bounds::of_installations(input.timeout);
        let query = ProjectQuery { path: input.path, language: input.language, package: None };
        let chosen = ProjectChoice::of(context, query).await?;
        let mut planned = Vec::new();
        for profile in &chosen.profiles {
            let invocation = plan(profile)?;
            // Refused before the first installation, so that none is left half done.
            invocation.iter().try_for_each(|one| check_network(context, one))?;
            planned.push((profile, invocation));
        }
        let mut text = String::new();
        let mut sections = Vec::new();
        for (profile, invocation) in planned {
            sections.push(match invocation {
                Some(invocation) => {
                    install(context, profile, &invocation, bounds, &mut text).await?
                }
                None => without_step(profile, &mut text),
            });
        }
        let limit = context.reply_limit(None);
        let text = shorten(&context.cut_guard(), text, limit, "read BashOutput of the shell_id");
        Ok(Reply::text(text, Facts { sections }))
    }
}

/// Returns the installation of a project; `None` if nothing has to be installed.
fn plan(profile: &Profile) -> Result<Option<Invocation>, Failure> {
    match plan_install(profile) {
        Ok(invocation) => Ok(Some(invocation)),
        Err(PlanError::NoCommand { .. }) => Ok(None),
        Err(error) => Err(no_plan(&error)),
    }
}

/// Refuses an installation that would try to reach servers in vain.
fn check_network(context: &ToolContext, invocation: &Invocation) -> Result<(), Failure> {
    if !needs_network(invocation) {
        return Ok(());
    }
    let caps = context.options.command_settings.network.within(context.toolbox.network);
    let needed = NetworkRequest::of_install(Network::Full).within(caps);
    let decided = context.toolbox.runner.decide_network(needed);
    decided.map(drop).map_err(|denied| {
        let subject = format!("`{}` downloads packages", invocation.argv.join(" "));
        Failure::from(denied).during(&subject)
    })
}

async fn install(
    context: &ToolContext,
    profile: &Profile,
    invocation: &Invocation,
    bounds: Bounds,
    text: &mut String,
) -> Result<Section, Failure> {
    let before = TreeState::of(context).await;
    let (ran, verdict) = effects::install(context, invocation, bounds).await?;
    let changed = TreeState::changes(before, context).await;
    let (verdict, reason) = word(&verdict);
    show(text, profile, verdict, reason.as_deref());
    show_command(text, &ran, &changed);
    Ok(Section {
        verdict,
        reason,
        changed_files: (!changed.unknown).then_some(changed.listed),
        changed_files_omitted: changed.omitted,
        denials: ran.denials().to_vec(),
        command: ran.argv,
        shell_id: ran.shell_id,
        ..Section::of(profile)
    })
}

fn show_command(text: &mut String, ran: &FinishedCommand, changed: &ChangedFiles) {
    for stream in [&ran.stdout, &ran.stderr] {
        let shown = strip_control(&shortened(stream));
        if !shown.trim().is_empty() {
            line(text, shown.trim_end());
        }
    }
    line(text, changed.line().as_deref().unwrap_or("changed files: none that git does not ignore"));
    ran.add_notes(text);
    let whole = ran.shell_id.as_ref().map_or(String::new(), |id| format!(" (shell_id {id})"));
    line(text, &format!("command: {}{whole}", ran.argv.join(" ")));
    line(text, &format!("exit: {}", ran.exit));
}

fn without_step(profile: &Profile, text: &mut String) -> Section {
    let reason = format!(
        "the project has no install step; `install` in {}/carrel.toml would name one",
        profile.root
    );
    let verdict = "could_not_run";
    show(text, profile, verdict, Some(&reason));
    Section { verdict, reason: Some(reason), ..Section::of(profile) }
}

fn show(text: &mut String, profile: &Profile, verdict: &str, reason: Option<&str>) {
    let suffix = reason.map_or(String::new(), |reason| format!(": {reason}"));
    line(text, &format!("{} in {}: {verdict}{suffix}", profile.ecosystem.as_str(), profile.root));
}

impl Section {
    fn of(profile: &Profile) -> Self {
        let directory = profile.root.clone();
        Self { language: profile.ecosystem.as_str(), directory, ..Self::default() }
    }
}
