//! The interface between a walk and the search that it is for: a [`Visitor`] processes batches of
//! files on the worker threads, a [`Collector`] receives the results in path order.

use std::ops::ControlFlow;

use carrel_fsroot::Entry;

use crate::budget::Halt;
use crate::node::{Node, PathFilter};
use crate::read_failure::ReadFailures;

/// The operation on the files of a walk.
pub(crate) trait Visitor: PathFilter {
    /// State of a worker that is reused for every batch, such as buffers.
    type Scratch;
    type Batch: Batch;

    fn scratch(&self) -> Self::Scratch;

    /// Processes a prefix of the given files and returns its length, at least one.
    ///
    /// The rest is queued again for any worker. The length must depend on the files alone, or the
    /// result would depend on the threads.
    fn visit(
        &self,
        scratch: &mut Self::Scratch,
        node: &Node,
        entries: &[Entry],
    ) -> Result<(Self::Batch, usize), Halt>;
}

/// The results for a batch of files.
pub(crate) trait Batch: Send {
    /// Returns the approximate size in bytes.
    fn weight(&self) -> usize {
        0
    }

    /// Drops what the collector can compute again.
    fn shed(&mut self) {}
}

/// The receiver of results, in path order. Runs on the worker that completed the next result.
pub(crate) trait Collector<V: Visitor>: Send {
    /// Adds a result; breaks if it needs no more.
    fn take(&mut self, batch: V::Batch, scratch: &mut V::Scratch) -> Result<ControlFlow<()>, Halt>;

    fn unreadable(&mut self) -> &mut ReadFailures;
}
