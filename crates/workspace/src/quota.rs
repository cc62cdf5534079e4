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
    pub fn in_workspace(self, key: impl ToString) -> Error {
        let Self { used, limit, bytes } = self;
        Error::QuotaExceeded { key: key.to_string(), used, limit, used_bytes: bytes }
    }
}

impl Quota {
    /// Checks an amount against the limits. An amount equal to a limit passes. An incomplete count fails:
    /// a command could hide files in directories without permissions.
    pub fn check(&self, amount: Amount, incomplete: bool) -> Result<(), Exceeded> {
        let bytes = ByteSize::bytes(amount.bytes);
        if incomplete {
            let used = format!("{bytes} and directories that cannot be read");
            return Err(Exceeded { used, limit: self.bytes.to_string(), bytes });
        }
        if bytes > self.bytes {
            return Err(Exceeded { used: bytes.to_string(), limit: self.bytes.to_string(), bytes });
        }
        match self.files {
            Some(limit) if amount.files > limit => Err(Exceeded {
                used: format!("{} files", amount.files),
                limit: format!("{limit} files"),
                bytes,
            }),
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
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            files: self.files.saturating_add(other.files),
        }
    }

    /// Returns the smaller value of each component.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self { bytes: self.bytes.min(other.bytes), files: self.files.min(other.files) }
    }

    /// Subtracts an amount, down to zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            files: self.files.saturating_sub(other.files),
        }
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
