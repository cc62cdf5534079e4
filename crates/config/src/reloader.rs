//! Reloading of a workflow file while a program runs.
//!
//! The owner polls with [`Reloader::check`]; readers follow an `ArcSwap` and never wait. A file that has
//! errors leaves the last good workflow in use, and its error is reported as new once, so that an editor
//! which saves a half-written file costs one log line.
//!
//! A poll of an unchanged file is one `stat`. The stamp alone cannot be trusted right after a change: two
//! writes within the granularity of the file system's clock leave the same stamp. Such a file is read
//! again until its last change is older than [`STAMP_GRANULARITY`], and compared by its digest.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use carrel_domain::ErrorEnvelope;

use crate::environment::Environment;
use crate::workflow::{self, Digest, Workflow};
use crate::workflow_error::WorkflowError;
use crate::workflow_file::{self, FileStamp};

/// The age below which a second change may leave the same time stamp.
const STAMP_GRANULARITY: Duration = Duration::from_millis(100);

/// The result of one poll of the file.
#[derive(Debug)]
pub enum ReloadOutcome {
    /// The content is the same as at the last poll.
    Unchanged,
    /// The file changed and the new workflow is in use.
    Reloaded {
        /// The workflow that was in use until now.
        old: Arc<Workflow>,
        /// The workflow of the changed file.
        new: Arc<Workflow>,
    },
    /// The file cannot be used; the last good workflow stays in use.
    Failed {
        /// Every error of the file.
        error: Arc<WorkflowError>,
        /// False if the previous poll reported the same message; only the first one is worth a log line.
        first_time: bool,
    },
}

/// The last good workflow of one file. The owner calls [`Reloader::check`]; readers use
/// [`Reloader::handle`].
#[derive(Debug)]
pub struct Reloader {
    current: Arc<ArcSwap<Workflow>>,
    seen: Option<Seen>,
    failure: Option<Arc<WorkflowError>>,
}

#[derive(Debug)]
struct Seen {
    stamp: FileStamp,
    /// True if a later change is sure to change the stamp.
    settled: bool,
    digest: Digest,
}

impl Reloader {
    /// Follows the file that a workflow was loaded from.
    pub fn new(workflow: Workflow) -> Self {
        Self { current: Arc::new(ArcSwap::from_pointee(workflow)), seen: None, failure: None }
    }

    /// Returns the workflow in use.
    pub fn current(&self) -> Arc<Workflow> {
        self.current.load_full()
    }

    /// Returns a handle that always loads the workflow in use.
    pub fn handle(&self) -> Arc<ArcSwap<Workflow>> {
        Arc::clone(&self.current)
    }

    /// Returns the error of the file, as long as it has one.
    pub fn failure(&self) -> Option<&Arc<WorkflowError>> {
        self.failure.as_ref()
    }

    /// Polls the file once. `environment` is called only if the file has to be parsed.
    pub fn check(&mut self, environment: impl FnOnce() -> Environment) -> ReloadOutcome {
        let old = self.current();
        match self.read_if_changed(&old, environment) {
            Ok(None) => match &self.failure {
                None => ReloadOutcome::Unchanged,
                Some(error) => {
                    ReloadOutcome::Failed { error: Arc::clone(error), first_time: false }
                }
            },
            Ok(Some(workflow)) => {
                let new = Arc::new(workflow);
                self.current.store(Arc::clone(&new));
                self.failure = None;
                ReloadOutcome::Reloaded { old, new }
            }
            Err(error) => self.failed(error),
        }
    }

    /// Parses the file unless its content was seen before.
    fn read_if_changed(
        &mut self,
        current: &Workflow,
        environment: impl FnOnce() -> Environment,
    ) -> Result<Option<Workflow>, WorkflowError> {
        let seen = self.seen.take();
        let stamp = workflow_file::stamp(&current.path)?;
        if seen.as_ref().is_some_and(|seen| seen.settled && seen.stamp == stamp) {
            self.seen = seen;
            return Ok(None);
        }
        let settled = stamp.age().is_some_and(|age| age > STAMP_GRANULARITY);
        let bytes = workflow_file::read(&current.path)?;
        let digest = workflow::digest(&bytes);
        // After a failure an unchanged content has to be reported as good again.
        let in_use = self.failure.is_none().then_some(current.digest);
        let known = seen.map(|seen| seen.digest).or(in_use);
        self.seen = Some(Seen { stamp, settled, digest });
        if known == Some(digest) {
            return Ok(None);
        }
        Workflow::parse(&bytes, &current.path, &environment(), current.scope).map(Some)
    }

    fn failed(&mut self, error: WorkflowError) -> ReloadOutcome {
        let text = |error: &WorkflowError| ErrorEnvelope::of(error).error.message;
        let known = self.failure.as_ref().is_some_and(|known| text(known) == text(&error));
        let error = Arc::new(error);
        self.failure = Some(Arc::clone(&error));
        ReloadOutcome::Failed { error, first_time: !known }
    }
}
