//! The work on one candidate in its fork: run, snapshot, diff, verification, score.

use std::time::{Duration, Instant};

use carrel_domain::{Code, Failure};
use carrel_exec::{ExitStatus, Stdin};
use carrel_fsroot::Durability;
use carrel_trial::{Candidate, Reason, Run, Score, Step, Verdict};
use tokio_util::sync::CancellationToken;

use super::difference;
use super::fault_point::FaultPoint;
use super::host::OpenFork;
use super::judge;
use super::open_fork::{AFTER, BEFORE};
use super::run::{self, CandidateCommand, Finished};
use super::session::TrySession;
use super::store::{diff_name, input_name};
use crate::blocking::blocking;
use crate::shell::exit_code;

/// The shortest time that a command is given.
const LEAST_TIME: Duration = Duration::from_millis(1);

/// The limits of one candidate's commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    begun: Instant,
    time: Duration,
}

impl Deadline {
    pub(super) fn new(time: Duration) -> Self {
        Self { begun: Instant::now(), time }
    }

    fn left(&self) -> Duration {
        self.time.saturating_sub(self.begun.elapsed()).max(LEAST_TIME)
    }

    fn is_over(&self) -> bool {
        self.begun.elapsed() >= self.time
    }
}

impl TrySession {
    /// Runs a candidate in a fork that is as the base is.
    pub(super) async fn run_candidate(
        &self,
        fork: &OpenFork,
        number: u8,
        deadline: Deadline,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        fork.snapshot(BEFORE).await?;
        let begin = |one: &mut Candidate| {
            one.step = Step::Running;
            one.attempts += 1;
        };
        self.update_candidate(number, begin).await?;
        let (ran, failed) = self.run_in(fork, number, deadline, stop).await?;
        if stop.is_cancelled() {
            return Ok(());
        }
        fork.snapshot(AFTER).await?;
        let (size, diff) = difference::measure(fork).await?;
        self.keep_file(diff_name(number), diff.into_bytes()).await?;
        let excess = size.excess(&self.trial().await.spec.budget);
        let ended = |one: &mut Candidate| {
            one.ran = Some(ran);
            one.diff = Some(size);
            one.step = Step::Ran;
            match (failed, excess) {
                (Some((reason, message)), _) => one.disqualify(reason, message),
                (None, Some(message)) => one.disqualify(Reason::TooLarge, message),
                (None, None) if size.files == 0 => {
                    one.disqualify(Reason::Unchanged, "it changed nothing that is not ignored");
                }
                (None, None) => {}
            }
        };
        self.update_candidate(number, ended).await?;
        self.reach(FaultPoint::Ran);
        Ok(())
    }

    async fn run_in(
        &self,
        fork: &OpenFork,
        number: u8,
        deadline: Deadline,
        stop: &CancellationToken,
    ) -> Result<Finished, Failure> {
        let spec = self.trial().await.spec;
        let what = self.candidate(number).await?.run;
        let input = self.input(number).await?;
        let line = match (&what, &input) {
            (Run::Command { line } | Run::Agent { line }, _) => line.clone(),
            (Run::Patch { name }, None) => {
                let message = format!("the patch {name} of the try is gone");
                return Err(Failure::new(Code::NotFound, message));
            }
            (Run::Patch { .. }, Some(bytes)) => {
                let text = String::from_utf8_lossy(bytes).into_owned();
                return run::patch(fork, &spec, text).await;
            }
        };
        let command = CandidateCommand {
            line: &line,
            number,
            id: self.id().as_str(),
            stdin: run::stdin(&what, input),
            log: self.log(format!("run-{number}.log")).await?,
            time: deadline.left(),
        };
        let completed = run::command(fork, &spec, command, stop).await?;
        Ok(run::judged(fork, &completed, deadline.time))
    }

    /// Verifies a candidate that ran.
    pub(super) async fn verify_candidate(
        &self,
        fork: &OpenFork,
        number: u8,
        deadline: Deadline,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        // An earlier process may have been ended in a verification that had changed files.
        fork.restore_work().await?;
        self.reach(FaultPoint::InVerification);
        let spec = self.trial().await.spec;
        let judged = Box::pin(judge::verify(fork, &spec, deadline.left(), stop)).await?;
        fork.restore_work().await?;
        if stop.is_cancelled() {
            return Ok(());
        }
        let limit = usize::try_from(run::log_limit(&spec).as_u64()).unwrap_or(usize::MAX);
        let mut output = judged.output;
        output.drain(..output.len().saturating_sub(limit));
        self.keep_file(format!("verify-{number}.log"), output).await?;
        let verification = judged.verification;
        let mut over = judged.timed_out && deadline.is_over();
        let mut score = None;
        if let (Verdict::Passed, Some(line)) = (verification.verdict, &spec.score) {
            match self.score_candidate(fork, number, line, deadline, stop).await? {
                Ok(found) => score = Some(found),
                Err(_) => over = true,
            }
            fork.restore_work().await?;
        }
        if stop.is_cancelled() {
            return Ok(());
        }
        let seconds = deadline.time.as_secs();
        let ended = |one: &mut Candidate| {
            one.verification = Some(verification);
            one.score = score;
            one.step = Step::Judged;
            if over {
                let message = format!("it was not verified within the {seconds} s that it had");
                one.disqualify(Reason::OutOfTime, message);
            }
        };
        self.update_candidate(number, ended).await?;
        self.reach(FaultPoint::Verified);
        Ok(())
    }

    async fn score_candidate(
        &self,
        fork: &OpenFork,
        number: u8,
        line: &str,
        deadline: Deadline,
        stop: &CancellationToken,
    ) -> Result<Result<Score, (Reason, String)>, Failure> {
        let spec = self.trial().await.spec;
        let command = CandidateCommand {
            line,
            number,
            id: self.id().as_str(),
            stdin: Stdin::Empty,
            log: self.log(format!("score-{number}.log")).await?,
            time: deadline.left(),
        };
        let completed = run::command(fork, &spec, command, stop).await?;
        let exit = match completed.outcome.end {
            ExitStatus::Exited(code) => code,
            ExitStatus::Signaled(_) | ExitStatus::Lost => exit_code(&completed),
        };
        let output = run::tail(fork, &completed);
        Ok(judge::score(exit, completed.outcome.timed_out(), &output))
    }

    async fn input(&self, number: u8) -> Result<Option<Vec<u8>>, Failure> {
        let (tries, id) = (self.tries(), self.id().clone());
        let limit = carrel_trial::MAX_PATCH_BYTES as u64;
        blocking(move || Ok(tries.read_file(&id, &input_name(number), limit)?)).await
    }

    async fn log(&self, name: String) -> Result<std::fs::File, Failure> {
        let (tries, id) = (self.tries(), self.id().clone());
        blocking(move || Ok(tries.new_log(&id, &name)?)).await
    }

    async fn keep_file(&self, name: String, bytes: Vec<u8>) -> Result<(), Failure> {
        let (tries, id) = (self.tries(), self.id().clone());
        blocking(move || Ok(tries.write_file(&id, &name, &bytes, Durability::Atomic)?)).await
    }
}
