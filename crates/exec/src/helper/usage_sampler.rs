//! Samples the memory, processes and disk space of a process tree, where no control group limits them.
//!
//! Sampling cannot stop a tree from overshooting between two samples, but what exceeds a limit is killed.
//! Disk space is sampled in every case: files that a command has unlinked and keeps open count towards
//! the quota, and no walk over directories finds them.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use carrel_domain::ByteSize;

use super::process_table::{self, Process, Unlinked};
use super::process_tree;
use crate::command_spec::SampledLimits;
use crate::outcome::ExceededLimit;

pub(super) const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// Samples the tree of this process. Returns the limit that it exceeds.
pub(super) fn sample(limits: &SampledLimits) -> io::Result<Option<ExceededLimit>> {
    if limits.processes.is_none() && limits.memory.is_none() {
        return Ok(None);
    }
    let running = process_tree::running(&HashSet::new())?;
    if limits.processes.is_some_and(|limit| threads(&running) > limit) {
        return Ok(Some(ExceededLimit::Processes));
    }
    let over = limits.memory.is_some_and(|limit| {
        let files = unlinked_bytes(&running, |file| file.in_memory);
        let total = |of| ByteSize::bytes(sum(&running, of).as_u64().saturating_add(files));
        // The first sum is cheap and counts shared memory once for each process; the second divides it,
        // and takes a walk over the page tables.
        total(resident_memory) > limit && total(proportional_memory) > limit
    });
    Ok(over.then_some(ExceededLimit::Memory))
}

fn threads(running: &[Process]) -> u64 {
    running.iter().map(|process| process.threads).sum()
}

fn sum(running: &[Process], of: fn(&Process) -> Option<u64>) -> ByteSize {
    ByteSize::bytes(running.iter().filter_map(of).fold(0, u64::saturating_add))
}

/// Returns the bytes of files without a name that processes have open, each file counted once.
fn unlinked_bytes(running: &[Process], counts: fn(&Unlinked) -> bool) -> u64 {
    let files: HashMap<_, _> =
        running.iter().flat_map(|process| process_table::unlinked_files(process.pid)).collect();
    files.into_values().filter(counts).fold(0, |sum, file| sum.saturating_add(file.bytes))
}

/// Returns the resident memory of a process without file cache.
fn resident_memory(process: &Process) -> Option<u64> {
    let text = process_table::text(process.pid, "status")?;
    Some(kibibytes(&text, "RssAnon:")? + kibibytes(&text, "RssShmem:")?)
}

/// Returns the same with shared pages divided among their users (PSS).
fn proportional_memory(process: &Process) -> Option<u64> {
    let text = process_table::text(process.pid, "smaps_rollup")?;
    Some(kibibytes(&text, "Pss_Anon:")? + kibibytes(&text, "Pss_Shmem:")?)
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(number.saturating_mul(1 << 10))
}

/// Watches the disk space of files without a name against the rest of a quota.
#[derive(Debug)]
pub(super) struct UnlinkedFilesWatch {
    path: PathBuf,
    limit: u64,
    free_at_start: u64,
}

impl UnlinkedFilesWatch {
    /// Notes the free space of the file system of a path.
    pub(super) fn start(path: &Path, limit: ByteSize) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), limit: limit.as_u64(), free_at_start: free(path)? })
    }

    /// Samples the open and mapped files of the tree, but only if the disk has lost more than the limit.
    pub(super) fn sample(&self) -> io::Result<Option<ExceededLimit>> {
        let lost = self.free_at_start.saturating_sub(free(&self.path)?);
        if lost <= self.limit {
            return Ok(None);
        }
        let running = process_tree::running(&HashSet::new())?;
        let open = unlinked_bytes(&running, |file| !file.in_memory);
        let mapped: HashMap<_, _> = running
            .iter()
            .flat_map(|process| process_table::mapped_unlinked_files(process.pid))
            .collect();
        let mapped = mapped.into_values().fold(0, u64::saturating_add);
        let taken = open.max(mapped);
        Ok((taken > self.limit).then_some(ExceededLimit::Disk))
    }
}

fn free(path: &Path) -> io::Result<u64> {
    let space = rustix::fs::statvfs(path)?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}
