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
use crate::queue::{Listing, NextItem, Queue, WorkResult};
use crate::read_failure::ReadFailures;
use crate::scope::Scope;
use crate::visitor::{Batch, Collector, Visitor};

const MAX_WORKERS: usize = 8;

struct Walk<'a, V: Visitor, C> {
    scope: &'a Scope<'a>,
    visitor: &'a V,
    budget: &'a Budget,
    queue: Mutex<Queue<V::Batch>>,
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
/// Also returns the reason for an early end.
pub(crate) fn walk<V: Visitor, C: Collector<V>>(
    scope: &Scope<'_>,
    first: ExpandedDirectory,
    visitor: &V,
    collector: C,
    budget: &Budget,
) -> (C, Option<Halt>) {
    let workers = workers();
    let mut queue = Queue::new(workers);
    queue.add(first.into());
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

    fn next(&self, worker: usize) -> Option<Listing> {
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
        work: &Listing,
        scratch: &mut V::Scratch,
    ) -> Result<(WorkResult<V::Batch>, Option<Listing>), Halt> {
        let mut unreadable = ReadFailures::default();
        if let Some(entry) = work.directory() {
            let listed = work.node.enter(&entry.name, self.scope, self.visitor, &mut unreadable);
            return Ok((WorkResult { batch: None, unreadable }, listed.map(Listing::from)));
        }
        let (batch, visited) = self.visitor.visit(scratch, &work.node, work.entries())?;
        let rest = work.rest_after(visited);
        let more = (!rest.entries().is_empty()).then_some(rest);
        Ok((WorkResult { batch: Some(batch), unreadable }, more))
    }

    fn finish(
        &self,
        worker: usize,
        result: WorkResult<V::Batch>,
        more: Option<Listing>,
        scratch: &mut V::Scratch,
    ) {
        let worthwhile = result.batch.is_some() || result.unreadable.total > 0;
        let wakes = more.is_some();
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
            let Some(result) = sync::lock(&self.queue).take_final() else { return };
            if let Err(halt) = state.take(result, scratch) {
                return self.halt(halt);
            }
        }
        self.stop();
    }

    fn halt(&self, halt: Halt) {
        // Later reasons are consequences of the first one.
        let _ = self.halt.set(halt);
        self.stop();
    }

    fn end(self) -> (C, Option<Halt>) {
        let state = self.collector.into_inner().unwrap_or_else(PoisonError::into_inner);
        let halt = if state.enough { Some(Halt::Enough) } else { self.halt.get().copied() };
        (state.collector, halt)
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
        self.collector.unreadable().merge(result.unreadable);
        if let Some(batch) = result.batch {
            self.enough = self.collector.take(batch, scratch)?.is_break();
        }
        Ok(())
    }
}

/// Stops the walk if its worker panics.
struct StopOnPanic<'a, B: Batch> {
    queue: &'a Mutex<Queue<B>>,
    change: &'a Condvar,
}

impl<B: Batch> Drop for StopOnPanic<'_, B> {
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
