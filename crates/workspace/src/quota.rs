//! The quota of a workspace.

use carrel_domain::ByteSize;
use carrel_fsroot::UsageLimit;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The limits of a workspace, in allocated blocks rather than file sizes; each inode counts once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Allocated bytes.
    pub bytes: ByteSize,
    /// Files, directories and links; unlimited if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
}

/// An amount of disk usage: allocated bytes, and files, directories and links together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the summary defines both fields")]
pub struct Amount {
    pub bytes: u64,
    pub files: u64,
}

/// A usage beyond a quota, with usage and limit as a message shows them, and the usage in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{used} of {limit} are used")]
#[expect(missing_docs, reason = "the summary defines the fields")]
pub struct Exceeded {
    pub used: String,
    pub limit: String,
    pub bytes: ByteSize,
}

impl Exceeded {
    /// Returns the error of a workspace that is over its quota.
    pub fn in_workspace(self, key: &str) -> Error {
        let Self { used, limit, bytes } = self;
        Error::QuotaExceeded { key: key.to_owned(), used, limit, used_bytes: bytes }
    }
}

impl Quota {
    /// Checks an amount against the limits. An amount equal to a limit passes. An incomplete count fails:
    /// a command could hide files in directories without permissions.
    pub fn check(&self, amount: Amount, incomplete: bool) -> Result<(), Exceeded> {
        let bytes = ByteSize::bytes(amount.bytes);
        let exceeded = |used: String, limit: String| Err(Exceeded { used, limit, bytes });
        if incomplete {
            let used = format!("{bytes} and directories that cannot be read");
            return exceeded(used, self.bytes.to_string());
        }
        if bytes > self.bytes {
            return exceeded(bytes.to_string(), self.bytes.to_string());
        }
        match self.files {
            Some(limit) if amount.files > limit => {
                exceeded(format!("{} files", amount.files), format!("{limit} files"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the amount at which a count can stop, because the quota is exceeded.
    pub fn counting_limit(&self) -> UsageLimit {
        UsageLimit { bytes: self.bytes.as_u64(), inodes: self.files.unwrap_or(u64::MAX) }
    }
}

impl Amount {
    /// Adds two amounts, saturating.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// Returns the smaller value of each component.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        self.with(other, u64::min)
    }

    /// Subtracts an amount, down to zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    fn with(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self { bytes: of(self.bytes, other.bytes), files: of(self.files, other.files) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTA: Quota = Quota { bytes: ByteSize::bytes(100), files: Some(3) };

    fn amount(bytes: u64, files: u64) -> Amount {
        Amount { bytes, files }
    }

    #[test]
    fn a_quota_is_used_up_at_its_limit_and_broken_beyond() {
        assert_eq!(QUOTA.check(amount(100, 3), false), Ok(()));
        assert!(QUOTA.check(amount(0, 0), true).is_err());
        assert_eq!(
            QUOTA.check(amount(101, 0), false).unwrap_err().to_string(),
            "101 B of 100 B are used"
        );
        assert_eq!(
            QUOTA.check(amount(0, 4), false).unwrap_err().to_string(),
            "4 files of 3 files are used"
        );
        let unlimited = Quota { files: None, ..QUOTA };
        assert_eq!(unlimited.check(amount(0, u64::MAX), false), Ok(()));
    }
}
