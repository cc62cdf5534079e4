//! Patterns: source text with metavariables, as trees.
//!
//! A fragment of a program often does not parse where a file begins: a method needs a class around it, a
//! statement of C a function. The text is therefore parsed in a few contexts of its language, and the first in
//! which it is one whole node without an error counts. A text that is understood in none is refused, for a tree
//! with an error in it would match nothing, which reads like an answer.

use std::borrow::Cow;
use std::ops::Range;

use ast_grep_core::matcher::{PatternBuilder, PatternError as LibraryError, PatternNode};
use ast_grep_core::meta_var::MetaVariable;
use ast_grep_core::tree_sitter::{LanguageExt, StrDoc, TSLanguage};
use ast_grep_core::{AstGrep, MatchStrictness, Pattern};
use tree_sitter::{Node, TreeCursor};

use super::metavariable::{STAND_IN, has_quoted_variables, metavariables, readable};
use super::rule::{PatternText, Strictness};
use super::{MAX_LIST_DEPTH, MAX_PATTERN_BYTES, MAX_PATTERN_DEPTH};
use crate::language::{Language, MissingGrammar};
use crate::syntax::{SyntaxError, SyntaxTree};

/// A language whose grammar is compiled in, as the matcher needs it.
#[derive(Clone, Debug)]
pub(super) struct Grammar {
    language: Language,
    grammar: TSLanguage,
}

/// A document of the matcher.
pub(super) type Document = StrDoc<Grammar>;

impl Grammar {
    pub(super) fn of(language: Language) -> Result<Self, MissingGrammar> {
        Ok(Self { language, grammar: language.grammar()? })
    }

    pub(super) fn language(&self) -> Language {
        self.language
    }

    /// Makes a document of a tree that was parsed in bounded time.
    pub(super) fn document(&self, tree: &SyntaxTree, source: &str) -> AstGrep<Document> {
        let (src, tree) = (source.to_owned(), tree.tree().clone());
        AstGrep::doc(StrDoc { src, lang: self.clone(), tree })
    }

    /// Returns the ids of the kinds of this name.
    pub(super) fn kinds(&self, name: &str) -> Vec<u16> {
        let count = u16::try_from(self.grammar.node_kind_count()).unwrap_or(u16::MAX);
        let is_named = |id: &u16| self.grammar.node_kind_for_id(*id) == Some(name);
        (0..count).filter(is_named).collect()
    }

    /// Returns the id of the field of this name.
    pub(super) fn field(&self, name: &str) -> Option<u16> {
        self.grammar.field_id_for_name(name).map(u16::from)
    }

    pub(super) fn kind_name(&self, id: u16) -> &str {
        self.grammar.node_kind_for_id(id).unwrap_or_default()
    }
}

impl ast_grep_core::Language for Grammar {
    fn expando_char(&self) -> char {
        STAND_IN
    }

    fn pre_process_pattern<'q>(&self, query: &'q str) -> Cow<'q, str> {
        Cow::Owned(readable(self.language, query))
    }

    fn extract_meta_var(&self, source: &str) -> Option<MetaVariable> {
        let name = if has_quoted_variables(self.language) {
            source.strip_prefix('"')?.strip_suffix('"')?
        } else {
            source.strip_suffix(';').filter(|name| is_list(name)).unwrap_or(source)
        };
        let text: String = name.chars().map(|c| if c == STAND_IN { '$' } else { c }).collect();
        let found = metavariables(&text);
        let [variable] = &found[..] else { return None };
        if variable.range != (0..text.len()) {
            return None;
        }
        Some(match (variable.dollars, variable.is_nameless()) {
            (3, true) => MetaVariable::Multiple,
            (3, false) => MetaVariable::MultiCapture(variable.name.to_owned()),
            (dollars, true) => MetaVariable::Dropped(dollars == 1),
            (dollars, false) => MetaVariable::Capture(variable.name.to_owned(), dollars == 1),
        })
    }

    fn kind_to_id(&self, kind: &str) -> u16 {
        self.grammar.id_for_node_kind(kind, true)
    }

    fn field_to_id(&self, field: &str) -> Option<u16> {
        self.field(field)
    }

    fn build_pattern(&self, builder: &PatternBuilder<'_>) -> Result<Pattern, LibraryError> {
        builder.build(|source| StrDoc::try_new(source, self.clone()))
    }
}

impl LanguageExt for Grammar {
    fn get_ts_language(&self) -> TSLanguage {
        self.grammar.clone()
    }
}

fn is_list(name: &str) -> bool {
    name.chars().take(3).all(|c| c == STAND_IN) && name.chars().count() >= 3
}

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
    let language = grammar.language;
    let mut readings: Vec<Reading<'_>> = Vec::new();
    let mut is_several = false;
    for context in contexts(language) {
        let (source, range) = in_context(grammar, text, *context);
        let tree = parsed(grammar, &source)?;
        if tree.has_error() {
            continue;
        }
        match whole_node(tree.root(), &range) {
            Some(node) => readings.push(Reading {
                kind: grammar.kind_name(node.kind_id()),
                pattern: pattern_of(grammar, &tree, &source, node),
                context: *context,
            }),
            None => is_several = true,
        }
    }
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
    let language = grammar.language;
    let kinds = grammar.kinds(selector);
    if kinds.is_empty() {
        return Err(unknown_kind(grammar, selector));
    }
    let mut last = None;
    for context in contexts(language) {
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
    let count = u16::try_from(grammar.grammar.node_kind_count()).unwrap_or(u16::MAX);
    let names = (0..count).filter(|id| grammar.grammar.node_kind_is_named(*id));
    let near =
        carrel_domain::suggest::closest(kind, names.map(|id| grammar.kind_name(id)), |name| {
            name.len() / 3
        });
    let near = near.map(|near| format!("did you mean `{near}`?"));
    PatternError::UnknownKind { kind: kind.to_owned(), language: grammar.language, near }
}

fn in_context(
    grammar: &Grammar,
    text: &str,
    (before, after): (&str, &str),
) -> (String, Range<usize>) {
    let text = readable(grammar.language, text);
    let range = before.len()..before.len() + text.len();
    (format!("{before}{text}{after}"), range)
}

/// Parses a pattern, and refuses one that is too deep for what walks it by recursion.
fn parsed(grammar: &Grammar, source: &str) -> Result<SyntaxTree, PatternError> {
    let tree = SyntaxTree::parse(grammar.language, source)?;
    if depth(tree.root()) > MAX_PATTERN_DEPTH { Err(PatternError::TooDeep) } else { Ok(tree) }
}

/// Returns the number of levels of a tree.
pub(super) fn depth(root: Node<'_>) -> usize {
    let mut cursor = root.walk();
    let (mut depth, mut deepest) = (0, 0);
    loop {
        if cursor.goto_first_child() {
            depth += 1;
            deepest = deepest.max(depth);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return deepest;
            }
            depth -= 1;
        }
    }
}

fn preorder(root: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let mut cursor = root.walk();
    let mut next = Some(root);
    std::iter::from_fn(move || {
        let node = next?;
        next = advance(&mut cursor).then(|| cursor.node());
        Some(node)
    })
}

fn advance(cursor: &mut TreeCursor<'_>) -> bool {
    if cursor.goto_first_child() {
        return true;
    }
    while !cursor.goto_next_sibling() {
        if !cursor.goto_parent() {
            return false;
        }
    }
    true
}

/// Returns the innermost node that is exactly this range.
fn whole_node<'t>(root: Node<'t>, range: &Range<usize>) -> Option<Node<'t>> {
    let node = root.named_descendant_for_byte_range(range.start, range.end)?;
    let is_whole = node.byte_range() == *range;
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

/// Returns the most lists with `$$$` that stand inside of each other. The matcher tries an inner list twice for each
/// outer one.
fn list_depth(node: &PatternNode) -> usize {
    let PatternNode::Internal { children, .. } = node else { return 0 };
    let is_list = |node: &PatternNode| {
        matches!(
            node,
            PatternNode::MetaVar {
                meta_var: MetaVariable::Multiple | MetaVariable::MultiCapture(_)
            }
        )
    };
    let inner = children.iter().map(list_depth).max().unwrap_or_default();
    inner + usize::from(children.iter().any(is_list))
}

/// Returns the texts around a pattern in which it may be read, the usual one first.
const fn contexts(language: Language) -> &'static [(&'static str, &'static str)] {
    match language {
        Language::Rust => &[
            ("", ""),
            ("fn µ() { ", " }"),
            ("fn µ() { let µ = ", "; }"),
            ("impl µ { ", " }"),
            ("struct µ { ", " }"),
            ("enum µ { ", " }"),
            ("fn µ() { match µ { ", " } }"),
            ("type µ = ", ";"),
        ],
        Language::C => &[
            ("void µ() { ", " }"),
            ("void µ() { µ = ", "; }"),
            ("", ""),
            ("", "\n"),
            ("struct µ { ", " };"),
        ],
        Language::Cpp => &[
            ("void µ() { ", " }"),
            ("void µ() { µ = ", "; }"),
            ("", ""),
            ("", "\n"),
            ("class µ { ", " };"),
        ],
        Language::CSharp => &[
            ("", ""),
            ("class µ { ", " }"),
            ("class µ { void µ() { ", " } }"),
            ("class µ { object µ = ", "; }"),
        ],
        Language::Java => &[
            ("", ""),
            ("class µ { void µ() { ", " } }"),
            ("class µ { Object µ = ", "; }"),
            ("class µ { ", " }"),
        ],
        Language::Go => &[
            ("", ""),
            ("package µ\nfunc µ() {\n", "\n}\n"),
            ("package µ\nvar µ = ", "\n"),
            ("package µ\ntype µ struct {\n", "\n}\n"),
            ("package µ\ntype µ interface {\n", "\n}\n"),
        ],
        Language::JavaScript => &[("", ""), ("(", ")"), ("class µ { ", " }"), ("({ ", " })")],
        Language::TypeScript | Language::Tsx => &[
            ("", ""),
            ("(", ")"),
            ("class µ { ", " }"),
            ("({ ", " })"),
            ("interface µ { ", " }"),
            ("type µ = ", ";"),
        ],
        Language::Php => {
            &[("<?php ", ""), ("<?php ", ";"), ("<?php class µ { ", " }"), ("<?php µ = ", ";")]
        }
        Language::Lua => &[("", ""), ("return ", "")],
        Language::Css => &[("", ""), ("a { ", "; }"), ("a { ", " }"), ("", " {}")],
        Language::Json => &[("", ""), ("{", "}")],
        Language::Kotlin | Language::Swift | Language::Scala => &[("", ""), ("class µ { ", " }")],
        Language::Bash
        | Language::Html
        | Language::Markdown
        | Language::Python
        | Language::Ruby
        | Language::Toml
        | Language::Yaml => &[("", ""), ("", "\n")],
    }
}
