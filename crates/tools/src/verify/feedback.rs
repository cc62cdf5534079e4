//! What linters and formatters say about a file that was just changed.
//!
//! It is said within [`BUDGET`] or not at all, and never makes the change fail. Only tools that the
//! project itself names are asked, and only about files that they know.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::Network;
use carrel_edit::replace::Limits;
use carrel_verify::parse::{self, CheckReport, CouldNotRunReason, Verdict};
use carrel_verify::plan::{CommandScope, FormatMode, plan_format, plan_lint};
use carrel_verify::{EditLimits, FileProject, Profile, ProfileField};
use tracing::debug;

use super::checks::shown;
use super::running::{Bounds, run};
use crate::blocking::blocking;
use crate::files::{MAX_FILE_BYTES, WorkspaceFiles, compared};
use crate::response::ToolContent;
use crate::text::line;
use crate::tool_context::ToolContext;
use crate::toolbox::Toolbox;

/// How long an edit waits for what tools say about it.
const BUDGET: Duration = Duration::from_secs(2);

/// Findings that are shown behind an edit.
const MAX_SHOWN: usize = 20;

/// What was said about a file, and what became of it.
#[derive(Debug, Default)]
pub(crate) struct Feedback {
    /// To be shown behind the answer of the edit.
    pub(crate) text: String,
    /// Stands for the contents after the formatter, if that changed them.
    pub(crate) hash: Option<String>,
}

impl Feedback {
    /// Adds what was said to the answer of an edit.
    pub(crate) fn add_to(self, content: &mut [ToolContent], hash: &mut String) {
        if let (false, Some(ToolContent::Text(text))) = (self.text.is_empty(), content.last_mut()) {
            line(text, &format!("\n{}", self.text.trim_end()));
        }
        if let Some(formatted) = self.hash {
            *hash = formatted;
        }
    }
}

/// Finds the project whose tools know a file, if there is one.
pub(crate) async fn project_of(context: &ToolContext, path: &Path) -> Option<Profile> {
    let (workspace, file, toolbox) =
        (Arc::clone(context.workspace()), path.to_owned(), Arc::clone(&context.toolbox));
    let found = blocking(move || {
        // A path that leads to nothing may be as long as its writer likes.
        workspace.files().metadata(&file)?;
        Ok(toolbox.profiles.detect_for_file(workspace.files(), &file)?)
    });
    // A file that cannot be looked at has no project; whoever changes it says what is wrong.
    found.await.ok().and_then(|(owner, _)| owner.profile.clone())
}

/// Finds the project whose tools know a file, if there is one, and how large the edits of the file
/// may be. It reads files, on a thread that may wait for them.
pub(crate) fn project_and_limits(
    workspace: &crate::named_workspace::NamedWorkspace,
    toolbox: &Toolbox,
    path: &Path,
) -> (Option<Profile>, Limits) {
    let found = toolbox.profiles.detect_for_file(workspace.files(), path);
    let owner = found.map(|(owner, _)| FileProject::clone(&owner)).unwrap_or_default();
    let limits = match owner.edit_limits {
        EditLimits::Strict => Limits::STRICT,
        EditLimits::Standard => Limits::GENEROUS,
    };
    let result_bytes = usize::try_from(MAX_FILE_BYTES).unwrap_or(usize::MAX);
    (owner.profile, Limits { result_bytes, ..limits })
}

/// Asks the tools of the file's own project.
pub(crate) async fn of(context: &ToolContext, path: &Path) -> Feedback {
    match project_of(context, path).await {
        Some(project) => of_project(context, &project, path).await,
        None => Feedback::default(),
    }
}

/// Asks the tools of a project about one of its files.
pub(crate) async fn of_project(context: &ToolContext, project: &Profile, path: &Path) -> Feedback {
    let asked = tokio::time::timeout(BUDGET, Box::pin(ask(context, project, path)));
    asked.await.unwrap_or_else(|_| {
        debug!(path = %path.display(), "tools took too long to say something about an edit");
        Feedback::default()
    })
}

async fn ask(context: &ToolContext, profile: &Profile, path: &Path) -> Feedback {
    let name = path.to_string_lossy().into_owned();
    if profile.format_on_edit {
        return format(context, profile, path, &name).await;
    }
    let (lint, style) = tokio::join!(
        findings(context, profile, ProfileField::Lint, &name),
        findings(context, profile, ProfileField::FormatCheck, &name)
    );
    let mut text = String::new();
    if let Some(report) = lint {
        let about: Vec<_> = report
            .findings
            .iter()
            .filter(|finding| finding.file.as_deref() == Some(&*name))
            .collect();
        if !about.is_empty() {
            line(&mut text, &format!("post-edit lint findings ({}):", about.len()));
            about.iter().take(MAX_SHOWN).for_each(|finding| line(&mut text, &shown(finding)));
        }
    }
    if let Some(report) = style
        && report.verdict == Verdict::Failed
    {
        line(&mut text, "post-edit format: not in the project's style; `format` would change it");
        report.findings.iter().take(MAX_SHOWN).for_each(|finding| line(&mut text, &shown(finding)));
    }
    Feedback { text, hash: None }
}

/// Runs a check of one file, if the project names a tool that can.
async fn findings(
    context: &ToolContext,
    profile: &Profile,
    fact: ProfileField,
    name: &str,
) -> Option<CheckReport> {
    let command = profile.command(fact)?;
    if command.assumed || command.file_argv.is_none() || !command.understands(name) {
        return None;
    }
    let place = CommandScope::File(name);
    let (invocation, parse): (_, fn(&_, &_) -> CheckReport) = match fact {
        ProfileField::Lint => (plan_lint(profile, place).ok()?, parse::lint),
        _ => (plan_format(profile, FormatMode::Check, place).ok()?, parse::format_check),
    };
    let ran = run(context, &invocation, bounds()).await.ok()?;
    let report = parse(&invocation, &ran.outcome());
    match &report.verdict {
        Verdict::CouldNotRun { reason: reason @ CouldNotRunReason::ToolMissing { tool, .. } } => {
            // Said once: an agent that cannot install it need not hear it after each edit.
            let new = context.session.state().missing_tools.insert(tool.clone());
            if new {
                context.progress(0.0, None, &reason.to_string());
            }
            None
        }
        Verdict::CouldNotRun { .. } => None,
        Verdict::Passed | Verdict::Failed => Some(report),
    }
}

/// Formats the file, and shows what that changed.
async fn format(context: &ToolContext, profile: &Profile, path: &Path, name: &str) -> Feedback {
    let Ok(invocation) = plan_format(profile, FormatMode::Write, CommandScope::File(name)) else {
        return Feedback::default();
    };
    let files = WorkspaceFiles::of(context);
    let (before, file) = (files.clone(), path.to_owned());
    let Ok(before) = blocking(move || before.load(&file)).await else { return Feedback::default() };
    if run(context, &invocation, bounds()).await.is_err() {
        return Feedback::default();
    }
    let (file, name) = (path.to_owned(), name.to_owned());
    let formatted = blocking(move || {
        let after = files.load(&file)?;
        if after.hash == before.hash {
            return Ok(Feedback::default());
        }
        let (old, new) = (before.document(&name)?, after.document(&name)?);
        let hash = files.changed(&before.key, after.hash);
        let (_, diff) = compared(Some(old.text()), new.text(), &name);
        Ok(Feedback { text: format!("formatted:\n{diff}"), hash: Some(hash) })
    });
    formatted.await.unwrap_or_default()
}

fn bounds() -> Bounds {
    Bounds { timeout: BUDGET, network: Some(Network::None) }
}
