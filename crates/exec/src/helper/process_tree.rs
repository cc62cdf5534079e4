//! The descendants of this process.

use std::collections::{HashMap, HashSet};
use std::io;

use carrel_sandbox::SignalScope;
use rustix::process::{Pid, RawPid, Signal, getpid};

use super::process_table::{self, Process};

/// The most rounds of stopping new processes. A tree that forks faster is killed anyway, over several
/// sweeps.
const MAX_FREEZE_ROUNDS: usize = 16;

/// Returns the running descendants of this process, except `spared` and their descendants.
///
/// A process whose parent ends while the table is read may be missing. It then becomes a child of this
/// process, so a caller that repeats until it has no children misses none.
pub(super) fn running(spared: &HashSet<Pid>) -> io::Result<Vec<Process>> {
    let all = process_table::all()?;
    let mut found = descendants(&all, getpid(), spared);
    found.retain(Process::is_running);
    Ok(found)
}

/// Sends `SIGTERM` to every running descendant, and `SIGCONT` so that stopped ones receive it.
pub(super) fn terminate(scope: SignalScope) -> io::Result<()> {
    if scope.signal_all(Signal::TERM) && scope.signal_all(Signal::CONT) {
        return Ok(());
    }
    for process in running(&HashSet::new())? {
        process.signal(&[Signal::TERM, Signal::CONT]);
    }
    Ok(())
}

/// Kills the running descendants of this process, except `spared` and their descendants, and returns
/// their number.
///
/// They are stopped first and killed together: a fork bomb would otherwise replace each killed process
/// within its process limit.
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
        // Removing the entry ends the loop even if an id was reused while the table was read.
        let below = children.remove(&parent).unwrap_or_default();
        next.extend(below.iter().map(|process| process.pid.as_raw_pid()));
        found.extend(below);
    }
    found
}
