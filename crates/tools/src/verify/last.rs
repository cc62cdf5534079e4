//! What the last tests of a session said, for each workspace.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use carrel_verify::parse::{Failure, TestReport, Verdict};

use super::tests::Tested;

/// The last runs, by workspace.
#[derive(Debug, Default)]
pub(crate) struct LastRuns(HashMap<String, Vec<LastRun>>);

/// The last run of one project.
#[derive(Clone, Debug)]
pub(super) struct LastRun {
    pub(super) language: &'static str,
    pub(super) directory: String,
    pub(super) report: TestReport,
    at: Instant,
}

impl LastRuns {
    pub(super) fn set(&mut self, workspace: &str, runs: Vec<LastRun>) {
        self.0.insert(workspace.to_owned(), runs);
    }

    pub(super) fn of(&self, workspace: &str) -> Option<Vec<LastRun>> {
        self.0.get(workspace).cloned()
    }
}

impl LastRun {
    pub(super) fn of(tested: &Tested) -> Self {
        Self {
            language: tested.profile.ecosystem.as_str(),
            directory: tested.profile.root.clone(),
            report: tested.report.clone(),
            at: Instant::now(),
        }
    }

    /// Returns the tests that failed.
    pub(super) fn failures(&self) -> &[Failure] {
        &self.report.failures
    }

    /// Tells whether nothing can be said about single tests.
    pub(super) fn is_blind(&self) -> bool {
        let could_not = matches!(self.report.verdict, Verdict::CouldNotRun { .. });
        could_not || (self.report.failures.is_empty() && self.report.verdict == Verdict::Failed)
    }

    /// Says how long ago it was.
    pub(super) fn age(&self) -> String {
        match age(self.at.elapsed()) {
            just if just == JUST_NOW => just,
            age => format!("{age} ago"),
        }
    }
}

const JUST_NOW: &str = "just now";

fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) => JUST_NOW.to_owned(),
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, _) => format!("{hours}h{minutes}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_at_most_two_units() {
        for (seconds, text) in [(0, "just now"), (42, "42s"), (90, "1m30s"), (8100, "2h15m")] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }
}
