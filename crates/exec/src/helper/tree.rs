//! A process and everything below it.

use std::collections::{HashMap, HashSet};
use std::io;

use carrel_sandbox::SignalScope;
use rustix::process::{Pid, RawPid, Signal, getpid};

use super::proc::{self, Process};

/// How often a tree is looked at again for processes that are not stopped yet. Processes that fork
/// faster than they are stopped are killed anyway, over several sweeps.
const MAX_FREEZE_ROUNDS: usize = 16;

/// Returns the running descendants of this process, without those below and including `spared`.
///
/// A process whose parent ends while the table is read may be missing. It is then a child of this
/// process, so a caller that repeats until it has no children misses nothing.
pub(super) fn running(spared: &HashSet<Pid>) -> io::Result<Vec<Process>> {
    let all = proc::all()?;
    let mut found = descendants(&all, getpid(), spared);
    found.retain(Process::is_running);
    Ok(found)
}

/// Asks every running descendant to end, the stopped ones too.
pub(super) fn terminate(enclosure: SignalScope) -> io::Result<()> {
    if enclosure.signal_all(Signal::TERM) && enclosure.signal_all(Signal::CONT) {
        return Ok(());
    }
    for process in running(&HashSet::new())? {
        process.signal(&[Signal::TERM, Signal::CONT]);
    }
    Ok(())
}

/// Kills the running descendants of this process, without those below and including `spared`, and
/// returns how many it found.
///
/// They are stopped first and killed together: a tree that keeps forking would otherwise use the
/// room that each killed process leaves.
pub(super) fn kill(spared: &HashSet<Pid>) -> io::Result<usize> {
    let mut stopped = HashMap::new();
    for _ in 0..MAX_FREEZE_ROUNDS {
        let mut found = running(spared)?;
        found.retain(|process| !stopped.contains_key(&process.identity()));
        if found.is_empty() {
            break;
        }
        for process in &found {
            process.signal(&[Signal::STOP]);
        }
        stopped.extend(found.into_iter().map(|process| (process.identity(), process)));
    }
    for process in stopped.values() {
        process.signal(&[Signal::KILL]);
    }
    Ok(stopped.len())
}

fn descendants(all: &[Process], root: Pid, spared: &HashSet<Pid>) -> Vec<Process> {
    let mut children: HashMap<RawPid, Vec<Process>> = HashMap::new();
    for process in all.iter().filter(|process| !spared.contains(&process.pid)) {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut found = Vec::new();
    let mut next = vec![root.as_raw_pid()];
    while let Some(parent) = next.pop() {
        // Taking the entry out makes this end even if an id is used again while the table is read.
        let below = children.remove(&parent).unwrap_or_default();
        next.extend(below.iter().map(|process| process.pid.as_raw_pid()));
        found.extend(below);
    }
    found
}
