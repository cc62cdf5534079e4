//! A try that this process works on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_domain::{Code, Failure, Identifier, TrialId};
use carrel_trial::{Candidate, CommandRules, Continuation, Phase, Reason, Step, Trial};
use carrel_workspace::{LOCK_TIMEOUT, Tries, TryLock};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::candidate_work::Deadline;
use super::host::{OpenFork, TryHost};
use crate::blocking::blocking;

/// The time between two attempts to open a fork that another process has open.
const OPEN_PAUSE: Duration = Duration::from_millis(50);

/// A try that this process works on. The lock of the try is held until it is dropped.
#[derive(Debug)]
pub struct TrySession {
    pub(super) host: Arc<dyn TryHost>,
    state: Mutex<State>,
    pub(super) is_resumed: bool,
    id: TrialId,
    _lock: TryLock,
}

#[derive(Debug)]
struct State {
    trial: Trial,
    /// The time up to which the record counts the time that was spent.
    counted: Instant,
}

impl TrySession {
    pub(super) fn new(
        host: Arc<dyn TryHost>,
        trial: Trial,
        lock: TryLock,
        is_resumed: bool,
    ) -> Self {
        let id = trial.id.clone();
        let state = Mutex::new(State { trial, counted: Instant::now() });
        Self { host, state, is_resumed, id, _lock: lock }
    }

    /// Returns the id.
    pub fn id(&self) -> &TrialId {
        &self.id
    }

    /// Returns the record as it is now.
    pub async fn trial(&self) -> Trial {
        self.state.lock().await.trial.clone()
    }

    /// Works until the try is over, or `stop` is cancelled: then commands end, and another process can take it up.
    pub fn run(self, stop: &CancellationToken) -> BoxFuture<'_, Result<Trial, Failure>> {
        Box::pin(self.work(stop))
    }

    async fn work(self, stop: &CancellationToken) -> Result<Trial, Failure> {
        if self.is_resumed {
            self.begin_anew_without_winner().await?;
        }
        if self.trial().await.phase == Phase::Running {
            if let Err(failure) = self.prepare_forks().await {
                self.forget_if_new().await;
                return Err(failure);
            }
            self.run_candidates(stop).await?;
            self.update(Trial::decide).await?;
        }
        if self.trial().await.phase == Phase::Promoting {
            self.promote_winner().await?;
        }
        Ok(self.trial().await)
    }

    /// Changes the record and writes it.
    pub(super) async fn update(&self, change: impl FnOnce(&mut Trial)) -> Result<(), Failure> {
        let mut state = self.state.lock().await;
        let mut trial = state.trial.clone();
        change(&mut trial);
        let now = Instant::now();
        let passed = u64::try_from((now - state.counted).as_millis()).unwrap_or(u64::MAX);
        trial.spent_millis = trial.spent_millis.saturating_add(passed);
        let (tries, written) = (self.tries(), trial.clone());
        blocking(move || Ok(tries.write(&written.id, &written)?)).await?;
        *state = State { trial, counted: now };
        Ok(())
    }

    pub(super) async fn update_candidate(
        &self,
        number: u8,
        change: impl FnOnce(&mut Candidate),
    ) -> Result<(), Failure> {
        self.update(|trial| {
            if let Some(candidate) = trial.candidate_mut(number) {
                change(candidate);
            }
        })
        .await
    }

    pub(super) async fn candidate(&self, number: u8) -> Result<Candidate, Failure> {
        let state = self.state.lock().await;
        let found = state.trial.candidate(number).cloned();
        found.ok_or_else(|| Failure::new(Code::Internal, "a try has no such candidate"))
    }

    pub(super) fn tries(&self) -> Tries {
        self.host.workspaces().tries()
    }

    /// Opens a fork. The processes of a predecessor that was killed may have it open for a moment.
    pub(super) async fn open(&self, fork: &Identifier) -> Result<OpenFork, Failure> {
        let begun = Instant::now();
        loop {
            match self.host.open(fork).await {
                Err(failure)
                    if failure.code == Code::WorkspaceBusy && begun.elapsed() < LOCK_TIMEOUT =>
                {
                    tokio::time::sleep(OPEN_PAUSE).await;
                }
                opened => return opened,
            }
        }
    }

    /// Deletes the record of a try whose forks could not be made: nothing has run.
    async fn forget_if_new(&self) {
        let untouched = |candidate: &Candidate| candidate.attempts == 0;
        if self.is_resumed || !self.trial().await.candidates.iter().all(untouched) {
            return;
        }
        let (tries, id) = (self.tries(), self.id.clone());
        // Without the record it is no try; the next one deletes the rest.
        let _ = blocking(move || Ok(tries.forget(&id)?)).await;
    }

    async fn run_candidates(&self, stop: &CancellationToken) -> Result<(), Failure> {
        let trial = self.trial().await;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // Beside others of a server none takes more than the machine has.
        let most = if trial.spec.rules == CommandRules::Open { usize::MAX } else { cores };
        let parallel = trial.spec.parallel.map_or(cores, usize::from).min(most);
        let left = trial.candidates.iter().filter(|one| one.step != Step::Judged);
        let numbers: Vec<u8> = left.map(|candidate| candidate.number).collect();
        let working = futures_util::stream::iter(numbers)
            .map(|number| self.work_on(number, stop))
            .buffer_unordered(parallel);
        let ended: Vec<Result<(), Failure>> = working.collect().await;
        if stop.is_cancelled() {
            let id = &self.id;
            let message =
                format!("the try {id} was interrupted; `carrel try --resume {id}` takes it up");
            return Err(Failure::new(Code::Cancelled, message).with("try", id.as_str()));
        }
        ended.into_iter().collect()
    }

    /// Works on one candidate until it is judged. What goes wrong concerns this one alone.
    async fn work_on(&self, number: u8, stop: &CancellationToken) -> Result<(), Failure> {
        if stop.is_cancelled() {
            return Ok(());
        }
        let time_left = {
            let state = self.state.lock().await;
            state.trial.time_left().saturating_sub(state.counted.elapsed())
        };
        if time_left.is_zero() {
            let message = "the time of the try was over before it began";
            let over = |one: &mut Candidate| one.disqualify(Reason::OutOfTime, message);
            return self.update_candidate(number, over).await;
        }
        let time = self.trial().await.spec.budget.of_candidate().min(time_left);
        let deadline = Deadline::new(time);
        match Box::pin(self.judge_candidate(number, deadline, stop)).await {
            Err(_) if stop.is_cancelled() => Ok(()),
            Err(failure) => {
                let broken =
                    |one: &mut Candidate| one.disqualify(Reason::Broken, failure.message.clone());
                self.update_candidate(number, broken).await
            }
            Ok(()) => Ok(()),
        }
    }

    async fn judge_candidate(
        &self,
        number: u8,
        deadline: Deadline,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        let Some(name) = self.candidate(number).await?.fork else {
            return Err(Failure::new(Code::Internal, "a candidate has no fork"));
        };
        let fork = self.open(&name).await?;
        let judged = async {
            if self.candidate(number).await?.continuation() == Continuation::Run {
                self.run_candidate(&fork, number, deadline, stop).await?;
            }
            if !stop.is_cancelled() && self.candidate(number).await?.step == Step::Ran {
                self.verify_candidate(&fork, number, deadline, stop).await?;
            }
            Ok(())
        };
        let judged = judged.await;
        fork.close().await;
        judged
    }
}
