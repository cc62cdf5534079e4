//! Looking from time to time at what a tree uses, where no control group holds its limits.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use carrel_domain::ByteSize;

use super::proc::{self, Process};
use super::tree;
use crate::outcome::ExceededLimit;
use crate::spec::SampledLimits;

/// How often. A tree that grows faster than this overshoots; what is left of it is ended all the same.
pub(super) const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// Looks at the tree of this process. Returns what it uses too much of.
pub(super) fn look(watch: &SampledLimits) -> io::Result<Option<ExceededLimit>> {
    if watch.processes.is_none() && watch.memory.is_none() {
        return Ok(None);
    }
    let running = tree::running(&HashSet::new())?;
    if watch.processes.is_some_and(|limit| threads(&running) > limit) {
        return Ok(Some(ExceededLimit::Processes));
    }
    let over = watch.memory.is_some_and(|limit| {
        let files = memory_files(&running);
        let beside = |of| ByteSize::bytes(sum(&running, of).as_u64().saturating_add(files));
        // The first sum counts what processes share once for each; the second is dearer.
        beside(own_memory) > limit && beside(fair_memory) > limit
    });
    Ok(over.then_some(ExceededLimit::Memory))
}

fn threads(running: &[Process]) -> u64 {
    running.iter().map(|process| process.threads).sum()
}

fn sum(running: &[Process], of: fn(&Process) -> Option<u64>) -> ByteSize {
    ByteSize::bytes(running.iter().filter_map(of).fold(0, u64::saturating_add))
}

/// What files in memory take up that processes have open and have not mapped.
fn memory_files(running: &[Process]) -> u64 {
    let files: HashMap<_, _> =
        running.iter().flat_map(|process| proc::unlinked_files(process.pid)).collect();
    let in_memory = files.into_values().filter(|file| file.in_memory);
    in_memory.fold(0, |sum, file| sum.saturating_add(file.bytes))
}

/// What a process has in memory that is no file's on disk.
fn own_memory(process: &Process) -> Option<u64> {
    let text = proc::text(process.pid, "status")?;
    Some(kibibytes(&text, "RssAnon:")? + kibibytes(&text, "RssShmem:")?)
}

/// The same, and of what it shares with others its share.
fn fair_memory(process: &Process) -> Option<u64> {
    let text = proc::text(process.pid, "smaps_rollup")?;
    Some(kibibytes(&text, "Pss_Anon:")? + kibibytes(&text, "Pss_Shmem:")?)
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(number.saturating_mul(1 << 10))
}

/// Looks whether files that have no name any more, and that nobody else could count, take more of a
/// disk than a command has left.
#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
    room: u64,
    free_at_start: u64,
}

impl Disk {
    /// Begins to look at the disk of a path.
    pub(super) fn begin(path: &Path, room: ByteSize) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), room: room.as_u64(), free_at_start: free(path)? })
    }

    /// Looks at the tree of this process, but only when the disk has lost more than the command may
    /// take.
    pub(super) fn look(&self) -> io::Result<Option<ExceededLimit>> {
        let lost = self.free_at_start.saturating_sub(free(&self.path)?);
        if lost <= self.room {
            return Ok(None);
        }
        let running = tree::running(&HashSet::new())?;
        let files: HashMap<_, _> =
            running.iter().flat_map(|process| proc::unlinked_files(process.pid)).collect();
        let on_disk = files.into_values().filter(|file| !file.in_memory);
        let open = on_disk.fold(0, |sum: u64, file| sum.saturating_add(file.bytes));
        let mapped: HashMap<_, _> =
            running.iter().flat_map(|process| proc::mapped_unlinked_files(process.pid)).collect();
        let mapped = mapped.into_values().fold(0, u64::saturating_add);
        let taken = open.max(mapped);
        Ok((taken > self.room).then_some(ExceededLimit::Disk))
    }
}

fn free(path: &Path) -> io::Result<u64> {
    let space = rustix::fs::statvfs(path)?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}
