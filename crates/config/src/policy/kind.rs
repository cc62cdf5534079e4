//! What a setting's value may be.

use std::time::Duration;

use carrel_domain::{Age, ByteSize};
use toml::de::DeValue;

use super::document::{integer, quoted, shown, sort};
use super::toolchain;
use crate::suggest;

/// What a setting's value must be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of paths.
    Paths,
    /// `"auto"`, or a list of names.
    ToolchainChoice,
    /// A table of texts.
    Variables,
    /// A time within these bounds.
    Time { min: Duration, max: Duration },
    /// A size within these bounds.
    Size { min: ByteSize, max: ByteSize },
    /// A whole number within these bounds.
    Count { min: u64, max: u64 },
}

impl Kind {
    /// Says what a value must be, for the guide and for messages.
    pub(crate) fn rule(&self) -> String {
        match self {
            Self::Choice(words) => format!("one of {}", quoted_list(words)),
            Self::Paths => "a list of absolute paths".to_owned(),
            Self::ToolchainChoice => "\"auto\" or a list of names".to_owned(),
            Self::Variables => "a table of texts".to_owned(),
            Self::Time { min, max } => format!("a time from {} to {}", Age(*min), Age(*max)),
            Self::Size { min, max } => format!("a size from {} to {}", exact(*min), exact(*max)),
            Self::Count { min, max } => format!("a whole number from {min} to {max}"),
        }
    }

    /// Says what is wrong with a value that does not fit, and what to write.
    pub(crate) fn complaint(&self, value: &DeValue<'_>) -> String {
        let found = match self {
            // What stands in place of variables may be the value of one.
            Self::Variables => sort(value).to_owned(),
            _ => shown(value),
        };
        let hint = self.hint(value).map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("must be {}, found {found}{hint}", self.rule())
    }

    fn hint(&self, value: &DeValue<'_>) -> Option<String> {
        match self {
            Self::Choice(words) => {
                let near = suggest::nearest(value.as_str()?, words.iter().copied())?;
                Some(format!("did you mean \"{near}\"?"))
            }
            Self::Paths => value.as_str().map(|text| format!("write [{}]", quoted(text))),
            Self::ToolchainChoice => match value.as_str() {
                Some(text) if toolchain::named(text).is_some() => Some(format!("write [{text:?}]")),
                _ => Some("write [] for none".to_owned()),
            },
            Self::Variables => {
                Some("write [environment], and NAME = \"value\" below it".to_owned())
            }
            Self::Time { .. } => Some("write it as \"90s\", \"15m\" or \"2h\"".to_owned()),
            Self::Size { .. } => Some("write it as \"512MiB\" or \"2GiB\"".to_owned()),
            Self::Count { .. } => {
                let text = value.as_str()?;
                text.parse::<u64>().ok().map(|_| "write it without quotes".to_owned())
            }
        }
    }
}

/// Reads a time within bounds.
pub(crate) fn time(value: &DeValue<'_>, min: Duration, max: Duration) -> Option<Duration> {
    let Age(time) = value.as_str()?.parse().ok()?;
    (min..=max).contains(&time).then_some(time)
}

/// Reads a size within bounds.
pub(crate) fn size(value: &DeValue<'_>, min: ByteSize, max: ByteSize) -> Option<ByteSize> {
    let text = value.as_str()?;
    // A bare number in quotes says no more than one without, which is refused.
    let size = text.parse().ok().filter(|_| text.ends_with(|c: char| c.is_ascii_alphabetic()))?;
    (min..=max).contains(&size).then_some(size)
}

/// Reads a whole number within bounds.
pub(crate) fn count(value: &DeValue<'_>, min: u64, max: u64) -> Option<u64> {
    let count = u64::try_from(integer(value)?).ok()?;
    (min..=max).contains(&count).then_some(count)
}

fn quoted_list(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}

/// Prints a size with the largest unit that divides it.
fn exact(size: ByteSize) -> String {
    let bytes = size.as_u64();
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, shift)| bytes.trailing_zeros() >= *shift) {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => format!("{bytes}B"),
    }
}
