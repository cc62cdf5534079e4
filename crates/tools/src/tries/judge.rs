//! The judgement on a candidate that ran: verification, and the score of one that passed.

use std::time::{Duration, Instant};

use carrel_domain::{Failure, NetworkRequest};
use carrel_trial::{Reason, Score, Spec, TestCounts, Verdict, Verification};
use carrel_verify::parse::{self, CouldNotRunReason};
use tokio_util::sync::CancellationToken;

use super::host::OpenFork;
use super::run::KEPT_OUTPUT;
use crate::verify::{CandidateTests, candidate_tests};

/// The failed tests that a record names.
const MAX_FAILURES: usize = 10;

/// Bounds the name of a failed test.
const MAX_NAME: usize = 200;

/// A verification that has ended, with its whole output.
pub(super) struct Judged {
    pub(super) verification: Verification,
    /// It was ended at the limit.
    pub(super) timed_out: bool,
    pub(super) output: Vec<u8>,
}

/// Verifies the work in a fork.
pub(super) async fn verify(
    fork: &OpenFork,
    spec: &Spec,
    time: Duration,
    stop: &CancellationToken,
) -> Result<Judged, Failure> {
    let begun = Instant::now();
    let context = fork.context(spec, stop.clone());
    let network = NetworkRequest::of_tests(spec.network);
    let tested = Box::pin(candidate_tests(&context, spec.verify.as_deref(), network, time)).await;
    let CandidateTests { report, output } = match tested {
        Ok(tested) => tested,
        Err(failure) => return Ok(could_not(failure.message, begun)),
    };
    let reason = match &report.verdict {
        parse::Verdict::CouldNotRun { reason } => Some(reason.to_string()),
        parse::Verdict::Failed => broken_build(&report),
        parse::Verdict::Passed => None,
    };
    let timed_out = matches!(
        &report.verdict,
        parse::Verdict::CouldNotRun { reason: CouldNotRunReason::TimedOut { .. } }
    );
    let verdict = match report.verdict {
        parse::Verdict::Passed => Verdict::Passed,
        parse::Verdict::Failed => Verdict::Failed,
        parse::Verdict::CouldNotRun { .. } => Verdict::CouldNotRun,
    };
    let parse::Counts { passed, failed, skipped, errors } = report.counts;
    let mut shown = match verdict {
        Verdict::Passed => String::new(),
        Verdict::Failed | Verdict::CouldNotRun => end(&String::from_utf8_lossy(&output)).to_owned(),
    };
    fork.toolbox.mask(&mut shown);
    let verification = Verification {
        verdict,
        reason: reason.map(|reason| end(&reason).to_owned()),
        tests: TestCounts { passed, failed, skipped, errors },
        failures: report
            .failures
            .iter()
            .take(MAX_FAILURES)
            .map(|failure| cut(&failure.name))
            .collect(),
        millis: millis(begun),
        output: shown,
    };
    Ok(Judged { verification, timed_out, output })
}

/// Returns the error that kept the tests from being built, if no test failed.
fn broken_build(report: &parse::TestReport) -> Option<String> {
    let error = report.build_errors.first().filter(|_| report.failures.is_empty())?;
    let place = error.file.as_ref().map_or(String::new(), |file| {
        error.line.map_or_else(|| format!("{file}: "), |line| format!("{file}:{line}: "))
    });
    Some(format!("the tests could not be built: {place}{}", error.message))
}

fn could_not(reason: String, begun: Instant) -> Judged {
    let verification = Verification {
        verdict: Verdict::CouldNotRun,
        reason: Some(end(&reason).to_owned()),
        tests: TestCounts::default(),
        failures: Vec::new(),
        millis: millis(begun),
        output: String::new(),
    };
    Judged { verification, timed_out: false, output: reason.into_bytes() }
}

/// Reads the score from the end of a command.
pub(super) fn score(exit: i32, timed_out: bool, output: &str) -> Result<Score, (Reason, String)> {
    match (timed_out, exit) {
        (true, _) => {
            Err((Reason::OutOfTime, "its score was not there when its time was over".to_owned()))
        }
        (false, 0) => Ok(Score::of_output(output)),
        (false, exit) => Ok(Score::None(format!("the command for the score ended with {exit}"))),
    }
}

fn millis(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn end(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(KEPT_OUTPUT))..]
}

fn cut(name: &str) -> String {
    name[..name.floor_char_boundary(MAX_NAME)].to_owned()
}
