//! The syntax tree of a GraphQL request, and its canonical text.
//!
//! Parts that no check looks at, such as directives and types, are kept as their canonical text.

use std::fmt::{self, Display};

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
    /// The name after a space; empty without a name.
    pub(crate) name: String,
    pub(crate) variables: Vec<Variable>,
    pub(crate) directives: String,
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
    pub(crate) directives: String,
    pub(crate) selections: Vec<Selection>,
}

/// Named values; each name is unique.
pub(crate) type Arguments = Vec<(String, Literal)>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Selection {
    Field(Field),
    Spread {
        name: String,
        directives: String,
    },
    Inline {
        /// The type condition and the directives.
        condition: String,
        selections: Vec<Selection>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// The alias with its colon; empty without an alias.
    pub(crate) alias: String,
    pub(crate) name: String,
    pub(crate) arguments: Arguments,
    pub(crate) directives: String,
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
        let kind = if *kind == Kind::Query { "query" } else { "mutation" };
        write!(f, "{kind}{name}")?;
        if !variables.is_empty() {
            write!(f, "({})", joined(variables))?;
        }
        write!(f, "{directives}{}", block(selections))?;
        for Fragment { name, on, directives, selections } in &self.fragments {
            write!(f, "\nfragment {name} on {on}{directives}{}", block(selections))?;
        }
        Ok(())
    }
}

impl Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}: {}", self.name, self.kind)?;
        self.default.as_ref().map_or(Ok(()), |default| write!(f, " = {default}"))
    }
}

impl Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(field) => write!(f, "{field}"),
            Self::Spread { name, directives } => write!(f, "...{name}{directives}"),
            Self::Inline { condition, selections } => {
                write!(f, "...{condition}{}", block(selections))
            }
        }
    }
}

impl Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { alias, name, arguments, directives, selections } = self;
        let (arguments, selections) = (parenthesised(arguments), block(selections));
        write!(f, "{alias}{name}{arguments}{directives}{selections}")
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "${name}"),
            // JSON string escapes are valid in GraphQL and mean the same.
            Self::Text(text) => write!(f, "{}", Value::String(text.clone())),
            Self::Word(word) => f.write_str(word),
            Self::List(values) => write!(f, "[{}]", joined(values)),
            Self::Object(fields) => write!(f, "{{{}}}", pairs(fields)),
        }
    }
}

/// Returns arguments in parentheses; nothing if there are none.
pub(super) fn parenthesised(arguments: &Arguments) -> String {
    if arguments.is_empty() { String::new() } else { format!("({})", pairs(arguments)) }
}

fn block(selections: &[Selection]) -> String {
    if selections.is_empty() { String::new() } else { format!(" {{ {} }}", joined(selections)) }
}

fn pairs(arguments: &Arguments) -> String {
    joined(arguments.iter().map(|(name, value)| format!("{name}: {value}")))
}

fn joined(items: impl IntoIterator<Item = impl Display>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(" ")
}
