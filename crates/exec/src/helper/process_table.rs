//! Processes as `/proc` shows them.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, open, stat, statfs};
use rustix::process::{Pid, PidfdFlags, RawPid, Signal, pidfd_open, pidfd_send_signal};

/// The most bytes of `/proc/PID/stat`: 52 numbers and a short name.
const MAX_STAT_BYTES: usize = 2048;

/// A process at the moment when `/proc` was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) parent: RawPid,
    /// In clock ticks since boot. With the id it names one process for ever.
    started: u64,
    pub(super) threads: u64,
    has_ended: bool,
}

impl Process {
    /// Returns id and start time, which no later process has.
    pub(super) fn identity(&self) -> (Pid, u64) {
        (self.pid, self.started)
    }

    pub(super) fn is_running(&self) -> bool {
        !self.has_ended
    }

    /// Sends the signals, in order, if this is still the same process.
    ///
    /// The pidfd is opened first and the start time read again afterwards, so a later process with the
    /// same id is never signalled. A process that has ended is no error.
    pub(super) fn signal(&self, signals: &[Signal]) {
        let Ok(descriptor) = pidfd_open(self.pid, PidfdFlags::empty()) else { return };
        if read(self.pid).is_some_and(|process| process.started == self.started) {
            for signal in signals {
                // It may end at any moment, or belong to another user; the caller checks again.
                let _ = pidfd_send_signal(&descriptor, *signal);
            }
        }
    }
}

/// Returns all processes. One that starts or ends during the call may be missing.
#[expect(clippy::disallowed_methods, reason = "the process table is not a workspace file")]
pub(super) fn all() -> io::Result<Vec<Process>> {
    let entries = std::fs::read_dir("/proc")?;
    let pids =
        entries.filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?));
    Ok(pids.filter_map(read).collect())
}

/// Reads a small file of a process; `None` if it has ended or the file is not readable.
#[expect(clippy::disallowed_methods, reason = "the process table is not a workspace file")]
pub(super) fn text(pid: Pid, name: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{}/{name}", pid.as_raw_pid())).ok()
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Unlinked {
    pub(super) bytes: u64,
    /// True for a file in memory (tmpfs or memfd).
    pub(super) in_memory: bool,
}

const TMPFS: i64 = 0x0102_1994;

/// Returns the open regular files of a process that have no name, by device and inode.
#[expect(clippy::disallowed_methods, reason = "the process table is not a workspace file")]
pub(super) fn unlinked_files(pid: Pid) -> Vec<((u64, u64), Unlinked)> {
    let directory = format!("/proc/{}/fd", pid.as_raw_pid());
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.filter_map(|entry| unlinked(&entry.ok()?.path())).collect()
}

/// Returns the mapped bytes of files without a name, by inode. A file can be mapped and not open.
pub(super) fn mapped_unlinked_files(pid: Pid) -> HashMap<u64, u64> {
    let mut files = HashMap::new();
    for line in text(pid, "maps").unwrap_or_default().lines() {
        if let Some((inode, bytes)) = mapped_unlinked(line) {
            *files.entry(inode).or_insert(0) += bytes;
        }
    }
    files
}

/// Parses a line like `7f00-7f10 rw-s 00000000 fe:00 123 /a (deleted)`.
fn mapped_unlinked(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.strip_suffix(" (deleted)")?.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let inode = fields.nth(3)?.parse().ok()?;
    let in_memory = ["/memfd:", "/dev/zero", "/SYSV"];
    let name = fields.next()?;
    if in_memory.iter().any(|known| name.starts_with(known)) {
        return None;
    }
    let bytes = u64::from_str_radix(end, 16).ok()? - u64::from_str_radix(start, 16).ok()?;
    Some((inode, bytes))
}

fn unlinked(path: &Path) -> Option<((u64, u64), Unlinked)> {
    let status = stat(path).ok()?;
    let kind = FileType::from_raw_mode(status.st_mode);
    if kind != FileType::RegularFile || status.st_nlink != 0 {
        return None;
    }
    let bytes = u64::try_from(status.st_blocks).unwrap_or(0).saturating_mul(512);
    let in_memory = statfs(path).is_ok_and(|system| system.f_type == TMPFS);
    Some(((status.st_dev, status.st_ino), Unlinked { bytes, in_memory }))
}

/// Reads one process; `None` if it has ended. A single `read` makes the fields consistent.
fn read(pid: Pid) -> Option<Process> {
    let path = format!("/proc/{}/stat", pid.as_raw_pid());
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut stat = [0; MAX_STAT_BYTES];
    let length = rustix::io::read(file, &mut stat).ok()?;
    parse(pid, &stat[..length])
}

/// Parses state, parent, number of threads and start time, which are fields 3, 4, 20 and 22. The second
/// field is the name in parentheses, which may itself contain spaces, parentheses and invalid UTF-8.
///
/// A process whose first thread has ended is in state zombie while its other threads go on. It has ended
/// when no other thread is left.
fn parse(pid: Pid, stat: &[u8]) -> Option<Process> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[name_end + 1..]).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let threads: u64 = fields.nth(15)?.parse().ok()?;
    let started = fields.nth(1)?.parse().ok()?;
    let has_ended = matches!(state, "Z" | "X") && threads <= 1;
    Some(Process { pid, parent, started, threads, has_ended })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getpid, getppid};

    #[test]
    fn a_hostile_name_does_not_confuse_the_parser() {
        let pid = Pid::from_raw(42).unwrap();
        let stat =
            b"42 (a) Z 1 (\xff) S 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3\n";
        let expected = Process { pid, parent: 7, started: 98765, threads: 1, has_ended: false };
        assert_eq!(parse(pid, stat), Some(expected));
        assert_eq!(parse(pid, b"42 (a"), None);
    }

    #[test]
    fn a_process_has_ended_when_its_last_thread_has() {
        let pid = Pid::from_raw(42).unwrap();
        for (threads, over) in [(2, false), (1, true), (0, true)] {
            let stat =
                format!("42 (a) Z 7 42 42 0 -1 0 1 2 3 4 5 6 7 8 20 0 {threads} 0 98765 1\n");
            assert_eq!(parse(pid, stat.as_bytes()).unwrap().has_ended, over, "{threads} threads");
        }
    }

    #[test]
    fn files_without_a_name_are_found_among_mappings() {
        for (line, expected) in [
            ("7f00-7f10 rw-s 00000000 fe:00 123 /a b (deleted)", Some((123, 16))),
            ("7f00-7f10 rw-s 00000000 fe:00 123 /a", None),
            ("7f00-7f10 rw-s 00000000 00:01 9 /memfd:x (deleted)", None),
            ("nonsense (deleted)", None),
        ] {
            assert_eq!(mapped_unlinked(line), expected, "{line}");
        }
    }

    #[test]
    fn this_process_is_listed_with_its_parent() {
        let this = all().unwrap().into_iter().find(|process| process.pid == getpid()).unwrap();
        assert_eq!((this.parent, this.is_running()), (getppid().unwrap().as_raw_pid(), true));
    }
}
