//! Errors of rewrites. The text is unchanged after each of them.

use super::MAX_OPERATIONS;
use crate::structural_edit::{ParseFailure, TargetError};
use crate::structural_search::{MAX_MATCHES, RuleError, SearchError};
use crate::syntax::{MAX_SOURCE_BYTES, SyntaxError};

/// An operation that could not be made, and with which none was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", .operation.map(|number| format!("operation {number}: ")).unwrap_or_default())]
pub struct RewriteError {
    /// The number of the operation, counted from 1, if there are several.
    pub operation: Option<usize>,
    /// The reason.
    pub problem: RewriteProblem,
}

/// The reason for which an operation could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum RewriteProblem {
    #[error("there are {count} operations; between 1 and {MAX_OPERATIONS} are made at once")]
    OperationCount { count: usize },
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Nothing matches.
    #[error("nothing matches {summary}{}", hint_text(.hint.as_deref()))]
    NoMatch { summary: String, hint: Option<String> },
    #[error(
        "more than {MAX_MATCHES} nodes match; narrow the rule, or give `within` or `withinSymbol`"
    )]
    TooManyMatches,
    /// The replacement has a variable that the rule does not capture.
    #[error(
        "the replacement has `${name}`, which the rule does not capture; it captures {}; a literal dollar sign is \
         `\\$`", known_text(.known)
    )]
    UnboundVariable { name: String, known: Vec<String> },
    #[error("there is no match {number}; there are {count}, counted from 1")]
    NoSuchMatch { number: usize, count: usize },
    #[error("`{name}` is no name; give one identifier")]
    NotAName { name: String },
    /// A name is declared as a variable and as a field.
    #[error(
        "ambiguous: {from} is declared as a local at line {local} and as a member at line {member}; add target \
         `local` or `member`"
    )]
    AmbiguousTarget { from: String, local: usize, member: usize },
    /// The name is not declared as what the caller said.
    #[error("{from} is not declared as a {target} here; leave the target out, or widen the region")]
    NotDeclared { from: String, target: &'static str },
    /// The new name means something else already.
    #[error(
        "{to} is used at line {line} already, in the scope of {from} at line {declared}; choose another name"
    )]
    Collision { from: String, to: String, line: usize, declared: usize },
    #[error("the result did not parse: {0}")]
    DidNotParse(ParseFailure),
    #[error("the result would have {bytes} bytes; at most {MAX_SOURCE_BYTES} are parsed")]
    ResultTooLarge { bytes: usize },
    #[error("nothing would change: the new text is the same as the old")]
    NoChange,
}

fn hint_text(hint: Option<&str>) -> String {
    hint.map(|hint| format!("; {hint}")).unwrap_or_default()
}

fn known_text(known: &[String]) -> String {
    match known {
        [] => "nothing".to_owned(),
        known => known.iter().map(|name| format!("`${name}`")).collect::<Vec<_>>().join(", "),
    }
}
