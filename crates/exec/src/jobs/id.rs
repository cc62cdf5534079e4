//! Job ids and owners.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// The id of a job: `job_` and 26 digits, which hold 128 random bits.
///
/// A caller that knows the id of a job of its own owner can read and kill it, so ids cannot be guessed, and
/// neither logs nor `Debug` show them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "String")]
pub struct JobId(u128);

impl JobId {
    const PREFIX: &str = "job_";

    /// Digits of five bits: lower-case, and without letters that are easily mistaken for digits.
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

    /// Digits that hold 128 bits.
    const DIGITS: u32 = 26;

    const DIGIT_BITS: u32 = 5;

    pub(super) fn generate() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the kernel has random bytes");
        Self(u128::from_be_bytes(bytes))
    }

    fn parse_digits(digits: &str) -> Option<Self> {
        if digits.len() != Self::DIGITS as usize {
            return None;
        }
        digits
            .bytes()
            .try_fold(0u128, |value, byte| {
                let digit = Self::ALPHABET.iter().position(|known| *known == byte)?;
                // The first digit has room for three bits only.
                Some(value.checked_mul(1 << Self::DIGIT_BITS)? | digit as u128)
            })
            .map(Self)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::PREFIX)?;
        (0..Self::DIGITS).rev().try_for_each(|place| {
            let digit = (self.0 >> (place * Self::DIGIT_BITS)) & 0b1_1111;
            write!(f, "{}", char::from(Self::ALPHABET[digit as usize]))
        })
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobId(***)")
    }
}

impl From<JobId> for String {
    fn from(id: JobId) -> Self {
        id.to_string()
    }
}

impl FromStr for JobId {
    type Err = InvalidJobId;

    fn from_str(text: &str) -> Result<Self, InvalidJobId> {
        let digits = text.strip_prefix(Self::PREFIX);
        let id = digits.and_then(Self::parse_digits);
        id.ok_or_else(|| InvalidJobId { text: text.to_owned() })
    }
}

/// A text is not a job id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a job: {text:?}; it is `job_` and 26 letters and digits")]
pub struct InvalidJobId {
    /// The text.
    pub text: String,
}

/// The owner of a job: the authenticated identity that started it. The registry only compares it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(String);

impl Owner {
    /// Returns the owner of a name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        for value in [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef] {
            let text = JobId(value).to_string();
            assert_eq!(text.len(), "job_".len() + 26);
            assert_eq!(text.parse(), Ok(JobId(value)), "{text}");
        }
        assert_eq!(JobId(33).to_string(), "job_00000000000000000000000011");
        let right = "0123456789abcdefghjkmnpqrs";
        assert!(format!("job_{right}").parse::<JobId>().is_ok());
        for text in [
            "",
            "job_",
            "job_7",
            right,
            "job_0123456789abcdefghjkmnpqr",
            "job_0123456789abcdefghjkmnpqrst",
            "job_0123456789ABCDEFGHJKMNPQRS",
            "job_8123456789abcdefghjkmnpqrs",
            "job_0123456789abcdefghjkmnpqr ",
            "job_0123456789abcdefghjkmnpqil",
            "JOB_0123456789abcdefghjkmnpqrs",
        ] {
            assert_eq!(text.parse::<JobId>(), Err(InvalidJobId { text: text.to_owned() }));
        }
    }

    #[test]
    fn ids_are_random_and_not_in_logs() {
        let ids: std::collections::HashSet<_> = (0..1000).map(|_| JobId::generate()).collect();
        assert_eq!(ids.len(), 1000);
        let spread = ids.iter().fold((0, u128::MAX), |(any, all), id| (any | id.0, all & id.0));
        assert_eq!(spread, (u128::MAX, 0), "every bit varies");
        assert_eq!(format!("{:?}", JobId::generate()), "JobId(***)");
    }
}
