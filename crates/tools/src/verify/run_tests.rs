//! The tool `run_tests`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use carrel_domain::{Code, Failure, ToolGroup};
use carrel_sandbox::Denial;
use carrel_verify::coverage::Recording;
use carrel_verify::parse::{Counts, TestReport, Verdict, name_running_test, unnamed_parts};
use carrel_verify::plan::{
    CommandScope, Invocation, PlanError, Target, plan_one_at_a_time, plan_tests,
};
use carrel_verify::{Profile, parse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::changed_files::{ChangedFiles, TreeState};
use super::last_test_runs::LastRun;
use super::project_choice::{ProjectChoice, ProjectQuery};
use super::project_command::{Bounds, FinishedCommand, run};
use super::record_coverage::{Coverage, CoverageFact, Recorder, keep_recording, show_recording};
use crate::blocking::blocking;
use crate::reply_limit::{MaxBytes, shorten};
use crate::response::{Reply, ToolContent};
use crate::shell::{NetworkChoice, denials_in_verdict, strip_control};
use crate::shown_lines;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult, WorkspaceChoice};
use crate::tool_context::ToolContext;

/// Failures in one reply; `last_test_failures` has the rest.
const MAX_SHOWN: usize = 50;

/// Failures that a reply shows with their whole message. Later ones mostly have the same cause.
const SHOWN_WHOLE: usize = 5;

/// Bytes of the message of a later failure.
const SHOWN_OF_LATER: usize = 160;

/// Bytes of output in a reply when no test failure explains the result.
const SHOWN_OUTPUT: usize = 8 * 1024;

/// Bounds the second runs that find the tests at fault; parts beyond it stay unnamed.
const MAX_SECOND_RUNS: usize = 3;

pub(super) struct RunTests;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// Only the tests of this file or directory; its nearest project is used.
    #[schemars(extend("x-brief" = "file or directory"))]
    path: Option<String>,
    /// Only the tests of this package, where the tool knows packages by name.
    #[schemars(extend("x-brief" = ""))]
    package: Option<String>,
    /// Only tests whose name contains this.
    #[schemars(extend("x-brief" = "part of the test names"))]
    name: Option<String>,
    /// The language, if the project has several; `all` for each in turn.
    #[schemars(extend("x-brief" = "if there are several; or `all`"))]
    language: Option<String>,
    /// Timeout in seconds; 300 by default, at most 1800.
    #[schemars(extend("x-brief" = "seconds; 300, at most 1800"))]
    timeout: Option<u64>,
    /// The network they get; at most what the operator allows, and `loopback` by default if that is allowed.
    #[schemars(extend("x-brief" = ""))]
    network: Option<NetworkChoice>,
    /// Also record the lines that each test runs, for `tests_covering`; takes several times as long.
    #[schemars(extend("x-brief" = false))]
    #[serde(default)]
    coverage: bool,
    max_bytes: Option<MaxBytes>,
}

/// The facts about a run of tests.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TestFacts {
    /// `passed`, `failed` or `could_not_run`; the worst of all sections.
    verdict: &'static str,
    sections: Vec<TestSection>,
}

/// The facts about the tests of one project.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TestSection {
    language: &'static str,
    /// The project, relative to the workspace.
    directory: String,
    /// `passed`, `failed` or `could_not_run`.
    verdict: &'static str,
    /// The reason for `could_not_run`.
    reason: Option<String>,
    /// Numbers of passed, failed and skipped tests, and of errors.
    #[schemars(with = "BTreeMap<String, u64>")]
    counts: Counts,
    /// The tests that failed; the text explains them.
    failures: Vec<FailureFact>,
    /// Number of errors that prevented tests from being built or loaded.
    build_errors: usize,
    /// Files that the run created, changed or deleted, without ignored ones; null if the tree is too large to
    /// compare.
    changed_files: Option<Vec<String>>,
    /// Number of further changed files.
    changed_files_omitted: usize,
    /// Operations that the sandbox denied.
    #[schemars(with = "Vec<Map<String, Value>>")]
    denials: Vec<Denial>,
    commands: Vec<Vec<String>>,
    /// For `BashOutput`, which returns the whole output.
    shell_ids: Vec<String>,
    /// The recording for `tests_covering`, if the call asked for one.
    coverage: Option<CoverageFact>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FailureFact {
    name: String,
    file: Option<String>,
    line: Option<u64>,
}

#[derive(Debug)]
pub(super) struct ProjectTests {
    pub(super) profile: Profile,
    pub(super) report: TestReport,
    ran: Vec<FinishedCommand>,
    changed: ChangedFiles,
    coverage: Option<Recording>,
}

impl Tool for RunTests {
    type Input = Input;
    type Facts = TestFacts;

    const ABOUT: About = About {
        name: "run_tests",
        title: "Run tests",
        group: ToolGroup::Verify,
        workspaces: WorkspaceChoice::OneOrAll,
        description: "Runs the project's tests and returns each failure with its place and \
            message. The verdict is passed, failed or could_not_run. run_failing_tests reruns \
            what failed.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<TestFacts> {
        // Tests that cannot write fail for a reason of their own.
        context.refuse_frozen().await?;
        let bounds = Bounds::of_tests(input.timeout, input.network);
        let query =
            ProjectQuery { path: input.path, package: input.package, language: input.language };
        let chosen = ProjectChoice::of(context, query).await?;
        let mut all = Vec::new();
        for profile in &chosen.profiles {
            let target =
                Target { scope: chosen.scope(profile), name: input.name.as_deref(), rerun: &[] };
            let coverage = Coverage::of(input.coverage);
            let tested = test(context, profile, &target, bounds, coverage).await?;
            if let Some(recording) = &tested.coverage {
                let is_part = target.scope != CommandScope::Project || target.name.is_some();
                keep_recording(context, profile, recording, is_part).await?;
            }
            all.push(tested);
        }
        let runs = all.iter().map(LastRun::of).collect();
        context.session.state().last_runs.set(context.workspace().name(), runs);
        let reply = reply(context, &all, context.reply_limit(input.max_bytes));
        let failures = all.iter().flat_map(|tested| &tested.report.failures);
        record_excerpts(context, &reply.content, failures).await;
        Ok(reply)
    }
}

pub(super) async fn test(
    context: &ToolContext,
    profile: &Profile,
    target: &Target<'_>,
    bounds: Bounds,
    coverage: Coverage,
) -> Result<ProjectTests, Failure> {
    let planned = plan_tests(profile, target).map_err(|error| no_plan(&error))?;
    let before = TreeState::of(context).await;
    let mut reports = Vec::new();
    let mut all = Vec::new();
    let mut recorder = Recorder::new(coverage);
    for invocation in planned {
        let ran = recorder.run(context, profile, &invocation, bounds).await?;
        let mut report = confirmed(context, parse::tests(&invocation, &ran.outcome())).await?;
        all.push(ran);
        all.extend(find_running_tests(context, &invocation, &mut report, bounds).await?);
        reports.push(report);
    }
    let report = TestReport::merge(reports)
        .ok_or_else(|| Failure::new(Code::Internal, "a plan for tests has no command"))?;
    let changed = TreeState::changes(before, context).await;
    let coverage = recorder.finish();
    Ok(ProjectTests { profile: profile.clone(), report, ran: all, changed, coverage })
}

/// Names the tests that brought their process down, where the first run does not tell them, by running the
/// parts at fault again with one test at a time. Returns the commands.
async fn find_running_tests(
    context: &ToolContext,
    invocation: &Invocation,
    report: &mut TestReport,
    bounds: Bounds,
) -> Result<Vec<FinishedCommand>, Failure> {
    let mut all = Vec::new();
    for part in unnamed_parts(report).iter().take(MAX_SECOND_RUNS) {
        let Some(second) = plan_one_at_a_time(invocation, part) else { continue };
        context.progress(0.0, None, "a test ended its process; running one test at a time");
        let ran = run(context, &second, bounds).await?;
        name_running_test(report, part, &parse::tests(&second, &ran.outcome()));
        all.push(ran);
    }
    Ok(all)
}

async fn confirmed(context: &ToolContext, mut report: TestReport) -> Result<TestReport, Failure> {
    if report.silent.is_empty() {
        return Ok(report);
    }
    let workspace = Arc::clone(context.workspace());
    blocking(move || {
        parse::check_unreported_files(&mut report, workspace.files());
        Ok(report)
    })
    .await
}

pub(super) fn no_plan(error: &PlanError) -> Failure {
    let code = match error {
        PlanError::NoCommand { .. } | PlanError::NothingToRerun { .. } => Code::ProjectNotDetected,
        PlanError::Outside { .. }
        | PlanError::NotUnderstood { .. }
        | PlanError::NeedsFile { .. }
        | PlanError::WritingScript { .. }
        | PlanError::CannotNarrow { .. } => Code::InvalidArguments,
    };
    Failure::new(code, error.to_string())
}

/// Returns a verdict as a word, and the reason for `could_not_run`.
pub(super) fn word(verdict: &Verdict) -> (&'static str, Option<String>) {
    match verdict {
        Verdict::Passed => ("passed", None),
        Verdict::Failed => ("failed", None),
        Verdict::CouldNotRun { reason } => ("could_not_run", Some(reason.to_string())),
    }
}

pub(super) fn worst<'a>(words: impl Iterator<Item = &'a Verdict>) -> &'static str {
    let weight = |word: &&'static str| match *word {
        "failed" => 2,
        "could_not_run" => 1,
        _ => 0,
    };
    words.map(|verdict| word(verdict).0).max_by_key(weight).unwrap_or("could_not_run")
}

pub(super) fn reply(context: &ToolContext, all: &[ProjectTests], limit: usize) -> Reply<TestFacts> {
    let mut text = String::new();
    for tested in all {
        if all.len() > 1 {
            let Profile { ecosystem, root, .. } = &tested.profile;
            line(&mut text, &format!("=== {} in {root} ===", ecosystem.as_str()));
        }
        tested.show(&mut text);
    }
    let sections = all.iter().map(ProjectTests::section).collect();
    let verdict = worst(all.iter().map(|tested| &tested.report.verdict));
    let guard = context.cut_guard();
    let text =
        shorten(&guard, text, limit, "narrow the run, or read BashOutput of a shell_id below");
    Reply::text(text, TestFacts { verdict, sections })
}

impl ProjectTests {
    /// Returns the commands that ran.
    pub(super) fn commands(&self) -> &[FinishedCommand] {
        &self.ran
    }

    fn section(&self) -> TestSection {
        let (verdict, reason) = word(&self.report.verdict);
        let fact = |failure: &parse::Failure| FailureFact {
            name: failure.name.clone(),
            file: failure.file.clone(),
            line: failure.line,
        };
        TestSection {
            language: self.profile.ecosystem.as_str(),
            directory: self.profile.root.clone(),
            verdict,
            reason,
            counts: self.report.counts,
            failures: self.report.failures.iter().map(fact).collect(),
            build_errors: self.report.build_errors.len(),
            changed_files: (!self.changed.unknown).then(|| self.changed.listed.clone()),
            changed_files_omitted: self.changed.omitted,
            denials: self.denials().cloned().collect(),
            commands: self.ran.iter().map(|ran| ran.argv.clone()).collect(),
            shell_ids: self.ran.iter().filter_map(|ran| ran.shell_id.clone()).collect(),
            coverage: self.coverage.as_ref().map(CoverageFact::of),
        }
    }

    fn denials(&self) -> impl Iterator<Item = &Denial> {
        self.ran.iter().flat_map(FinishedCommand::denials)
    }

    /// Returns the verdict. That of a run which did not pass says first if the sandbox denied something, since
    /// the failures may come from it.
    fn verdict_line(&self) -> String {
        let (verdict, reason) = word(&self.report.verdict);
        let denied = denials_in_verdict(&self.denials().collect::<Vec<_>>());
        match (&self.report.verdict, denied) {
            (Verdict::Failed, Some(denied)) => {
                let Counts { failed, errors, .. } = self.report.counts;
                let count = failed + errors;
                let plural = if count == 1 { "" } else { "s" };
                format!("{verdict}: {count} failure{plural}; {denied}")
            }
            (Verdict::CouldNotRun { .. }, Some(denied)) => {
                format!("{verdict}: {}; {denied}", reason.unwrap_or_default())
            }
            (Verdict::CouldNotRun { .. }, None) => {
                format!("{verdict}: {}", reason.unwrap_or_default())
            }
            (Verdict::Passed, _) | (Verdict::Failed, None) => verdict.to_owned(),
        }
    }

    fn show(&self, text: &mut String) {
        let Counts { passed, failed, skipped, errors } = self.report.counts;
        line(text, &self.verdict_line());
        line(
            text,
            &format!("{passed} passed, {failed} failed, {skipped} skipped, {errors} errors"),
        );
        for finding in &self.report.build_errors {
            line(text, &super::lint_and_typecheck::shown(finding));
        }
        let failures = &self.report.failures;
        for (index, failure) in failures.iter().take(SHOWN_WHOLE).enumerate() {
            show_failure(text, index + 1, failure);
        }
        if failures.len() > SHOWN_WHOLE {
            line(text, "\nin short (last_test_failures shows them whole):");
        }
        for (index, failure) in failures.iter().enumerate().take(MAX_SHOWN).skip(SHOWN_WHOLE) {
            show_briefly(text, index + 1, failure);
        }
        let left = failures.len().saturating_sub(MAX_SHOWN) + self.report.omitted;
        if left > 0 {
            line(text, &format!("({left} more; last_test_failures shows them)"));
        }
        if let Some(detail) = &self.report.detail {
            line(text, &format!("--- output ---\n{}", end_of(&strip_control(detail))));
        }
        if let Some(changed) = self.changed.line() {
            line(text, &changed);
        }
        if let Some(recording) = &self.coverage {
            show_recording(text, recording);
        }
        for ran in &self.ran {
            ran.add_notes(text);
            let whole =
                ran.shell_id.as_ref().map_or(String::new(), |id| format!(" (shell_id {id})"));
            line(text, &format!("command: {}{whole}", ran.argv.join(" ")));
            line(text, &format!("exit: {}", ran.exit));
        }
    }
}

/// Records the lines of tests that a reply shows.
pub(super) async fn record_excerpts(
    context: &ToolContext,
    reply: &[ToolContent],
    failures: impl Iterator<Item = &parse::Failure>,
) {
    let Some(ToolContent::Text(text)) = reply.first() else { return };
    let place = |failure: &parse::Failure| {
        Some((failure.file.clone()?, usize::try_from(failure.line?).ok()?))
    };
    shown_lines::record_excerpts(context, text, failures.filter_map(place)).await;
}

pub(super) fn show_failure(text: &mut String, number: usize, failure: &parse::Failure) {
    line(text, &format!("\n{number}. {}", failure.name));
    if let Some(file) = &failure.file {
        let line_suffix = failure.line.map_or(String::new(), |line| format!(":{line}"));
        line(text, &format!("   {file}{line_suffix}"));
    }
    for part in strip_control(&failure.message).lines() {
        line(text, &format!("   {part}"));
    }
    // Most runners repeat the diff in the message.
    let diff = failure.diff.as_ref().filter(|diff| !failure.message.contains(diff.trim_end()));
    if let Some(diff) = diff {
        line(text, "   --- diff ---");
        for part in strip_control(diff).lines() {
            writeln!(text, "   {part}").expect("writing to a string cannot fail");
        }
    }
}

fn show_briefly(text: &mut String, number: usize, failure: &parse::Failure) {
    let message = strip_control(&failure.message);
    let mut first = message.lines().map(str::trim).find(|part| !part.is_empty()).unwrap_or("");
    let cut = first.floor_char_boundary(SHOWN_OF_LATER);
    let ellipsis = if cut < first.len() { "…" } else { "" };
    first = &first[..cut];
    let place = failure.line.map_or(String::new(), |line| format!(":{line}"));
    line(text, &format!("{number}. {}{place} {first}{ellipsis}", failure.name));
}

/// Returns the last [`SHOWN_OUTPUT`] bytes, from the beginning of a line.
fn end_of(text: &str) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(SHOWN_OUTPUT));
    let rest = &text[start..];
    if start == 0 { rest } else { rest.split_once('\n').map_or(rest, |(_, rest)| rest) }
}
