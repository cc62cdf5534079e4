//! Feedback of linters and formatters on a file that was just changed.
//!
//! An agent that sees a finding with its edit fixes it at once, and not after a test run. Feedback comes within
//! [`BUDGET`] or not at all, and never fails the edit. Only tools that the project itself names are run, on
//! files that they support, without network.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_domain::Failure;
use carrel_edit::replace::Limits;
use carrel_verify::parse::{self, CheckReport, CouldNotRunReason, Verdict};
use carrel_verify::plan::{CommandScope, Invocation, plan_check};
use carrel_verify::{EditLimits, FileProject, Profile, ProfileField};
use tracing::debug;

use super::lint_and_typecheck::shown;
use super::project_command::{Bounds, run};
use super::writer_turn::as_writer;
use super::{compiler_check, effects};
use crate::blocking::blocking;
use crate::files::{MAX_FILE_BYTES, WorkspaceFiles, diff_text};
use crate::response::ToolContent;
use crate::text::line;
use crate::tool_context::ToolContext;
use crate::toolbox::Toolbox;

/// The time for feedback on one call.
pub(crate) const BUDGET: Duration = Duration::from_secs(2);

const MAX_SHOWN: usize = 20;

/// Files of one call that the project's linter and formatter check, each within its time.
const MAX_CHECKED: usize = 3;

/// The findings about a file, and its hash if the formatter changed it.
#[derive(Debug, Default)]
pub(crate) struct Feedback {
    pub(crate) text: String,
    /// The new hash, if the formatter changed the file.
    pub(crate) hash: Option<String>,
}

impl Feedback {
    pub(crate) fn add_to(self, content: &mut [ToolContent], hash: &mut String) {
        if let (false, Some(ToolContent::Text(text))) = (self.text.is_empty(), content.last_mut()) {
            line(text, &format!("\n{}", self.text.trim_end()));
        }
        if let Some(formatted) = self.hash {
            *hash = formatted;
        }
    }
}

/// Adds the findings about the files of one call to its reply, and the new hashes of the files that the formatter
/// changed, whose paths are returned. Of many files the first few are looked at.
pub(crate) async fn add_for_files(
    context: &ToolContext,
    changed: Vec<(&str, &mut String)>,
    blocks: &mut Vec<ToolContent>,
) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut formatted = Vec::new();
    for (path, hash) in changed.into_iter().take(MAX_CHECKED) {
        let path = PathBuf::from(path);
        let feedback = of(context, &path).await;
        if feedback.hash.is_some() {
            formatted.push(path.clone());
        }
        feedback.add_to(blocks, hash);
        paths.push(path);
    }
    let deadline = tokio::time::Instant::now() + BUDGET;
    compiler_check::add_feedback(context, &paths, blocks, deadline).await;
    formatted
}

pub(crate) async fn of(context: &ToolContext, path: &Path) -> Feedback {
    let workspace = Arc::clone(context.workspace());
    let file = path.to_owned();
    let toolbox = Arc::clone(&context.toolbox);
    let found = blocking(move || {
        // Fails for a missing path of any length, before its parents are searched.
        workspace.files().metadata(&file)?;
        Ok(toolbox.profiles.detect_for_file(workspace.files(), &file)?)
    });
    // The edit itself reports a file that cannot be read.
    match found.await.ok().and_then(|(owner, _)| owner.profile.clone()) {
        Some(project) => of_project(context, &project, path).await,
        None => Feedback::default(),
    }
}

/// Returns the project that a file belongs to, and the limits for edits of the file. Blocks on the disk.
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

pub(crate) async fn of_project(context: &ToolContext, project: &Profile, path: &Path) -> Feedback {
    if context.helper_refusal("linter").is_some() {
        return Feedback::default();
    }
    let feedback = tokio::time::timeout(BUDGET, Box::pin(collect(context, project, path)));
    feedback.await.unwrap_or_else(|_| {
        debug!(path = %path.display(), "feedback on an edit took too long");
        Feedback::default()
    })
}

async fn collect(context: &ToolContext, profile: &Profile, path: &Path) -> Feedback {
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
        line(&mut text, "post-edit format: not formatted; `format` would change it");
        report.findings.iter().take(MAX_SHOWN).for_each(|finding| line(&mut text, &shown(finding)));
    }
    Feedback { text, hash: None }
}

/// Runs the linter or the format check on one file, if the project names one that can.
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
    let scope = CommandScope::File(name);
    let invocation = plan_check(profile, fact, scope).ok()?;
    let report = if fact == ProfileField::Lint {
        let files = vec![name.to_owned()];
        effects::lint(context, &invocation, files, bounds()).await.ok()?.1
    } else {
        let ran = run(context, &invocation, bounds()).await.ok()?;
        parse::check(&invocation, &ran.outcome())
    };
    match &report.verdict {
        Verdict::CouldNotRun { reason: reason @ CouldNotRunReason::ToolMissing { tool, .. } } => {
            // Reported once for each session, not after each edit.
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

async fn format(context: &ToolContext, profile: &Profile, path: &Path, name: &str) -> Feedback {
    let Ok(invocation) = plan_check(profile, ProfileField::Format, CommandScope::File(name)) else {
        return Feedback::default();
    };
    let deadline = Instant::now() + BUDGET;
    let path = path.to_owned();
    let name = name.to_owned();
    let formatted = as_writer(context, move |context| async move {
        // The turn may come after the time for feedback; then nothing is changed behind the reply.
        let Some(timeout) = deadline.checked_duration_since(Instant::now()) else {
            return Ok(Feedback::default());
        };
        format_now(&context, &invocation, Bounds { timeout, ..bounds() }, path, name).await
    });
    formatted.await.unwrap_or_default()
}

async fn format_now(
    context: &ToolContext,
    invocation: &Invocation,
    bounds: Bounds,
    path: PathBuf,
    name: String,
) -> Result<Feedback, Failure> {
    let files = WorkspaceFiles::of(context);
    let (first, file) = (files.clone(), path.clone());
    let loading = move || first.load(&file).map(|loaded| (first.is_as_left(&loaded.key), loaded));
    let (is_own, before) = blocking(loading).await?;
    effects::format(context, invocation, vec![name.clone()], bounds).await?;
    blocking(move || {
        let after = files.load(&path)?;
        let hash = after.hash();
        if hash == before.hash() {
            return Ok(Feedback::default());
        }
        if is_own {
            files.note_left(&before.key);
        }
        let old = before.document(&name)?;
        let new = after.document(&name)?;
        // A session that does not know the version before has to read the one after.
        let hash = files.record_reformat(&before.key, before.hash(), hash);
        let (_, diff) = diff_text(Some(old.text()), new.text(), &name);
        Ok(Feedback { text: format!("formatted:\n{diff}"), hash: Some(hash) })
    })
    .await
}

fn bounds() -> Bounds {
    Bounds { timeout: BUDGET, ..Bounds::of_formatters(None) }
}
