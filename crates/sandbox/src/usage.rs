//! What finished processes have used.

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use carrel_domain::ByteSize;

/// The kernel counts storage traffic in blocks of this many bytes, whatever the file system uses.
const BLOCK_BYTES: u64 = 512;

/// What a set of processes used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time spent in the programs.
    pub user: Duration,
    /// CPU time spent in the kernel on their behalf.
    pub system: Duration,
    /// The largest resident memory of any single process.
    pub peak_memory: ByteSize,
    /// Bytes that storage had to read.
    pub read: ByteSize,
    /// Bytes that storage was given to write.
    pub written: ByteSize,
}

/// Returns what all children that were waited for used, with all that they waited for.
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
