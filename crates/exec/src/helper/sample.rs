//! Looking from time to time at what a tree uses, where no control group holds its limits.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use carrel_domain::ByteSize;
use rustix::param::page_size;

use super::proc::{self, Process};
use super::tree;
use crate::outcome::Excess;
use crate::spec::Watch;

/// How often. A tree that grows faster than this overshoots; what is left of it is ended all the same.
pub(super) const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// Looks at the tree of this process. Returns what it uses too much of.
pub(super) fn look(watch: &Watch) -> io::Result<Option<Excess>> {
    let running = tree::running(&HashSet::new())?;
    if watch.processes.is_some_and(|limit| threads(&running) > limit) {
        return Ok(Some(Excess::Processes));
    }
    let over = watch.memory.is_some_and(|limit| {
        // The first sum counts what processes share once for each; the second is dearer.
        sum(&running, own_memory) > limit && sum(&running, fair_memory) > limit
    });
    Ok(over.then_some(Excess::Memory))
}

fn threads(running: &[Process]) -> u64 {
    running.iter().map(|process| process.threads).sum()
}

fn sum(running: &[Process], of: fn(&Process) -> Option<u64>) -> ByteSize {
    ByteSize::bytes(running.iter().filter_map(of).fold(0, u64::saturating_add))
}

/// What a process has in memory that is no file's.
fn own_memory(process: &Process) -> Option<u64> {
    let text = proc::text(process.pid, "statm")?;
    let mut pages = text.split_ascii_whitespace().skip(1).map(str::parse::<u64>);
    let (resident, shared) = (pages.next()?.ok()?, pages.next()?.ok()?);
    Some(resident.saturating_sub(shared).saturating_mul(page_size() as u64))
}

/// What a process has in memory, and of what it shares with others its share.
fn fair_memory(process: &Process) -> Option<u64> {
    let text = proc::text(process.pid, "smaps_rollup")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss_Anon:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes.saturating_mul(1 << 10))
}
