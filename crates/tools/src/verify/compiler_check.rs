//! Compiler diagnostics about Rust and Go files that were just changed.
//!
//! An edit starts a check of the packages that it touched: `cargo check` or `go vet`, in the sandbox, without network,
//! with a read-only tree and a build directory that stays with the workspace. The edit waits for the rest of its time
//! for feedback. A check that takes longer goes on, and its findings come with a later reply of the same session:
//!
//! ```text
//! Edit ──► start ──► finished in time ──► findings in the reply
//!            │
//!            └─────► still checking ──► next reply: finished ──► findings, once
//!                                        │        └ a file has changed since ──► checked again
//!                                        └ not finished ──► the reply after it
//! ```
//!
//! A workspace has one check at a time, and the newest wins: an edit kills the check of the one before and waits until
//! its processes have ended. A check is a job of the session that made the edit. It ends with the session, with the
//! workspace, and with the call if that is cancelled while it waits.
//!
//! Findings are those about the changed files, and errors in other files that the check before did not have. Other
//! errors are counted, so that a broken project does not hide the edit. A check that cannot run says so once for each
//! session, and not at all if the toolchain is missing.

mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrel_audit::Interface;
use carrel_domain::{Failure, sync};
use carrel_runner::LimitReached;
use carrel_verify::parse::{self, CouldNotRunReason, Finding, Verdict};
use carrel_verify::plan::{EDIT_CHECK_OUTPUT, Invocation, plan_edit_check};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::project_command::{Bounds, run};
use super::server_check;
use crate::blocking::blocking;
use crate::files::WorkspaceFiles;
use crate::read_tracker::ContentHash;
use crate::response::ToolContent;
use crate::session::SessionLifetime;
use crate::text::line;
use crate::tool_context::{CommandSettings, ToolContext};
use report::{ErrorKey, PackageReport};

/// Bounds one check. The first one of a workspace compiles the dependencies.
const MAX_TIME: Duration = Duration::from_mins(5);

/// Bounds the removal of the build directory.
const MAX_REMOVAL_TIME: Duration = Duration::from_mins(1);

/// Bounds the packages of one edit that are checked.
const MAX_PACKAGES: usize = 4;

/// Bounds how often a check whose result is out of date is made again.
const MAX_RESTARTS: u32 = 3;

/// Bounds the checks of a session and workspace that wait for a reply.
const MAX_LATE: usize = 8;

/// The compiler checks of a server, by the path of the workspace.
#[derive(Debug, Default)]
pub(crate) struct CompilerChecks(Mutex<BTreeMap<PathBuf, Arc<WorkspaceChecks>>>);

/// The checks of one workspace.
#[derive(Debug, Default)]
struct WorkspaceChecks {
    /// Held while a check runs.
    turn: tokio::sync::Mutex<()>,
    state: Mutex<CheckState>,
}

#[derive(Debug, Default)]
struct CheckState {
    /// The check that was started last.
    newest: Option<Check>,
    /// The errors of the last finished check of each package.
    errors: BTreeMap<String, BTreeSet<ErrorKey>>,
    /// Directories whose files were read or changed, which are checked ahead once.
    warmed: BTreeSet<PathBuf>,
    /// A check exceeded the quota, and so would the next one.
    is_off: bool,
}

/// A package to check, and the files in it that an edit changed.
#[derive(Clone, Debug)]
struct PackageCheck {
    invocation: Invocation,
    files: BTreeMap<String, ContentHash>,
}

/// A check that was started.
#[derive(Clone, Debug)]
struct Check {
    packages: Arc<Vec<PackageCheck>>,
    outcome: watch::Receiver<Option<Outcome>>,
    cancel: CancellationToken,
}

#[derive(Clone, Debug)]
enum Outcome {
    Finished(Arc<Vec<PackageReport>>),
    /// It was killed, by a newer check for example, or could not be started.
    Ended,
    /// Its build directory exceeded the quota and was removed.
    OverQuota,
}

/// A check whose findings come with a later reply.
#[derive(Debug)]
pub(crate) struct LateCheck {
    check: Check,
    restarts: u32,
}

/// Checks the packages of changed Rust and Go files, asks running language servers about others, and adds the findings
/// to the reply, or a line that they follow. Waits until `deadline` at most.
pub(crate) async fn add_feedback(
    context: &ToolContext,
    paths: &[PathBuf],
    blocks: &mut Vec<ToolContent>,
    deadline: Instant,
) {
    if context.helper_refusal("compiler").is_some() {
        return;
    }
    let (compiled, others): (Vec<_>, Vec<_>) =
        paths.iter().cloned().partition(|path| is_compiled(path));
    let mut asked = Vec::new();
    tokio::join!(
        add_findings(context, compiled, blocks, deadline),
        server_check::add_feedback(context, &others, &mut asked, deadline)
    );
    for block in asked {
        if let ToolContent::Text(text) = block {
            add(blocks, &text);
        }
    }
}

async fn add_findings(
    context: &ToolContext,
    mut paths: Vec<PathBuf>,
    blocks: &mut Vec<ToolContent>,
    deadline: Instant,
) {
    if paths.is_empty() {
        return;
    }
    let mut packages = packages_of(context, paths.clone()).await.unwrap_or_default();
    let owed = take_owed(context, &packages);
    if !owed.is_empty() {
        paths.extend(owed);
        packages = packages_of(context, paths).await.unwrap_or_default();
    }
    if packages.is_empty() || context.toolbox.compiler_checks.of(context).is_off() {
        return;
    }
    let mut check = start(context, packages);
    let waited = tokio::select! {
        biased;
        outcome = check.ended() => Some(outcome),
        () = context.cancel().cancelled() => {
            check.cancel.cancel();
            return;
        }
        () = tokio::time::sleep_until(deadline) => None,
    };
    match waited {
        Some(Outcome::Finished(reports)) => {
            let text = report::shown(context, &reports, &check.files(), report::Timing::InTime);
            add(blocks, &text);
        }
        Some(Outcome::OverQuota) => add(blocks, &over_quota(context, &check)),
        // It could not be started. One that a newer check killed is made again later.
        Some(Outcome::Ended) if !check.cancel.is_cancelled() => {}
        Some(Outcome::Ended) | None => {
            let state = leave_unfinished(context, check.clone()).await;
            add(blocks, &format!("post-edit check ({}): {state}", check.command()));
        }
    }
}

/// Adds the findings of checks that have finished since their edits, and what happened to language servers meanwhile.
pub(crate) async fn add_late(context: &ToolContext, blocks: &mut Vec<ToolContent>) {
    let Some(workspace) = context.optional_workspace() else { return };
    server_check::add_late(context, workspace.name(), blocks);
    for notice in context.toolbox.language_servers.take_notices(workspace.shared_handle().path()) {
        add(blocks, &format!("[{notice}]"));
    }
    let waiting = context.session.state().late_checks.remove(workspace.name());
    for late in waiting.into_iter().flatten() {
        match late.check.outcome_now() {
            None => keep(context, late),
            Some(outcome) => {
                let text = deliver(context, late, outcome).await;
                add(blocks, &text);
            }
        }
    }
}

/// Starts a check of the package of a file that was read, so that the first edit finds its dependencies compiled.
/// Only for interfaces whose caller may run programs, and once for each directory.
pub(crate) fn warm(context: &ToolContext, path: &str) {
    let path = PathBuf::from(path);
    let lasts = matches!(context.options.interface, Interface::Stdio | Interface::Agent);
    if !lasts || context.helper_refusal("compiler").is_some() {
        return;
    }
    if !is_compiled(&path) {
        return server_check::warm(context, &path);
    }
    let checks = context.toolbox.compiler_checks.of(context);
    let directory = path.parent().unwrap_or(Path::new("")).to_owned();
    if !sync::lock(&checks.state).warmed.insert(directory) {
        return;
    }
    let context = context.clone();
    // Ends by itself: it reads project files, and starts a check that is a job of the session.
    carrel_exec::spawn_task(async move {
        let mut packages = packages_of(&context, vec![path]).await.unwrap_or_default();
        for package in &mut packages {
            package.files.clear();
        }
        let is_known =
            |package: &PackageCheck| sync::lock(&checks.state).errors.contains_key(&package.key());
        packages.retain(|package| !is_known(package));
        if !packages.is_empty() && !checks.is_running() && !checks.is_off() {
            start(&context, packages);
        }
    });
}

/// The findings of compilers about files.
#[derive(Debug, Default)]
pub(crate) struct CheckedFiles {
    pub(crate) commands: Vec<String>,
    /// The files that were compiled.
    pub(crate) files: BTreeSet<String>,
    /// Findings in these.
    pub(crate) findings: Vec<Finding>,
}

/// Checks Rust and Go files as they are, for a caller who may run programs. The error says why there is no result.
pub(crate) async fn check_now(
    context: &ToolContext,
    mut paths: Vec<PathBuf>,
    deadline: Instant,
) -> Result<CheckedFiles, String> {
    paths.retain(|path| is_compiled(path));
    if paths.is_empty() || context.helper_refusal("compiler").is_some() {
        return Ok(CheckedFiles::default());
    }
    let packages = packages_of(context, paths).await.unwrap_or_default();
    if packages.is_empty() || context.toolbox.compiler_checks.of(context).is_off() {
        return Ok(CheckedFiles::default());
    }
    let mut check = start(context, packages);
    let ended = tokio::select! {
        biased;
        outcome = check.ended() => Some(outcome),
        () = context.cancel().cancelled() => None,
        () = tokio::time::sleep_until(deadline) => None,
    };
    let reports = match ended {
        Some(Outcome::Finished(reports)) => reports,
        Some(Outcome::Ended | Outcome::OverQuota) => {
            return Err(format!("{} could not be run", check.command()));
        }
        None => {
            check.cancel.cancel();
            check.ended().await;
            return Err(format!("{} did not finish in time", check.command()));
        }
    };
    let mut checked = CheckedFiles::default();
    for (package, report) in check.packages.iter().zip(&*reports) {
        if let Verdict::CouldNotRun { reason } = &report.report.verdict {
            return Err(format!("{}: {reason}", report.command));
        }
        let is_about = |finding: &&Finding| {
            finding.file.as_ref().is_some_and(|file| package.files.contains_key(file))
        };
        checked.findings.extend(report.report.findings.iter().filter(is_about).cloned());
        checked.files.extend(package.files.keys().cloned());
        checked.commands.push(report.command.clone());
    }
    Ok(checked)
}

fn is_compiled(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs" || extension == "go")
}

/// Leaves a check that has not finished in time, and returns a phrase about it.
async fn leave_unfinished(context: &ToolContext, mut check: Check) -> &'static str {
    let lasts = context.session.lifetime() == SessionLifetime::Lasting;
    match context.options.interface {
        Interface::Stdio | Interface::Http | Interface::Agent if lasts => {
            keep(context, LateCheck { check, restarts: 0 });
            "still checking; the next reply has its findings"
        }
        // The next request starts where the check is then.
        Interface::Stdio | Interface::Http | Interface::Agent | Interface::Rest => {
            "still checking; run_typecheck has its findings"
        }
        // The process ends with the call, or the task soon after it.
        Interface::Cli | Interface::Task => {
            check.cancel.cancel();
            check.ended().await;
            "not finished in time; run_typecheck has its findings"
        }
    }
}

/// Returns the packages of files, with the current hashes of these.
async fn packages_of(
    context: &ToolContext,
    paths: Vec<PathBuf>,
) -> Result<Vec<PackageCheck>, Failure> {
    let toolbox = Arc::clone(&context.toolbox);
    let files = WorkspaceFiles::of(context);
    blocking(move || {
        let mut packages: Vec<PackageCheck> = Vec::new();
        for path in paths {
            let (owner, _) = toolbox.profiles.detect_for_file(files.root(), &path)?;
            let name = path.to_string_lossy().into_owned();
            let invocation =
                owner.profile.as_ref().and_then(|profile| plan_edit_check(profile, &name));
            let Some(invocation) = invocation else { continue };
            let Ok(file) = files.load(&path) else { continue };
            let hash = file.hash();
            let known = packages.iter().position(|package| package.invocation == invocation);
            match known {
                Some(index) => drop(packages[index].files.insert(name, hash)),
                None if packages.len() == MAX_PACKAGES => {}
                None => {
                    packages.push(PackageCheck { invocation, files: [(name, hash)].into() });
                }
            }
        }
        Ok(packages)
    })
    .await
}

/// Starts a check and kills the one before.
fn start(context: &ToolContext, packages: Vec<PackageCheck>) -> Check {
    let checks = context.toolbox.compiler_checks.of(context);
    let cancel = context.session.state().checks.child_token();
    let (sender, outcome) = watch::channel(None);
    let check = Check { packages: Arc::new(packages), outcome, cancel: cancel.clone() };
    let older = sync::lock(&checks.state).newest.replace(check.clone());
    if let Some(older) = older {
        older.cancel.cancel();
    }
    let mut background = context.clone();
    // The check outlives the call: it has neither the call's variables nor its output and progress.
    background.options.progress = None;
    background.options.cancel = cancel;
    let network = context.options.command_settings.network;
    background.options.command_settings = CommandSettings { network, ..CommandSettings::default() };
    let packages = Arc::clone(&check.packages);
    // Ends with its command, which is a job of the session and has a time limit.
    carrel_exec::spawn_task(async move {
        let outcome = checks.run(&background, &packages).await;
        sender.send_replace(Some(outcome));
    });
    check
}

/// Takes the checks of the same packages whose findings the session has not got, and returns their files: the next
/// check tells about these as well.
fn take_owed(context: &ToolContext, packages: &[PackageCheck]) -> Vec<PathBuf> {
    let keys: BTreeSet<_> = packages.iter().map(PackageCheck::key).collect();
    let mut state = context.session.state();
    let Some(waiting) = state.late_checks.get_mut(context.workspace().name()) else {
        return Vec::new();
    };
    let is_owed = |late: &mut LateCheck| !late.check.keys().is_disjoint(&keys);
    let owed = waiting.extract_if(.., is_owed);
    owed.flat_map(|late| late.check.files()).map(PathBuf::from).collect()
}

/// Keeps a check for a later reply.
fn keep(context: &ToolContext, late: LateCheck) {
    let mut state = context.session.state();
    let waiting = state.late_checks.entry(context.workspace().name().to_owned()).or_default();
    waiting.push(late);
    let surplus = waiting.len().saturating_sub(MAX_LATE);
    waiting.drain(..surplus);
}

/// Returns the text about a check that has ended, or makes it again if it does not tell about the files as they are.
async fn deliver(context: &ToolContext, late: LateCheck, outcome: Outcome) -> String {
    let LateCheck { check, restarts } = late;
    let paths = check.files().into_iter().map(PathBuf::from).collect();
    // Files that are gone need no findings.
    let current = packages_of(context, paths).await.unwrap_or_default();
    let is_current = states(&current) == states(&check.packages);
    match outcome {
        Outcome::Finished(reports) if is_current => {
            report::shown(context, &reports, &check.files(), report::Timing::Late)
        }
        Outcome::OverQuota => over_quota(context, &check),
        _ if current.is_empty() || restarts == MAX_RESTARTS => String::new(),
        Outcome::Finished(_) | Outcome::Ended => {
            let checks = context.toolbox.compiler_checks.of(context);
            // A newer check is not killed for an older edit.
            let late = if checks.is_running() {
                LateCheck { check, restarts }
            } else {
                LateCheck { check: start(context, current), restarts: restarts + 1 }
            };
            keep(context, late);
            String::new()
        }
    }
}

/// Says once for each session that checks are off.
fn over_quota(context: &ToolContext, check: &Check) -> String {
    let text = format!(
        "post-edit check ({}): off, its build directory exceeds the quota and was removed",
        check.command()
    );
    if report::is_news(context, &text) { text } else { String::new() }
}

/// Returns the hashes of the changed files, by package.
fn states(packages: &[PackageCheck]) -> BTreeMap<String, &BTreeMap<String, ContentHash>> {
    packages.iter().map(|package| (package.key(), &package.files)).collect()
}

pub(super) fn add(blocks: &mut Vec<ToolContent>, text: &str) {
    if text.is_empty() {
        return;
    }
    match blocks.last_mut() {
        Some(ToolContent::Text(last)) => line(last, text.trim_end()),
        Some(ToolContent::Image { .. }) | None => blocks.push(ToolContent::Text(text.to_owned())),
    }
}

impl CompilerChecks {
    fn of(&self, context: &ToolContext) -> Arc<WorkspaceChecks> {
        let mut all = sync::lock(&self.0);
        Arc::clone(all.entry(context.workspace().path().to_owned()).or_default())
    }
}

impl WorkspaceChecks {
    fn is_running(&self) -> bool {
        let state = sync::lock(&self.state);
        state.newest.as_ref().is_some_and(|check| check.outcome_now().is_none())
    }

    fn is_off(&self) -> bool {
        sync::lock(&self.state).is_off
    }

    /// Removes the build directory, without which the workspace would stay over its quota.
    async fn remove_output(&self, context: &ToolContext, invocation: &Invocation) {
        sync::lock(&self.state).is_off = true;
        let argv = ["rm", "-rf", EDIT_CHECK_OUTPUT].map(str::to_owned).to_vec();
        let removal = Invocation { argv, ..invocation.clone() };
        let bounds = Bounds { timeout: MAX_REMOVAL_TIME, ..Bounds::of_formatters(None) };
        let ran = run(context, &removal, bounds).await;
        if ran.map_or(true, |ran| ran.exit != 0) {
            warn!("could not remove the build directory of post-edit checks");
        }
    }

    /// Runs a check after the one before has ended.
    async fn run(&self, context: &ToolContext, packages: &[PackageCheck]) -> Outcome {
        let _turn = self.turn.lock().await;
        let mut reports = Vec::new();
        for package in packages {
            if context.cancel().is_cancelled() {
                return Outcome::Ended;
            }
            let bounds = Bounds { timeout: MAX_TIME, ..Bounds::of_formatters(None) };
            let Ok(ran) = run(context, &package.invocation, bounds).await else {
                return Outcome::Ended;
            };
            let limit = ran.facts.as_ref().and_then(|facts| facts.limit);
            if limit == Some(LimitReached::Quota) {
                self.remove_output(context, &package.invocation).await;
                return Outcome::OverQuota;
            }
            let report = parse::check(&package.invocation, &ran.outcome());
            let was_killed = matches!(
                report.verdict,
                Verdict::CouldNotRun { reason: CouldNotRunReason::Signal { .. } }
            );
            if was_killed || context.cancel().is_cancelled() {
                return Outcome::Ended;
            }
            let before = match report.verdict {
                Verdict::CouldNotRun { .. } => None,
                Verdict::Passed | Verdict::Failed => {
                    let errors = report::errors(&report.findings);
                    sync::lock(&self.state).errors.insert(package.key(), errors)
                }
            };
            let command = package.command();
            reports.push(PackageReport { command, report, before });
        }
        Outcome::Finished(Arc::new(reports))
    }
}

impl PackageCheck {
    fn key(&self) -> String {
        format!("{}\n{}", self.invocation.directory, self.invocation.argv.join(" "))
    }

    /// Returns the command line without options that are the same for every check.
    fn command(&self) -> String {
        let hidden = ["--all-targets", "--message-format=json", "--locked", "--offline"];
        let shown = self.invocation.argv.iter().filter(|word| !hidden.contains(&word.as_str()));
        shown.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

impl Check {
    async fn ended(&mut self) -> Outcome {
        let ended = self.outcome.wait_for(Option::is_some).await;
        ended.ok().and_then(|outcome| outcome.clone()).unwrap_or(Outcome::Ended)
    }

    fn outcome_now(&self) -> Option<Outcome> {
        let outcome = self.outcome.borrow().clone();
        // The task is gone without an outcome if the server stops.
        outcome.or_else(|| self.outcome.has_changed().is_err().then_some(Outcome::Ended))
    }

    fn files(&self) -> BTreeSet<String> {
        self.packages.iter().flat_map(|package| package.files.keys().cloned()).collect()
    }

    fn keys(&self) -> BTreeSet<String> {
        self.packages.iter().map(PackageCheck::key).collect()
    }

    fn command(&self) -> String {
        self.packages.iter().map(PackageCheck::command).collect::<Vec<_>>().join("; ")
    }
}
