//! The user ids of commands, one for each workspace, when Carrel runs as root.
//!
//! Commands of root must not run as root, whose files they would own even without capabilities. Each workspace gets
//! an id of its own from the range, and its files are mapped to it.

use super::policy_keys as keys;
use super::policy_reader::PolicyReader;

/// User ids reserved for commands. All of them lie from 65536, above accounts and services, to 2147483647.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UidRange {
    first: u32,
    count: u32,
}

impl UidRange {
    /// Reads the range. The result is valid only if the reader has no problems.
    pub(super) fn read(reader: &mut PolicyReader<'_>) -> Self {
        let default = Self::default();
        let first = reader.settings.count(&keys::UID_FIRST).unwrap_or(default.first.into());
        let count = reader.settings.count(&keys::UID_COUNT).unwrap_or(default.count.into());
        Self::new(first, count).unwrap_or_else(|| {
            let last = first + count - 1;
            let complaint = format!(
                "is too large: the last id would be {last} and may be at most {}; write a smaller count, or a smaller uids.first",
                keys::MAX_UID
            );
            reader.contradiction(&[&keys::UID_COUNT, &keys::UID_FIRST], &complaint);
            default
        })
    }

    fn new(first: u64, count: u64) -> Option<Self> {
        let last = first.checked_add(count)?.checked_sub(1)?;
        let valid = first >= keys::MIN_UID && count >= 1 && last <= keys::MAX_UID;
        let first = u32::try_from(first).ok()?;
        let count = u32::try_from(count).ok()?;
        valid.then_some(Self { first, count })
    }

    /// Returns the first id.
    pub fn first(self) -> u32 {
        self.first
    }

    /// Returns the number of ids; at least 1.
    pub fn count(self) -> u32 {
        self.count
    }
}

impl Default for UidRange {
    fn default() -> Self {
        Self { first: 2_000_000_000, count: 65_536 }
    }
}
