//! The checks of a result: that it parses as well as the text did, and that only the edited symbol changed.

use std::ops::Range;

use super::splice::line_of;
use super::{AffectedSymbol, EditError, EditedSource, ParsedSource, Splice, first_new_error};
use crate::language::Language;
use crate::symbol::{Symbol, SymbolKind};
use crate::symbols::FileSymbols;

/// The way in which an edit changed what is around it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Escape {
    /// A symbol around or beside the edit is gone, or ends elsewhere.
    #[error("it would change {kind} {path} at line {line} as well")]
    Changed {
        /// The symbol.
        path: String,
        /// Its kind.
        kind: SymbolKind,
        /// Its line in the old text.
        line: usize,
    },
    /// A symbol appeared outside of the edited one.
    #[error("it would add {kind} {path} at line {line} of the result outside of it")]
    Added {
        /// The symbol.
        path: String,
        /// Its kind.
        kind: SymbolKind,
        /// Its line in the result.
        line: usize,
    },
}

/// The symbols that an edit may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The inside of the edited symbol, which itself begins and ends where it did.
    Body,
    /// The head of the edited symbol, whose body stays.
    Head,
    /// All that is replaced.
    Whole,
}

/// Applies a splice, checks the result and describes it.
///
/// `edited` is the symbol that the edit is about, or the one beside which text is inserted.
pub(super) fn finish(
    source: &ParsedSource<'_>,
    splice: &Splice,
    scope: Scope,
    edited: usize,
) -> Result<EditedSource, EditError> {
    check_conditionals(source, splice)?;
    if source.text[splice.range.clone()] == splice.new {
        return Err(EditError::NoChange);
    }
    let text = splice.apply(source.text);
    let result = ParsedSource::parse(source.language(), &text)?;
    if let Some(failure) =
        first_new_error((&source.tree, source.text), (&result.tree, &text), splice)
    {
        return Err(EditError::DidNotParse(failure));
    }
    Comparison { old: source, new: &result, splice, scope, edited }.run()?;
    let symbols = affected(source, &result, splice, scope, edited);
    let change = splice.change(source.text, &text);
    Ok(EditedSource { text, change, symbols })
}

struct Comparison<'a, 's> {
    old: &'a ParsedSource<'s>,
    new: &'a ParsedSource<'a>,
    splice: &'a Splice,
    scope: Scope,
    edited: usize,
}

impl Comparison<'_, '_> {
    fn run(&self) -> Result<(), EditError> {
        if let Some(lost) = self.lost_sibling() {
            return Err(EditError::Escapes(self.difference(lost, None)));
        }
        let old = outside(&self.old.symbols, &self.splice.range);
        let new = outside(&self.new.symbols, &self.splice.new_range());
        for (place, index) in old.iter().enumerate() {
            let is_same = new.get(place).is_some_and(|other| self.is_same(*index, *other));
            if !is_same {
                return Err(EditError::Escapes(self.difference(*index, new.get(place).copied())));
            }
        }
        match new.get(old.len()) {
            Some(added) => Err(EditError::Escapes(self.added(*added))),
            None => Ok(()),
        }
    }

    /// Finds a symbol that shares its definition with the edited one, as in `const A, B = 1, 2`, and is gone.
    fn lost_sibling(&self) -> Option<usize> {
        let own = self.old.symbol(self.edited);
        let new = self.splice.new_range();
        let is_kept = |name: &str| {
            let inside = self.new.symbols.symbols.iter().filter(|symbol| {
                new.start <= symbol.definition.start && symbol.definition.end <= new.end
            });
            inside.into_iter().any(|symbol| symbol.name == name)
        };
        (0..self.old.symbols.symbols.len()).find(|index| {
            let symbol = self.old.symbol(*index);
            let shares = *index != self.edited
                && symbol.parent == own.parent
                && symbol.definition == own.definition;
            let is_replaced = self.splice.range.start <= symbol.definition.start
                && symbol.definition.end <= self.splice.range.end;
            shares && is_replaced && !is_kept(&symbol.name)
        })
    }

    fn is_same(&self, old: usize, new: usize) -> bool {
        let (before, after) = (self.old.symbol(old), self.new.symbol(new));
        let is_edited = old == self.edited && !matches!(self.scope, Scope::Whole);
        if is_edited {
            return self.is_edited_symbol(before, after);
        }
        let moved = |at| self.splice.moved_start(at);
        before.name == after.name
            && before.kind == after.kind
            && moved(before.definition.start) == Some(after.definition.start)
            && moved(before.name_range.start) == Some(after.name_range.start)
            && self.ends_alike(before, after)
    }

    /// Tells whether a symbol ends where it did. One that ended with the replaced part, as a class does in Python,
    /// ends with what was put there.
    fn ends_alike(&self, before: &Symbol, after: &Symbol) -> bool {
        let (old_end, new_end) = (before.definition.end, after.definition.end);
        let ended_with_it = old_end <= self.splice.range.end && self.contains_edited(before);
        self.splice.moved_end(old_end) == Some(new_end)
            || (ended_with_it && new_end <= self.splice.new_range().end)
    }

    fn contains_edited(&self, symbol: &Symbol) -> bool {
        let edited = self.old.symbol(self.edited);
        let (outer, inner) = (&symbol.definition, &edited.definition);
        outer.start <= inner.start && inner.end <= outer.end
    }

    fn is_edited_symbol(&self, before: &Symbol, after: &Symbol) -> bool {
        let start = self.splice.moved_start(before.definition.start);
        let is_in_place = start == Some(after.definition.start) && self.ends_alike(before, after);
        is_in_place
            && match self.scope {
                Scope::Body => before.name == after.name && self.keeps_delimiters(before, after),
                Scope::Head => self.keeps_body(before, after),
                Scope::Whole => true,
            }
    }

    /// Tells whether the delimiters around a replaced body are still those of the body.
    fn keeps_delimiters(&self, before: &Symbol, after: &Symbol) -> bool {
        match (&before.body, &after.body) {
            (Some(old), Some(new)) if old.end > self.splice.range.end => {
                self.splice.moved_start(old.start) == Some(new.start)
                    && self.splice.moved_end(old.end) == Some(new.end)
            }
            _ => true,
        }
    }

    fn keeps_body(&self, before: &Symbol, after: &Symbol) -> bool {
        let old = before.body.as_ref();
        let moved =
            old.map(|old| (self.splice.moved_start(old.start), self.splice.moved_end(old.end)));
        moved == after.body.as_ref().map(|new| (Some(new.start), Some(new.end)))
    }

    fn difference(&self, old: usize, new: Option<usize>) -> Escape {
        let before = self.old.symbol(old);
        let is_added = new.is_some_and(|new| {
            let after = self.new.symbol(new);
            let start = self.splice.moved_start(before.definition.start);
            start.is_some_and(|start| after.definition.start < start)
        });
        match new {
            Some(new) if is_added => self.added(new),
            _ => {
                let path = self.old.path_text(old);
                Escape::Changed { path, kind: before.kind, line: before.line }
            }
        }
    }

    fn added(&self, new: usize) -> Escape {
        let symbol = self.new.symbol(new);
        Escape::Added { path: self.new.path_text(new), kind: symbol.kind, line: symbol.line }
    }
}

/// Refuses a range that has one end of a conditional and not the other, which the grammar takes for a part of the
/// function.
fn check_conditionals(source: &ParsedSource<'_>, splice: &Splice) -> Result<(), EditError> {
    if !matches!(source.language(), Language::C | Language::Cpp | Language::CSharp) {
        return Ok(());
    }
    let is_balanced = |text: &str| {
        let directives = text.lines().filter_map(|line| line.trim_start().strip_prefix('#'));
        let depth =
            directives.map(str::trim_start).try_fold(0_usize, |depth, directive| match directive {
                _ if directive.starts_with("if") => Some(depth + 1),
                _ if directive.starts_with("endif") => depth.checked_sub(1),
                _ if directive.starts_with("el") && depth == 0 => None,
                _ => Some(depth),
            });
        depth == Some(0)
    };
    let old = source.text().get(splice.range.clone()).unwrap_or_default();
    if is_balanced(old) && is_balanced(&splice.new) {
        return Ok(());
    }
    Err(EditError::Conditional { line: line_of(source.text(), splice.range.start) })
}

/// Returns the symbols that are not inside of a replaced range.
fn outside(symbols: &FileSymbols, replaced: &Range<usize>) -> Vec<usize> {
    let is_inside = |symbol: &Symbol| {
        let range = &symbol.definition;
        replaced.start <= range.start && range.end <= replaced.end
    };
    (0..symbols.symbols.len()).filter(|index| !is_inside(&symbols.symbols[*index])).collect()
}

/// Returns the symbols that the edit was about, in the result where they are there.
fn affected(
    old: &ParsedSource<'_>,
    new: &ParsedSource<'_>,
    splice: &Splice,
    scope: Scope,
    edited: usize,
) -> Vec<AffectedSymbol> {
    let place = splice.new_range();
    let start = old.symbol(edited).definition.start;
    let indices = 0..new.symbols.symbols.len();
    let found: Vec<usize> = match scope {
        Scope::Body | Scope::Head => {
            indices.filter(|index| new.symbol(*index).definition.start == start).take(1).collect()
        }
        Scope::Whole => {
            let is_inside = |index: &usize| {
                let symbol = new.symbol(*index);
                let range = &symbol.definition;
                place.start <= range.start && range.end <= place.end
            };
            let inside: Vec<_> = indices.filter(is_inside).collect();
            let is_outermost = |index: &usize| {
                new.symbol(*index)
                    .parent
                    .is_none_or(|parent| inside.binary_search(&parent).is_err())
            };
            inside.iter().copied().filter(is_outermost).collect()
        }
    };
    if found.is_empty() {
        vec![affected_symbol(old, edited)]
    } else {
        found.into_iter().map(|index| affected_symbol(new, index)).collect()
    }
}

fn affected_symbol(source: &ParsedSource<'_>, index: usize) -> AffectedSymbol {
    let symbol = source.symbol(index);
    let path = source.symbols.path(index).into_iter().map(str::to_owned).collect();
    AffectedSymbol { path, kind: symbol.kind, line: symbol.line }
}
