//! The last test results of a session, for each workspace.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carrel_verify::Ecosystem;
use carrel_verify::parse::{Failure, TestReport, Verdict};
use serde::{Deserialize, Serialize};

use super::run_tests::ProjectTests;

/// Bounds the messages of one workspace that are saved between processes.
const MAX_KEPT_BYTES: usize = 256 * 1024;

/// The times of files lag behind the clock by up to a tick of the kernel.
const CLOCK_TICK: Duration = Duration::from_millis(10);

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct LastRuns(HashMap<String, Vec<LastRun>>);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LastRun {
    ecosystem: Ecosystem,
    pub(super) directory: String,
    pub(super) report: TestReport,
    /// Milliseconds since 1970, so that another process can compute the age.
    at_millis: u64,
}

impl LastRuns {
    pub(super) fn set(&mut self, workspace: &str, runs: Vec<LastRun>) {
        self.0.insert(workspace.to_owned(), runs);
    }

    pub(super) fn of(&self, workspace: &str) -> Option<Vec<LastRun>> {
        self.0.get(workspace).cloned()
    }

    /// Returns the runs for [`LastRuns::from_json`] in another process, with at most [`MAX_KEPT_BYTES`] of
    /// messages for each workspace.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let kept = |(workspace, runs): (&String, &Vec<LastRun>)| {
            let mut room = MAX_KEPT_BYTES;
            let runs: Vec<_> = runs.iter().map(|run| run.within(&mut room)).collect();
            (workspace.clone(), runs)
        };
        serde_json::json!(Self(self.0.iter().map(kept).collect()))
    }

    pub(crate) fn from_json(value: serde_json::Value) -> Self {
        serde_json::from_value(value).unwrap_or_default()
    }
}

impl LastRun {
    pub(super) fn of(tested: &ProjectTests) -> Self {
        Self {
            ecosystem: tested.profile.ecosystem,
            directory: tested.profile.root.clone(),
            report: tested.report.clone(),
            at_millis: now_millis(),
        }
    }

    pub(super) fn language(&self) -> &'static str {
        self.ecosystem.as_str()
    }

    /// Returns the run with the first failures that fit; the rest is counted as omitted.
    fn within(&self, room: &mut usize) -> Self {
        let mut run = self.clone();
        let mut fits = |size: usize| {
            let left = room.checked_sub(size);
            *room = left.unwrap_or(0);
            left.is_some()
        };
        let of = |failure: &Failure| {
            failure.name.len()
                + failure.message.len()
                + failure.diff.as_ref().map_or(0, String::len)
        };
        run.report.build_errors.retain(|finding| fits(finding.message.len()));
        run.report.failures.retain(|failure| fits(of(failure)));
        let all = self.report.failures.len() + self.report.build_errors.len();
        run.report.omitted += all - run.report.failures.len() - run.report.build_errors.len();
        run.report.detail = None;
        run
    }

    /// Tells whether the run names no tests: it could not run, or failed without a report.
    pub(super) fn is_blind(&self) -> bool {
        let could_not = matches!(self.report.verdict, Verdict::CouldNotRun { .. });
        could_not || (self.report.failures.is_empty() && self.report.verdict == Verdict::Failed)
    }

    pub(super) fn age(&self) -> String {
        age(now().saturating_sub(self.at_millis / 1000))
    }

    /// Tells whether files were put back since the run, or while it was going on.
    pub(super) fn is_before(&self, restored_at: Option<SystemTime>) -> bool {
        let ended = UNIX_EPOCH + Duration::from_millis(self.at_millis);
        restored_at.is_some_and(|restored| restored + CLOCK_TICK >= ended)
    }
}

pub(super) fn now() -> u64 {
    now_millis() / 1000
}

fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn age(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) => "just now".to_owned(),
        (0, 0, seconds) => format!("{seconds}s ago"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s ago"),
        (hours, minutes, _) => format!("{hours}h{minutes}m ago"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_verify::parse::Counts;

    #[test]
    fn an_age_has_at_most_two_units() {
        let ages = [(0, "just now"), (42, "42s ago"), (90, "1m30s ago"), (8100, "2h15m ago")];
        for (seconds, text) in ages {
            assert_eq!(age(seconds), text);
        }
    }

    fn run(failures: usize, message_bytes: usize) -> LastRun {
        let failure = |number: usize| Failure {
            name: format!("{number:04}"),
            file: Some("a.py".to_owned()),
            line: Some(1),
            message: "x".repeat(message_bytes),
            diff: None,
            rerun: None,
        };
        LastRun {
            ecosystem: Ecosystem::Python,
            directory: ".".to_owned(),
            report: TestReport {
                verdict: Verdict::Failed,
                counts: Counts { failed: failures as u64, ..Counts::default() },
                failures: (0..failures).map(failure).collect(),
                build_errors: Vec::new(),
                silent: Vec::new(),
                omitted: 0,
                detail: None,
            },
            at_millis: 1,
        }
    }

    fn kept(run: LastRun) -> LastRun {
        let mut runs = LastRuns::default();
        runs.set("main", vec![run]);
        LastRuns::from_json(runs.to_json()).of("main").unwrap().remove(0)
    }

    #[test]
    fn saved_runs_keep_the_first_failures_that_fit() {
        let few = run(3, 100);
        assert_eq!(kept(few.clone()).report, few.report);
        let many = kept(run(500, 4096)).report;
        assert_eq!((many.counts.failed, many.failures.len() + many.omitted), (500, 500));
        assert!((60..=64).contains(&many.failures.len()), "{}", many.failures.len());
        assert_eq!(many.failures[1].name, "0001");
    }

    #[test]
    fn an_invalid_value_gives_no_runs() {
        for value in [serde_json::json!(null), serde_json::json!([1]), serde_json::json!({"a": 1})]
        {
            assert!(LastRuns::from_json(value).of("a").is_none());
        }
    }
}
