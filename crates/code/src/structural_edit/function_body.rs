//! The bodies of functions: what delimits them, and their replacement.

use std::collections::HashSet;
use std::ops::Range;

use tree_sitter::Node;

use super::splice::{line_end, line_start};
use super::validation::{Scope, finish};
use super::{
    EditError, EditedSource, Indentation, MAX_FRAGMENT_BYTES, ParsedSource, Splice, SymbolTarget,
    indentation, line_feed_of, line_of, literal_rows, reindent, with_endings,
};
use crate::language::Language;
use crate::symbol::Symbol;

/// The delimiters of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
enum BodyPlace {
    /// Braces, between which any text may stand.
    Braces(Range<usize>),
    /// A header line above and a keyword or a brace below, both on lines of their own.
    Lines(Range<usize>),
    /// A header line above. The body ends with its indentation.
    Block(Range<usize>),
    /// None: the body is one expression.
    Expression(Range<usize>),
}

pub(super) fn replace(
    source: &ParsedSource<'_>,
    target: &SymbolTarget,
    body: &str,
) -> Result<EditedSource, EditError> {
    if body.len() > MAX_FRAGMENT_BYTES {
        return Err(EditError::FragmentTooLarge { bytes: body.len() });
    }
    let index = source.find_with_body(target)?;
    let Some(place) = body_place(source, index) else {
        let symbol = source.symbol(index);
        return Err(EditError::NoBody { path: source.path_text(index), line: symbol.line });
    };
    check_head(source, index)?;
    let body = body.replace("\r\n", "\n");
    let ending = line_feed_of(source.text, source.symbol(index).definition.start);
    let text = BodyText { source, index, ending };
    let (range, new) = match place {
        BodyPlace::Braces(range) => (range.clone(), text.braced(&range, &body)),
        BodyPlace::Lines(range) => (range.clone(), text.lined(&range, &body, true)),
        BodyPlace::Block(range) => (range.clone(), text.lined(&range, &body, false)),
        BodyPlace::Expression(range) => return text.replace_expression(range, &body),
    };
    finish(source, &Splice::new(range, new), Scope::Body, index)
}

/// Refuses a function whose head was not understood behind its name: the place of its body would be a guess. Before
/// the name are macros that the grammar of C does not know.
pub(super) fn check_head(source: &ParsedSource<'_>, index: usize) -> Result<(), EditError> {
    let symbol = source.symbol(index);
    let end = symbol.body.as_ref().map_or(symbol.definition.end, |body| body.start);
    let head = symbol.name_range.end..end;
    let errors = source.tree.errors();
    let error = errors.iter().find(|error| head.start <= error.start && error.start < head.end);
    match error {
        None => Ok(()),
        Some(error) => Err(EditError::Broken {
            path: source.path_text(index),
            line: line_of(source.text, error.start),
        }),
    }
}

fn body_place(source: &ParsedSource<'_>, index: usize) -> Option<BodyPlace> {
    let symbol = source.symbol(index);
    match source.language() {
        Language::Python => {
            let body = symbol.body.clone()?;
            let colon = source.header_end(index)?;
            Some(BodyPlace::Block(behind_header(source.text, colon + 1, body.start)..body.end))
        }
        Language::Ruby | Language::Lua => keyword_place(source, symbol),
        language => {
            let body = symbol.body.clone()?;
            let text = &source.text[body.clone()];
            let inside = body.start + 1..body.end.saturating_sub(1).max(body.start + 1);
            let is_between =
                |open, close| text.len() > 1 && text.starts_with(open) && text.ends_with(close);
            if is_between('{', '}') {
                Some(match language {
                    Language::Bash => BodyPlace::Lines(inside),
                    _ => BodyPlace::Braces(inside),
                })
            } else if language == Language::Bash && is_between('(', ')') {
                Some(BodyPlace::Lines(inside))
            } else {
                Some(BodyPlace::Expression(body))
            }
        }
    }
}

/// Finds the inside of a function that ends with the keyword `end`. An empty one has no node for its body.
fn keyword_place(source: &ParsedSource<'_>, symbol: &Symbol) -> Option<BodyPlace> {
    let owner = function_node(source, symbol)?;
    if let Some(body) = owner.child_by_field_name("body").filter(|_| !ends_with_keyword(owner)) {
        return Some(BodyPlace::Expression(body.byte_range()));
    }
    let end = last_child(owner).filter(|last| last.kind() == "end")?;
    let header =
        ["parameters", "name"].into_iter().find_map(|field| owner.child_by_field_name(field))?;
    let from = behind_header(source.text, header.end_byte(), end.start_byte());
    Some(BodyPlace::Lines(from..end.start_byte()))
}

fn ends_with_keyword(owner: Node<'_>) -> bool {
    last_child(owner).is_some_and(|last| last.kind() == "end")
}

fn last_child(node: Node<'_>) -> Option<Node<'_>> {
    node.child(node.child_count().checked_sub(1)?)
}

/// Returns the node of a function, which is not around its name where it is assigned to it.
pub(super) fn function_node<'t>(source: &'t ParsedSource<'_>, symbol: &Symbol) -> Option<Node<'t>> {
    const FUNCTIONS: [&str; 4] =
        ["method", "singleton_method", "function_declaration", "function_definition"];
    let name = &symbol.name_range;
    let mut next = source.tree.root().descendant_for_byte_range(name.start, name.end);
    while let Some(node) = next {
        if FUNCTIONS.contains(&node.kind()) {
            return Some(node);
        }
        if node.kind() == "assignment_statement" {
            let value = node.named_child(1)?.named_child(0)?;
            return Some(value).filter(|value| FUNCTIONS.contains(&value.kind()));
        }
        next = node.parent();
    }
    None
}

impl ParsedSource<'_> {
    /// Returns the place of the colon between the head and the body of a Python function.
    pub(super) fn header_end(&self, index: usize) -> Option<usize> {
        let symbol = self.symbol(index);
        let body = symbol.body.as_ref()?;
        let name = &symbol.name_range;
        let node = self.tree.root().descendant_for_byte_range(name.start, name.end)?.parent()?;
        let mut cursor = node.walk();
        let colons = node.children(&mut cursor).filter(|child| child.kind() == ":");
        let colons = colons.map(|colon| colon.start_byte()).filter(|at| *at < body.start);
        colons.last()
    }

    fn has_arrow(&self) -> bool {
        matches!(self.language(), Language::JavaScript | Language::TypeScript | Language::Tsx)
    }
}

/// Returns the place behind a header: after a comment on its line, if nothing else is there.
fn behind_header(text: &str, header: usize, limit: usize) -> usize {
    let end = line_end(text, header).min(limit);
    let rest = text[header..end].trim();
    let is_comment = rest.starts_with('#') || rest.starts_with("--");
    if is_comment { header + text[header..end].trim_end().len() } else { header }
}

/// The text of a body in its place.
struct BodyText<'a, 's> {
    source: &'a ParsedSource<'s>,
    index: usize,
    ending: &'static str,
}

impl BodyText<'_, '_> {
    /// Replaces a body that is one expression; by a block, if the text is none and the language lets it be one.
    fn replace_expression(
        &self,
        range: Range<usize>,
        body: &str,
    ) -> Result<EditedSource, EditError> {
        let finish = |new: String| {
            finish(self.source, &Splice::new(range.clone(), new), Scope::Body, self.index)
        };
        match finish(with_endings(body.trim(), self.ending).into_owned()) {
            Err(EditError::DidNotParse(_) | EditError::Escapes(_)) if self.source.has_arrow() => {
                let lines = format!("\n{}\n", body.trim_matches('\n'));
                finish(format!("{{{}}}", self.braced(&range, &lines)))
            }
            edited => edited,
        }
    }

    /// Returns a text between braces: as it is, unless it is indented no deeper than the function.
    fn braced(&self, inside: &Range<usize>, body: &str) -> String {
        if !body.contains('\n') {
            return body.to_owned();
        }
        let own = self.own_indentation();
        let rows = literal_rows(self.source.language(), body);
        let lines: Vec<&str> = body.split('\n').collect();
        let below = if lines[0].trim().is_empty() { &lines[1..] } else { &lines[..] };
        let base = indentation::base_indentation(below, &HashSet::new());
        let is_shallow = base.len() <= own.len() && !body.trim().is_empty();
        let mut text = if is_shallow {
            reindent(body, &self.inner_indentation(inside), &self.style(), &rows)
        } else {
            body.to_owned()
        };
        if text.ends_with('\n') {
            text.push_str(&own);
        }
        with_endings(&text, self.ending).into_owned()
    }

    /// Returns a text on lines of its own, with the end of the function on the next line if it has one.
    fn lined(&self, inside: &Range<usize>, body: &str, has_end: bool) -> String {
        let body = without_blank_lines(body);
        let mut text = String::new();
        if !body.is_empty() {
            let rows = literal_rows(self.source.language(), body);
            text.push('\n');
            text.push_str(&reindent(body, &self.inner_indentation(inside), &self.style(), &rows));
        }
        if has_end {
            text.push('\n');
            text.push_str(&self.own_indentation());
        }
        with_endings(&text, self.ending).into_owned()
    }

    fn style(&self) -> Indentation {
        Indentation::of(self.source.language(), self.source.text)
    }

    /// Returns the indentation of the line on which the function begins.
    fn own_indentation(&self) -> String {
        let text = self.source.text;
        let start = line_start(text, self.source.symbol(self.index).head);
        indentation::leading_white_space(&text[start..line_end(text, start)]).to_owned()
    }

    /// Returns the indentation of the first line of the present body, or of the one that it would have.
    fn inner_indentation(&self, inside: &Range<usize>) -> String {
        let own = self.own_indentation();
        let mut lines = self.source.text[inside.clone()].lines().skip(1);
        let first = lines.find(|line| !line.trim().is_empty());
        match first.map(indentation::leading_white_space) {
            Some(indent) if indent.len() > own.len() => indent.to_owned(),
            _ => own + &self.style().unit,
        }
    }
}

fn without_blank_lines(text: &str) -> &str {
    let text = text.trim_end();
    let begin = text.len() - text.trim_start().len();
    let begin = text[..begin].rfind('\n').map_or(0, |feed| feed + 1);
    &text[begin..]
}
