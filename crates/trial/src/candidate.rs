//! A candidate: how far it has come, and what is known about it.

use carrel_domain::Identifier;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::{Budget, Run};

/// The times that a run is begun. One that ends with its process so often is likely to be the cause.
pub const MAX_ATTEMPTS: u32 = 3;

/// A candidate of a try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TrialCandidate")]
pub struct Candidate {
    /// Its number, from 1.
    pub number: u8,
    /// Its command, patch or agent.
    pub run: Run,
    /// Its progress.
    pub step: Step,
    /// The fork that it was given, from before that is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub fork: Option<Identifier>,
    /// The times that its run was begun.
    #[serde(default)]
    pub attempts: u32,
    /// The end of its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<Ran>,
    /// The size of its changes, without files that ignore rules exclude.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<DiffSize>,
    /// Its verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Its score, if the try has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// The reason for which it cannot win, even if its verification passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disqualified: Option<Disqualification>,
}

/// The progress of a candidate. Written before and after each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TrialStep")]
pub enum Step {
    /// Nothing was done.
    Pending,
    /// Its fork has a name and is being made.
    Forking,
    /// Its fork is there, as the base is.
    Forked,
    /// Its run has begun.
    Running,
    /// Its run has ended, and its work is a snapshot in the fork.
    Ran,
    /// It is verified or disqualified.
    Judged,
}

/// The next action for a candidate, also for one that another process left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// Throw its fork away, if there is one, and begin in a new one.
    Anew,
    /// Run it in the fork that it has.
    Run,
    /// Bring its fork to the state after the run, and verify that.
    Verify,
    /// Nothing.
    Nothing,
}

/// The end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TrialRan")]
pub struct Ran {
    /// The exit status, as a shell reports it; none for a patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// Milliseconds that it took.
    pub millis: u64,
    /// The end of its output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// The size of what a candidate changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TrialDiffSize")]
pub struct DiffSize {
    /// Changed files, links and directories.
    pub files: u64,
    /// Added lines of text.
    pub added: u64,
    /// Removed lines of text.
    pub removed: u64,
    /// Bytes of the diff; of a binary file its new content.
    pub bytes: u64,
}

impl DiffSize {
    /// Returns the added and removed lines together.
    pub fn lines(&self) -> u64 {
        self.added.saturating_add(self.removed)
    }

    /// Returns the limit that it exceeds, in words.
    pub fn excess(&self, budget: &Budget) -> Option<String> {
        let sizes = [
            ("files", self.files, budget.max_files),
            ("lines", self.lines(), budget.max_lines),
            ("bytes", self.bytes, budget.max_bytes),
        ];
        let exceeded = sizes.into_iter().find(|(_, size, most)| size > most);
        exceeded.map(|(what, size, most)| {
            format!("it changed {size} {what}, and the budget allows {most}")
        })
    }
}

/// The judgement of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TrialVerdict")]
pub enum Verdict {
    /// It ran something and found no failure.
    Passed,
    /// It found a failure, or the build failed.
    Failed,
    /// There is no judgement.
    CouldNotRun,
}

/// The numbers of tests by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names are the results")]
#[schemars(rename = "TrialTestCounts")]
pub struct TestCounts {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
    /// Failures outside of a test.
    pub errors: u64,
}

/// A verification that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TrialVerification")]
pub struct Verification {
    /// The judgement.
    pub verdict: Verdict,
    /// The reason for `could_not_run`, and for `failed` if no test did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The numbers of tests. A command without a report counts as one.
    pub tests: TestCounts,
    /// The names of the first tests that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Milliseconds that it took.
    pub millis: u64,
    /// The end of its output, if it did not pass.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// The result of the command for the score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TrialScore")]
pub enum Score {
    /// The number on its last line; larger is better.
    Value(f64),
    /// The reason for which there is none.
    None(String),
}

impl Score {
    /// Reads the last line of an output that is not empty.
    pub fn of_output(output: &str) -> Self {
        let Some(last) = output.lines().rev().find(|line| !line.trim().is_empty()) else {
            return Self::None("the score printed nothing".to_owned());
        };
        let shown: String = last.trim().chars().take(60).collect();
        match last.trim().parse::<f64>() {
            Ok(value) if value.is_finite() => Self::Value(value),
            _ => Self::None(format!("the last line of the score is no number: {shown}")),
        }
    }

    /// Returns the number, if there is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Value(value) => Some(*value),
            Self::None(_) => None,
        }
    }
}

/// A reason for which a candidate cannot win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TrialReason")]
pub enum Reason {
    /// Its run failed, so that its work may be half done.
    RunFailed,
    /// It took longer than the budget allows.
    OutOfTime,
    /// It changed more than the budget allows.
    TooLarge,
    /// It changed nothing.
    Unchanged,
    /// Its patch does not apply.
    PatchFailed,
    /// It could not be run or judged.
    Broken,
}

impl Reason {
    /// Returns the word in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunFailed => "run failed",
            Self::OutOfTime => "out of time",
            Self::TooLarge => "too large",
            Self::Unchanged => "unchanged",
            Self::PatchFailed => "patch failed",
            Self::Broken => "broken",
        }
    }
}

/// A disqualification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TrialDisqualification")]
pub struct Disqualification {
    /// The reason.
    pub reason: Reason,
    /// The reason in words.
    pub message: String,
}

impl Candidate {
    /// Makes a candidate of which nothing was done.
    pub fn new(number: u8, run: Run) -> Self {
        Self {
            number,
            run,
            step: Step::Pending,
            fork: None,
            attempts: 0,
            ran: None,
            diff: None,
            verification: None,
            score: None,
            disqualified: None,
        }
    }

    /// Returns what is to be done next.
    pub fn continuation(&self) -> Continuation {
        match self.step {
            Step::Pending | Step::Forking | Step::Running => Continuation::Anew,
            Step::Forked => Continuation::Run,
            Step::Ran => Continuation::Verify,
            Step::Judged => Continuation::Nothing,
        }
    }

    /// Forgets the fork and everything that was done in it.
    pub fn begin_anew(&mut self) {
        let attempts = self.attempts;
        *self = Self { attempts, ..Self::new(self.number, self.run.clone()) };
    }

    /// Ends the candidate without a chance to win.
    pub fn disqualify(&mut self, reason: Reason, message: impl Into<String>) {
        self.disqualified = Some(Disqualification { reason, message: message.into() });
        self.step = Step::Judged;
    }

    /// Returns whether it may be promoted.
    pub fn is_eligible(&self) -> bool {
        let passed = self.verification.as_ref().is_some_and(|one| one.verdict == Verdict::Passed);
        self.step == Step::Judged && passed && self.disqualified.is_none()
    }

    /// Returns the number of tests that passed.
    pub fn tests_passed(&self) -> u64 {
        self.verification.as_ref().map_or(0, |verification| verification.tests.passed)
    }

    /// Returns the word for its verdict in tables.
    pub fn verdict_word(&self) -> &'static str {
        match (&self.disqualified, &self.verification) {
            (Some(disqualified), _) => disqualified.reason.as_str(),
            (None, Some(Verification { verdict, .. })) => match verdict {
                Verdict::Passed => "passed",
                Verdict::Failed => "failed",
                Verdict::CouldNotRun => "not verified",
            },
            (None, None) => match self.step {
                Step::Pending | Step::Forking | Step::Forked => "waits",
                Step::Running => "runs",
                Step::Ran | Step::Judged => "is verified",
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_the_number_on_the_last_line() {
        assert_eq!(Score::of_output("noise\n12.5\n\n"), Score::Value(12.5));
        assert_eq!(Score::of_output("-3"), Score::Value(-3.0));
        for output in ["", "\n \n", "fast", "1 2", "NaN", "inf", "12\nms"] {
            assert_eq!(Score::of_output(output).value(), None, "{output:?}");
        }
    }

    #[test]
    fn a_size_says_which_limit_it_exceeds() {
        let budget = Budget { max_files: 2, max_lines: 10, max_bytes: 100, ..Budget::default() };
        let size = DiffSize { files: 2, added: 5, removed: 5, bytes: 100 };
        assert_eq!(size.excess(&budget), None);
        let larger = DiffSize { removed: 6, ..size };
        let expected = "it changed 11 lines, and the budget allows 10";
        assert_eq!(larger.excess(&budget).as_deref(), Some(expected));
    }

    #[test]
    fn a_candidate_that_was_cut_short_begins_anew_and_one_that_ran_does_not() {
        let run = Run::Command { line: "true".into() };
        let mut candidate = Candidate::new(1, run);
        let steps = [
            (Step::Pending, Continuation::Anew),
            (Step::Forking, Continuation::Anew),
            (Step::Forked, Continuation::Run),
            (Step::Running, Continuation::Anew),
            (Step::Ran, Continuation::Verify),
            (Step::Judged, Continuation::Nothing),
        ];
        for (step, expected) in steps {
            candidate.step = step;
            assert_eq!(candidate.continuation(), expected, "{step:?}");
        }
    }
}
