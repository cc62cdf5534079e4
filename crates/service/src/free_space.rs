//! How much of a disk has to stay free.

use std::str::FromStr;

use carrel_domain::ByteSize;
use carrel_fsroot::Capacity;

/// Fewer inodes than this are none left, where the file system counts them.
const MIN_INODES: u64 = 1024;

/// How much of a disk has to stay free, so that what runs can end and what is kept can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeSpaceReserve {
    /// So many bytes.
    Bytes(ByteSize),
    /// So many hundredths of the disk.
    Percent(u8),
    /// The smaller of both.
    Either(ByteSize, u8),
}

impl Default for FreeSpaceReserve {
    fn default() -> Self {
        Self::Either(ByteSize::mib(512), 2)
    }
}

impl FreeSpaceReserve {
    /// Returns the bytes that have to stay free on a disk.
    pub fn bytes_of(self, disk: Capacity) -> u64 {
        let share = |percent: u8| disk.total.bytes / 100 * u64::from(percent);
        match self {
            Self::Bytes(bytes) => bytes.as_u64(),
            Self::Percent(percent) => share(percent),
            Self::Either(bytes, percent) => bytes.as_u64().min(share(percent)),
        }
    }

    /// Tells whether a disk has less left. Nothing has to stay free where the floor is none.
    pub fn is_passed(self, disk: Capacity) -> bool {
        let floor = self.bytes_of(disk);
        floor > 0 && (disk.free.bytes < floor || disk.free.inodes < MIN_INODES)
    }
}

/// The text is neither an amount of bytes nor a share of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an amount such as 512M, a share such as 2%, or 0")]
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
    fn a_floor_is_bytes_or_a_share_or_the_smaller_of_both() {
        let gib = 1 << 30;
        assert_eq!("1G".parse(), Ok(FreeSpaceReserve::Bytes(ByteSize::gib(1))));
        assert_eq!(" 5% ".parse(), Ok(FreeSpaceReserve::Percent(5)));
        for bad in ["", "101%", "-1", "much", "%"] {
            assert_eq!(bad.parse::<FreeSpaceReserve>(), Err(InvalidReserve), "{bad}");
        }
        let many = 1 << 20;
        assert!(FreeSpaceReserve::Bytes(ByteSize::gib(1)).is_passed(disk(gib - 1, 10 * gib, many)));
        assert!(!FreeSpaceReserve::Bytes(ByteSize::gib(1)).is_passed(disk(gib, 10 * gib, many)));
        assert!(!FreeSpaceReserve::Bytes(ByteSize::bytes(0)).is_passed(disk(0, gib, 0)));
        assert!(FreeSpaceReserve::Percent(2).is_passed(disk(gib, 100 * gib, many)));
        // A small disk is not full from the start, and a large one does not keep much.
        assert!(!FreeSpaceReserve::default().is_passed(disk(gib / 10, gib, many)));
        assert!(!FreeSpaceReserve::default().is_passed(disk(gib, 1000 * gib, many)));
        assert!(FreeSpaceReserve::default().is_passed(disk(gib, gib, MIN_INODES - 1)));
    }
}
