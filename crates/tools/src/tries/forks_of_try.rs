//! The forks of a try: made before anything runs, and again for candidates that another process left half done.

use std::time::{Duration, Instant};

use carrel_domain::{Code, Failure, Identifier};
use carrel_trial::{Candidate, Continuation, MAX_ATTEMPTS, Reason, Step, Trial};
use tracing::info;

use super::fault_point::FaultPoint;
use super::session::TrySession;
use crate::forks::OtherForks;

/// The time for commands in the base to end.
const BASE_TIMEOUT: Duration = Duration::from_secs(1);

/// The time between two attempts to fork it.
const BASE_PAUSE: Duration = Duration::from_millis(20);

/// The treatment of a candidate's fork when its try is taken up.
enum Fate {
    /// It is used as it is.
    Kept,
    /// It is thrown away, and the candidate begins anew.
    Anew,
    /// It is lost, and the candidate needs none.
    Forgotten,
}

impl TrySession {
    /// Gives each candidate that begins a fork of its own. Forks that are lost, or in which a run was cut short, are
    /// thrown away first.
    pub(super) async fn prepare_forks(&self) -> Result<(), Failure> {
        for candidate in self.trial().await.candidates {
            match self.fate(&candidate).await? {
                Fate::Kept => {}
                Fate::Anew => self.throw_away(&candidate).await?,
                Fate::Forgotten => self.forget_fork(&candidate).await?,
            }
        }
        let trial = self.trial().await;
        let begins =
            |one: &&Candidate| one.step != Step::Judged && one.continuation() == Continuation::Anew;
        let numbers: Vec<u8> =
            trial.candidates.iter().filter(begins).map(|one| one.number).collect();
        if numbers.is_empty() {
            return Ok(());
        }
        let names = self.host.names(&trial.base, &trial.id, &numbers).await?;
        let forks: Vec<_> = numbers.into_iter().zip(names).collect();
        self.update(|trial| {
            for (number, name) in &forks {
                if let Some(candidate) = trial.candidate_mut(*number) {
                    candidate.fork = Some(name.clone());
                    candidate.step = Step::Forking;
                }
            }
        })
        .await?;
        self.reach(FaultPoint::Named);
        self.make(&trial, &forks).await?;
        self.update(|trial| {
            for candidate in &mut trial.candidates {
                if candidate.step == Step::Forking {
                    candidate.step = Step::Forked;
                }
            }
        })
        .await?;
        self.reach(FaultPoint::Forked);
        Ok(())
    }

    /// Makes forks. A command in the base that has just ended holds it for a moment.
    async fn make(&self, trial: &Trial, forks: &[(u8, Identifier)]) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            match self.host.make(&trial.base, &trial.id, forks).await {
                Err(failure)
                    if failure.code == Code::WorkspaceBusy && begun.elapsed() < BASE_TIMEOUT =>
                {
                    tokio::time::sleep(BASE_PAUSE).await;
                }
                made => return made,
            }
        }
    }

    /// Decides about the fork of a candidate of a try that was taken up.
    async fn fate(&self, candidate: &Candidate) -> Result<Fate, Failure> {
        let next = candidate.continuation();
        if next == Continuation::Anew {
            return Ok(if candidate.step == Step::Pending { Fate::Kept } else { Fate::Anew });
        }
        let Some(fork) = &candidate.fork else { return Ok(Fate::Kept) };
        if !self.is_lost(fork).await? {
            return Ok(Fate::Kept);
        }
        // One that cannot win is judged all the same.
        let is_over = next == Continuation::Nothing && !candidate.is_eligible();
        Ok(if is_over { Fate::Forgotten } else { Fate::Anew })
    }

    /// Tells whether a fork is of no use any more: the machine was started anew, or a person removed it.
    pub(super) async fn is_lost(&self, fork: &Identifier) -> Result<bool, Failure> {
        match self.open(fork).await {
            Ok(opened) => {
                opened.close().await;
                Ok(false)
            }
            Err(failure) => match failure.code {
                Code::ForkConflict | Code::WorkspaceNotFound => {
                    info!(try_id = %self.id(), %fork, "a fork of a try is lost");
                    Ok(true)
                }
                _ => Err(failure),
            },
        }
    }

    async fn forget_fork(&self, candidate: &Candidate) -> Result<(), Failure> {
        if let Some(fork) = &candidate.fork {
            self.host.end(fork, OtherForks::Discard).await?;
        }
        self.update_candidate(candidate.number, |one| one.fork = None).await
    }

    async fn throw_away(&self, candidate: &Candidate) -> Result<(), Failure> {
        if let Some(fork) = &candidate.fork {
            self.host.end(fork, OtherForks::Discard).await?;
        }
        let too_often = candidate.step == Step::Running && candidate.attempts >= MAX_ATTEMPTS;
        self.update_candidate(candidate.number, |one| {
            one.begin_anew();
            if too_often {
                let message = format!("the process ended {MAX_ATTEMPTS} times while it ran");
                one.disqualify(Reason::Broken, message);
            }
        })
        .await
    }

    pub(super) fn reach(&self, point: FaultPoint) {
        point.reach(self.host.environment());
    }
}
