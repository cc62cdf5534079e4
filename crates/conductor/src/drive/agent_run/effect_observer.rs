//! Observation of the effects that turns have outside the conversation.
//!
//! The workspace's fingerprint is taken before the first turn and after each one. Hooks run before the first and
//! after the last, so that their changes do not count as the agent's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use carrel_domain::message_of;
use carrel_exec::LazySpawner;
use carrel_workspace::{Fingerprint, Workspace};
use tracing::debug;

use crate::event::TurnEffects;

#[derive(Debug)]
pub(super) struct EffectObserver {
    workspace: Arc<Workspace>,
    spawner: LazySpawner,
    /// The count of calls that changed the tracker.
    tracker_changes: Arc<AtomicU64>,
    /// The observation before the turn; `None` if nothing is observed.
    last: Option<Observation>,
}

#[derive(Clone, Debug)]
struct Observation {
    /// `None` if the workspace could not be read.
    contents: Option<Fingerprint>,
    tracker_changes: u64,
}

impl EffectObserver {
    /// Takes the first observation, unless `enabled` says that no effect matters.
    pub(super) async fn start(
        workspace: Arc<Workspace>,
        spawner: LazySpawner,
        tracker_changes: Arc<AtomicU64>,
        enabled: bool,
    ) -> Self {
        let mut observer = Self { workspace, spawner, tracker_changes, last: None };
        if enabled {
            observer.last = Some(observer.observe().await);
        }
        observer
    }

    /// Returns the effects since the last observation. Anything that was not observed counts as an effect.
    pub(super) async fn effects(&mut self) -> TurnEffects {
        let Some(before) = self.last.take() else {
            return TurnEffects { files: true, ..TurnEffects::default() };
        };
        let after = self.observe().await;
        self.last = Some(after.clone());
        let (files, commits) = match (before.contents, after.contents) {
            (Some(before), Some(after)) => {
                let files = before.files.is_none() || before.files != after.files;
                (files, before.commits != after.commits)
            }
            (None, _) | (_, None) => (true, false),
        };
        TurnEffects { files, commits, tracker: before.tracker_changes != after.tracker_changes }
    }

    async fn observe(&self) -> Observation {
        // On the heap, because the future is large and each run has one.
        let contents = Box::pin(self.workspace.fingerprint(&self.spawner)).await;
        let contents = contents.inspect_err(|error| {
            debug!(error = message_of(error), "the effects of a turn cannot be observed");
        });
        let tracker_changes = self.tracker_changes.load(Ordering::Acquire);
        Observation { contents: contents.ok(), tracker_changes }
    }
}
