//! Close-on-exec marks for descriptors that a program must not inherit.

use std::io;
use std::ops::RangeInclusive;

/// Marks every open descriptor in the range to be closed by the next `exec`.
///
/// Nothing is closed here, so owners of descriptors can go on using them until then.
pub fn close_on_exec(range: RangeInclusive<u32>) -> io::Result<()> {
    // SAFETY: the call takes three integers and touches no memory. With this flag it sets a bit on
    // open descriptors and leaves them open, so the owner of one can still use it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            *range.start(),
            *range.end(),
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_getfd, fcntl_setfd};
    use std::os::fd::AsRawFd;

    #[test]
    fn descriptors_in_the_range_are_marked_and_stay_open() {
        let inherited = fcntl_dupfd_cloexec(rustix::stdio::stdin(), 700).unwrap();
        fcntl_setfd(&inherited, FdFlags::empty()).unwrap();
        let number = u32::try_from(inherited.as_raw_fd()).unwrap();
        close_on_exec(number..=number).unwrap();
        assert_eq!(fcntl_getfd(&inherited).unwrap(), FdFlags::CLOEXEC);
    }
}
