//! The recording of coverage during a run of tests.
//!
//! A plan of [`carrel_verify::plan::plan_coverage`] adds up to two commands to each command of the run. Recording never
//! changes the verdict: a recorder that is missing, fails or runs out of time is a gap, which the reply names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::Failure;
use carrel_runner::LimitReached;
use carrel_verify::Profile;
use carrel_verify::coverage::{Recording, RecordingPlace, read_recording};
use carrel_verify::plan::{CoverageLimits, CoveragePlan, Invocation, plan_coverage};
use schemars::JsonSchema;
use serde::Serialize;

use super::coverage_store::{ProjectCoverage, ProjectKey};
use super::last_test_runs::now;
use super::project_command::{Bounds, FinishedCommand, run, run_named};
use crate::blocking::blocking;
use crate::files::MAX_FILE_BYTES;
use crate::read_tracker::ContentHash;
use crate::text::line;
use crate::tool_context::ToolContext;

/// Gaps in one reply; the facts have more.
const MAX_SHOWN_GAPS: usize = 5;

/// Bounds the command that writes the files of a recorder.
const MAX_PREPARATION: Duration = Duration::from_secs(30);

/// The choice to record coverage during a run of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coverage {
    Off,
    Recorded,
}

impl Coverage {
    pub(super) fn of(asked: bool) -> Self {
        if asked { Self::Recorded } else { Self::Off }
    }
}

/// The facts about a recording.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CoverageFact {
    /// Number of tests that ran lines of the project.
    tests: usize,
    /// Number of files that ran.
    files: usize,
    /// Tests and files without a recording, and why.
    gaps: Vec<String>,
}

impl CoverageFact {
    pub(super) fn of(recording: &Recording) -> Self {
        Self {
            tests: recording.tests(),
            files: recording.files().count(),
            gaps: recording.gaps().0.to_vec(),
        }
    }
}

/// Runs the commands of one project, and collects what their recorders leave.
#[derive(Debug)]
pub(super) struct Recorder {
    coverage: Coverage,
    recording: Recording,
}

impl Recorder {
    pub(super) fn new(coverage: Coverage) -> Self {
        Self { coverage, recording: Recording::default() }
    }

    /// Returns the recording, if one was asked for.
    pub(super) fn finish(self) -> Option<Recording> {
        (self.coverage == Coverage::Recorded).then_some(self.recording)
    }

    /// Runs a command of the run, with its recorder if there is one.
    pub(super) async fn run(
        &mut self,
        context: &ToolContext,
        profile: &Profile,
        invocation: &Invocation,
        bounds: Bounds,
    ) -> Result<FinishedCommand, Failure> {
        if self.coverage == Coverage::Off {
            return run(context, invocation, bounds).await;
        }
        match plan_coverage(profile, invocation, CoverageLimits { time: bounds.timeout }) {
            // The states of three commands would make the future of every run large.
            Ok(plan) => Box::pin(self.run_plan(context, invocation, plan, bounds)).await,
            Err(unsupported) => {
                self.recording.add_gap(&unsupported.to_string());
                run(context, invocation, bounds).await
            }
        }
    }

    async fn run_plan(
        &mut self,
        context: &ToolContext,
        usual: &Invocation,
        plan: CoveragePlan,
        bounds: Bounds,
    ) -> Result<FinishedCommand, Failure> {
        let CoveragePlan { before, tests, after, removal } = plan;
        if let Some(before) = before {
            let limited = Bounds { timeout: MAX_PREPARATION.min(bounds.timeout), ..bounds };
            let name = "prepare the recording of coverage".to_owned();
            let prepared = run_named(&preparing(context), &before, limited, name).await;
            if let Some(gap) = gap_of(&prepared, "the recorder could not be written") {
                self.recording.add_gap(&gap);
                return run(context, usual, bounds).await;
            }
        }
        let ran = run(context, &tests, bounds).await?;
        if let Some(after) = after {
            context.progress(0.0, None, "recording the lines of each test");
            let name = "record coverage".to_owned();
            match run_named(context, &after, bounds, name).await {
                Ok(recorded) => {
                    self.read(context, usual, &recorded);
                    self.remove_beyond_quota(context, &recorded, &removal).await;
                }
                Err(failure) => self.recording.add_gap(&not_run(&failure)),
            }
        } else {
            self.read(context, usual, &ran);
        }
        Ok(ran)
    }

    /// Removes the files of a recorder that was ended because of the quota.
    async fn remove_beyond_quota(
        &mut self,
        context: &ToolContext,
        ran: &FinishedCommand,
        removal: &Invocation,
    ) {
        let limit = ran.facts.as_ref().and_then(|facts| facts.limit);
        if limit != Some(LimitReached::Quota) {
            return;
        }
        let bounds = Bounds { timeout: MAX_PREPARATION, ..Bounds::of_formatters(None) };
        let name = "remove the files of the recorder".to_owned();
        let removed = run_named(context, removal, bounds, name).await;
        let is_done = removed.is_ok_and(|removed| removed.exit == 0);
        let outcome = if is_done { "were removed" } else { "could not be removed" };
        self.recording.add_gap(&format!(
            "the quota of the workspace is reached; the files of the recorder {outcome}"
        ));
    }

    fn read(&mut self, context: &ToolContext, invocation: &Invocation, ran: &FinishedCommand) {
        let workspace = context.workspace().path().to_string_lossy();
        let place = RecordingPlace { workspace: &workspace, directory: &invocation.directory };
        match read_recording(&ran.recording, place) {
            Some(recording) => self.recording.add(&recording),
            None => self.recording.add_gap(&failed("the recorder left nothing", ran)),
        }
    }
}

/// Returns the call without a receiver of job ids, which takes the first one: that of the tests.
fn preparing(context: &ToolContext) -> ToolContext {
    let mut own = context.clone();
    own.options.command_settings.started = None;
    own
}

/// Returns the gap that a command leaves which failed or could not start.
fn gap_of(ran: &Result<FinishedCommand, Failure>, what: &str) -> Option<String> {
    match ran {
        Ok(ran) => (ran.exit != 0).then(|| failed(what, ran)),
        Err(failure) => Some(not_run(failure)),
    }
}

fn not_run(failure: &Failure) -> String {
    format!("the recorder could not run: {}", failure.message)
}

fn failed(what: &str, ran: &FinishedCommand) -> String {
    let stderr = String::from_utf8_lossy(&ran.stderr);
    let last = stderr.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    let last = if last.is_empty() { String::new() } else { format!(": {last}") };
    format!("{what} (exit {}){last}", ran.exit)
}

/// Keeps the recording of a project with the hashes of its files, for `tests_covering`. A run that recorded nothing
/// leaves the recording before it in place.
pub(super) async fn keep_recording(
    context: &ToolContext,
    profile: &Profile,
    recording: &Recording,
    is_part: bool,
) -> Result<(), Failure> {
    if recording.tests() == 0 {
        return Ok(());
    }
    let key = ProjectKey {
        workspace: context.workspace().path().to_owned(),
        directory: profile.root.clone(),
        ecosystem: profile.ecosystem,
    };
    let files: Vec<String> = recording.files().map(str::to_owned).collect();
    let hashes = hashes(context, files).await?;
    let coverage = ProjectCoverage { recording: recording.clone(), hashes, is_part, at: now() };
    context.toolbox.coverage.set(key, coverage);
    Ok(())
}

/// Returns the content hashes of the files that can be read.
pub(super) async fn hashes(
    context: &ToolContext,
    files: Vec<String>,
) -> Result<BTreeMap<String, ContentHash>, Failure> {
    let workspace = Arc::clone(context.workspace());
    blocking(move || {
        let hash = |file: String| {
            let bytes = workspace.files().read(file.as_ref(), MAX_FILE_BYTES).ok()?;
            Some((file, ContentHash::of(&bytes)))
        };
        Ok(files.into_iter().filter_map(hash).collect())
    })
    .await
}

/// Adds a recording to the text of a reply.
pub(super) fn show_recording(text: &mut String, recording: &Recording) {
    let (tests, files) = (recording.tests(), recording.files().count());
    line(text, &format!("coverage: recorded {tests} test(s) in {files} file(s)"));
    let (gaps, omitted) = recording.gaps();
    for gap in gaps.iter().take(MAX_SHOWN_GAPS) {
        line(text, &format!("coverage gap: {gap}"));
    }
    let left = gaps.len().saturating_sub(MAX_SHOWN_GAPS) + omitted;
    if left > 0 {
        line(text, &format!("({left} more coverage gaps)"));
    }
}
