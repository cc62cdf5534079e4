//! Compilation of rules: patterns parsed, kinds and fields looked up, bounds held.

use std::collections::BTreeMap;

use ast_grep_core::matcher::PatternNode;
use ast_grep_core::meta_var::MetaVariable;
use ast_grep_core::{Matcher, Pattern};
use regex::{Regex, RegexBuilder};

use super::grammar::Grammar;
use super::pattern::{self, unknown_kind};
use super::rule::{Constraints, Relation, Rule, StopBy};
use super::{MAX_CONDITIONS, MAX_REGEX_BYTES, MAX_RULE_DEPTH, RuleError};

/// The memory of a compiled regular expression.
const MAX_REGEX_MEMORY: usize = 1 << 20;

/// Conditions that all have to hold, the cheapest first.
pub(super) struct CompiledRule {
    pub(super) conditions: Vec<Condition>,
    /// The kinds of nodes that can match, in order; none if all can.
    pub(super) kinds: Option<Vec<u16>>,
}

/// One condition on a node.
pub(super) enum Condition {
    Kind(Vec<u16>),
    Pattern(Pattern),
    Regex(Regex),
    All(Vec<CompiledRule>),
    Any(Vec<CompiledRule>),
    Inside(Box<CompiledRelation>),
    Has(Box<CompiledRelation>),
    Precedes(Box<CompiledRelation>),
    Follows(Box<CompiledRelation>),
    Not(Box<CompiledRule>),
}

pub(super) struct CompiledRelation {
    pub(super) rule: CompiledRule,
    pub(super) field: Option<u16>,
    pub(super) distance: Distance,
}

pub(super) enum Distance {
    Neighbor,
    End,
    Rule(CompiledRule),
}

pub(super) struct CompiledConstraint {
    pub(super) regex: Option<Regex>,
    pub(super) kinds: Option<Vec<u16>>,
}

/// A rule and what was learned from all of its patterns.
pub(super) struct Compiled {
    pub(super) rule: CompiledRule,
    /// The variables, with the number of places that capture them.
    pub(super) variables: BTreeMap<String, usize>,
    pub(super) hint: Option<String>,
}

pub(super) fn compile(grammar: &Grammar, rule: &Rule) -> Result<Compiled, RuleError> {
    let mut compiler = Compiler { grammar, variables: BTreeMap::new(), hint: None, conditions: 0 };
    let rule = compiler.rule(rule, 0)?;
    let says_which = |condition: &Condition| !matches!(condition, Condition::Not(_));
    if !rule.conditions.iter().any(says_which) {
        return Err(RuleError::OnlyExcludes);
    }
    Ok(Compiled { rule, variables: compiler.variables, hint: compiler.hint })
}

pub(super) fn constraints(
    grammar: &Grammar,
    constraints: &Constraints,
    variables: &BTreeMap<String, usize>,
) -> Result<BTreeMap<String, CompiledConstraint>, RuleError> {
    let mut checked = BTreeMap::new();
    for (name, constraint) in constraints {
        let name = name.trim_start_matches('$').to_owned();
        if !variables.contains_key(&name) {
            return Err(RuleError::UnknownVariable { name });
        }
        let constraint = CompiledConstraint {
            regex: constraint.regex.as_deref().map(regex).transpose()?,
            kinds: constraint.kind.as_deref().map(|kind| kinds(grammar, kind)).transpose()?,
        };
        checked.insert(name, constraint);
    }
    Ok(checked)
}

struct Compiler<'g> {
    grammar: &'g Grammar,
    variables: BTreeMap<String, usize>,
    hint: Option<String>,
    conditions: usize,
}

impl Compiler<'_> {
    fn rule(&mut self, rule: &Rule, depth: usize) -> Result<CompiledRule, RuleError> {
        if depth >= MAX_RULE_DEPTH {
            return Err(RuleError::TooDeep);
        }
        let mut conditions = Vec::new();
        if let Some(kind) = &rule.kind {
            conditions.push(Condition::Kind(kinds(self.grammar, kind)?));
        }
        if let Some(text) = &rule.pattern {
            let parsed = pattern::parse(self.grammar, text)?;
            count_variables(&parsed.pattern.node, &mut self.variables);
            self.hint = self.hint.take().or(parsed.hint);
            conditions.push(Condition::Pattern(parsed.pattern));
        }
        if let Some(text) = &rule.regex {
            conditions.push(Condition::Regex(regex(text)?));
        }
        if let Some(rules) = &rule.all {
            conditions.push(Condition::All(self.rules(rules, depth)?));
        }
        if let Some(rules) = &rule.any {
            conditions.push(Condition::Any(self.rules(rules, depth)?));
        }
        let relations = [&rule.inside, &rule.has, &rule.precedes, &rule.follows];
        let kinds: [fn(Box<CompiledRelation>) -> Condition; 4] =
            [Condition::Inside, Condition::Has, Condition::Precedes, Condition::Follows];
        for (relation, condition) in relations.into_iter().zip(kinds) {
            if let Some(relation) = relation {
                conditions.push(condition(Box::new(self.relation(relation, depth)?)));
            }
        }
        if let Some(rule) = &rule.not {
            conditions.push(Condition::Not(Box::new(self.rule(rule, depth + 1)?)));
        }
        self.conditions += conditions.len();
        if self.conditions > MAX_CONDITIONS {
            return Err(RuleError::TooLarge);
        }
        let kinds = possible_kinds(&conditions);
        Ok(CompiledRule { conditions, kinds })
    }

    fn rules(&mut self, rules: &[Rule], depth: usize) -> Result<Vec<CompiledRule>, RuleError> {
        rules.iter().map(|rule| self.rule(rule, depth + 1)).collect()
    }

    fn relation(
        &mut self,
        relation: &Relation,
        depth: usize,
    ) -> Result<CompiledRelation, RuleError> {
        let field = match &relation.field {
            None => None,
            Some(field) => Some(self.grammar.field(field).ok_or_else(|| {
                let language = self.grammar.language();
                RuleError::UnknownField { field: field.clone(), language }
            })?),
        };
        let rule = self.rule(&relation.rule, depth + 1)?;
        let distance = match &relation.stop_by {
            StopBy::Neighbor => Distance::Neighbor,
            StopBy::End => Distance::End,
            StopBy::Rule(rule) => Distance::Rule(self.rule(rule, depth + 1)?),
        };
        Ok(CompiledRelation { rule, field, distance })
    }
}

fn kinds(grammar: &Grammar, name: &str) -> Result<Vec<u16>, RuleError> {
    let kinds = grammar.kinds(name);
    if kinds.is_empty() { Err(unknown_kind(grammar, name).into()) } else { Ok(kinds) }
}

fn regex(text: &str) -> Result<Regex, RuleError> {
    let refused = |reason: String| RuleError::Regex { regex: text.to_owned(), reason };
    if text.len() > MAX_REGEX_BYTES {
        return Err(RuleError::Regex {
            regex: format!("{}…", &text[..text.floor_char_boundary(40)]),
            reason: format!("it has more than {MAX_REGEX_BYTES} bytes"),
        });
    }
    let built = RegexBuilder::new(text).size_limit(MAX_REGEX_MEMORY).build();
    built.map_err(|error| refused(error.to_string().lines().last().unwrap_or_default().to_owned()))
}

/// Returns the kinds that all conditions allow.
fn possible_kinds(conditions: &[Condition]) -> Option<Vec<u16>> {
    let of_all = |rules: &[CompiledRule]| {
        let known = rules.iter().filter_map(|rule| rule.kinds.clone());
        known.min_by_key(Vec::len)
    };
    let of_any = |rules: &[CompiledRule]| {
        let kinds: Option<Vec<_>> = rules.iter().map(|rule| rule.kinds.clone()).collect();
        kinds.map(|kinds| kinds.concat())
    };
    let of_one = |condition: &Condition| match condition {
        Condition::Kind(kinds) => Some(kinds.clone()),
        Condition::Pattern(pattern) => {
            let kinds = pattern.potential_kinds()?;
            Some(kinds.iter().filter_map(|kind| u16::try_from(kind).ok()).collect())
        }
        Condition::All(rules) => of_all(rules),
        Condition::Any(rules) => of_any(rules),
        Condition::Regex(_)
        | Condition::Inside(_)
        | Condition::Has(_)
        | Condition::Precedes(_)
        | Condition::Follows(_)
        | Condition::Not(_) => None,
    };
    let mut kinds = conditions.iter().filter_map(of_one).min_by_key(Vec::len)?;
    kinds.sort_unstable();
    kinds.dedup();
    Some(kinds)
}

fn count_variables(node: &PatternNode, variables: &mut BTreeMap<String, usize>) {
    match node {
        PatternNode::MetaVar { meta_var } => match meta_var {
            MetaVariable::Capture(name, _) | MetaVariable::MultiCapture(name) => {
                *variables.entry(name.clone()).or_default() += 1;
            }
            MetaVariable::Dropped(_) | MetaVariable::Multiple => {}
        },
        PatternNode::Terminal { .. } => {}
        PatternNode::Internal { children, .. } => {
            for child in children {
                count_variables(child, variables);
            }
        }
    }
}
