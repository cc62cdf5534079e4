//! Resource usage of finished child processes, from `getrusage`.

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use carrel_domain::ByteSize;
use serde::{Deserialize, Serialize};

/// The unit in which the kernel counts storage traffic, independent of the file system's block size.
const BLOCK_BYTES: u64 = 512;

/// CPU time, memory and storage traffic of a set of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time spent in the programs.
    pub user: Duration,
    /// CPU time spent in the kernel on their behalf.
    pub system: Duration,
    /// The largest resident memory of any single process, at least that of the process it was forked from.
    pub peak_memory: ByteSize,
    /// Bytes read from storage; reads from the page cache do not count.
    pub read: ByteSize,
    /// Bytes handed to storage for writing.
    pub written: ByteSize,
}

/// Returns the usage of all children that were waited for, including the descendants that those waited
/// for. A process that is still running, or was never waited for, does not count.
pub fn usage_of_children() -> io::Result<Usage> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the pointer is valid for writing an `rusage`, which is all the call does.
    let result = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so the kernel has filled the whole structure.
    let usage = unsafe { usage.assume_init() };
    Ok(Usage {
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        peak_memory: ByteSize::kib(unsigned(usage.ru_maxrss)),
        read: blocks(usage.ru_inblock),
        written: blocks(usage.ru_oublock),
    })
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(unsigned(time.tv_sec)) + Duration::from_micros(unsigned(time.tv_usec))
}

fn blocks(count: libc::c_long) -> ByteSize {
    ByteSize::bytes(unsigned(count).saturating_mul(BLOCK_BYTES))
}

/// The kernel never reports a negative amount; the types are signed for historical reasons.
fn unsigned(amount: i64) -> u64 {
    u64::try_from(amount).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_readable_without_any_child() {
        assert!(usage_of_children().is_ok());
    }
}
