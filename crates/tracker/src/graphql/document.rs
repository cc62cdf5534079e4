//! The syntax tree of a GraphQL request, and its canonical text.

use std::fmt::{self, Display, Write as _};

use serde_json::{Map, Value};

/// A request: one operation and its fragments. [`Display`] writes the canonical text that is sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GraphqlDocument {
    pub(crate) operation: GraphqlOperation,
    pub(crate) fragments: Vec<Fragment>,
}

/// The type of an operation. Subscriptions are not accepted, since a tool call has one reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Query,
    Mutation,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GraphqlOperation {
    pub(crate) kind: Kind,
    pub(crate) name: Option<String>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) directives: Vec<Directive>,
    pub(crate) selections: Vec<Selection>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// The type, such as `[ID!]!`.
    pub(crate) kind: String,
    pub(crate) default: Option<Literal>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fragment {
    pub(crate) name: String,
    pub(crate) on: String,
    pub(crate) directives: Vec<Directive>,
    pub(crate) selections: Vec<Selection>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Directive {
    pub(crate) name: String,
    pub(crate) arguments: Arguments,
}

/// Named values; each name is unique.
pub(crate) type Arguments = Vec<(String, Literal)>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Selection {
    Field(Field),
    Spread { name: String, directives: Vec<Directive> },
    Inline { on: Option<String>, directives: Vec<Directive>, selections: Vec<Selection> },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) alias: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: Arguments,
    pub(crate) directives: Vec<Directive>,
    pub(crate) selections: Vec<Selection>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Variable(String),
    Text(String),
    /// A number, `true`, `false`, `null` or an enum value, as it was written.
    Word(String),
    List(Vec<Literal>),
    Object(Arguments),
}

impl Literal {
    /// Returns the value, with variables resolved. An undefined variable is null.
    pub(crate) fn resolve(&self, variables: &Map<String, Value>) -> Value {
        match self {
            Self::Variable(name) => variables.get(name).cloned().unwrap_or_default(),
            Self::Text(text) => Value::String(text.clone()),
            Self::Word(word) => {
                serde_json::from_str(word).unwrap_or_else(|_| Value::String(word.clone()))
            }
            Self::List(values) => values.iter().map(|value| value.resolve(variables)).collect(),
            Self::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone(), value.resolve(variables)))
                .collect(),
        }
    }
}

impl Display for GraphqlDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GraphqlOperation { kind, name, variables, directives, selections } = &self.operation;
        f.write_str(if *kind == Kind::Query { "query" } else { "mutation" })?;
        if let Some(name) = name {
            write!(f, " {name}")?;
        }
        if !variables.is_empty() {
            separated(f, "(", variables, ")", |f, variable| {
                write!(f, "${}: {}", variable.name, variable.kind)?;
                variable.default.as_ref().map_or(Ok(()), |default| write!(f, " = {default}"))
            })?;
        }
        write_directives(f, directives)?;
        write_selections(f, selections)?;
        for Fragment { name, on, directives, selections } in &self.fragments {
            write!(f, "\nfragment {name} on {on}")?;
            write_directives(f, directives)?;
            write_selections(f, selections)?;
        }
        Ok(())
    }
}

fn write_selections(f: &mut fmt::Formatter<'_>, selections: &[Selection]) -> fmt::Result {
    if selections.is_empty() {
        return Ok(());
    }
    separated(f, " { ", selections, " }", |f, selection| match selection {
        Selection::Field(field) => write!(f, "{field}"),
        Selection::Spread { name, directives } => {
            write!(f, "...{name}")?;
            write_directives(f, directives)
        }
        Selection::Inline { on, directives, selections } => {
            f.write_str("...")?;
            if let Some(on) = on {
                write!(f, " on {on}")?;
            }
            write_directives(f, directives)?;
            write_selections(f, selections)
        }
    })
}

impl Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(alias) = &self.alias {
            write!(f, "{alias}: ")?;
        }
        f.write_str(&self.name)?;
        write_arguments(f, &self.arguments)?;
        write_directives(f, &self.directives)?;
        write_selections(f, &self.selections)
    }
}

fn write_directives(f: &mut fmt::Formatter<'_>, directives: &[Directive]) -> fmt::Result {
    directives.iter().try_for_each(|directive| {
        write!(f, " @{}", directive.name)?;
        write_arguments(f, &directive.arguments)
    })
}

fn write_arguments(f: &mut fmt::Formatter<'_>, arguments: &Arguments) -> fmt::Result {
    if arguments.is_empty() {
        return Ok(());
    }
    separated(f, "(", arguments, ")", |f, (name, value)| write!(f, "{name}: {value}"))
}

impl Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "${name}"),
            // JSON string escapes are valid in GraphQL and mean the same.
            Self::Text(text) => write!(f, "{}", Value::String(text.clone())),
            Self::Word(word) => f.write_str(word),
            Self::List(values) => separated(f, "[", values, "]", |f, value| write!(f, "{value}")),
            Self::Object(fields) => {
                separated(f, "{", fields, "}", |f, (name, value)| write!(f, "{name}: {value}"))
            }
        }
    }
}

fn separated<T>(
    f: &mut fmt::Formatter<'_>,
    begin: &str,
    items: &[T],
    end: &str,
    one: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    f.write_str(begin)?;
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            f.write_char(' ')?;
        }
        one(f, item)?;
    }
    f.write_str(end)
}
