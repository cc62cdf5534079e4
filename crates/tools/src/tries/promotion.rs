//! The promotion of the best candidate, also one that another process began.
//!
//! | found after a crash | what is done |
//! |---|---|
//! | a journal of the promotion | opening the base finishes it; the forks that are left are removed |
//! | no journal, and the fork marked as ending or empty, or gone and the base changed | the same |
//! | no journal, and the fork as it was | the promotion is begun again |
//!
//! The record has the snapshot of the base before the promotion, with which the base is compared.

use std::sync::Arc;

use carrel_domain::{Code, Coded as _, Failure, Identifier, WorkspaceKey};
use carrel_runner::WorkspaceHandle;
use carrel_snapshot::{
    CompareError, FindError, Reference, Renames, Side, Snapshot, SnapshotId, Trust,
};
use carrel_trial::{Candidate, EndedCandidate, Outcome, Phase, Promotion, Trial};
use carrel_workspace::{Amount, ForkKind, Record, State};
use tracing::warn;

use super::fault_point::FaultPoint;
use super::session::TrySession;
use super::store::{kept_work, refuse_other_forks};
use crate::blocking::blocking;
use crate::forks::{OtherForks, PromotedFork, base_as_it_is, before_promotion, store_of, work_of};

impl TrySession {
    /// Promotes the best candidate and ends the try.
    pub(super) async fn promote_winner(&self) -> Result<(), Failure> {
        let trial = self.trial().await;
        let best = trial.winner().and_then(|one| Some((one.number, one.fork.clone()?)));
        let Some((number, fork)) = best else {
            return self.update(|trial| trial.finish(Outcome::NonePassed)).await;
        };
        self.reach(FaultPoint::Promoting);
        let promoted = if self.is_resumed && self.is_promoted(&trial, &fork).await? {
            self.promoted_before(&trial, number, &fork).await
        } else {
            self.promote(&trial, number, &fork).await
        };
        self.reach(FaultPoint::Promoted);
        let outcome = match promoted {
            Ok(promotion) => Outcome::Promoted(promotion),
            Err(failure) => Outcome::NotPromoted {
                candidate: number,
                code: failure.code.name().to_owned(),
                message: failure.message,
            },
        };
        self.update(|trial| trial.finish(outcome)).await
    }

    /// Goes back to the candidates if the fork of the best one was lost before it was promoted.
    pub(super) async fn begin_anew_without_winner(&self) -> Result<(), Failure> {
        let trial = self.trial().await;
        let best = trial.winner().and_then(|one| one.fork.clone());
        let Some(fork) = best.filter(|_| trial.phase == Phase::Promoting) else { return Ok(()) };
        if self.is_promoted(&trial, &fork).await? || !self.is_lost(&fork).await? {
            return Ok(());
        }
        self.update(|trial| {
            trial.phase = Phase::Running;
            trial.ranking.clear();
        })
        .await
    }

    async fn promote(
        &self,
        trial: &Trial,
        number: u8,
        fork: &Identifier,
    ) -> Result<Promotion, Failure> {
        let base = self.host.workspaces().record(&trial.base)?;
        let own: Vec<_> = trial.candidates.iter().filter_map(|one| one.fork.as_ref()).collect();
        refuse_other_forks(&self.host, &base, &own)?;
        let keys = self.keys(trial)?;
        let description = before_promotion(&self.host.workspaces().key(fork)?);
        let before = base_as_it_is(&self.base(trial).await?, description).await?.to_string();
        self.update(|trial| trial.before = Some(before)).await?;
        let PromotedFork { before, ended, .. } = self.host.promote(fork).await?;
        let mut all: Vec<EndedCandidate> = Vec::new();
        for (key, snapshot) in ended {
            let of = keys.iter().find(|(_, other)| *other == key);
            all.extend(of.map(|(number, _)| EndedCandidate {
                candidate: *number,
                snapshot: snapshot.map(|name| name.to_string()),
            }));
        }
        all.extend(self.end_others(trial, number).await);
        all.sort_by_key(|ended| ended.candidate);
        Ok(Promotion { candidate: number, before: before.map(|id| id.to_string()), ended: all })
    }

    /// Ends the forks that are left after a promotion: copies, and what a crash left of overlays.
    async fn end_others(&self, trial: &Trial, winner: u8) -> Vec<EndedCandidate> {
        let mut ended = Vec::new();
        for candidate in trial.candidates.iter().filter(|one| one.number != winner) {
            let Some(fork) = &candidate.fork else { continue };
            let Ok(record) = self.host.workspaces().record(fork) else { continue };
            match self.host.end(fork, work_to_keep(candidate, &record)).await {
                Ok(snapshot) => {
                    // It may have been recorded by a process that was ended.
                    let earlier = self.described(trial, work_of(&record.key)).await;
                    let snapshot = snapshot.map(|name| name.to_string());
                    ended.push(EndedCandidate {
                        candidate: candidate.number,
                        snapshot: snapshot.or(earlier.ok().flatten()),
                    });
                }
                Err(failure) => {
                    warn!(try_id = %trial.id, %fork, failure.message, "the fork of a candidate stays");
                }
            }
        }
        ended
    }

    /// Tells whether a promotion that another process began is over, and finishes it if it was interrupted.
    async fn is_promoted(&self, trial: &Trial, fork: &Identifier) -> Result<bool, Failure> {
        let Some(before) = trial.before.as_deref().and_then(SnapshotId::parse) else {
            return Ok(false);
        };
        let workspaces = self.host.workspaces();
        // Opening it finishes what is in the journal.
        let base = self.base(trial).await?;
        let record = match workspaces.record(fork) {
            Err(error) if error.code() == Code::WorkspaceNotFound => {
                return has_changed(base, before).await;
            }
            found => found?,
        };
        if record.state == State::Removing {
            return Ok(true);
        }
        let is_overlay = record.fork.as_ref().is_some_and(|one| one.kind == ForkKind::Overlay);
        let workspaces = workspaces.clone();
        // A winner has changes; what is left of it after a promotion has none.
        let is_empty =
            blocking(move || Ok(workspaces.changes(&record, base.files())?.is_empty())).await?;
        Ok(is_overlay && is_empty)
    }

    /// Removes what a promotion left that another process began, and returns its result.
    async fn promoted_before(
        &self,
        trial: &Trial,
        number: u8,
        fork: &Identifier,
    ) -> Result<Promotion, Failure> {
        self.host.end(fork, OtherForks::Discard).await?;
        self.end_others(trial, number).await;
        let keys = self.keys(trial)?;
        let mut ended = Vec::new();
        for (other, key) in keys.into_iter().filter(|(other, _)| *other != number) {
            let snapshot = self.described(trial, work_of(&key)).await?;
            ended.push(EndedCandidate { candidate: other, snapshot });
        }
        Ok(Promotion { candidate: number, before: trial.before.clone(), ended })
    }

    async fn base(&self, trial: &Trial) -> Result<WorkspaceHandle, Failure> {
        let base = Arc::new(self.host.workspaces().open(&trial.base).await?);
        Ok(WorkspaceHandle::for_workspace(base, Amount::default())?)
    }

    /// Returns the name or number of the newest snapshot of the base with a description that was taken since the try
    /// was begun: numbers of forks come back.
    async fn described(
        &self,
        trial: &Trial,
        description: String,
    ) -> Result<Option<String>, Failure> {
        let (base, begun) = (self.base(trial).await?, trial.created_at);
        blocking(move || {
            let store = store_of(&base)?;
            let is_it = |one: &Snapshot| one.description == description && one.created >= begun;
            let found = store.list()?.into_iter().find(is_it);
            Ok(found.map(|one| one.name.map_or(one.id.to_string(), |name| name.to_string())))
        })
        .await
    }

    /// Returns the keys of the forks of candidates.
    fn keys(&self, trial: &Trial) -> Result<Vec<(u8, WorkspaceKey)>, Failure> {
        let mut keys = Vec::new();
        for candidate in &trial.candidates {
            if let Some(fork) = &candidate.fork {
                keys.push((candidate.number, self.host.workspaces().key(fork)?));
            }
        }
        Ok(keys)
    }
}

/// Tells whether a base differs from its snapshot. If the snapshot was deleted since, it counts as different: the fork
/// is gone, so nothing can be promoted again.
async fn has_changed(base: WorkspaceHandle, before: SnapshotId) -> Result<bool, Failure> {
    blocking(move || {
        let (old, new) = (Side::Snapshot(Reference::Id(before)), Side::Now);
        match store_of(&base)?.compare(&old, &new, Renames::Apart, &Trust::default()) {
            Err(CompareError::Find(FindError::Unknown { .. })) => Ok(true),
            compared => Ok(!compared?.changes.is_empty()),
        }
    })
    .await
}

/// Returns the work to keep of a fork that is left. The tree of an overlay is none after its base was changed by a
/// promotion; it was recorded before.
fn work_to_keep(candidate: &Candidate, record: &Record) -> OtherForks {
    match record.fork.as_ref().map(|fork| fork.kind) {
        Some(ForkKind::Copy) => kept_work(candidate),
        Some(ForkKind::Overlay) | None => OtherForks::Discard,
    }
}
