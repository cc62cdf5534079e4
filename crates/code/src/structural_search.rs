//! Search by structure: patterns of source text with metavariables, and rules on kinds and surroundings.
//!
//! A [`CodeSearch`] is compiled once for a language and run over any number of its files. Before a file is parsed,
//! or read as text, [`CodeSearch::may_match`] tells by a few literal words whether it can match at all.
//!
//! Patterns and rules come from clients. Their size and nesting are bounded, so that neither the recursion over a
//! pattern nor the attempts at one node grow without limit, and a search looks at its deadline every few hundred
//! nodes.
//!
//! ```
//! use std::time::Duration;
//! use carrel_code::{CodeSearch, Language, ParsedSource, Rule, TimeBudget};
//!
//! let rule = Rule::pattern("$A.unwrap_or($B)");
//! let search = CodeSearch::compile(Language::Rust, &rule, &Default::default())?;
//! let source = ParsedSource::parse(Language::Rust, "fn f() { x.unwrap_or(1); }\n")?;
//! let found = search.run(&source, &TimeBudget::of(Duration::from_secs(1)))?;
//! assert_eq!(found.matches[0].captures[0].text(source.text()), "x");
//! assert_eq!(found.matches[0].symbol, ["f"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compile;
mod contexts;
mod grammar;
mod matching;
mod metavariable;
mod pattern;
mod prefilter;
mod readable_pattern;
mod rule;
mod time_budget;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use crate::language::{Language, MissingGrammar};
use crate::structural_edit::ParsedSource;
use crate::syntax::depth;

pub use pattern::PatternError;
pub use rule::{Constraint, Constraints, PatternText, Relation, Rule, StopBy, Strictness};
pub use time_budget::TimeBudget;

pub(crate) use metavariable::metavariables;

use compile::{CompiledConstraint, CompiledRule};
use grammar::Grammar;
use prefilter::Prefilter;

/// The longest pattern.
pub const MAX_PATTERN_BYTES: usize = 8 << 10;

/// The levels of a pattern's tree. The matcher walks them by recursion.
pub const MAX_PATTERN_DEPTH: usize = 100;

/// The lists with `$$$` inside of each other. Each doubles the attempts at a node.
pub const MAX_LIST_DEPTH: usize = 8;

/// The levels of a rule.
pub const MAX_RULE_DEPTH: usize = 16;

/// The conditions of a rule, at all levels.
pub const MAX_CONDITIONS: usize = 200;

/// The longest regular expression of a rule.
pub const MAX_REGEX_BYTES: usize = 4 << 10;

/// The matches of a file that are collected. Code has fewer; data is looked at by other means.
pub const MAX_MATCHES: usize = 10_000;

/// The levels of a tree in which nodes are compared with each other, for a variable that occurs twice. They are
/// compared by recursion; source that people wrote has fewer than 200.
pub const MAX_COMPARED_DEPTH: usize = 400;

/// The reason for the refusal of a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A pattern of it is refused.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The build lacks the grammar.
    #[error(transparent)]
    Grammar(#[from] MissingGrammar),
    /// A regular expression of it is refused.
    #[error("the regular expression `{regex}` is not valid: {reason}")]
    Regex {
        /// The expression.
        regex: String,
        /// The reason.
        reason: String,
    },
    /// The grammar has no such field.
    #[error("{language} has no field `{field}`")]
    UnknownField {
        /// The field.
        field: String,
        /// The language.
        language: Language,
    },
    /// A constraint is on a variable that the rule does not capture.
    #[error("the rule captures no `${name}`, which a constraint is on")]
    UnknownVariable {
        /// The variable.
        name: String,
    },
    /// It is nested too deeply.
    #[error("the rule is nested more than {MAX_RULE_DEPTH} levels deep")]
    TooDeep,
    /// It has too many conditions.
    #[error("the rule has more than {MAX_CONDITIONS} conditions")]
    TooLarge,
    /// No condition says which nodes it is about.
    #[error(
        "the rule has only conditions that exclude; add `pattern`, `kind`, `regex`, `inside` or `has`"
    )]
    OnlyExcludes,
}

/// The reason for which a search of a file was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// The time was over.
    #[error(
        "the search ran out of time; narrow the files, or add a `kind` or a literal word to the rule"
    )]
    TimedOut,
    /// The caller cancelled it.
    #[error("the search was cancelled")]
    Cancelled,
    /// The source is nested too deeply for a rule with a variable that occurs twice.
    #[error(
        "the file is nested more than {MAX_COMPARED_DEPTH} levels deep, which a variable that occurs twice cannot be \
         matched in; give the second one another name"
    )]
    TooDeep,
    /// The source is of another language than the rule.
    #[error("the rule is for {rule} and the file is {file}")]
    OtherLanguage {
        /// The language of the rule.
        rule: Language,
        /// The language of the file.
        file: Language,
    },
}

/// A rule that was compiled for a language.
pub struct CodeSearch {
    grammar: Grammar,
    rule: CompiledRule,
    constraints: BTreeMap<String, CompiledConstraint>,
    prefilter: Prefilter,
    hint: Option<String>,
    variables: BTreeMap<String, usize>,
    language: Language,
}

/// The matches of a rule in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchResult {
    /// The matches, outer ones before inner ones, in the order of the source.
    pub matches: Vec<CodeMatch>,
    /// There are more than [`MAX_MATCHES`].
    pub is_cut: bool,
}

/// A node that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeMatch {
    /// Its bytes.
    pub range: Range<usize>,
    /// Its first and last line, counted from 1.
    pub lines: (usize, usize),
    /// The name of its kind in the grammar.
    pub kind: String,
    /// The names of the symbols around it, the outermost first.
    pub symbol: Vec<String>,
    /// The nodes that metavariables captured, by name.
    pub captures: Vec<Capture>,
    /// The bytes that a replacement takes the place of: without a semicolon that the pattern lacks.
    pub replaced: Range<usize>,
}

/// The nodes that one metavariable captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The name, without `$`.
    pub name: String,
    /// It stands for any number of nodes.
    pub is_variadic: bool,
    /// The bytes from the first node to the last; empty if there is none.
    pub range: Range<usize>,
    /// The bytes of each node, without the separators between them.
    pub nodes: Vec<Range<usize>>,
    /// It begins with a directive of the preprocessor, before which nothing can stand on its line.
    pub begins_line: bool,
    /// It ends with a directive, or with a comment up to the end of its line, so that nothing can follow there.
    pub ends_line: bool,
}

impl Capture {
    /// Returns the text from the first node to the last.
    pub fn text<'s>(&self, source: &'s str) -> &'s str {
        source.get(self.range.clone()).unwrap_or_default()
    }
}

impl CodeSearch {
    /// Compiles a rule.
    pub fn compile(
        language: Language,
        rule: &Rule,
        constraints: &Constraints,
    ) -> Result<Self, RuleError> {
        let grammar = Grammar::of(language)?;
        let compiled = compile::compile(&grammar, rule)?;
        let constraints = compile::constraints(&grammar, constraints, &compiled.variables)?;
        Ok(Self {
            prefilter: Prefilter::of(&compiled.rule),
            rule: compiled.rule,
            hint: compiled.hint,
            variables: compiled.variables,
            constraints,
            grammar,
            language,
        })
    }

    /// Returns the language.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Returns the names of the variables that a match captures.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }

    /// Returns a remark for a search that found nothing: another reading of its pattern.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Tells whether a file can match at all, by the words that every match contains.
    pub fn may_match(&self, source: &[u8]) -> bool {
        self.prefilter.may_match(source)
    }

    /// Finds the matches in a source.
    pub fn run(
        &self,
        source: &ParsedSource<'_>,
        budget: &TimeBudget<'_>,
    ) -> Result<SearchResult, SearchError> {
        let mut result = SearchResult::default();
        self.run_into(source, budget, &mut result)?;
        Ok(result)
    }

    /// Finds the matches in a source. Those before an error are in the result.
    pub fn run_into(
        &self,
        source: &ParsedSource<'_>,
        budget: &TimeBudget<'_>,
        result: &mut SearchResult,
    ) -> Result<(), SearchError> {
        if source.language() != self.language {
            return Err(SearchError::OtherLanguage {
                rule: self.language,
                file: source.language(),
            });
        }
        if !self.may_match(source.text().as_bytes()) {
            return Ok(());
        }
        let repeats = self.variables.values().any(|count| *count > 1);
        if repeats && depth(source.tree().root()) > MAX_COMPARED_DEPTH {
            return Err(SearchError::TooDeep);
        }
        matching::run(self, source, budget, result)
    }
}

impl fmt::Debug for CodeSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeSearch")
            .field("language", &self.language)
            .field("variables", &self.variables)
            .field("hint", &self.hint)
            .finish_non_exhaustive()
    }
}

/// Returns the names of the symbols around a range, the outermost first.
pub(crate) fn symbols_around(source: &ParsedSource<'_>, range: &Range<usize>) -> Vec<String> {
    let symbols = source.symbols();
    let contains = |symbol: &crate::symbol::Symbol| {
        let outer = &symbol.definition;
        outer.start <= range.start && range.end <= outer.end && outer != range
    };
    let innermost = symbols.symbols.iter().rposition(contains);
    let path = innermost.map(|index| symbols.path(index)).unwrap_or_default();
    path.into_iter().map(str::to_owned).collect()
}
