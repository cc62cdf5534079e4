//! What a walk does with files, and what becomes of the results.

use carrel_fsroot::Entry;

use crate::cancel::Halt;
use crate::node::{Node, Wanted};
use crate::unreadable::ReadFailure;

/// What is done with the files of a walk.
pub(crate) trait Visitor: Wanted {
    /// What a worker keeps from one batch to the next.
    type Scratch;
    /// What a batch gives.
    type Batch: Batch;

    /// Makes what a worker needs.
    fn scratch(&self) -> Self::Scratch;

    /// Visits some files of a directory and tells how many of them it did: at least one, and not
    /// those that deserve a turn of their own. The number may depend on the files alone.
    fn visit(
        &self,
        scratch: &mut Self::Scratch,
        node: &Node,
        entries: &[Entry],
    ) -> Result<(Self::Batch, usize), Halt>;
}

/// What a batch of files gave.
pub(crate) trait Batch: Send {
    /// Returns about how many bytes it takes up.
    fn weight(&self) -> usize {
        0
    }

    /// Gives up what the collector can get again.
    fn shed(&mut self) {}
}

/// Whether a walk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// More is wanted.
    More,
    /// What was taken is enough.
    Enough,
}

/// What takes the results of a walk, in the order of paths.
pub(crate) trait Collector<V: Visitor>: Send {
    /// Takes a batch.
    fn take(&mut self, batch: V::Batch, scratch: &mut V::Scratch) -> Result<Flow, Halt>;

    /// Takes what could not be read.
    fn unreadable(&mut self, unreadable: Vec<ReadFailure>);
}
