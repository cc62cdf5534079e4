//! The walk of a directory tree on several threads, with results in path order.
//!
//! Up to eight workers, the calling thread among them, take items from one queue: a directory to
//! list or a batch of files to visit. The results that became final are passed to the collector by
//! any worker that finds it free; a worker that finds it busy goes on, and the calling thread
//! collects the rest at the end. The collector therefore never needs a thread of its own, and no
//! worker waits for it.
//!
//! The walk ends when the queue is empty, the collector has enough, the time is over or the caller
//! cancels. The first reason is recorded and stops the others. A worker that panics stops the walk
//! on its way out, so that no thread waits for it forever; the panic then propagates to the caller
//! when the threads are joined.

use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

use carrel_domain::sync;

use crate::budget::{Budget, Halt};
use crate::node::ExpandedDirectory;
use crate::queue::{Buffered, FollowUp, NextItem, Queue, WorkItem};
use crate::read_failure::ReadFailure;
use crate::scope::Scope;
use crate::visitor::{Batch, Collector, Flow, Visitor};

const MAX_WORKERS: usize = 8;

#[derive(Debug)]
struct WorkResult<B> {
    batch: Option<B>,
    unreadable: Vec<ReadFailure>,
}

impl<B: Batch> Buffered for WorkResult<B> {
    fn weight(&self) -> usize {
        self.batch.as_ref().map_or(0, Batch::weight)
    }

    fn shed(&mut self) {
        self.batch.iter_mut().for_each(Batch::shed);
    }
}

/// The reason for the end of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalkEnd {
    Exhausted,
    Enough,
    Cancelled,
    TimeUp,
}

impl From<Halt> for WalkEnd {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Cancelled => Self::Cancelled,
            Halt::TimeUp => Self::TimeUp,
            Halt::Enough => Self::Enough,
        }
    }
}

struct Walk<'a, V: Visitor, C> {
    scope: &'a Scope<'a>,
    visitor: &'a V,
    budget: &'a Budget,
    queue: Mutex<Queue<WorkResult<V::Batch>>>,
    /// Notified when work is added or the walk ends.
    change: Condvar,
    collector: Mutex<CollectorState<C>>,
    halt: OnceLock<Halt>,
}

struct CollectorState<C> {
    collector: C,
    enough: bool,
}

/// Walks the tree below a listed directory and passes all results to the collector in path order.
pub(crate) fn walk<V: Visitor, C: Collector<V>>(
    scope: &Scope<'_>,
    first: ExpandedDirectory,
    visitor: &V,
    collector: C,
    budget: &Budget,
) -> (C, WalkEnd) {
    let workers = workers();
    let mut queue = Queue::new(workers);
    queue.add(FollowUp::Directory(first));
    let walk = Walk {
        scope,
        visitor,
        budget,
        queue: Mutex::new(queue),
        change: Condvar::new(),
        collector: Mutex::new(CollectorState { collector, enough: false }),
        halt: OnceLock::new(),
    };
    let mut scratch = visitor.scratch();
    std::thread::scope(|threads| {
        for worker in 1..workers {
            let walk = &walk;
            threads.spawn(move || walk.work(worker, &mut walk.visitor.scratch()));
        }
        walk.work(0, &mut scratch);
    });
    // A worker that found the collector busy may have left final results.
    walk.collect(&mut scratch);
    walk.end()
}

impl<V: Visitor, C: Collector<V>> Walk<'_, V, C> {
    fn work(&self, worker: usize, scratch: &mut V::Scratch) {
        // A worker that panics must not leave the others waiting.
        let _guard = StopOnPanic { queue: &self.queue, change: &self.change };
        while let Some(work) = self.next(worker) {
            match self.budget.check().and_then(|()| self.run(&work, scratch)) {
                Ok((result, more)) => self.finish(worker, result, more, scratch),
                Err(halt) => return self.halt(halt),
            }
        }
    }

    fn next(&self, worker: usize) -> Option<WorkItem> {
        let mut queue = sync::lock(&self.queue);
        loop {
            match queue.next(worker) {
                NextItem::Item(work) => return Some(work),
                NextItem::Wait => {
                    queue = self.change.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
                NextItem::Done => {
                    self.change.notify_all();
                    return None;
                }
            }
        }
    }

    fn run(
        &self,
        work: &WorkItem,
        scratch: &mut V::Scratch,
    ) -> Result<(WorkResult<V::Batch>, FollowUp), Halt> {
        let mut unreadable = Vec::new();
        if let Some(entry) = work.directory() {
            let listed = work.node.enter(&entry.name, self.scope, self.visitor, &mut unreadable);
            let more = listed.map_or(FollowUp::None, FollowUp::Directory);
            return Ok((WorkResult { batch: None, unreadable }, more));
        }
        let (batch, visited) = self.visitor.visit(scratch, &work.node, work.entries())?;
        Ok((WorkResult { batch: Some(batch), unreadable }, work.rest_after(visited)))
    }

    fn finish(
        &self,
        worker: usize,
        result: WorkResult<V::Batch>,
        more: FollowUp,
        scratch: &mut V::Scratch,
    ) {
        let worthwhile = result.batch.is_some() || !result.unreadable.is_empty();
        let wakes = !matches!(more, FollowUp::None);
        sync::lock(&self.queue).finish(worker, worthwhile.then_some(result), more);
        if wakes {
            self.change.notify_all();
        }
        self.collect(scratch);
    }

    /// Passes final results to the collector, unless another worker is doing so.
    fn collect(&self, scratch: &mut V::Scratch) {
        let Ok(mut state) = self.collector.try_lock() else { return };
        while !state.enough {
            let Some(all) = sync::lock(&self.queue).take_final() else { return };
            for result in all {
                match state.take(result, scratch) {
                    Ok(()) => {}
                    Err(halt) => return self.halt(halt),
                }
            }
        }
        self.stop();
    }

    fn halt(&self, halt: Halt) {
        // Later reasons are consequences of the first one.
        let _ = self.halt.set(halt);
        self.stop();
    }

    fn end(self) -> (C, WalkEnd) {
        let state = self.collector.into_inner().unwrap_or_else(PoisonError::into_inner);
        let end = match (state.enough, self.halt.get()) {
            (true, _) => WalkEnd::Enough,
            (false, Some(halt)) => WalkEnd::from(*halt),
            (false, None) => WalkEnd::Exhausted,
        };
        (state.collector, end)
    }

    fn stop(&self) {
        self.budget.stop();
        sync::lock(&self.queue).stop();
        self.change.notify_all();
    }
}

impl<C> CollectorState<C> {
    fn take<V: Visitor>(
        &mut self,
        result: WorkResult<V::Batch>,
        scratch: &mut V::Scratch,
    ) -> Result<(), Halt>
    where
        C: Collector<V>,
    {
        self.collector.unreadable(result.unreadable);
        match result.batch.map(|batch| self.collector.take(batch, scratch)).transpose()? {
            None | Some(Flow::Continue) => {}
            Some(Flow::Stop) => self.enough = true,
        }
        Ok(())
    }
}

/// Stops the walk if its worker panics.
struct StopOnPanic<'a, T: Buffered> {
    queue: &'a Mutex<Queue<T>>,
    change: &'a Condvar,
}

impl<T: Buffered> Drop for StopOnPanic<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            sync::lock(self.queue).stop();
            self.change.notify_all();
        }
    }
}

/// Returns the number of threads. Cached, because `available_parallelism` reads cgroup files, which
/// takes 25 to 100 µs.
fn workers() -> usize {
    static WORKERS: OnceLock<usize> = OnceLock::new();
    *WORKERS.get_or_init(|| {
        std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_WORKERS))
    })
}
