//! A fork without the descriptors, arguments and environment of its parent.
//!
//! The process that becomes a sandbox cell must not hold the operator's environment, which may contain
//! secrets. The plain way to such a process is to execute the program again, but that takes longer than
//! everything else that the process does before it is needed: a fork instead of an exec brought
//! `carrel exec -- true` from 1.31 to 1.20 times the time of bubblewrap (tenth percentile).
//!
//! A fork is as good if it is made first thing in `main`. The parent's memory then holds its program and
//! the strings that the kernel put on its stack, which are its arguments and its environment; the copy
//! overwrites those. Everything that the parent reads later goes into memory of its own.

use std::io;
use std::os::fd::BorrowedFd;
use std::panic::{self, AssertUnwindSafe};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, set_dumpable_behavior};
use rustix::stdio::{dup2_stdin, dup2_stdout};

use crate::fork::{Fork, PANICKED, fork};

/// The first descriptor that is not a standard stream.
const FIRST_DESCRIPTOR: u32 = 3;

/// The exit status of a copy that could not be scrubbed. It runs nothing.
const SCRUB_FAILED: i32 = 127;

/// Bounds `/proc/self/stat`, one line of some fifty numbers.
const MAX_STAT_BYTES: usize = 2 << 10;

/// Runs `work` in a scrubbed copy of the calling process, which ends with the status that `work` returns.
///
/// The copy has the two given descriptors and the caller's stderr, and no other. Its arguments and its
/// environment are overwritten, and it is not dumpable: only root can read its memory. If scrubbing
/// fails, the copy exits without running `work`. As with [`fork`], the caller must be the only thread.
pub fn fork_scrubbed(
    stdin: BorrowedFd<'_>,
    stdout: BorrowedFd<'_>,
    work: impl FnOnce() -> u8,
) -> io::Result<Pid> {
    match fork()? {
        Fork::Parent(pid) => Ok(pid),
        Fork::Child => {
            let status = match scrub(stdin, stdout) {
                Ok(()) => panic::catch_unwind(AssertUnwindSafe(work)).map_or(PANICKED, i32::from),
                Err(_) => SCRUB_FAILED,
            };
            // SAFETY: the call ends the process and takes a number. Nothing that the caller has begun
            // is finished here, which is the caller's own to do.
            unsafe { libc::_exit(status) }
        }
    }
}

/// Closes the descriptors and overwrites the arguments and environment of the calling process, a new
/// copy.
fn scrub(stdin: BorrowedFd<'_>, stdout: BorrowedFd<'_>) -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    dup2_stdin(stdin)?;
    dup2_stdout(stdout)?;
    let all_others = (FIRST_DESCRIPTOR, u32::MAX);
    // SAFETY: the call takes three integers. It closes descriptors that values of the caller own; those
    // values are in frames that this process never returns to, so none is used or dropped here.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, all_others.0, all_others.1, 0) };
    if closed != 0 {
        return Err(io::Error::last_os_error());
    }
    let strings = ArgumentStrings::find()?;
    // SAFETY: this is the only thread of a process that has just been copied. Both ranges are on its
    // stack, where the kernel put strings for it to read and to change, and nothing has a reference to
    // them: the standard library and the C library copy what they return, and keep pointers to the
    // beginnings of strings, which are empty ones afterwards.
    unsafe { strings.overwrite() };
    Ok(())
}

/// The address ranges in which the kernel put the arguments and the environment of the program.
#[derive(Debug, PartialEq, Eq)]
struct ArgumentStrings {
    arguments: (usize, usize),
    environment: (usize, usize),
}

impl ArgumentStrings {
    fn find() -> io::Result<Self> {
        let file = open("/proc/self/stat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = [0; MAX_STAT_BYTES];
        let length = rustix::io::read(file, &mut text)?;
        Self::parse(&text[..length]).ok_or_else(|| Errno::INVAL.into())
    }

    /// Reads the fields 48 to 51 of `/proc/self/stat`. The second field is a name in parentheses that
    /// may contain spaces and parentheses, so fields are counted from its end.
    fn parse(text: &[u8]) -> Option<Self> {
        let name_ends = text.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(text.get(name_ends + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace().skip(45).map(|field| field.parse().ok());
        let mut range = || {
            let (start, end): (usize, usize) = (fields.next()??, fields.next()??);
            (start != 0 && start <= end).then_some((start, end))
        };
        Some(Self { arguments: range()?, environment: range()? })
    }

    /// Overwrites both ranges with zeros, which makes every string empty.
    ///
    /// # Safety
    ///
    /// Both ranges must be memory of this process that can be written and that nothing refers to.
    unsafe fn overwrite(&self) {
        for (start, end) in [self.arguments, self.environment] {
            let first = std::ptr::with_exposed_provenance_mut::<u8>(start);
            // SAFETY: the caller says that all bytes of the range can be written.
            unsafe { std::ptr::write_bytes(first, 0, end - start) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "what the kernel shows is no workspace file")]
    fn the_ranges_are_as_long_as_the_strings_that_the_kernel_shows() {
        let strings = ArgumentStrings::find().unwrap();
        let shown = |name| std::fs::read(format!("/proc/self/{name}")).unwrap().len();
        let length = |(start, end): (usize, usize)| end - start;
        assert_eq!(length(strings.arguments), shown("cmdline"));
        assert_eq!(length(strings.environment), shown("environ"));
    }

    #[test]
    fn a_name_with_parentheses_and_spaces_shifts_nothing() {
        let numbers = |last: u64| (4..=last).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        let text = format!("12 (a) 1 2 3 (b) S {}", numbers(52));
        let expected = ArgumentStrings { arguments: (48, 49), environment: (50, 51) };
        assert_eq!(ArgumentStrings::parse(text.as_bytes()), Some(expected));
        assert_eq!(ArgumentStrings::parse(format!("12 (a) S {}", numbers(50)).as_bytes()), None);
    }
}
