//! Patterns: source text with metavariables, as trees.
//!
//! A fragment of a program often does not parse where a file begins: a method needs a class around it, a
//! statement of C a function. The text is therefore parsed in a few contexts of its language, and the first in
//! which it is one whole node without an error counts. A text that is understood in none is refused, for a tree
//! with an error in it would match nothing, which reads like an answer.

use std::ops::Range;

use ast_grep_core::matcher::PatternNode;
use ast_grep_core::meta_var::MetaVariable;
use ast_grep_core::{MatchStrictness, Pattern};
use tree_sitter::Node;

use super::contexts::contexts;
use super::grammar::Grammar;
use super::metavariable::{Metavariable, metavariables};
use super::readable_pattern::readable;
use super::rule::{PatternText, Strictness};
use super::{MAX_LIST_DEPTH, MAX_PATTERN_BYTES, MAX_PATTERN_DEPTH};
use crate::language::Language;
use crate::syntax::{SyntaxError, SyntaxTree, depth, preorder};

/// The reason for the refusal of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It has no tree.
    #[error("{0}")]
    Syntax(#[from] SyntaxError),
    /// It is blank.
    #[error(
        "the pattern is empty; write source text with metavariables such as `$A` and `$$$ARGS`"
    )]
    Empty,
    /// It is too long.
    #[error("the pattern has {bytes} bytes; at most {MAX_PATTERN_BYTES} are taken")]
    TooLong {
        /// Its size.
        bytes: usize,
    },
    /// It is nested too deeply.
    #[error(
        "the pattern is nested more than {MAX_PATTERN_DEPTH} levels deep; match the inner part with `has`"
    )]
    TooDeep,
    /// Too many lists are nested.
    #[error(
        "`$$$` stands inside of more than {MAX_LIST_DEPTH} other lists with `$$$`; match the inner part with `has`"
    )]
    TooManyLists,
    /// Two lists have nothing between them.
    #[error(
        "two lists with `$$$` stand beside each other, and nothing tells where one ends; write `$A` for one of them"
    )]
    AdjacentLists,
    /// A variable of it is part of a longer token.
    #[error(
        "`${name}` is part of a longer token in the pattern `{text}`, such as a string; a variable is a whole node: use a          rule with `kind` and `regex`"
    )]
    InsideToken {
        /// The pattern.
        text: String,
        /// The variable.
        name: String,
    },
    /// The grammar does not understand it.
    #[error("the pattern `{text}` does not parse as {language}{}", hint_text(.hint.as_deref()))]
    DoesNotParse {
        /// The pattern.
        text: String,
        /// The language.
        language: Language,
        /// A way out.
        hint: Option<String>,
    },
    /// It is several nodes.
    #[error(
        "the pattern `{text}` is several nodes of {language}; write one statement or expression, or give `context` \
         with a `selector`"
    )]
    SeveralNodes {
        /// The pattern.
        text: String,
        /// The language.
        language: Language,
    },
    /// It is a list alone.
    #[error(
        "the pattern `{text}` would match any list of nodes; put it into what is around the list"
    )]
    ListAlone {
        /// The pattern.
        text: String,
    },
    /// The grammar has no such kind.
    #[error("{language} has no node kind `{kind}`{}", hint_text(.near.as_deref()))]
    UnknownKind {
        /// The kind.
        kind: String,
        /// The language.
        language: Language,
        /// A kind that it may have been meant to be.
        near: Option<String>,
    },
    /// The context has no node of the kind.
    #[error("the context `{text}` has no node of kind `{selector}`; it has {kinds}")]
    NoSelector {
        /// The context.
        text: String,
        /// The kind.
        selector: String,
        /// The kinds that it has.
        kinds: String,
    },
}

fn hint_text(hint: Option<&str>) -> String {
    hint.map(|hint| format!("; {hint}")).unwrap_or_default()
}

/// A pattern that was understood.
#[derive(Clone)]
pub(super) struct ParsedPattern {
    pub(super) pattern: Pattern,
    /// A remark for the case that it matches nothing: the text means something else elsewhere.
    pub(super) hint: Option<String>,
}

/// Reads a pattern.
pub(super) fn parse(
    grammar: &Grammar,
    pattern: &PatternText,
) -> Result<ParsedPattern, PatternError> {
    let text = pattern.text.trim();
    if text.len() > MAX_PATTERN_BYTES {
        return Err(PatternError::TooLong { bytes: text.len() });
    }
    if text.is_empty() {
        return Err(PatternError::Empty);
    }
    let mut parsed = match &pattern.selector {
        Some(selector) => selected(grammar, text, selector)?,
        None => whole(grammar, text)?,
    };
    parsed.pattern.strictness = match pattern.strictness {
        Strictness::Cst => MatchStrictness::Cst,
        Strictness::Smart => MatchStrictness::Smart,
        Strictness::Ast => MatchStrictness::Ast,
        Strictness::Relaxed => MatchStrictness::Relaxed,
        Strictness::Signature => MatchStrictness::Signature,
    };
    if has_adjacent_lists(&parsed.pattern.node) {
        return Err(PatternError::AdjacentLists);
    }
    if pattern.strictness != Strictness::Cst {
        drop_tokens_behind_lists(&mut parsed.pattern.node);
    }
    if list_depth(&parsed.pattern.node) > MAX_LIST_DEPTH {
        return Err(PatternError::TooManyLists);
    }
    match parsed.pattern.node {
        PatternNode::MetaVar {
            meta_var: MetaVariable::Multiple | MetaVariable::MultiCapture(_),
        } => Err(PatternError::ListAlone { text: text.to_owned() }),
        _ => Ok(parsed),
    }
}

/// One reading of a pattern.
struct Reading<'g> {
    pattern: Pattern,
    kind: &'g str,
    context: (&'static str, &'static str),
}

/// Finds the reading of a text in which all of it is one node.
fn whole(grammar: &Grammar, text: &str) -> Result<ParsedPattern, PatternError> {
    let language = grammar.language();
    let mut readings: Vec<Reading<'_>> = Vec::new();
    let mut is_several = false;
    for context in contexts(language, text) {
        let (source, range) = in_context(grammar, text, *context);
        let tree = parsed(grammar, &source)?;
        if tree.has_error() {
            continue;
        }
        match whole_node(tree.root(), &source, &range) {
            Some(node) => readings.push(Reading {
                kind: grammar.kind_name(node.kind_id()),
                pattern: pattern_of(grammar, &tree, &source, node),
                context: *context,
            }),
            None => is_several = true,
        }
    }
    let variables = metavariables(text);
    let is_complete = |reading: &Reading<'_>| variables.iter().all(|one| captures(reading, one));
    if let Some(reading) = readings.iter().find(|reading| is_complete(reading)).or(readings.first())
        && let Some(lost) = variables.iter().find(|one| !captures(reading, one))
    {
        let name = lost.name.to_owned();
        return Err(PatternError::InsideToken { text: text.to_owned(), name });
    }
    readings.retain(is_complete);
    let text = text.to_owned();
    if readings.is_empty() {
        return Err(if is_several {
            PatternError::SeveralNodes { text, language }
        } else {
            PatternError::DoesNotParse { text, language, hint: parse_hint(language) }
        });
    }
    let first = readings.remove(0);
    let is_compound = matches!(first.pattern.node, PatternNode::Internal { .. });
    let other = readings.into_iter().find(|other| is_compound && other.kind != first.kind);
    let hint = other.map(|other| {
        format!(
            "`{text}` is read as {}; as {} it is {{\"context\": \"{}{text}{}\", \"selector\": \"{}\"}}",
            first.kind, other.kind, other.context.0, other.context.1, other.kind
        )
    });
    Ok(ParsedPattern { pattern: first.pattern, hint })
}

/// Tells whether a variable is a node of a pattern.
fn captures(reading: &Reading<'_>, variable: &Metavariable<'_>) -> bool {
    variable.is_nameless() || reading.pattern.defined_vars().contains(variable.name)
}

fn parse_hint(language: Language) -> Option<String> {
    let hint = match language {
        Language::Json | Language::Toml | Language::Yaml => {
            "a metavariable can stand for a whole key or value only"
        }
        _ if language.is_program() => {
            "give {\"context\": …, \"selector\": …} with the code around it, or a rule with `kind`"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Finds the first node of a kind in a context.
fn selected(grammar: &Grammar, text: &str, selector: &str) -> Result<ParsedPattern, PatternError> {
    let language = grammar.language();
    let kinds = grammar.kinds(selector);
    if kinds.is_empty() {
        return Err(unknown_kind(grammar, selector));
    }
    let mut last = None;
    for context in contexts(language, text) {
        let (source, range) = in_context(grammar, text, *context);
        let tree = parsed(grammar, &source)?;
        if tree.has_error() {
            continue;
        }
        let nodes: Vec<Node<'_>> = preorder(tree.root())
            .filter(|node| range.start <= node.start_byte() && node.end_byte() <= range.end)
            .collect();
        if let Some(node) = nodes.iter().find(|node| kinds.contains(&node.kind_id())) {
            let pattern = pattern_of(grammar, &tree, &source, *node);
            return Ok(ParsedPattern { pattern, hint: None });
        }
        let mut names: Vec<_> =
            nodes.iter().filter(|node| node.is_named()).map(Node::kind).collect();
        names.dedup();
        last.get_or_insert(names.join(", "));
    }
    let (text, selector) = (text.to_owned(), selector.to_owned());
    Err(match last {
        Some(kinds) => PatternError::NoSelector { text, selector, kinds },
        None => PatternError::DoesNotParse { text, language, hint: None },
    })
}

pub(super) fn unknown_kind(grammar: &Grammar, kind: &str) -> PatternError {
    let near = carrel_domain::suggest::closest(kind, grammar.named_kinds(), |name| name.len() / 3);
    let near = near.map(|near| format!("did you mean `{near}`?"));
    PatternError::UnknownKind { kind: kind.to_owned(), language: grammar.language(), near }
}

fn in_context(
    grammar: &Grammar,
    text: &str,
    (before, after): (&str, &str),
) -> (String, Range<usize>) {
    let text = readable(grammar.language(), text);
    let range = before.len()..before.len() + text.len();
    (format!("{before}{text}{after}"), range)
}

/// Parses a pattern, and refuses one that is too deep for what walks it by recursion.
fn parsed(grammar: &Grammar, source: &str) -> Result<SyntaxTree, PatternError> {
    let tree = SyntaxTree::parse(grammar.language(), source)?;
    if depth(tree.root()) > MAX_PATTERN_DEPTH { Err(PatternError::TooDeep) } else { Ok(tree) }
}

/// Returns the innermost node that is exactly this range, perhaps with a line feed behind it.
fn whole_node<'t>(root: Node<'t>, source: &str, range: &Range<usize>) -> Option<Node<'t>> {
    let node = root.named_descendant_for_byte_range(range.start, range.end)?;
    let behind = source.get(range.end..node.end_byte()).unwrap_or_default();
    let is_whole = node.start_byte() == range.start && behind.trim().is_empty();
    // A file of several statements is no statement.
    (is_whole && (node.parent().is_some() || node.named_child_count() <= 1)).then_some(node)
}

fn pattern_of(grammar: &Grammar, tree: &SyntaxTree, source: &str, node: Node<'_>) -> Pattern {
    let document = grammar.document(tree, source);
    let range = node.byte_range();
    let found = preorder(document.root().get_inner_node())
        .find(|other| other.byte_range() == range && other.kind_id() == node.kind_id());
    let found = found.expect("a copy of a tree has the same nodes");
    Pattern::from(document.adopt(found))
}

fn is_list(node: &PatternNode) -> bool {
    matches!(
        node,
        PatternNode::MetaVar { meta_var: MetaVariable::Multiple | MetaVariable::MultiCapture(_) }
    )
}

/// Returns the variable that is the last part of a pattern, if a list is among the parts before it.
pub(super) fn variable_behind_list(node: &PatternNode) -> Option<&str> {
    let PatternNode::Internal { children, .. } = node else { return None };
    let mut parts = children.iter().rev().filter(|child| !is_token(child));
    let PatternNode::MetaVar { meta_var: MetaVariable::Capture(name, _) } = parts.next()? else {
        return None;
    };
    parts.any(is_list).then_some(name)
}

fn is_token(node: &PatternNode) -> bool {
    matches!(node, PatternNode::Terminal { is_named: false, .. })
}

fn has_adjacent_lists(node: &PatternNode) -> bool {
    let PatternNode::Internal { children, .. } = node else { return false };
    let mut parts = children.iter().filter(|child| !is_token(child)).map(is_list);
    let mut last = false;
    parts.any(|is_list| std::mem::replace(&mut last, is_list) && is_list)
        || children.iter().any(has_adjacent_lists)
}

/// Removes separators behind a list, and the brackets behind one at the end of a node.
///
/// The matcher takes as many nodes from the end of what a list matched as there are tokens behind it in the pattern,
/// even where the source leaves a separator out, and what the list should have captured would be lost. The
/// kind of the node tells its brackets.
fn drop_tokens_behind_lists(node: &mut PatternNode) {
    let PatternNode::Internal { children, .. } = node else { return };
    if let Some(last) = children.iter().rposition(is_list)
        && children[last + 1..].iter().all(is_token)
    {
        children.truncate(last + 1);
    }
    let is_separator = |node: &PatternNode| matches!(node, PatternNode::Terminal { text, is_named: false, .. } if text == "," || text == ";");
    let mut follows_list = false;
    children.retain(|child| {
        let is_dropped = follows_list && is_separator(child);
        follows_list = is_list(child) || is_dropped;
        !is_dropped
    });
    for child in children {
        drop_tokens_behind_lists(child);
    }
}

/// Returns the most lists with `$$$` that stand inside of each other. The matcher tries an inner list twice for each
/// outer one.
fn list_depth(node: &PatternNode) -> usize {
    let PatternNode::Internal { children, .. } = node else { return 0 };
    let inner = children.iter().map(list_depth).max().unwrap_or_default();
    inner + usize::from(children.iter().any(is_list))
}
