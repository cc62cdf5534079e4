//! The id of a try.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The id of a try: eight hexadecimal digits, which are part of the names of its forks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TrialId(String);

/// A text that is not the id of a try.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not the id of a try: {0:?}; an id has eight digits or letters from a to f, as in 3f9a01bc"
)]
pub struct InvalidTrialId(String);

impl TrialId {
    const DIGITS: usize = 8;

    /// Makes the id of a number.
    pub fn of_number(number: u32) -> Self {
        Self(format!("{number:08x}"))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TrialId {
    type Err = InvalidTrialId;

    fn from_str(text: &str) -> Result<Self, InvalidTrialId> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == Self::DIGITS && text.bytes().all(is_digit) {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidTrialId(text.chars().take(2 * Self::DIGITS).collect()))
    }
}

impl TryFrom<String> for TrialId {
    type Error = InvalidTrialId;

    fn try_from(text: String) -> Result<Self, InvalidTrialId> {
        text.parse()
    }
}

impl From<TrialId> for String {
    fn from(id: TrialId) -> Self {
        id.0
    }
}

impl fmt::Display for TrialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl JsonSchema for TrialId {
    fn schema_name() -> Cow<'static, str> {
        "TrialId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-f]{8}$" })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_eight_small_digits_are_an_id() {
        assert_eq!(TrialId::of_number(0xbc).as_str().parse(), Ok(TrialId("000000bc".into())));
        for text in ["", "../../..", "3F9A01BC", "3f9a01b", "3f9a01bcd", "é3f9a01"] {
            assert!(text.parse::<TrialId>().is_err(), "{text}");
        }
    }
}
