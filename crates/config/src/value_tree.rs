//! The value tree of a settings file, the same for YAML and TOML. Keys and values have positions.

use carrel_domain::excerpt;
use serde_json::json;

use crate::diagnostic::Position;
use crate::schema::Syntax;

/// The longest value that an error message quotes, in characters.
const MAX_QUOTED_CHARS: usize = 40;

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
    /// A TOML value that no setting accepts: a date, a fraction, an integer beyond 64 bits. It is kept for
    /// messages, as its type and the text to show.
    Unsupported {
        type_name: &'static str,
        shown: String,
    },
}

/// A key with its position, and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MapEntry {
    pub(crate) key: String,
    pub(crate) position: Position,
    pub(crate) value: Node,
}

/// Entries with unique keys.
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
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_list(&self) -> Option<&[Self]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn as_map(&self) -> Option<&Map> {
        match &self.value {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Names the type of the value, for messages that must not show it.
    pub(crate) fn type_name(&self, syntax: Syntax) -> &'static str {
        match (&self.value, syntax) {
            (Value::Null, _) => "nothing",
            (Value::Flag(_), _) => "true or false",
            (Value::Integer(_) | Value::Number(_), _) => "a number",
            (Value::Text(_), _) => "text",
            (Value::List(_), _) => "a list",
            (Value::Map(_), Syntax::Yaml) => "a map",
            (Value::Map(_), Syntax::Toml) => "a table",
            (Value::Unsupported { type_name, .. }, _) => type_name,
        }
    }

    /// Formats a scalar, cut if it is long, and names the type of anything larger.
    pub(crate) fn shown(&self, syntax: Syntax) -> String {
        match &self.value {
            Value::Flag(flag) => flag.to_string(),
            Value::Integer(integer) => integer.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Text(text) => quoted(text),
            Value::Unsupported { shown, .. } => shown.clone(),
            Value::Null | Value::List(_) | Value::Map(_) => self.type_name(syntax).to_owned(),
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
            Value::Unsupported { shown, .. } => json!(shown),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(map) => {
                let set = map.0.iter().filter(|entry| entry.value.value != Value::Null);
                set.map(|entry| (entry.key.clone(), entry.value.to_json())).collect()
            }
        }
    }
}

pub(crate) fn quoted(text: &str) -> String {
    excerpt::quoted(text, MAX_QUOTED_CHARS)
}
