//! The shape of reports.

use serde::{Deserialize, Serialize};

use crate::parse::finding::Finding;
use crate::plan::Selector;

/// Bounds how many failures are kept; the counts stay true.
pub const MAX_FAILURES: usize = 500;

/// Bounds how many findings are kept.
pub const MAX_FINDINGS: usize = 2_000;

/// Bounds one message or diff.
pub const MAX_MESSAGE_BYTES: usize = 4 * 1024;

/// How it went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// The tool ran and has nothing against the project.
    Passed,
    /// The tool ran and is not content.
    Failed,
    /// Nothing can be said about the project.
    CouldNotRun {
        /// Why.
        reason: CouldNotRunReason,
    },
}

/// Why nothing can be said about a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum CouldNotRunReason {
    /// The tool is not there.
    #[error("{tool} is not installed; {hint}")]
    ToolMissing {
        /// The tool.
        tool: String,
        /// How to get it.
        hint: String,
    },
    /// The command could not be started at all.
    #[error("{program} could not be started: {message}")]
    NotStarted {
        /// The program.
        program: String,
        /// Why.
        message: String,
    },
    /// No test ran.
    #[error("no tests were run")]
    NoTests,
    /// It took too long.
    #[error("timed out after {seconds}s")]
    TimedOut {
        /// How long it was given.
        seconds: u64,
    },
    /// It was killed.
    #[error("killed by signal {signal}")]
    Signal {
        /// The signal.
        signal: i32,
    },
    /// The tool gave up on itself, not on the project.
    #[error("exit status {exit}: {message}")]
    ToolFailed {
        /// The exit status.
        exit: i32,
        /// What it said about it.
        message: String,
    },
    /// A part of the report is missing.
    #[error("the report was too long and is not complete")]
    Cut,
    /// The tool was content but left no report.
    #[error("the tool left no report that could be read")]
    NoReport,
}

/// How many tests ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Those that passed.
    pub passed: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were not run on purpose.
    pub skipped: u64,
    /// Those that broke before or after the test itself.
    pub errors: u64,
}

impl Counts {
    /// How many were run.
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

/// A test that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its name, as people know it.
    pub name: String,
    /// The file, relative to the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What went wrong.
    pub message: String,
    /// What was expected and what came, where the runner shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Runs it again; `None` when the runner cannot be pointed at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun: Option<Selector>,
}

/// What a run of tests said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    /// How it went.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// How many tests ended how.
    pub counts: Counts,
    /// The tests that failed.
    pub failures: Vec<Failure>,
    /// What kept tests from being built or loaded.
    pub build_errors: Vec<Finding>,
    /// Files that ended well and reported no test, relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
    /// How many failures and build errors were left out.
    pub omitted: usize,
    /// The end of what was printed, where nothing else explains the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl TestReport {
    /// Puts the reports of several commands of one plan together. The worst verdict counts.
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

/// What a linter, type checker or formatter said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// How it went.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What was found, in the order of files and lines.
    pub findings: Vec<Finding>,
    /// How many findings were left out.
    pub omitted: usize,
}

/// What a linter said.
pub type LintReport = CheckReport;

/// What a type checker said.
pub type TypecheckReport = CheckReport;
