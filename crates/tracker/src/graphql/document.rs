//! What a question in GraphQL is made of, and how it is written.

use std::fmt::{self, Display, Write as _};

use serde_json::{Map, Value};

/// A question: one operation and its fragments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GraphqlDocument {
    pub(crate) operation: GraphqlOperation,
    pub(crate) fragments: Vec<Fragment>,
}

/// What is wanted.
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

/// A variable that an operation takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// Such as `[ID!]!`.
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

/// Names with their values, each once.
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
    /// Nothing if it is a single value.
    pub(crate) selections: Vec<Selection>,
}

/// A value as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Variable(String),
    Text(String),
    /// A number, true, false, null or a name: as it is written.
    Word(String),
    List(Vec<Literal>),
    Object(Arguments),
}

impl Literal {
    /// Returns the value, with what the variables say.
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
        decorate(f, directives)?;
        select(f, selections)?;
        for Fragment { name, on, directives, selections } in &self.fragments {
            write!(f, "\nfragment {name} on {on}")?;
            decorate(f, directives)?;
            select(f, selections)?;
        }
        Ok(())
    }
}

fn select(f: &mut fmt::Formatter<'_>, selections: &[Selection]) -> fmt::Result {
    if selections.is_empty() {
        return Ok(());
    }
    separated(f, " { ", selections, " }", |f, selection| match selection {
        Selection::Field(field) => write!(f, "{field}"),
        Selection::Spread { name, directives } => {
            write!(f, "...{name}")?;
            decorate(f, directives)
        }
        Selection::Inline { on, directives, selections } => {
            f.write_str("...")?;
            if let Some(on) = on {
                write!(f, " on {on}")?;
            }
            decorate(f, directives)?;
            select(f, selections)
        }
    })
}

impl Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(alias) = &self.alias {
            write!(f, "{alias}: ")?;
        }
        f.write_str(&self.name)?;
        give(f, &self.arguments)?;
        decorate(f, &self.directives)?;
        select(f, &self.selections)
    }
}

fn decorate(f: &mut fmt::Formatter<'_>, directives: &[Directive]) -> fmt::Result {
    directives.iter().try_for_each(|directive| {
        write!(f, " @{}", directive.name)?;
        give(f, &directive.arguments)
    })
}

fn give(f: &mut fmt::Formatter<'_>, arguments: &Arguments) -> fmt::Result {
    if arguments.is_empty() {
        return Ok(());
    }
    separated(f, "(", arguments, ")", |f, (name, value)| write!(f, "{name}: {value}"))
}

impl Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "${name}"),
            // Every escape of JSON means the same in GraphQL.
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
