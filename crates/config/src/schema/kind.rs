//! What a setting's value may be.

use crate::yaml::{Node, Value};

/// What a setting's value must be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// Text with something in it.
    FilledText,
    /// Text that is never shown.
    Secret,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number within these bounds.
    Integer { min: i64, max: i64 },
    /// A number above zero, fractions included.
    PositiveNumber,
    /// True or false.
    Flag,
    /// A list of texts.
    Texts,
    /// A map that is handed on as it is written.
    Map,
    /// Text or a map, handed on as it is written.
    TextOrMap,
    /// Nothing: the setting belongs to something Carrel does not do, for this reason.
    Refused(&'static str),
}

/// Keeps deadlines within what clocks can add up: a year.
const MAX_MILLIS: i64 = 365 * 24 * 60 * 60 * 1000;

impl Kind {
    /// A whole number above zero.
    pub(crate) const POSITIVE: Self = Self::Integer { min: 1, max: i64::MAX };
    /// A time in milliseconds above zero.
    pub(crate) const MILLIS: Self = Self::Integer { min: 1, max: MAX_MILLIS };
    /// A time in milliseconds; zero and below mean something of their own.
    pub(crate) const MILLIS_OR_OFF: Self = Self::Integer { min: i64::MIN, max: MAX_MILLIS };
    /// A network port; zero lets the system choose.
    pub(crate) const PORT: Self = Self::Integer { min: 0, max: 65_535 };

    /// Tells whether a value fits.
    pub(crate) fn accepts(&self, node: &Node) -> bool {
        match self {
            Self::Text | Self::Secret => node.as_text().is_some(),
            Self::FilledText => node.as_text().is_some_and(|text| !text.trim().is_empty()),
            Self::Choice(words) => node.as_text().is_some_and(|text| words.contains(&text)),
            Self::Integer { min, max } => {
                integer(node).is_some_and(|integer| (*min..=*max).contains(&integer))
            }
            Self::PositiveNumber => {
                number(node).is_some_and(|number| number > 0.0 && number.is_finite())
            }
            Self::Flag => flag(node).is_some(),
            Self::Texts => texts(node).is_some(),
            Self::Map => matches!(node.value, Value::Map(_)),
            Self::TextOrMap => matches!(node.value, Value::Map(_) | Value::Text(_)),
            Self::Refused(_) => false,
        }
    }

    /// Says what a value must be, for the guide and for messages.
    pub(crate) fn rule(&self) -> String {
        match self {
            Self::Text | Self::Secret => "text".to_owned(),
            Self::FilledText => "text that is not blank".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Integer { min: 1, max } if *max >= MAX_MILLIS => {
                "a whole number greater than 0".to_owned()
            }
            Self::Integer { min: 0, max } => format!("a whole number from 0 to {max}"),
            Self::Integer { .. } => "a whole number".to_owned(),
            Self::PositiveNumber => "a number greater than 0".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Texts => "a list of texts".to_owned(),
            Self::Map => "a map".to_owned(),
            Self::TextOrMap => "text or a map".to_owned(),
            Self::Refused(_) => "not supported".to_owned(),
        }
    }

    /// Says what is wrong with a value that does not fit, and how to write it if that is clear.
    pub(crate) fn complaint(&self, node: &Node) -> String {
        match self {
            Self::Refused(reason) => format!("is not supported: {reason}"),
            Self::Secret => format!("must be text, found {}; put it in quotes", node.sort()),
            // What stands in place of a map may be a secret that belongs into it.
            Self::Map => format!("must be a map, found {}", node.sort()),
            Self::Integer { max, .. } if integer(node).is_some_and(|integer| integer > *max) => {
                format!("must be at most {max}, found {}", node.shown())
            }
            _ => format!("must be {}, found {}{}", self.rule(), node.shown(), self.hint(node)),
        }
    }

    fn hint(&self, node: &Node) -> String {
        match (self, &node.value) {
            (
                Self::Text | Self::FilledText | Self::TextOrMap,
                Value::Integer(_) | Value::Number(_) | Value::Flag(_),
            ) => format!("; put it in quotes: \"{}\"", node.shown()),
            (Self::Texts, Value::Text(_)) => "; put it in brackets".to_owned(),
            (Self::Texts, Value::List(_)) => " with something else in it".to_owned(),
            _ => String::new(),
        }
    }
}

/// Reads a whole number; a text that looks like one counts.
pub(crate) fn integer(node: &Node) -> Option<i64> {
    match &node.value {
        Value::Integer(integer) => Some(*integer),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// Reads a number; a text that looks like one counts.
#[expect(clippy::cast_precision_loss, reason = "sizes far beyond any disk may be rounded")]
pub(crate) fn number(node: &Node) -> Option<f64> {
    match &node.value {
        Value::Integer(integer) => Some(*integer as f64),
        Value::Number(number) => Some(*number),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// Reads true or false; the texts `true`, `false`, `1` and `0` count.
pub(crate) fn flag(node: &Node) -> Option<bool> {
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

/// Reads a list that has only texts in it.
pub(crate) fn texts(node: &Node) -> Option<Vec<String>> {
    match &node.value {
        Value::List(items) => items.iter().map(|item| item.as_text().map(str::to_owned)).collect(),
        _ => None,
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
    fn values_are_cast_by_the_table() {
        for (kind, accepted, refused) in [
            (Kind::Text, vec!["a", "''", "'1'", "on"], vec!["1", "1.5", "true", "[a]", "{}"]),
            (Kind::FilledText, vec!["a"], vec!["' '", "1"]),
            (Kind::Choice(&["a", "b"]), vec!["a"], vec!["c", "A", "1"]),
            (
                Kind::POSITIVE,
                vec!["1", "'45'", "0x10"],
                vec!["0", "-1", "1.0", "'1.5'", "x", "true"],
            ),
            (Kind::PORT, vec!["0", "65535"], vec!["-1", "65536"]),
            (Kind::MILLIS_OR_OFF, vec!["-5", "0"], vec!["1e3", "31536000001"]),
            (Kind::PositiveNumber, vec!["5", "0.5", "'2'"], vec!["0", "-1", ".inf", ".nan", "x"]),
            (Kind::Flag, vec!["true", "'false'", "'1'", "'0'"], vec!["1", "yes", "'yes'"]),
            (Kind::Texts, vec!["[]", "[a, '1']"], vec!["a", "[1]", "[~]", "{}"]),
            (Kind::Map, vec!["{}", "{a: 1}"], vec!["[]", "a"]),
            (Kind::TextOrMap, vec!["never", "{a: 1}"], vec!["1", "[]"]),
        ] {
            for text in accepted {
                assert!(kind.accepts(&node(text)), "{kind:?} takes {text}");
            }
            for text in refused {
                assert!(!kind.accepts(&node(text)), "{kind:?} refuses {text}");
            }
        }
    }

    #[test]
    fn complaints_say_what_to_write() {
        for (kind, text, complaint) in [
            (Kind::MILLIS, "soon", r#"must be a whole number greater than 0, found "soon""#),
            (Kind::MILLIS, "99999999999", "must be at most 31536000000, found 99999999999"),
            (Kind::Text, "12", r#"must be text, found 12; put it in quotes: "12""#),
            (Kind::Texts, "Todo", r#"must be a list of texts, found "Todo"; put it in brackets"#),
            (Kind::Texts, "[1]", "must be a list of texts, found a list with something else in it"),
            (Kind::Secret, "12345678", "must be text, found a number; put it in quotes"),
            (Kind::Flag, "[]", "must be true or false, found a list"),
        ] {
            assert_eq!(kind.complaint(&node(text)), complaint);
        }
    }
}
