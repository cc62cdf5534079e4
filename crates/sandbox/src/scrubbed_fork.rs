//! A copy of the calling process that is to know no more than a program that was just started.
//!
//! To execute the program again would be the plain way to a process without the caller's memory. It
//! takes longer than everything else that such a process does before it is needed. A copy is as good if
//! it is made early: whoever calls [`fork_scrubbed`] first thing has nothing in memory but its own program and
//! what the kernel put there, which are its arguments and its environment, and those are overwritten
//! in the copy. What the caller reads later, it reads into memory of its own.

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

/// The status of a copy that could not forget what it must not know.
const NOT_PLANTED: i32 = 127;

/// Room for what the kernel says about a process in one line of some fifty numbers.
const MAX_STAT_BYTES: usize = 2 << 10;

/// Runs `work` in a copy of the calling process, which ends with the status that `work` returns.
///
/// The copy has the two descriptors and the caller's stderr, and no other. It has no arguments and no
/// environment, and nobody but the administrator can look into its memory. As with [`fork`], the
/// caller must be the only thread.
pub fn fork_scrubbed(
    stdin: BorrowedFd<'_>,
    stdout: BorrowedFd<'_>,
    work: impl FnOnce() -> u8,
) -> io::Result<Pid> {
    match fork()? {
        Fork::Parent(pid) => Ok(pid),
        Fork::Child => {
            let status = match forget(stdin, stdout) {
                Ok(()) => panic::catch_unwind(AssertUnwindSafe(work)).map_or(PANICKED, i32::from),
                Err(_) => NOT_PLANTED,
            };
            // SAFETY: the call ends the process and takes a number. Nothing that the caller has begun
            // is finished here, which is the caller's own to do.
            unsafe { libc::_exit(status) }
        }
    }
}

/// Leaves the calling process, a new copy, nothing of what it was copied from but its program.
fn forget(stdin: BorrowedFd<'_>, stdout: BorrowedFd<'_>) -> io::Result<()> {
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
    let given = Given::find()?;
    // SAFETY: this is the only thread of a process that has just been copied. Both ranges are on its
    // stack, where the kernel put strings for it to read and to change, and nothing has a reference to
    // them: the standard library and the C library copy what they return, and keep pointers to the
    // beginnings of strings, which are empty ones afterwards.
    unsafe { given.overwrite() };
    Ok(())
}

/// Where the kernel put arguments and environment of a program: first and last address of each.
#[derive(Debug, PartialEq, Eq)]
struct Given {
    arguments: (usize, usize),
    environment: (usize, usize),
}

impl Given {
    fn find() -> io::Result<Self> {
        let file = open("/proc/self/stat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = [0; MAX_STAT_BYTES];
        let length = rustix::io::read(file, &mut text)?;
        Self::parse(&text[..length]).ok_or_else(|| Errno::INVAL.into())
    }

    /// Reads the fields 48 to 51. The second is a name in parentheses that may contain anything.
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

    /// Makes every string an empty one.
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
    fn the_place_of_the_environment_is_the_one_that_the_kernel_shows() {
        let given = Given::find().unwrap();
        let shown = |name| std::fs::read(format!("/proc/self/{name}")).unwrap().len();
        let length = |(start, end): (usize, usize)| end - start;
        assert_eq!(length(given.arguments), shown("cmdline"));
        assert_eq!(length(given.environment), shown("environ"));
    }

    #[test]
    fn a_name_with_parentheses_and_spaces_shifts_nothing() {
        let numbers = |last: u64| (4..=last).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        let text = format!("12 (a) 1 2 3 (b) S {}", numbers(52));
        let expected = Given { arguments: (48, 49), environment: (50, 51) };
        assert_eq!(Given::parse(text.as_bytes()), Some(expected));
        assert_eq!(Given::parse(format!("12 (a) S {}", numbers(50)).as_bytes()), None);
    }
}
