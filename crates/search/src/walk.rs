//! Walking a tree on several threads.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::cancel::{Budget, Halt};
use crate::node::Expanded;
use crate::queue::{More, Next, Queue, Weighed, Work};
use crate::scope::Scope;
use crate::unreadable::ReadFailure;
use crate::visit::{Batch, Collector, Flow, Visitor};

/// The most threads that one walk uses, whatever the machine has.
const MAX_WORKERS: usize = 8;

/// What one piece of work gave.
#[derive(Debug)]
struct Given<B> {
    batch: Option<B>,
    unreadable: Vec<ReadFailure>,
}

impl<B: Batch> Weighed for Given<B> {
    fn weight(&self) -> usize {
        self.batch.as_ref().map_or(0, Batch::weight)
    }

    fn shed(&mut self) {
        self.batch.iter_mut().for_each(Batch::shed);
    }
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Everything was visited.
    Exhausted,
    /// The collector had enough.
    Enough,
    /// The caller gave up.
    Cancelled,
    /// The time was over.
    TimeUp,
}

impl From<Halt> for End {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Cancelled => Self::Cancelled,
            Halt::TimeUp => Self::TimeUp,
            Halt::Enough => Self::Enough,
        }
    }
}

/// A walk that several threads work on.
struct Walk<'a, V: Visitor, C> {
    scope: &'a Scope<'a>,
    visitor: &'a V,
    budget: &'a Budget,
    queue: Mutex<Queue<Given<V::Batch>>>,
    /// Woken when there is more work, or none any more.
    change: Condvar,
    collector: Mutex<Collecting<C>>,
    halt: OnceLock<Halt>,
}

struct Collecting<C> {
    collector: C,
    enough: bool,
}

/// Walks from a directory that is listed already, and gives the collector everything in the order
/// of paths.
pub(crate) fn walk<V: Visitor, C: Collector<V>>(
    scope: &Scope<'_>,
    first: Expanded,
    visitor: &V,
    collector: C,
    budget: &Budget,
) -> (C, End) {
    let workers = workers();
    let mut queue = Queue::new(workers);
    queue.add(More::Below(first));
    let walk = Walk {
        scope,
        visitor,
        budget,
        queue: Mutex::new(queue),
        change: Condvar::new(),
        collector: Mutex::new(Collecting { collector, enough: false }),
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
    // A worker that found the collector busy may have left something behind.
    walk.collect(&mut scratch);
    walk.end()
}

impl<V: Visitor, C: Collector<V>> Walk<'_, V, C> {
    fn work(&self, worker: usize, scratch: &mut V::Scratch) {
        // A worker that panics must not leave the others waiting; the panic itself goes on.
        let _leaving = Leaving { queue: &self.queue, change: &self.change };
        while let Some(work) = self.next(worker) {
            match self.budget.check().and_then(|()| self.run(&work, scratch)) {
                Ok((given, more)) => self.finish(worker, given, more, scratch),
                Err(halt) => return self.halt(halt),
            }
        }
    }

    fn next(&self, worker: usize) -> Option<Work> {
        let mut queue = lock(&self.queue);
        loop {
            match queue.next(worker) {
                Next::Work(work) => return Some(work),
                Next::Wait => {
                    queue = self.change.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
                Next::Over => {
                    self.change.notify_all();
                    return None;
                }
            }
        }
    }

    fn run(&self, work: &Work, scratch: &mut V::Scratch) -> Result<(Given<V::Batch>, More), Halt> {
        let mut unreadable = Vec::new();
        if let Some(entry) = work.directory() {
            let below = work.node.enter(&entry.name, self.scope, self.visitor, &mut unreadable);
            let more = below.map_or(More::None, More::Below);
            return Ok((Given { batch: None, unreadable }, more));
        }
        let (batch, visited) = self.visitor.visit(scratch, &work.node, work.entries())?;
        Ok((Given { batch: Some(batch), unreadable }, work.rest_after(visited)))
    }

    fn finish(&self, worker: usize, given: Given<V::Batch>, more: More, scratch: &mut V::Scratch) {
        let worthwhile = given.batch.is_some() || !given.unreadable.is_empty();
        let wakes = !matches!(more, More::None);
        lock(&self.queue).finish(worker, worthwhile.then_some(given), more);
        if wakes {
            self.change.notify_all();
        }
        self.collect(scratch);
    }

    /// Hands the collector what has become final, unless another worker is at it already.
    fn collect(&self, scratch: &mut V::Scratch) {
        let Ok(mut collecting) = self.collector.try_lock() else { return };
        while !collecting.enough {
            let Some(all) = lock(&self.queue).take_final() else { return };
            for given in all {
                match collecting.take(given, scratch) {
                    Ok(()) => {}
                    Err(halt) => return self.halt(halt),
                }
            }
        }
        self.stop();
    }

    fn halt(&self, halt: Halt) {
        // The first reason is the one that counts; all others follow from it.
        let _ = self.halt.set(halt);
        self.stop();
    }

    fn end(self) -> (C, End) {
        let collecting = self.collector.into_inner().unwrap_or_else(PoisonError::into_inner);
        let end = match (collecting.enough, self.halt.get()) {
            (true, _) => End::Enough,
            (false, Some(halt)) => End::from(*halt),
            (false, None) => End::Exhausted,
        };
        (collecting.collector, end)
    }

    fn stop(&self) {
        self.budget.stop();
        lock(&self.queue).stop();
        self.change.notify_all();
    }
}

impl<C> Collecting<C> {
    fn take<V: Visitor>(
        &mut self,
        given: Given<V::Batch>,
        scratch: &mut V::Scratch,
    ) -> Result<(), Halt>
    where
        C: Collector<V>,
    {
        self.collector.unreadable(given.unreadable);
        match given.batch.map(|batch| self.collector.take(batch, scratch)).transpose()? {
            None | Some(Flow::More) => {}
            Some(Flow::Enough) => self.enough = true,
        }
        Ok(())
    }
}

/// Ends the walk when a worker panics.
struct Leaving<'a, T: Weighed> {
    queue: &'a Mutex<Queue<T>>,
    change: &'a Condvar,
}

impl<T: Weighed> Drop for Leaving<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(self.queue).stop();
            self.change.notify_all();
        }
    }
}

/// The queue is consistent after every call, so a panic elsewhere does not spoil it.
fn lock<T>(queue: &Mutex<T>) -> MutexGuard<'_, T> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns how many threads a walk uses. Asking the system takes longer than a small search.
fn workers() -> usize {
    static WORKERS: OnceLock<usize> = OnceLock::new();
    *WORKERS.get_or_init(|| {
        std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_WORKERS))
    })
}
