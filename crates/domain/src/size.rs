//! Sizes in bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A number of bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ByteSize(u64);

const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];

impl ByteSize {
    /// A size of exactly this many bytes.
    pub const fn bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// A size of this many kibibytes.
    pub const fn kib(kib: u64) -> Self {
        Self(kib.saturating_mul(1 << 10))
    }

    /// A size of this many mebibytes.
    pub const fn mib(mib: u64) -> Self {
        Self(mib.saturating_mul(1 << 20))
    }

    /// A size of this many gibibytes.
    pub const fn gib(gib: u64) -> Self {
        Self(gib.saturating_mul(1 << 30))
    }

    /// Returns the number of bytes.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, shift) in UNITS {
            if self.0 >= 1 << shift {
                // One decimal is enough for a person, and exact for round values.
                let tenths = (u128::from(self.0) * 10) >> shift;
                return f.pad(&format!("{}.{} {unit}", tenths / 10, tenths % 10));
            }
        }
        f.pad(&format!("{} B", self.0))
    }
}

/// A text that is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a size: {text:?}; write a whole number with an optional unit, such as 512M or 5G")]
pub struct InvalidSize {
    text: String,
}

impl FromStr for ByteSize {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, InvalidSize> {
        let invalid = || InvalidSize { text: text.to_owned() };
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number: u64 = text[..digits].parse().map_err(|_| invalid())?;
        let unit = text[digits..].trim_start().to_ascii_uppercase();
        let shift = match unit.trim_end_matches('B').trim_end_matches('I') {
            "" => 0,
            "K" => 10,
            "M" => 20,
            "G" => 30,
            "T" => 40,
            _ => return Err(invalid()),
        };
        number.checked_mul(1 << shift).map(Self).ok_or_else(invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_the_units_people_write() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("512B", 512),
            ("4k", 4096),
            ("512M", 512 << 20),
            ("5 GiB", 5 << 30),
            ("5GB", 5 << 30),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize::bytes(bytes)), "{text}");
        }
        for text in ["", "M", "-1", "1.5G", "5X", "99999999999G"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_print_with_one_decimal() {
        assert_eq!(ByteSize::bytes(0).to_string(), "0 B");
        assert_eq!(ByteSize::bytes(1023).to_string(), "1023 B");
        assert_eq!(ByteSize::bytes(1536).to_string(), "1.5 KiB");
        assert_eq!(ByteSize::gib(5).to_string(), "5.0 GiB");
        assert_eq!(ByteSize::bytes(u64::MAX).to_string(), "16777215.9 TiB");
    }
}
