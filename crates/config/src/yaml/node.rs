//! The value tree of a settings file.

use serde_json::json;

use crate::diagnostic::Position;

const MAX_SHOWN_CHARS: usize = 40;

/// A value and its position in the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) position: Position,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Flag(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Map(Map),
}

/// A key with its position, and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MapEntry {
    pub(crate) key: String,
    pub(crate) position: Position,
    pub(crate) value: Node,
}

/// Entries with unique keys, in the order they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Map(pub(crate) Vec<MapEntry>);

impl Map {
    pub(crate) fn get(&self, key: &str) -> Option<&MapEntry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    /// Returns the value at a dotted path; a null counts as absent.
    pub(crate) fn find(&self, path: &str) -> Option<&Node> {
        let (first, rest) = match path.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (path, None),
        };
        let node = &self.get(first)?.value;
        match (rest, &node.value) {
            (_, Value::Null) => None,
            (None, _) => Some(node),
            (Some(rest), Value::Map(map)) => map.find(rest),
            (Some(_), _) => None,
        }
    }
}

impl Node {
    /// Returns the text of a text node.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Names the type of the value, for messages that must not show it.
    pub(crate) fn sort(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Flag(_) => "true or false",
            Value::Integer(_) | Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// Formats a scalar, cut to 40 characters, and names the type of anything larger.
    pub(crate) fn shown(&self) -> String {
        match &self.value {
            Value::Flag(flag) => flag.to_string(),
            Value::Integer(integer) => integer.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Text(text) => shortened(text),
            Value::Null | Value::List(_) | Value::Map(_) => self.sort().to_owned(),
        }
    }

    /// Converts to JSON. Map entries without a value are left out, as absent ones are.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Flag(flag) => json!(flag),
            Value::Integer(integer) => json!(integer),
            Value::Number(number) => json!(number),
            Value::Text(text) => json!(text),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(map) => {
                let set = map.0.iter().filter(|entry| entry.value.value != Value::Null);
                set.map(|entry| (entry.key.clone(), entry.value.to_json())).collect()
            }
        }
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= MAX_SHOWN_CHARS {
        return format!("{text:?}");
    }
    let head: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    format!("{head:?}…")
}
