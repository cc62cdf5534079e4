//! Statements, values and rows in the one form that both databases share.
//!
//! An id is 16 bytes (`BLOB` or `uuid`), a time and a duration are whole milliseconds, JSON is text. Text
//! loses its NUL characters on the way to PostgreSQL, which cannot store them. A row is read from left to
//! right into the fields of a type (`from_row!`), so that the columns of a statement and the fields
//! have the same order. A value that this version does not know, such as a status of a newer one, is an
//! error rather than a default.

use std::time::Duration;

use carrel_domain::{
    Layout, Network, Priority, TaskId, TaskStatus, Timestamp, VolumeId, WorkspaceId,
};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::error::StoreError;
use crate::{EventKind, WorkerId};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
    /// An array, which PostgreSQL alone has.
    List(Vec<Value>),
}

impl Value {
    pub(crate) fn list<T: Into<Self>>(values: impl IntoIterator<Item = T>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

/// The parameters `$1`, `$2`, … of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::value::Value::from($value)),*] };
}
pub(crate) use values;

macro_rules! encode {
    ($($type:ty: |$value:ident| $encoded:expr;)+) => {$(
        impl From<$type> for Value {
            fn from($value: $type) -> Self {
                $encoded
            }
        }
    )+};
}

encode! {
    bool: |flag| Self::Integer(flag.into());
    u16: |number| Self::Integer(number.into());
    u32: |number| Self::Integer(number.into());
    i64: |number| Self::Integer(number);
    u64: |number| Self::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    usize: |number| (number as u64).into();
    Timestamp: |time| Self::Integer(time.as_millis());
    Duration: |time| Self::Integer(i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
    Priority: |priority| Self::Integer(rank(priority));
    &str: |text| Self::Text(text.to_owned());
    &String: |text| Self::Text(text.clone());
    String: |text| Self::Text(text);
    &Json: |json| Self::Text(json.to_string());
    TaskStatus: |status| status.as_str().into();
    EventKind: |kind| kind.as_str().into();
    Layout: |layout| layout.as_str().into();
    Network: |network| network.as_str().into();
    &WorkerId: |worker| worker.0.as_str().into();
    Vec<u8>: |bytes| Self::Bytes(bytes);
    [u8; 32]: |digest| Self::Bytes(digest.into());
    TaskId: |id| Self::Bytes(id.to_bytes().into());
    WorkspaceId: |id| Self::Bytes(id.to_bytes().into());
    VolumeId: |id| Self::Bytes(id.to_bytes().into());
    Uuid: |id| Self::Bytes(id.into_bytes().into());
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Returns the stored form of a priority, which sorts the most urgent first.
fn rank(priority: Priority) -> i64 {
    match priority {
        Priority::Critical => 0,
        Priority::High => 1,
        Priority::Normal => 2,
        Priority::Low => 3,
    }
}

/// The columns of a row that were not read yet.
#[derive(Debug)]
pub(crate) struct Row(std::vec::IntoIter<Value>);

impl Row {
    pub(crate) fn new(columns: Vec<Value>) -> Self {
        Self(columns.into_iter())
    }

    /// Reads the next columns.
    pub(crate) fn take<T: FromRow>(&mut self) -> Result<T, StoreError> {
        T::from_row(self)
    }

    fn value<T: FromValue>(&mut self) -> Result<T, StoreError> {
        let value = self.0.next().unwrap_or(Value::Null);
        T::from_value(value).map_err(|what| StoreError::Unreadable { what })
    }
}

/// A type that is read from one column or from several.
pub(crate) trait FromRow: Sized {
    fn from_row(row: &mut Row) -> Result<Self, StoreError>;
}

/// A type that is read from one column. The error describes a value that cannot be read.
pub(crate) trait FromValue: Sized {
    fn from_value(value: Value) -> Result<Self, String>;
}

macro_rules! decode {
    ($($type:ty: |$value:ident| $decoded:expr;)+) => {$(
        impl FromValue for $type {
            fn from_value($value: Value) -> Result<Self, String> {
                $decoded
            }
        }

        impl FromRow for $type {
            fn from_row(row: &mut Row) -> Result<Self, StoreError> {
                row.value()
            }
        }
    )+};
}

decode! {
    bool: |value| Ok(number::<i64>(&value)? != 0);
    u16: |value| number(&value);
    u32: |value| number(&value);
    i64: |value| number(&value);
    u64: |value| number(&value);
    Timestamp: |value| number(&value).map(Self::from_millis);
    Duration: |value| number(&value).map(Self::from_millis);
    Priority: |value| priority(number(&value)?);
    String: |value| text(value);
    WorkerId: |value| text(value).map(Self);
    Json: |value| json(value);
    Vec<String>: |value| json(value);
    Vec<(u64, String)>: |value| json(value);
    TaskStatus: |value| word(value, |word| word.parse().ok());
    EventKind: |value| word(value, Self::parse);
    Layout: |value| word(value, |word| {
        [Self::Plain, Self::Tenant].into_iter().find(|layout| layout.as_str() == word)
    });
    Network: |value| word(value, |word| word.parse().ok());
    Vec<u8>: |value| bytes(value);
    [u8; 32]: |value| fixed(value);
    TaskId: |value| fixed(value).map(Self::from_bytes);
    WorkspaceId: |value| fixed(value).map(Self::from_bytes);
    VolumeId: |value| fixed(value).map(Self::from_bytes);
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Result<Self, String> {
        if value == Value::Null { Ok(None) } else { T::from_value(value).map(Some) }
    }
}

impl<T: FromValue> FromRow for Option<T> {
    fn from_row(row: &mut Row) -> Result<Self, StoreError> {
        row.value()
    }
}

impl<A: FromRow, B: FromRow> FromRow for (A, B) {
    fn from_row(row: &mut Row) -> Result<Self, StoreError> {
        Ok((row.take()?, row.take()?))
    }
}

/// Reads the fields of a type from as many columns, in the order in which they are named.
macro_rules! from_row {
    ($type:ident: $($field:ident),+) => {
        impl $crate::value::FromRow for $type {
            fn from_row(row: &mut $crate::value::Row) -> Result<Self, $crate::StoreError> {
                Ok(Self { $($field: row.take()?),+ })
            }
        }
    };
}
pub(crate) use from_row;

fn number<T: TryFrom<i64>>(value: &Value) -> Result<T, String> {
    let Value::Integer(found) = *value else { return Err(other_type("a number")) };
    T::try_from(found).map_err(|_| format!("the number {found}"))
}

fn text(value: Value) -> Result<String, String> {
    if let Value::Text(text) = value { Ok(text) } else { Err(other_type("a text")) }
}

fn bytes(value: Value) -> Result<Vec<u8>, String> {
    if let Value::Bytes(bytes) = value { Ok(bytes) } else { Err(other_type("bytes")) }
}

fn other_type(expected: &str) -> String {
    format!("a value that is not {expected}")
}

fn fixed<const N: usize>(value: Value) -> Result<[u8; N], String> {
    bytes(value)?.try_into().map_err(|bytes: Vec<u8>| format!("{} bytes for {N}", bytes.len()))
}

fn word<T>(value: Value, read: impl Fn(&str) -> Option<T>) -> Result<T, String> {
    let word = text(value)?;
    read(&word).ok_or_else(|| format!("the word {word:?}"))
}

fn json<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_str(&text(value)?).map_err(|error| error.to_string())
}

fn priority(found: i64) -> Result<Priority, String> {
    let priority = Priority::ALL.iter().copied().find(|priority| rank(*priority) == found);
    priority.ok_or_else(|| format!("the priority {found}"))
}
