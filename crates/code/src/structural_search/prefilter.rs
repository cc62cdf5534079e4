//! Words that every match of a rule contains, by which files are left out before they are parsed.

use ast_grep_core::matcher::PatternNode;
use ast_grep_core::{MatchStrictness, Pattern};
use memchr::memmem::Finder;

use super::compile::{CompiledRelation, CompiledRule, Condition};

/// The shortest word that is looked for. Shorter ones are in every file.
const MIN_WORD_BYTES: usize = 2;

/// The most words of one pattern: the longest are the rarest.
const MAX_WORDS: usize = 4;

/// Clauses, of each of which a file contains one word.
pub(super) struct Prefilter {
    clauses: Vec<Vec<Finder<'static>>>,
}

impl Prefilter {
    pub(super) fn of(rule: &CompiledRule) -> Self {
        let clauses = clauses_of(rule).into_iter();
        let finders = |clause: Vec<String>| {
            clause.iter().map(|word| Finder::new(word.as_bytes()).into_owned()).collect()
        };
        Self { clauses: clauses.map(finders).collect() }
    }

    pub(super) fn may_match(&self, source: &[u8]) -> bool {
        let has = |clause: &Vec<Finder<'static>>| {
            clause.iter().any(|finder| finder.find(source).is_some())
        };
        self.clauses.iter().all(has)
    }
}

fn clauses_of(rule: &CompiledRule) -> Vec<Vec<String>> {
    rule.conditions.iter().flat_map(clauses_of_condition).collect()
}

fn clauses_of_condition(condition: &Condition) -> Vec<Vec<String>> {
    let of_relation = |relation: &CompiledRelation| clauses_of(&relation.rule);
    match condition {
        Condition::Pattern(pattern) => words(pattern).into_iter().map(|word| vec![word]).collect(),
        Condition::All(rules) => rules.iter().flat_map(clauses_of).collect(),
        Condition::Any(rules) => any_clause(rules),
        Condition::Inside(relation)
        | Condition::Has(relation)
        | Condition::Precedes(relation)
        | Condition::Follows(relation) => of_relation(relation),
        Condition::Kind(_) | Condition::Regex(_) | Condition::Not(_) => Vec::new(),
    }
}

/// Returns a clause with one word of each alternative, if each has one.
fn any_clause(rules: &[CompiledRule]) -> Vec<Vec<String>> {
    let longest = |rule: &CompiledRule| {
        let clauses = clauses_of(rule).into_iter();
        clauses.max_by_key(|clause| clause.iter().map(String::len).min())
    };
    let words: Option<Vec<Vec<String>>> = rules.iter().map(longest).collect();
    words.map(|words| words.concat()).into_iter().filter(|clause| !clause.is_empty()).collect()
}

/// Returns the longest words of a pattern that its matches contain.
fn words(pattern: &Pattern) -> Vec<String> {
    let mut words = Vec::new();
    match pattern.strictness {
        MatchStrictness::Signature | MatchStrictness::Template => {}
        MatchStrictness::Cst | MatchStrictness::Smart => collect(&pattern.node, true, &mut words),
        MatchStrictness::Ast | MatchStrictness::Relaxed => {
            collect(&pattern.node, false, &mut words);
        }
    }
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.dedup();
    words.truncate(MAX_WORDS);
    words
}

fn collect(node: &PatternNode, with_keywords: bool, words: &mut Vec<String>) {
    match node {
        PatternNode::MetaVar { .. } => {}
        PatternNode::Terminal { text, is_named, .. } => {
            let is_keyword = with_keywords && text.bytes().all(|byte| byte.is_ascii_alphabetic());
            if text.len() >= MIN_WORD_BYTES && (*is_named || is_keyword) {
                words.push(text.clone());
            }
        }
        PatternNode::Internal { children, .. } => {
            for child in children {
                collect(child, with_keywords, words);
            }
        }
    }
}
