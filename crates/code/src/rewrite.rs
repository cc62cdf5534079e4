//! Rewrites of one source by rules: replacements with metavariables, and renames of identifiers.
//!
//! Operations are made in order, each on a fresh tree of the text so far. Of matches inside of each other the outermost
//! is replaced, and the others are counted, because a replacement may repeat what it captured. After each
//! operation the text is parsed; one with more syntax errors than before is refused, and with it all of them.
//!
//! ```
//! use std::time::Duration;
//! use carrel_code::{CodeEdit, Language, TimeBudget, rewrite};
//!
//! let edits: Vec<CodeEdit> = serde_json::from_str(
//!     r#"[{"op": "replace", "rule": "$A.unwrap_or($B)", "replacement": "$A.unwrap_or_else(|| $B)"}]"#,
//! )?;
//! let budget = TimeBudget::of(Duration::from_secs(1));
//! let rewritten = rewrite(Language::Rust, "fn f() { x.unwrap_or(g()); }\n", &edits, &budget)?;
//! assert_eq!(rewritten.text, "fn f() { x.unwrap_or_else(|| g()); }\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod names;
mod region;
mod rename;
mod replace;
mod template;

use std::collections::HashSet;
use std::ops::Range;

use serde::Deserialize;

use crate::language::Language;
use crate::line_index::LineIndex;
use crate::structural_edit::{ParsedSource, Splice, first_new_error};
use crate::structural_search::{Constraints, Rule, TimeBudget, symbols_around};
use crate::syntax::MAX_SOURCE_BYTES;

pub use error::{RewriteError, RewriteProblem};

/// The most operations of one rewrite. Each parses the text.
pub const MAX_OPERATIONS: usize = 50;

/// One operation of a rewrite.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum CodeEdit {
    /// Replaces the nodes that a rule matches.
    Replace(Replacement),
    /// Renames an identifier.
    Rename(Rename),
}

/// A replacement of the nodes that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// The rule.
    pub rule: Rule,
    /// Conditions on its metavariables.
    #[serde(default)]
    pub constraints: Constraints,
    /// The new text, with the rule's metavariables. `\$` is a dollar sign.
    pub replacement: String,
    /// The part of the source that is looked at.
    #[serde(flatten)]
    pub region: Region,
}

/// A rename of an identifier.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// The present name.
    pub from: String,
    /// The new name.
    pub to: String,
    /// The kind of name, where the source declares both.
    pub target: Option<RenameTarget>,
    /// The part of the source that is looked at.
    #[serde(flatten)]
    pub region: Region,
}

/// The kind of name that is renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RenameTarget {
    /// A variable, parameter, function or type.
    Local,
    /// A field or method.
    Member,
}

/// The part of a source that an operation changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Region {
    /// A rule: only what is inside of its matches.
    pub within: Option<Rule>,
    /// A name path: only what is inside of its symbols.
    #[serde(rename = "withinSymbol", alias = "within_symbol")]
    pub within_symbol: Option<String>,
    /// Numbers of single matches, counted from 1 in the order of the source.
    pub only: Option<Vec<usize>>,
}

/// A source after a rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewrittenSource {
    /// The whole text.
    pub text: String,
    /// The effect of each operation.
    pub operations: Vec<OperationEffect>,
    /// The paths of the symbols that contain changes, in the order of their first change.
    pub symbols: Vec<Vec<String>>,
}

/// The effect of one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationEffect {
    /// The matches that could be replaced, by which single ones are chosen.
    pub matches: Vec<Site>,
    /// The number of them that were replaced.
    pub replaced: usize,
    /// The matches inside of others, which were left as they are.
    pub nested: usize,
}

/// The place of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The bytes, in the text that the operation was made on.
    pub range: Range<usize>,
    /// The first and the last line.
    pub lines: (usize, usize),
}

/// A range of the source and its new text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Substitution {
    range: Range<usize>,
    new: String,
}

/// Makes operations one after the other.
pub fn rewrite(
    language: Language,
    text: &str,
    edits: &[CodeEdit],
    budget: &TimeBudget<'_>,
) -> Result<RewrittenSource, RewriteError> {
    let refused = |operation, problem| RewriteError { operation, problem };
    if edits.is_empty() || edits.len() > MAX_OPERATIONS {
        let problem = RewriteProblem::OperationCount { count: edits.len() };
        return Err(refused(None, problem));
    }
    let mut rewritten =
        RewrittenSource { text: text.to_owned(), operations: Vec::new(), symbols: Vec::new() };
    for (index, edit) in edits.iter().enumerate() {
        let number = (edits.len() > 1).then_some(index + 1);
        let operation = Operation { language, edit, budget };
        operation.run(&mut rewritten).map_err(|problem| refused(number, problem))?;
    }
    if rewritten.text == text {
        return Err(refused(None, RewriteProblem::NoChange));
    }
    Ok(rewritten)
}

struct Operation<'a> {
    language: Language,
    edit: &'a CodeEdit,
    budget: &'a TimeBudget<'a>,
}

impl Operation<'_> {
    fn run(&self, rewritten: &mut RewrittenSource) -> Result<(), RewriteProblem> {
        let old = std::mem::take(&mut rewritten.text);
        let source = ParsedSource::parse(self.language, &old)?;
        let (all, nested) = match self.edit {
            CodeEdit::Replace(edit) => replace::substitutions(&source, edit, self.budget)?,
            CodeEdit::Rename(edit) => (rename::substitutions(&source, edit, self.budget)?, 0),
        };
        let chosen = chosen(&all, self.region().only.as_deref())?;
        let text = substituted(&old, &chosen)?;
        let result = ParsedSource::parse(self.language, &text)?;
        if let Some(splice) = changed_part(&old, &text, &chosen)
            && let Some(failure) =
                first_new_error((source.tree(), &old), (result.tree(), &text), &splice)
        {
            return Err(RewriteProblem::DidNotParse(failure));
        }
        self.add_symbols(&source, &chosen, &mut rewritten.symbols)?;
        let lines = LineIndex::of(&old);
        let site =
            |one: &Substitution| Site { range: one.range.clone(), lines: lines.lines(&one.range) };
        let matches = all.iter().map(site).collect();
        rewritten.operations.push(OperationEffect { matches, replaced: chosen.len(), nested });
        rewritten.text = text;
        Ok(())
    }

    /// Adds the symbols around changes that are not among them yet.
    fn add_symbols(
        &self,
        source: &ParsedSource<'_>,
        changes: &[&Substitution],
        symbols: &mut Vec<Vec<String>>,
    ) -> Result<(), RewriteProblem> {
        let mut known: HashSet<Vec<String>> = symbols.iter().cloned().collect();
        for change in changes {
            self.budget.step()?;
            let path = symbols_around(source, &change.range);
            if !path.is_empty() && known.insert(path.clone()) {
                symbols.push(path);
            }
        }
        Ok(())
    }

    fn region(&self) -> &Region {
        match self.edit {
            CodeEdit::Replace(edit) => &edit.region,
            CodeEdit::Rename(edit) => &edit.region,
        }
    }
}

fn chosen<'s>(
    all: &'s [Substitution],
    only: Option<&[usize]>,
) -> Result<Vec<&'s Substitution>, RewriteProblem> {
    let Some(only) = only else { return Ok(all.iter().collect()) };
    let mut numbers = only.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let one = |number: usize| {
        let found = number.checked_sub(1).and_then(|index| all.get(index));
        found.ok_or(RewriteProblem::NoSuchMatch { number, count: all.len() })
    };
    numbers.into_iter().map(one).collect()
}

fn substituted(text: &str, changes: &[&Substitution]) -> Result<String, RewriteProblem> {
    let (old, new) =
        changes.iter().fold((0, 0), |(old, new), one| (old + one.range.len(), new + one.new.len()));
    let bytes = text.len() - old + new;
    if bytes > MAX_SOURCE_BYTES {
        return Err(RewriteProblem::ResultTooLarge { bytes });
    }
    let mut result = String::with_capacity(bytes);
    let mut at = 0;
    for change in changes {
        result.push_str(&text[at..change.range.start]);
        result.push_str(&change.new);
        at = change.range.end;
    }
    result.push_str(&text[at..]);
    Ok(result)
}

/// Returns the part from the first change to the last as one splice.
fn changed_part(old: &str, new: &str, changes: &[&Substitution]) -> Option<Splice> {
    let (first, last) = (changes.first()?, changes.last()?);
    let behind = old.len() - last.range.end;
    let text = &new[first.range.start..new.len() - behind];
    Some(Splice::new(first.range.start..last.range.end, text))
}
