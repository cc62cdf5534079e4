//! Keeps the last good workflow while its file is edited.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use carrel_domain::ErrorEnvelope;

use crate::environment::Environment;
use crate::error::WorkflowError;
use crate::file::{self, Stamp};
use crate::workflow::{self, Digest, Workflow};

/// A file that changed this recently may change again without a new time stamp, so it is read again.
const STAMP_GRANULARITY: Duration = Duration::from_millis(100);

/// What one look at the file found.
#[derive(Debug)]
pub enum ReloadOutcome {
    /// The file says what it said before.
    Unchanged,
    /// The file changed and the new workflow is in use.
    Reloaded {
        /// The workflow that was in use.
        old: Arc<Workflow>,
        /// The workflow that is in use.
        new: Arc<Workflow>,
    },
    /// The file cannot be used; the last good workflow stays in use.
    Failed {
        /// Why.
        error: Arc<WorkflowError>,
        /// Whether the look before this one did not report the same; log only then.
        first_time: bool,
    },
}

/// Follows one workflow file. The owner calls [`Reloader::check`]; others read through [`Reloader::handle`].
#[derive(Debug)]
pub struct Reloader {
    current: Arc<ArcSwap<Workflow>>,
    seen: Option<Seen>,
    failure: Option<Arc<WorkflowError>>,
}

/// The state of the file when it was last read.
#[derive(Debug)]
struct Seen {
    stamp: Stamp,
    /// Whether a later change is sure to change the stamp.
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

    /// Returns a handle that always leads to the workflow in use.
    pub fn handle(&self) -> Arc<ArcSwap<Workflow>> {
        Arc::clone(&self.current)
    }

    /// Returns why the file cannot be used, while it cannot.
    pub fn failure(&self) -> Option<&Arc<WorkflowError>> {
        self.failure.as_ref()
    }

    /// Looks at the file once. Asks for the environment only when the file must be read.
    pub fn check(&mut self, environment: impl FnOnce() -> Environment) -> ReloadOutcome {
        let old = self.current();
        match self.look(&old, environment) {
            Ok(None) => self.repeated(),
            Ok(Some(workflow)) => self.replaced(old, Arc::new(workflow)),
            Err(error) => self.failed(error),
        }
    }

    /// Returns what the file holds, unless it was seen before.
    fn look(
        &mut self,
        current: &Workflow,
        environment: impl FnOnce() -> Environment,
    ) -> Result<Option<Workflow>, WorkflowError> {
        let seen = self.seen.take();
        let stamp = file::stamp(&current.path)?;
        if seen.as_ref().is_some_and(|seen| seen.settled && seen.stamp == stamp) {
            self.seen = seen;
            return Ok(None);
        }
        let settled = stamp.age().is_some_and(|age| age > STAMP_GRANULARITY);
        let bytes = file::read(&current.path)?;
        let digest = workflow::digest(&bytes);
        let known = seen.map(|seen| seen.digest).or(self.digest_in_use(current));
        self.seen = Some(Seen { stamp, settled, digest });
        if known == Some(digest) {
            return Ok(None);
        }
        Workflow::parse(&bytes, &current.path, &environment(), current.scope()).map(Some)
    }

    /// Returns the content in use, unless a failure since then makes it worth reading again.
    fn digest_in_use(&self, current: &Workflow) -> Option<Digest> {
        self.failure.is_none().then(|| current.digest())
    }

    fn repeated(&self) -> ReloadOutcome {
        match &self.failure {
            None => ReloadOutcome::Unchanged,
            Some(error) => ReloadOutcome::Failed { error: Arc::clone(error), first_time: false },
        }
    }

    fn replaced(&mut self, old: Arc<Workflow>, new: Arc<Workflow>) -> ReloadOutcome {
        self.current.store(Arc::clone(&new));
        self.failure = None;
        ReloadOutcome::Reloaded { old, new }
    }

    fn failed(&mut self, error: WorkflowError) -> ReloadOutcome {
        let text = |error: &WorkflowError| ErrorEnvelope::of(error).error.message;
        let known = self.failure.as_ref().is_some_and(|known| text(known) == text(&error));
        let error = Arc::new(error);
        self.failure = Some(Arc::clone(&error));
        ReloadOutcome::Failed { error, first_time: !known }
    }
}
