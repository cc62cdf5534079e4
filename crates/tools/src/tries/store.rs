//! The tries of a root: begun, taken up, listed, removed.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use carrel_domain::{Clock as _, Code, Failure, Identifier, SystemClock, TrialId};
use carrel_fsroot::Durability;
use carrel_runner::RunError;
use carrel_shell::{Context, judge};
use carrel_trial::{Candidate, Phase, Promote, Run, Spec, Step, Trial, TrialSummary};
use carrel_workspace::{Record, Tries, TryLock};
use tracing::warn;

use super::host::TryHost;
use super::run::{check_patch, preset};
use super::session::TrySession;
use crate::blocking::blocking;
use crate::forks::OtherForks;
use crate::verify::check_has_tests;

/// The tries of a base whose records are kept when they are over.
const MAX_FINISHED: usize = 20;

/// Bounds a diff that is read.
const MAX_DIFF: u64 = 4 << 20;

/// A try to begin.
#[derive(Clone, Debug)]
pub struct NewTry {
    /// The workspace whose forks the candidates are.
    pub base: Identifier,
    /// The specification.
    pub spec: Spec,
    /// The patch or prompt of each candidate that has one.
    pub inputs: Vec<Option<Vec<u8>>>,
}

/// Begins and takes up the tries of a root.
#[derive(Clone, Debug)]
pub struct TryRunner {
    host: Arc<dyn TryHost>,
}

impl TryRunner {
    /// Makes the runner of a host's tries.
    pub fn new(host: Arc<dyn TryHost>) -> Self {
        Self { host }
    }

    /// Checks and records a new try. Nothing has run yet when it returns.
    pub async fn begin(&self, new: NewTry) -> Result<TrySession, Failure> {
        let NewTry { base, spec, inputs } = new;
        spec.check()?;
        for (run, input) in spec.runs.iter().zip(&inputs) {
            if let (Run::Patch { name }, Some(bytes)) = (run, input) {
                check_patch(name, bytes)?;
            }
        }
        let record = self.host.workspaces().record(&base)?;
        check_lines(&spec, &self.host.workspaces().path().join(record.key.as_str()))?;
        self.host.check_network(&base, &spec).await?;
        if let Some(fork) = &record.fork {
            let message = format!("{base} is a fork; try in its base {}", fork.base);
            return Err(Failure::new(Code::ForkRefused, message).with("base", fork.base.as_str()));
        }
        if spec.promote == Promote::Best {
            refuse_other_forks(&self.host, &record, &[])?;
        }
        if spec.verify.is_none() {
            let opened = self.host.workspaces().open(&base).await?;
            blocking(move || check_has_tests(opened.files())).await?;
        }
        self.prune(&base).await;
        let (tries, is_server) = (self.tries(), self.host.is_server());
        let (trial, lock) = blocking(move || {
            let (id, lock) = tries.create()?;
            let mut trial = Trial::new(id, base, spec, SystemClock.now());
            trial.of_server = is_server;
            for (number, input) in (1_u8..).zip(&inputs) {
                if let Some(bytes) = input {
                    let name = input_name(number);
                    tries.write_file(&trial.id, &name, bytes, Durability::Synced)?;
                }
            }
            tries.write(&trial.id, &trial)?;
            Ok((trial, lock))
        })
        .await?;
        Ok(TrySession::new(Arc::clone(&self.host), trial, lock, false))
    }

    /// Takes up a try that another process left. One that is over is only read.
    pub async fn resume(&self, id: &TrialId) -> Result<TrySession, Failure> {
        let lock = self.lock(id).await?;
        let trial = self.show(id).await?;
        if trial.of_server != self.host.is_server() {
            let message = if trial.of_server {
                format!("the try {id} belongs to a server, which takes it up at its start")
            } else {
                format!(
                    "the try {id} belongs to the command line; `carrel try --resume {id}` takes it up"
                )
            };
            return Err(Failure::new(Code::ForkRefused, message).with("try", id.as_str()));
        }
        Ok(TrySession::new(Arc::clone(&self.host), trial, lock, true))
    }

    /// Returns the record of a try.
    pub async fn show(&self, id: &TrialId) -> Result<Trial, Failure> {
        let (tries, id) = (self.tries(), id.clone());
        blocking(move || Ok(tries.read(&id)?)).await
    }

    /// Lists the tries of a base, or of the root; the newest first.
    pub async fn list(&self, base: Option<&Identifier>) -> Result<Vec<TrialSummary>, Failure> {
        let mut trials = self.all().await?;
        trials.retain(|trial| base.is_none_or(|base| trial.base == *base));
        Ok(trials.iter().map(Trial::summary).collect())
    }

    /// Returns the ids of the tries of this host that are not over.
    pub async fn unfinished(&self) -> Result<Vec<TrialId>, Failure> {
        let is_server = self.host.is_server();
        let all = self.all().await?.into_iter();
        let left =
            all.filter(|trial| trial.of_server == is_server && trial.phase != Phase::Finished);
        Ok(left.map(|trial| trial.id).collect())
    }

    /// Returns the diff of a candidate, if it ran.
    pub async fn diff(&self, id: &TrialId, number: u8) -> Result<Option<String>, Failure> {
        let (tries, id) = (self.tries(), id.clone());
        let read = move || Ok(tries.read_file(&id, &diff_name(number), MAX_DIFF)?);
        let bytes = blocking(read).await?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Removes a try with its forks. The work of candidates that ran becomes snapshots of the base.
    pub async fn remove(&self, id: &TrialId) -> Result<Trial, Failure> {
        let lock = self.lock(id).await?;
        let trial = self.show(id).await?;
        for candidate in &trial.candidates {
            let Some(fork) = &candidate.fork else { continue };
            let ended = self.host.end(fork, kept_work(candidate)).await;
            if let Err(failure) = ended {
                // A fork whose work is lost, after a restart of the machine.
                warn!(try_id = %id, %fork, failure.message, "the work of a candidate is not kept");
                self.host.end(fork, OtherForks::Discard).await?;
            }
        }
        self.delete(id.clone(), lock).await?;
        Ok(trial)
    }

    async fn delete(&self, id: TrialId, lock: TryLock) -> Result<(), Failure> {
        let tries = self.tries();
        blocking(move || Ok(tries.remove(&id, lock)?)).await
    }

    async fn lock(&self, id: &TrialId) -> Result<TryLock, Failure> {
        let (tries, id) = (self.tries(), id.clone());
        blocking(move || {
            // An unknown id is not worth a lock.
            tries.read::<serde_json::Value>(&id)?;
            tries.lock(&id)?.ok_or_else(|| {
                let message =
                    format!("another process works on the try {id}; wait for it, or end it");
                Failure::new(Code::WorkspaceBusy, message).with("try", id.as_str())
            })
        })
        .await
    }

    /// Reads all records that can be read, the newest first.
    async fn all(&self) -> Result<Vec<Trial>, Failure> {
        let tries = self.tries();
        blocking(move || {
            let mut trials = Vec::new();
            for id in tries.ids()? {
                match tries.read::<Trial>(&id) {
                    Ok(trial) => trials.push(trial),
                    Err(error) => warn!(try_id = %id, %error, "the record of a try cannot be read"),
                }
            }
            trials.sort_by_key(|trial| std::cmp::Reverse((trial.created_at, trial.id.clone())));
            Ok(trials)
        })
        .await
    }

    /// Deletes the oldest records of tries of a base that are over and have no forks left.
    async fn prune(&self, base: &Identifier) {
        let Ok(trials) = self.all().await else { return };
        let is_over = |trial: &&Trial| trial.base == *base && trial.phase == Phase::Finished;
        let finished = trials.iter().filter(is_over);
        for trial in finished.skip(MAX_FINISHED.saturating_sub(1)) {
            let is_left = |candidate: &Candidate| {
                let fork = candidate.fork.as_ref();
                fork.is_some_and(|fork| self.host.workspaces().record(fork).is_ok())
            };
            if trial.candidates.iter().any(is_left) {
                continue;
            }
            if let Ok(lock) = self.lock(&trial.id).await
                && let Err(failure) = self.delete(trial.id.clone(), lock).await
            {
                warn!(try_id = %trial.id, failure.message, "the record of an old try stays");
            }
        }
    }

    fn tries(&self) -> Tries {
        self.host.workspaces().tries()
    }
}

/// Refuses lines that the rules of the interface do not accept, before anything is done.
fn check_lines(spec: &Spec, workspace: &Path) -> Result<(), Failure> {
    let runs = spec.runs.iter().filter_map(|run| match run {
        Run::Command { line } | Run::Agent { line } => Some(line),
        Run::Patch { .. } => None,
    });
    let context = Context { workspace: Some(workspace) };
    for line in runs.chain(&spec.verify).chain(&spec.score) {
        let verdict = judge(line, preset(spec.rules), &context);
        if let Some(refusal) = verdict.refusal() {
            return Err(RunError::Refused(refusal.clone()).into());
        }
    }
    Ok(())
}

/// Returns whether the work of a candidate is worth a snapshot.
pub(super) fn kept_work(candidate: &Candidate) -> OtherForks {
    let has_work = candidate.diff.is_some_and(|diff| diff.files > 0);
    match candidate.step {
        Step::Ran | Step::Judged if has_work => OtherForks::Record,
        Step::Pending | Step::Forking | Step::Forked | Step::Running | Step::Ran | Step::Judged => {
            OtherForks::Discard
        }
    }
}

/// Fails if a base has forks beside `own`: a promotion would end them.
pub(super) fn refuse_other_forks(
    host: &Arc<dyn TryHost>,
    base: &Record,
    own: &[&Identifier],
) -> Result<(), Failure> {
    let forks = host.workspaces().overlays_of(&base.key)?;
    let others = forks.iter().filter(|fork| !own.contains(&&fork.identifier));
    let names: Vec<_> = others.map(|fork| fork.identifier.to_string()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{} has forks that are not of this try, and a promotion would end them: {}; promote or remove them, or \
         promote none",
        base.identifier,
        names.join(", ")
    );
    Err(Failure::new(Code::ForkRefused, message).with("forks", names))
}

pub(super) fn input_name(number: u8) -> String {
    format!("input-{number}")
}

pub(super) fn diff_name(number: u8) -> String {
    format!("{number}.diff")
}

/// Returns the forks of the tries that some process works on. They wait unused while other candidates run.
pub(crate) fn forks_in_work(tries: &Tries) -> Result<BTreeSet<Identifier>, Failure> {
    let mut forks = BTreeSet::new();
    for id in tries.ids()? {
        let trial: Trial = tries.read(&id)?;
        if trial.phase != Phase::Finished && tries.lock(&id)?.is_none() {
            forks.extend(trial.candidates.into_iter().filter_map(|candidate| candidate.fork));
        }
    }
    Ok(forks)
}
