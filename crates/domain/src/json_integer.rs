//! Deserialisation of integers in every form that JSON allows: `10`, `10.0` and `1e1` are the same number.
//!
//! JSON does not distinguish integers from other numbers, and clients in JavaScript may write either form. Use
//! these functions with `#[serde(deserialize_with = "…")]`. A number with a fraction, a negative one, and one
//! that the target type cannot hold is an error.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// 2^64, the first number that does not fit into 64 bits.
const TOO_LARGE: f64 = 18_446_744_073_709_551_616.0;

/// Deserialises an integer that is not negative.
pub fn number<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Whole::deserialize(deserializer)?.0)
}

/// Deserialises an integer that is not negative, or `null` as `None`.
pub fn optional<'de, D: Deserializer<'de>, T: TryFrom<u64>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(Option::<Whole<T>>::deserialize(deserializer)?.map(|whole| whole.0))
}

struct Whole<T>(T);

impl<'de, T: TryFrom<u64>> Deserialize<'de> for Whole<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(Numbers(PhantomData)).map(Self)
    }
}

struct Numbers<T>(PhantomData<T>);

impl<T: TryFrom<u64>> Visitor<'_> for Numbers<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        let invalid = |_| E::invalid_value(Unexpected::Unsigned(number), &"a smaller number");
        T::try_from(number).map_err(invalid)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let invalid = |_| E::invalid_value(Unexpected::Signed(number), &self);
        u64::try_from(number).map_err(invalid).and_then(|number| self.visit_u64(number))
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is whole and in range"
    )]
    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        if number.fract() == 0.0 && (0.0..TOO_LARGE).contains(&number) {
            return self.visit_u64(number as u64);
        }
        Err(E::invalid_value(Unexpected::Float(number), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Numbers {
        #[serde(deserialize_with = "number")]
        one: u32,
        #[serde(default, deserialize_with = "optional")]
        other: Option<u64>,
    }

    #[test]
    fn a_whole_number_is_read_in_every_form() {
        let table = [
            (r#"{"one":10}"#, Some((10, None))),
            (r#"{"one":10.0,"other":null}"#, Some((10, None))),
            (r#"{"one":1e1,"other":18446744073709551615}"#, Some((10, Some(u64::MAX)))),
            (r#"{"one":-0.0,"other":2.0}"#, Some((0, Some(2)))),
            (r#"{"one":10.5}"#, None),
            (r#"{"one":-1}"#, None),
            (r#"{"one":-1.0}"#, None),
            (r#"{"one":4294967296}"#, None),
            (r#"{"one":1,"other":1e30}"#, None),
            (r#"{"one":"1"}"#, None),
            (r#"{"one":null}"#, None),
        ];
        for (text, expected) in table {
            let read = serde_json::from_str::<Numbers>(text).ok();
            assert_eq!(read.map(|read| (read.one, read.other)), expected, "{text}");
        }
    }
}
