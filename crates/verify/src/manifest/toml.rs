//! TOML documents whose values know their line numbers.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::profile::ProfileProblem;

#[derive(Debug)]
pub(crate) struct Toml<'a> {
    file: &'a str,
    text: &'a str,
    table: DeTable<'a>,
}

pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

impl<'a> Toml<'a> {
    /// Parses a file, or returns the first error with its line.
    pub(crate) fn parse(file: &'a str, text: &'a str) -> Result<Self, ProfileProblem> {
        match DeTable::parse(text) {
            Ok(table) => Ok(Self { file, text, table: table.into_inner() }),
            Err(error) => Err(ProfileProblem {
                file: file.to_owned(),
                line: error.span().map(|span| line_of(text, span.start)),
                message: format!("invalid TOML: {}", one_line(error.message())),
            }),
        }
    }

    pub(crate) fn table(&self) -> &DeTable<'a> {
        &self.table
    }

    /// Returns the value at a dotted path such as `tool.ruff`.
    pub(crate) fn find(&self, path: &str) -> Option<&Value<'a>> {
        let mut names = path.split('.');
        let first = self.table.get(names.next()?)?;
        names.try_fold(first, |value, name| value.get_ref().as_table()?.get(name))
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    pub(crate) fn string(&self, path: &str) -> Option<String> {
        self.find(path)?.get_ref().as_str().map(str::to_owned)
    }

    /// Returns the strings of a list at a dotted path; empty if there is no list.
    pub(crate) fn strings(&self, path: &str) -> Vec<String> {
        self.find(path).map(|value| texts(value.get_ref())).unwrap_or_default()
    }

    /// Returns the keys and values of a table at a dotted path; empty if there is no table.
    pub(crate) fn entries(&self, path: &str) -> Vec<(String, &Value<'a>)> {
        let Some(table) = self.find(path).and_then(|value| value.get_ref().as_table()) else {
            return Vec::new();
        };
        table.iter().map(|(name, value)| (name.get_ref().to_string(), value)).collect()
    }

    /// Creates a problem at the line of a byte offset.
    pub(crate) fn problem(&self, start: usize, message: impl Into<String>) -> ProfileProblem {
        ProfileProblem {
            file: self.file.to_owned(),
            line: Some(line_of(self.text, start)),
            message: message.into(),
        }
    }
}

/// Returns the strings of a list and skips other values.
pub(crate) fn texts(value: &DeValue<'_>) -> Vec<String> {
    let items = value.as_array().into_iter().flat_map(|array| array.iter());
    items.filter_map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}

fn one_line(message: &str) -> String {
    message.lines().collect::<Vec<_>>().join(", ")
}
