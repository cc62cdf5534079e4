//! Replacement and removal of whole definitions.

use std::ops::Range;

use super::insertion::behind_symbol;
use super::list_item::{Commas, commas};
use super::splice::{line_end, line_start, next_line};
use super::validation::{Scope, finish};
use super::{
    EditError, EditedSource, Indentation, LeadingComments, ParsedSource, Splice, SymbolTarget,
    checked_fragment, indentation, line_feed_of, literal_rows, reindent, with_endings,
};
use crate::language::Language;

pub(super) fn replace(
    source: &ParsedSource<'_>,
    target: &SymbolTarget,
    text: &str,
    comments: LeadingComments,
) -> Result<EditedSource, EditError> {
    let index = source.find(target)?;
    let symbol = source.symbol(index);
    let range = match comments {
        LeadingComments::Keep => symbol.definition.clone(),
        LeadingComments::Replace => symbol.whole.clone(),
    };
    let fragment = checked_fragment(text)?;
    let language = source.language();
    let line = line_start(source.text, range.start);
    let indent = if language == Language::Yaml {
        " ".repeat(source.text[line..range.start].chars().count())
    } else {
        let line = &source.text[line..line_end(source.text, line)];
        indentation::leading_white_space(line).to_owned()
    };
    let style = Indentation::of(language, source.text);
    let moved = reindent(&fragment, &indent, &style, &literal_rows(language, &fragment));
    let mut new = moved.strip_prefix(indent.as_str()).unwrap_or(&moved);
    // The separator behind the definition stays, and a second one would be wrong.
    let rest = source.text[range.end..].trim_start_matches([' ', '\t']);
    let is_item = commas(source, index) != Commas::None;
    for separator in [';', ','] {
        if rest.starts_with(separator) || (is_item && separator == ',') {
            new = new.strip_suffix(separator).unwrap_or(new);
        }
    }
    let ending = line_feed_of(source.text, range.start);
    let splice = Splice::new(range, with_endings(new, ending));
    finish(source, &splice, Scope::Whole, index)
}

pub(super) fn delete(
    source: &ParsedSource<'_>,
    target: &SymbolTarget,
) -> Result<EditedSource, EditError> {
    let index = source.find(target)?;
    let splice = Splice::new(removed_range(source, index), "");
    finish(source, &splice, Scope::Whole, index)
}

fn removed_range(source: &ParsedSource<'_>, index: usize) -> Range<usize> {
    let text = source.text;
    let symbol = source.symbol(index);
    let start = symbol.whole.start;
    let end = behind_symbol(text, source.language(), symbol.definition.end);
    let has_own_lines = text[line_start(text, start)..start].trim().is_empty()
        && text[end..line_end(text, end)].trim().is_empty();
    match commas(source, index) {
        Commas::None if has_own_lines => whole_lines(source, start, end),
        Commas::None => start..end,
        kind => {
            let comma_before = text[..start].trim_end().strip_suffix(',').map(str::len);
            let has_comma = text[symbol.definition.end..].trim_start().starts_with(',');
            match (has_comma, comma_before) {
                (false, Some(comma)) if kind == Commas::Between || !has_own_lines => {
                    comma..symbol.definition.end
                }
                _ if has_own_lines => whole_lines(source, start, end),
                _ => {
                    let rest = &text[end..];
                    start..end + (rest.len() - rest.trim_start_matches([' ', '\t']).len())
                }
            }
        }
    }
}

/// Returns the lines of a definition, with the blank lines above or below it that are fewer.
fn whole_lines(source: &ParsedSource<'_>, start: usize, end: usize) -> Range<usize> {
    let text = source.text;
    let first = line_start(text, start);
    let last = next_line(text, end);
    let above = text[..first].trim_end();
    // The line feed of the line above belongs to it.
    let above_end = if above.is_empty() { 0 } else { next_line(text, above.len()).min(first) };
    let below = text[last..].len() - text[last..].trim_start().len();
    let below_start = if below == text[last..].len() {
        text.len()
    } else {
        line_start(text, last + below).max(last)
    };
    let count = |range: Range<usize>| memchr::memchr_iter(b'\n', text[range].as_bytes()).count();
    let is_first = is_start(source, above, first);
    let is_last = is_end(source, first, below_start);
    if is_last && last == text.len() && !text.ends_with('\n') {
        // The file ends without a line feed, as it did.
        return above.len()..text.len();
    }
    if is_first && !is_last {
        first..below_start
    } else if is_last || count(last..below_start) >= count(above_end..first) {
        above_end..last
    } else {
        first..below_start
    }
}

/// Tells whether nothing of the same block comes before.
fn is_start(source: &ParsedSource<'_>, above: &str, first: usize) -> bool {
    let width = |at: usize| {
        let line = &source.text[at..line_end(source.text, at)];
        indentation::leading_white_space(line).len()
    };
    above.is_empty()
        || above.ends_with(['{', '(', '['])
        || (source.language() != Language::Markdown
            && width(line_start(source.text, above.len())) < width(first))
}

/// Tells whether nothing of the same block follows.
fn is_end(source: &ParsedSource<'_>, first: usize, below: usize) -> bool {
    let text = source.text;
    let rest = &text[below..];
    let indent = |at: usize| indentation::leading_white_space(&text[at..line_end(text, at)]).len();
    rest.is_empty()
        || rest.trim_start().starts_with(['}', ')', ']'])
        || (source.language() != Language::Markdown && indent(below) < indent(first))
}
