//! The types of reports, as tools return them and sessions keep them.
//!
//! Counts are exact; lists and texts are bounded, and `omitted` says how much was left out.

use serde::{Deserialize, Serialize};

use crate::parse::{Finding, text};
use crate::plan::Selector;

/// Bounds the listed failures; the counts stay exact.
pub const MAX_FAILURES: usize = 500;

/// Bounds the listed findings; `omitted` counts the rest.
pub const MAX_FINDINGS: usize = 2_000;

/// Bounds the bytes of one message or diff.
pub const MAX_MESSAGE_BYTES: usize = 4 * 1024;

/// The judgement about a project, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
#[expect(missing_docs, reason = "the reason has messages of its own")]
pub enum Verdict {
    /// The tool checked something and found no failure.
    Passed,
    /// The tool found a failure, or the build failed.
    Failed,
    /// There is no judgement: the tool is missing, was killed, or left no usable report.
    CouldNotRun { reason: CouldNotRunReason },
}

/// The reason why there is no judgement about a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum CouldNotRunReason {
    #[error("{tool} is not installed; {hint}")]
    ToolMissing { tool: String, hint: String },
    #[error("{program} could not be started: {message}")]
    NotStarted { program: String, message: String },
    #[error("no tests were run")]
    NoTests,
    #[error("timed out after {seconds}s")]
    TimedOut { seconds: u64 },
    #[error("killed by signal {signal}")]
    Signal { signal: i32 },
    /// The tool itself failed: a usage error, a broken configuration, a crash.
    #[error("exit status {exit}: {message}")]
    ToolFailed { exit: i32, message: String },
    /// A check may not write the lock file that it needs.
    #[error("{file} is missing or out of date, and a check may not write it; {hint}")]
    LockFile { file: String, hint: String },
    /// A check tried to change the tree, which is read-only for it.
    #[error("the command writes files, and a check may not: {message}; run it with run_script")]
    ReadOnlyTree { message: String },
    /// The report is printed and exceeded the capture limit.
    #[error("the report exceeded the output limit and is incomplete")]
    Cut,
    /// The tool succeeded without a readable report.
    #[error("the tool left no readable report")]
    NoReport,
}

/// Numbers of tests by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the results")]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
    /// Tests that were excluded or marked as skipped.
    pub skipped: u64,
    /// Failures outside of a test: fixtures, collection, crashes of the runner.
    pub errors: u64,
}

impl Counts {
    /// Returns the number of executed tests.
    pub fn run(&self) -> u64 {
        self.passed + self.failed + self.errors
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.errors += other.errors;
    }
}

/// A failed test, with its message without the stack trace and its file relative to the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the summary defines the other fields")]
pub struct Failure {
    /// Name as the runner prints it.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line of the assertion or the test, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    pub message: String,
    /// Expected and actual value, if the runner prints them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Selector to run exactly this test again, if the runner supports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun: Option<Selector>,
}

/// Start of the message about a test whose process ended before the result.
pub(crate) const ENDED_EARLY: &str = "the process ended before the result of this test";

impl Failure {
    /// Creates the failure of a test, or of a part of the run that `name` stands for, whose process
    /// ended before the result.
    pub(crate) fn ended_early(name: &str, rerun: Selector, cause: Option<&str>) -> Self {
        let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
        Self {
            name: name.to_owned(),
            file: rerun.file.clone(),
            line: None,
            message: text::truncated(&format!("{ENDED_EARLY}{cause}")),
            diff: None,
            rerun: Some(rerun),
        }
    }
}

/// The report of a test run, or of several runs of one plan merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the types define the other fields")]
pub struct TestReport {
    #[serde(flatten)]
    pub verdict: Verdict,
    pub counts: Counts,
    /// Failed tests, at most [`MAX_FAILURES`].
    pub failures: Vec<Failure>,
    /// Errors that prevented tests from being built or loaded.
    pub build_errors: Vec<Finding>,
    /// Files that exited successfully without reporting a test, relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
    /// Number of failures and build errors that are not listed.
    pub omitted: usize,
    /// End of the output, if nothing else explains the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl TestReport {
    /// Merges the reports of several commands of one plan; the worst verdict wins.
    pub fn merge(reports: impl IntoIterator<Item = Self>) -> Option<Self> {
        reports.into_iter().reduce(|mut all, next| {
            if weight(&next.verdict) > weight(&all.verdict) {
                all.verdict = next.verdict;
            }
            all.counts.add(next.counts);
            all.failures.extend(next.failures);
            all.build_errors.extend(next.build_errors);
            all.silent.extend(next.silent);
            all.omitted += next.omitted;
            all.detail = all.detail.or(next.detail);
            all
        })
    }
}

fn weight(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Passed => 0,
        Verdict::CouldNotRun { .. } => 1,
        Verdict::Failed => 2,
    }
}

/// The report of a linter, type checker or formatter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the type defines the verdict")]
pub struct CheckReport {
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Findings by file and line, at most [`MAX_FINDINGS`].
    pub findings: Vec<Finding>,
    /// Number of findings that are not listed.
    pub omitted: usize,
    /// True if the report exceeded a limit and was cut, so that there are more findings than the
    /// counted ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}
