//! Insertion of definitions beside symbols.

use super::list_item::{Commas, commas};
use super::splice::{line_end, line_start};
use super::target::single_names;
use super::validation::{Scope, finish};
use super::{
    EditError, EditedSource, Indentation, ParsedSource, Side, Splice, SymbolTarget,
    checked_fragment, indentation, line_feed_of, literal_rows, reindent, with_endings,
};
use crate::language::Language;
use crate::symbol::{NamePath, Symbol};

/// The most blank lines between a symbol and what is inserted beside it.
const MAX_BLANK_LINES: usize = 3;

pub(super) fn insert_after_method(
    source: &ParsedSource<'_>,
    receiver: &str,
    method: &str,
    line: Option<usize>,
    text: &str,
) -> Result<EditedSource, EditError> {
    if !source.language().is_program() {
        return Err(EditError::NoFunctions { language: source.language() });
    }
    let index = source.find_method(receiver, method, line)?;
    let edited = Insertion { source, index, min_blank_lines: 1 }.insert(Side::After, text)?;
    let of_type = source.path_text(index);
    let of_type = of_type.rsplit_once("::").map_or(receiver, |(of_type, _)| of_type);
    let path = NamePath::parse(of_type);
    let is_method = edited.symbols.iter().any(|symbol| {
        let (_, around) = symbol.path.split_last().expect("a symbol has a name");
        let around: Vec<_> = around.iter().map(String::as_str).collect();
        symbol.kind.is_callable()
            && path.as_ref().is_some_and(|path| path.matches(&single_names(&around)))
    });
    if is_method { Ok(edited) } else { Err(EditError::NotAMethod { receiver: of_type.to_owned() }) }
}

pub(super) fn insert(
    source: &ParsedSource<'_>,
    target: &SymbolTarget,
    side: Side,
    text: &str,
) -> Result<EditedSource, EditError> {
    let index = source.find(target)?;
    Insertion { source, index, min_blank_lines: 0 }.insert(side, text)
}

struct Insertion<'a, 's> {
    source: &'a ParsedSource<'s>,
    index: usize,
    min_blank_lines: usize,
}

impl Insertion<'_, '_> {
    fn insert(&self, side: Side, text: &str) -> Result<EditedSource, EditError> {
        let fragment = checked_fragment(text)?;
        let splice = match (commas(self.source, self.index), side) {
            (Commas::None, Side::Before) => self.before(&fragment, ""),
            (Commas::None, Side::After) => self.after(&fragment),
            (_, Side::Before) => self.before(fragment.trim_end_matches(','), ","),
            (_, Side::After) => self.item_after(fragment.trim_end_matches(',')),
        };
        let ending = line_feed_of(self.source.text, self.symbol().definition.start);
        let splice = Splice { new: with_endings(&splice.new, ending).into_owned(), ..splice };
        finish(self.source, &splice, Scope::Whole, self.index)
    }

    fn symbol(&self) -> &Symbol {
        self.source.symbol(self.index)
    }

    /// Inserts above the comments of the symbol.
    fn before(&self, fragment: &str, comma: &str) -> Splice {
        let text = self.source.text;
        let start = self.symbol().whole.start;
        let line = line_start(text, start);
        let indent = self.indentation();
        let fragment = self.moved(fragment, &indent);
        match text[line..start].trim().is_empty() {
            true => {
                let blank = "\n".repeat(self.blank_lines(Side::Before, &fragment));
                Splice::new(line..line, format!("{fragment}{comma}\n{blank}"))
            }
            false if self.is_on_one_line() && !comma.is_empty() => {
                Splice::new(start..start, format!("{}{comma} ", fragment.trim_start()))
            }
            false => {
                Splice::new(start..start, format!("{}{comma}\n{indent}", fragment.trim_start()))
            }
        }
    }

    /// Inserts below the last line of the symbol.
    fn after(&self, fragment: &str) -> Splice {
        let text = self.source.text;
        let indent = self.indentation();
        let fragment = self.moved(fragment, &indent);
        let at = behind_symbol(text, self.source.language(), self.symbol().definition.end);
        let rest = text[at..line_end(text, at)].trim();
        let blank = "\n".repeat(self.blank_lines(Side::After, &fragment));
        if rest.is_empty() {
            Splice::new(at..at, format!("\n{blank}{fragment}"))
        } else {
            // Code on the same line goes to the next one.
            let spaces = text[at..].len() - text[at..].trim_start_matches([' ', '\t']).len();
            Splice::new(at..at + spaces, format!("\n{fragment}\n{indent}"))
        }
    }

    /// Inserts behind an item and its comma, which a last item gets.
    fn item_after(&self, fragment: &str) -> Splice {
        let text = self.source.text;
        let end = self.symbol().definition.end;
        let indent = self.indentation();
        let fragment = self.moved(fragment, &indent);
        let fragment = if self.is_on_one_line() {
            format!(" {}", fragment.trim_start())
        } else {
            format!("\n{fragment}")
        };
        let gap = text[end..].len() - text[end..].trim_start().len();
        let has_comma = text[end + gap..].starts_with(',');
        if has_comma {
            let at = behind_comment(text, self.source.language(), end + gap + 1);
            Splice::new(at..at, format!("{fragment},"))
        } else {
            Splice::new(end..end, format!(",{fragment}"))
        }
    }

    /// Tells whether the symbol shares its line with another item or the brackets around it.
    fn is_on_one_line(&self) -> bool {
        let text = self.source.text;
        let start = self.symbol().whole.start;
        !text[line_start(text, start)..start].trim().is_empty()
    }

    fn moved(&self, fragment: &str, indent: &str) -> String {
        let language = self.source.language();
        let style = Indentation::of(language, self.source.text);
        reindent(fragment, indent, &style, &literal_rows(language, fragment))
    }

    /// Returns the white space before the symbol: that of its line, or its column where columns have a meaning.
    fn indentation(&self) -> String {
        let text = self.source.text;
        let start = self.symbol().definition.start;
        let line = line_start(text, start);
        match self.source.language() {
            Language::Yaml => " ".repeat(text[line..start].chars().count()),
            _ => indentation::leading_white_space(&text[line..line_end(text, line)]).to_owned(),
        }
    }

    /// Returns the number of blank lines between the symbol and what is inserted: as many as between it and a
    /// neighbour of the same length, or what is usual.
    fn blank_lines(&self, side: Side, fragment: &str) -> usize {
        let own = self.symbol();
        let language = self.source.language();
        let is_long = fragment.trim().contains('\n') || self.is_long(own);
        let usual = match (language, is_long) {
            (Language::Python, true) if own.parent.is_none() => 2,
            (Language::Markdown, _) => 1,
            (Language::Css | Language::Toml, true) if own.parent.is_none() => 1,
            (language, true) if language.is_program() => 1,
            _ => 0,
        };
        let neighbours = [self.gap(side), self.gap(opposite(side))];
        let mut known = neighbours.iter().flatten();
        let alike = known
            .clone()
            .find(|gap| gap.is_long == is_long && gap.is_callable == own.kind.is_callable());
        let found = match (alike, known.next()) {
            (Some(gap), _) => Some(gap.lines),
            // A neighbour of another kind says little about this one.
            (None, Some(gap)) if is_long || own.kind.is_callable() => Some(gap.lines.max(usual)),
            _ => None,
        };
        found.unwrap_or(usual).max(self.min_blank_lines).min(MAX_BLANK_LINES)
    }

    fn is_long(&self, symbol: &Symbol) -> bool {
        self.source.text[symbol.definition.clone()].contains('\n')
    }

    /// Measures the distance between the symbol and its neighbour on one side.
    fn gap(&self, side: Side) -> Option<Gap> {
        let own = self.symbol();
        let text = self.source.text;
        let mut siblings =
            self.source.symbols.symbols.iter().filter(|other| other.parent == own.parent);
        let (neighbour, between) = match side {
            Side::After => {
                let next = siblings.find(|other| other.whole.start >= own.whole.end)?;
                (next, &text[own.whole.end..next.whole.start])
            }
            Side::Before => {
                let previous = siblings.take_while(|other| other.whole.end <= own.whole.start);
                let previous = previous.last()?;
                (previous, &text[previous.whole.end..own.whole.start])
            }
        };
        let lines: Vec<&str> = between.split('\n').collect();
        let lines = lines.get(1..lines.len().checked_sub(1)?)?;
        let is_blank = |line: &&&str| line.trim().is_empty();
        let lines = match side {
            Side::After => lines.iter().take_while(is_blank).count(),
            Side::Before => lines.iter().rev().take_while(is_blank).count(),
        };
        Some(Gap {
            lines,
            is_long: self.is_long(neighbour),
            is_callable: neighbour.kind.is_callable(),
        })
    }
}

/// The distance between a symbol and a neighbour.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// The blank lines between them.
    lines: usize,
    /// The neighbour has several lines.
    is_long: bool,
    /// The neighbour is a function.
    is_callable: bool,
}

fn opposite(side: Side) -> Side {
    match side {
        Side::Before => Side::After,
        Side::After => Side::Before,
    }
}

/// Returns the place behind a definition, its semicolon or comma and the comment on its line.
pub(super) fn behind_symbol(text: &str, language: Language, end: usize) -> usize {
    let rest = &text[end..line_end(text, end)];
    let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let at = if rest[blank..].starts_with([';', ',']) { end + blank + 1 } else { end };
    behind_comment(text, language, at)
}

/// Returns the end of the comment that is the rest of the line, or the place itself.
fn behind_comment(text: &str, language: Language, at: usize) -> usize {
    let rest = &text[at..line_end(text, at)];
    let comment = rest.trim();
    let is_comment = match language {
        Language::Python | Language::Ruby | Language::Bash | Language::Yaml | Language::Toml => {
            comment.starts_with('#')
        }
        Language::Lua => comment.starts_with("--"),
        Language::Html | Language::Markdown => {
            comment.starts_with("<!--") && comment.ends_with("-->")
        }
        _ => {
            let is_block =
                comment.starts_with("/*") && comment.find("*/") == Some(comment.len() - 2);
            comment.starts_with("//") || is_block
        }
    };
    if is_comment { at + rest.trim_end().len() } else { at }
}
