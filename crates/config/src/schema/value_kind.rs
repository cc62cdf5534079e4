//! The kinds of values that settings accept: their rules, and the messages about values that break them.

use std::time::Duration;

use carrel_domain::{Age, ByteSize};

use super::Syntax;
use crate::suggest;
use crate::value_tree::{Node, Value, quoted};

/// The kind of value that a setting accepts.
///
/// In YAML a number or a flag may also be written as text, since `"5"` and `5` are easily confused there. In
/// TOML the types are strict.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueKind {
    Text,
    FilledText,
    /// Text that no message shows.
    Secret,
    Choice(&'static [&'static str]),
    Integer {
        min: i64,
        max: i64,
    },
    /// An integer within these bounds, both of which are part of the rule.
    Count {
        min: u64,
        max: u64,
    },
    /// A number above zero, fractions included.
    PositiveNumber,
    Flag,
    Texts,
    /// A list of absolute paths. Each item is checked by its reader.
    Paths,
    /// `"auto"`, or a list of names from this set. Each item is checked by its reader.
    AutoOrNames(fn() -> Vec<&'static str>),
    /// A map that is passed on as written.
    Map,
    TextOrMap,
    /// Environment variables. No message shows a value.
    Variables,
    /// Language servers by name. Each is checked by its reader.
    Servers,
    Time {
        min: Duration,
        max: Duration,
    },
    /// A time, or 0 to turn something off.
    TimeOrOff {
        max: Duration,
    },
    Size {
        min: ByteSize,
        max: ByteSize,
    },
    /// No value: the setting belongs to something that Carrel does not do, for this reason.
    NotSupported(&'static str),
}

/// A year, which keeps deadlines within what clocks can add up.
const MAX_MILLIS: i64 = 365 * 24 * 60 * 60 * 1000;

impl ValueKind {
    pub(crate) const POSITIVE: Self = Self::Integer { min: 1, max: i64::MAX };
    /// A limit, where zero turns it off.
    pub(crate) const LIMIT_OR_OFF: Self = Self::Integer { min: 0, max: i64::MAX };
    pub(crate) const MILLIS: Self = Self::Integer { min: 1, max: MAX_MILLIS };
    /// Milliseconds, where zero and below turn something off.
    pub(crate) const MILLIS_OR_OFF: Self = Self::Integer { min: i64::MIN, max: MAX_MILLIS };
    /// The network of a command, by the words of [`carrel_domain::Network`].
    pub(crate) const NETWORK: Self = Self::Choice(&["none", "loopback", "full"]);
    /// A network port; 0 lets the system choose.
    pub(crate) const PORT: Self = Self::Integer { min: 0, max: 65_535 };

    pub(crate) fn accepts(&self, node: &Node) -> bool {
        match self {
            Self::Text | Self::Secret => node.as_text().is_some(),
            Self::FilledText => node.as_text().is_some_and(|text| !text.trim().is_empty()),
            Self::Choice(words) => node.as_text().is_some_and(|text| words.contains(&text)),
            Self::Integer { min, max } => {
                integer(node).is_some_and(|integer| (*min..=*max).contains(&integer))
            }
            Self::Count { min, max } => match node.value {
                Value::Integer(integer) => {
                    u64::try_from(integer).is_ok_and(|count| (*min..=*max).contains(&count))
                }
                _ => false,
            },
            Self::PositiveNumber => {
                number(node).is_some_and(|number| number > 0.0 && number.is_finite())
            }
            Self::Flag => flag(node).is_some(),
            Self::Texts => texts(node).is_some(),
            Self::Paths => node.as_list().is_some(),
            Self::AutoOrNames(_) => node.as_text() == Some("auto") || node.as_list().is_some(),
            Self::Map | Self::Variables | Self::Servers => node.as_map().is_some(),
            Self::TextOrMap => matches!(node.value, Value::Map(_) | Value::Text(_)),
            Self::Time { min, max } => time(node).is_some_and(|time| (*min..=*max).contains(&time)),
            Self::TimeOrOff { max } => time_or_off(node).is_some_and(|time| time <= *max),
            Self::Size { min, max } => size(node).is_some_and(|size| (*min..=*max).contains(&size)),
            Self::NotSupported(_) => false,
        }
    }

    /// Describes the rule, for the reference page and for messages.
    pub(crate) fn rule(&self, syntax: Syntax) -> String {
        match self {
            Self::Text | Self::Secret => "text".to_owned(),
            Self::FilledText => "text that is not blank".to_owned(),
            Self::Choice(words) => format!("one of {}", listed(words, syntax)),
            Self::Integer { min: 1, max } if *max >= MAX_MILLIS => {
                "a whole number greater than 0".to_owned()
            }
            Self::Integer { min: 0, max: i64::MAX } => "a whole number, 0 or greater".to_owned(),
            Self::Integer { min: 0, max } => format!("a whole number from 0 to {max}"),
            Self::Integer { .. } => "a whole number".to_owned(),
            Self::Count { min, max } => format!("a whole number from {min} to {max}"),
            Self::PositiveNumber => "a number greater than 0".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Texts => "a list of texts".to_owned(),
            Self::Paths => "a list of absolute paths".to_owned(),
            Self::AutoOrNames(_) => "\"auto\" or a list of names".to_owned(),
            Self::Map => "a map".to_owned(),
            Self::TextOrMap => "text or a map".to_owned(),
            Self::Variables => "a table of texts".to_owned(),
            Self::Servers => "a table of servers".to_owned(),
            Self::Time { min, max } => format!("a time from {} to {}", Age(*min), Age(*max)),
            Self::TimeOrOff { max } => format!("0 or a time up to {}", Age(*max)),
            Self::Size { min, max } => format!("a size from {} to {}", exact(*min), exact(*max)),
            Self::NotSupported(_) => "not supported".to_owned(),
        }
    }

    /// Describes what is wrong with a value, and how to write it if that is clear.
    pub(crate) fn complaint(&self, node: &Node, syntax: Syntax) -> String {
        let found = match self {
            Self::NotSupported(reason) => return format!("is not supported: {reason}"),
            Self::Integer { max, .. } if integer(node).is_some_and(|integer| integer > *max) => {
                return format!("must be at most {max}, found {}", node.shown(syntax));
            }
            // The value may be a secret, or one that belongs into the map.
            Self::Secret | Self::Map | Self::Variables | Self::Servers => {
                node.type_name(syntax).to_owned()
            }
            _ => node.shown(syntax),
        };
        let hint = self.hint(node, syntax).unwrap_or_default();
        format!("must be {}, found {found}{hint}", self.rule(syntax))
    }

    /// Returns the continuation of a complaint that says what to write.
    fn hint(&self, node: &Node, syntax: Syntax) -> Option<String> {
        let hint = match self {
            Self::Secret => "put it in quotes".to_owned(),
            Self::Text | Self::FilledText | Self::TextOrMap => match node.value {
                Value::Integer(_) | Value::Number(_) | Value::Flag(_) => {
                    format!("put it in quotes: \"{}\"", node.shown(syntax))
                }
                _ => return None,
            },
            Self::Choice(words) => {
                let near = suggest::nearest(node.as_text()?, words.iter().copied())?;
                format!("did you mean {}?", listed(&[near], syntax))
            }
            Self::Texts => match node.value {
                Value::Text(_) => "put it in brackets".to_owned(),
                Value::List(_) => return Some(" with something else in it".to_owned()),
                _ => return None,
            },
            Self::Paths => format!("write [{}]", quoted(node.as_text()?)),
            Self::AutoOrNames(names) => match node.as_text() {
                Some(text) if names().contains(&text) => format!("write [{text:?}]"),
                _ => "write [] for none".to_owned(),
            },
            Self::Variables => "write [environment], and NAME = \"value\" below it".to_owned(),
            Self::Servers => "write [language_servers.servers.NAME]".to_owned(),
            Self::Time { .. } => "write it as \"90s\", \"15m\" or \"2h\"".to_owned(),
            Self::TimeOrOff { .. } => "write it as 36h, 14d or 0".to_owned(),
            Self::Size { .. } => "write it as \"512MiB\" or \"2GiB\"".to_owned(),
            Self::Count { .. } => {
                node.as_text()?.parse::<u64>().ok()?;
                "write it without quotes".to_owned()
            }
            Self::Integer { .. }
            | Self::PositiveNumber
            | Self::Flag
            | Self::Map
            | Self::NotSupported(_) => return None,
        };
        Some(format!("; {hint}"))
    }
}

/// Reads an integer, also from a text that is one.
pub(crate) fn integer(node: &Node) -> Option<i64> {
    match &node.value {
        Value::Integer(integer) => Some(*integer),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// Reads a number, also from a text that is one.
#[expect(clippy::cast_precision_loss, reason = "sizes far beyond any disk may be rounded")]
pub(super) fn number(node: &Node) -> Option<f64> {
    match &node.value {
        Value::Integer(integer) => Some(*integer as f64),
        Value::Number(number) => Some(*number),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// Reads a flag, also from the texts `true`, `false`, `1` and `0`.
pub(super) fn flag(node: &Node) -> Option<bool> {
    match &node.value {
        Value::Flag(flag) => Some(*flag),
        Value::Text(text) => match text.as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn texts(node: &Node) -> Option<Vec<String>> {
    node.as_list()?.iter().map(|item| item.as_text().map(str::to_owned)).collect()
}

pub(super) fn time(node: &Node) -> Option<Duration> {
    node.as_text()?.parse().ok().map(|Age(time)| time)
}

/// Reads a time, or 0.
pub(super) fn time_or_off(node: &Node) -> Option<Duration> {
    if integer(node) == Some(0) { Some(Duration::ZERO) } else { time(node) }
}

/// Reads a size with a unit. A bare number in quotes has none, so it is no more accepted than one without.
pub(super) fn size(node: &Node) -> Option<ByteSize> {
    let text = node.as_text()?;
    text.parse().ok().filter(|_| text.ends_with(|c: char| c.is_ascii_alphabetic()))
}

fn listed(words: &[&str], syntax: Syntax) -> String {
    let word = |word: &&str| match syntax {
        Syntax::Yaml => (*word).to_owned(),
        Syntax::Toml => format!("\"{word}\""),
    };
    words.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// Formats a size with the largest unit that divides it.
fn exact(size: ByteSize) -> String {
    let bytes = size.as_u64();
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, shift)| bytes.trailing_zeros() >= *shift) {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Position;

    fn node(text: &str) -> Node {
        crate::yaml::parse(text, Position::START).unwrap()
    }

    #[test]
    fn values_are_accepted_by_the_table() {
        for (kind, accepted, rejected) in [
            (ValueKind::Text, vec!["a", "''", "'1'", "on"], vec!["1", "1.5", "true", "[a]", "{}"]),
            (ValueKind::FilledText, vec!["a"], vec!["' '", "1"]),
            (ValueKind::Choice(&["a", "b"]), vec!["a"], vec!["c", "A", "1"]),
            (
                ValueKind::POSITIVE,
                vec!["1", "'45'", "0x10"],
                vec!["0", "-1", "1.0", "'1.5'", "x", "true"],
            ),
            (ValueKind::LIMIT_OR_OFF, vec!["0", "'7'"], vec!["-1", "1.5", "x"]),
            (ValueKind::PORT, vec!["0", "65535"], vec!["-1", "65536"]),
            (
                ValueKind::TimeOrOff { max: Duration::from_hours(48) },
                vec!["0", "'0'", "2d", "36h"],
                vec!["3d", "7", "-1", "soon", "true"],
            ),
            (ValueKind::MILLIS_OR_OFF, vec!["-5", "0"], vec!["1e3", "31536000001"]),
            (
                ValueKind::PositiveNumber,
                vec!["5", "0.5", "'2'"],
                vec!["0", "-1", ".inf", ".nan", "x"],
            ),
            (ValueKind::Flag, vec!["true", "'false'", "'1'", "'0'"], vec!["1", "yes", "'yes'"]),
            (ValueKind::Texts, vec!["[]", "[a, '1']"], vec!["a", "[1]", "[~]", "{}"]),
            (ValueKind::Map, vec!["{}", "{a: 1}"], vec!["[]", "a"]),
            (ValueKind::TextOrMap, vec!["never", "{a: 1}"], vec!["1", "[]"]),
        ] {
            for text in accepted {
                assert!(kind.accepts(&node(text)), "{kind:?} accepts {text}");
            }
            for text in rejected {
                assert!(!kind.accepts(&node(text)), "{kind:?} rejects {text}");
            }
        }
    }

    #[test]
    fn complaints_say_what_to_write() {
        for (kind, text, complaint) in [
            (ValueKind::MILLIS, "soon", r#"must be a whole number greater than 0, found "soon""#),
            (ValueKind::MILLIS, "99999999999", "must be at most 31536000000, found 99999999999"),
            (ValueKind::Text, "12", r#"must be text, found 12; put it in quotes: "12""#),
            (
                ValueKind::Texts,
                "Todo",
                r#"must be a list of texts, found "Todo"; put it in brackets"#,
            ),
            (
                ValueKind::Texts,
                "[1]",
                "must be a list of texts, found a list with something else in it",
            ),
            (ValueKind::Secret, "12345678", "must be text, found a number; put it in quotes"),
            (ValueKind::LIMIT_OR_OFF, "-1", "must be a whole number, 0 or greater, found -1"),
            (
                ValueKind::TimeOrOff { max: Duration::from_hours(48) },
                "14",
                "must be 0 or a time up to 2d, found 14; write it as 36h, 14d or 0",
            ),
            (ValueKind::Flag, "[]", "must be true or false, found a list"),
            (
                ValueKind::Choice(&["plain", "loud"]),
                "plian",
                r#"must be one of plain, loud, found "plian"; did you mean plain?"#,
            ),
        ] {
            assert_eq!(kind.complaint(&node(text), Syntax::Yaml), complaint);
        }
    }
}
