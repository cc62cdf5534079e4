//! The free-space reserve: the part of the workspaces' disk that new work may not use.
//!
//! Below the reserve the service starts nothing new: no workspace, no write, no claim. Running tasks
//! continue, and what they must still write (results, records, the database on the same disk) has the
//! reserve to be written to. Inodes count too: fewer than `MIN_INODES` are as bad as no bytes.

use std::str::FromStr;

use carrel_domain::ByteSize;
use carrel_fsroot::Capacity;

/// File systems that report fewer free inodes count as full. A file system without a fixed number of
/// inodes reports a huge one.
const MIN_INODES: u64 = 1024;

/// The amount of a disk that has to stay free. Zero bytes or zero percent turn the check off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeSpaceReserve {
    /// An absolute amount.
    Bytes(ByteSize),
    /// A share of the disk, 0 to 100.
    Percent(u8),
    /// The smaller of an absolute amount and a share. The default, 512 MiB or 2 %, neither makes a small
    /// disk full from the start nor keeps 20 GB of a 1 TB disk.
    Either(ByteSize, u8),
}

impl Default for FreeSpaceReserve {
    fn default() -> Self {
        Self::Either(ByteSize::mib(512), 2)
    }
}

impl FreeSpaceReserve {
    /// Returns the reserve on a disk of this capacity.
    pub fn bytes_of(self, disk: Capacity) -> u64 {
        let share = |percent: u8| disk.total.bytes / 100 * u64::from(percent);
        match self {
            Self::Bytes(bytes) => bytes.as_u64(),
            Self::Percent(percent) => share(percent),
            Self::Either(bytes, percent) => bytes.as_u64().min(share(percent)),
        }
    }

    /// Returns whether the disk has less free space, or fewer free inodes, than the reserve.
    pub fn is_exhausted(self, disk: Capacity) -> bool {
        let reserve = self.bytes_of(disk);
        reserve > 0 && (disk.free.bytes < reserve || disk.free.inodes < MIN_INODES)
    }
}

/// A text that is neither an amount of bytes nor a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an amount such as 512M, a share such as 2%, or 0")]
pub struct InvalidReserve;

impl FromStr for FreeSpaceReserve {
    type Err = InvalidReserve;

    fn from_str(text: &str) -> Result<Self, InvalidReserve> {
        let text = text.trim();
        if let Some(percent) = text.strip_suffix('%') {
            let percent = percent.trim().parse().ok().filter(|percent| *percent <= 100);
            return percent.map(Self::Percent).ok_or(InvalidReserve);
        }
        text.parse().map(Self::Bytes).map_err(|_| InvalidReserve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_fsroot::Space;
    use pretty_assertions::assert_eq;

    fn disk(free: u64, total: u64, inodes: u64) -> Capacity {
        let total = Space { bytes: total, inodes: 1 << 20 };
        Capacity { free: Space { bytes: free, inodes }, total }
    }

    #[test]
    fn a_reserve_is_bytes_or_a_share_or_the_smaller_of_both() {
        let gib = 1 << 30;
        assert_eq!("1G".parse(), Ok(FreeSpaceReserve::Bytes(ByteSize::gib(1))));
        assert_eq!(" 5% ".parse(), Ok(FreeSpaceReserve::Percent(5)));
        for bad in ["", "101%", "-1", "much", "%"] {
            assert_eq!(bad.parse::<FreeSpaceReserve>(), Err(InvalidReserve), "{bad}");
        }
        let many = 1 << 20;
        assert!(FreeSpaceReserve::Bytes(ByteSize::gib(1)).is_exhausted(disk(
            gib - 1,
            10 * gib,
            many
        )));
        assert!(!FreeSpaceReserve::Bytes(ByteSize::gib(1)).is_exhausted(disk(gib, 10 * gib, many)));
        assert!(!FreeSpaceReserve::Bytes(ByteSize::bytes(0)).is_exhausted(disk(0, gib, 0)));
        assert!(FreeSpaceReserve::Percent(2).is_exhausted(disk(gib, 100 * gib, many)));
        assert!(!FreeSpaceReserve::default().is_exhausted(disk(gib / 10, gib, many)));
        assert!(!FreeSpaceReserve::default().is_exhausted(disk(gib, 1000 * gib, many)));
        assert!(FreeSpaceReserve::default().is_exhausted(disk(gib, gib, MIN_INODES - 1)));
    }
}
