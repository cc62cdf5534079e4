//! Effects: the formatter, the linter and the installer of a project, each with its audit event.
//!
//! Tools and the feedback on edits run the three here and nowhere else, so that `lifecycle.effect.format`,
//! `lifecycle.effect.lint` and `lifecycle.effect.install` are recorded for every interface. There is one event for
//! each command that was to run, also if it failed, was not there, or was given up before it ended.

use carrel_audit::AuditEvent;
use carrel_domain::Failure;
use carrel_verify::Profile;
use carrel_verify::parse::{self, CheckReport, Verdict};
use carrel_verify::plan::{CommandScope, Invocation};

use super::project_command::{Bounds, FinishedCommand, run};
use crate::tool_context::ToolContext;

/// Runs the formatter, which may change `files`.
pub(super) async fn format(
    context: &ToolContext,
    invocation: &Invocation,
    files: Vec<String>,
    bounds: Bounds,
) -> Result<(FinishedCommand, Verdict), Failure> {
    let record = EffectRecord::new(context, Effect::Format { files });
    let ran = run(context, invocation, bounds).await?;
    let verdict = parse::command(invocation, &ran.outcome());
    record.finish(&verdict);
    Ok((ran, verdict))
}

/// Runs the linter on `files`.
pub(super) async fn lint(
    context: &ToolContext,
    invocation: &Invocation,
    files: Vec<String>,
    bounds: Bounds,
) -> Result<(FinishedCommand, CheckReport), Failure> {
    let record = EffectRecord::new(context, Effect::Lint { files });
    let ran = run(context, invocation, bounds).await?;
    let report = parse::check(invocation, &ran.outcome());
    record.finish(&report.verdict);
    Ok((ran, report))
}

/// Runs the installer.
pub(super) async fn install(
    context: &ToolContext,
    invocation: &Invocation,
    bounds: Bounds,
) -> Result<(FinishedCommand, Verdict), Failure> {
    let record = EffectRecord::new(context, Effect::Install { command: invocation.argv.join(" ") });
    let ran = run(context, invocation, bounds).await?;
    let verdict = parse::command(invocation, &ran.outcome());
    record.finish(&verdict);
    Ok((ran, verdict))
}

/// Returns the files of an effect: the file or directory that it is limited to, else the directory of the project.
pub(super) fn files_of(scope: CommandScope<'_>, profile: &Profile) -> Vec<String> {
    let path = match scope {
        CommandScope::File(path) | CommandScope::Directory(path) => path,
        CommandScope::Project | CommandScope::Package(_) => &profile.root,
    };
    vec![path.to_owned()]
}

#[derive(Debug)]
enum Effect {
    Format { files: Vec<String> },
    Lint { files: Vec<String> },
    Install { command: String },
}

/// The event of one effect, recorded when this is dropped: a command whose call is given up leaves one as well.
#[derive(Debug)]
struct EffectRecord<'a> {
    context: &'a ToolContext,
    effect: Option<Effect>,
    has_errors: bool,
}

impl<'a> EffectRecord<'a> {
    fn new(context: &'a ToolContext, effect: Effect) -> Self {
        Self { context, effect: Some(effect), has_errors: true }
    }

    fn finish(mut self, verdict: &Verdict) {
        self.has_errors = *verdict != Verdict::Passed;
    }
}

impl Drop for EffectRecord<'_> {
    fn drop(&mut self) {
        let Some(effect) = self.effect.take() else { return };
        let workspace = self.context.workspace().name().to_owned();
        let has_errors = self.has_errors;
        let event = match effect {
            Effect::Format { files } => AuditEvent::EffectFormat { workspace, files, has_errors },
            Effect::Lint { files } => AuditEvent::EffectLint { workspace, files, has_errors },
            Effect::Install { command } => {
                AuditEvent::EffectInstall { workspace, command, has_errors }
            }
        };
        let ToolContext { toolbox, session, options, .. } = self.context;
        toolbox.events.add(session.id(), options.interface, event);
    }
}
