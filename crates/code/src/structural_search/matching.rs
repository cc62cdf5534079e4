//! The walk over a file, and the conditions of a rule at one node.

use std::borrow::Cow;
use std::ops::Range;

use ast_grep_core::meta_var::{MetaVarEnv, MetaVariable};
use ast_grep_core::{Matcher, Node};
use tree_sitter::Node as SyntaxNode;

use super::compile::{CompiledConstraint, CompiledRelation, CompiledRule, Condition, Distance};
use super::grammar::Document;
use super::pattern;
use super::{
    Capture, CodeMatch, CodeSearch, MAX_MATCHES, SearchError, SearchResult, TimeBudget,
    symbols_around,
};
use crate::line_index::LineIndex;
use crate::structural_edit::ParsedSource;

type Environment<'t> = MetaVarEnv<'t, Document>;
type Target<'t> = Node<'t, Document>;

pub(super) fn run(
    search: &CodeSearch,
    source: &ParsedSource<'_>,
    budget: &TimeBudget<'_>,
    result: &mut SearchResult,
) -> Result<(), SearchError> {
    let document = search.grammar.document(source.tree(), source.text());
    let lines = LineIndex::of(source.text());
    let matcher = RuleMatcher { search, budget, lines: &lines };
    budget.check()?;
    let root = document.root().get_inner_node();
    let mut cursor = root.walk();
    loop {
        budget.step()?;
        let node = cursor.node();
        if search.rule.is_possible(node.kind_id())
            && let Some(found) = matcher.find(&document.adopt(node), source)?
        {
            if result.matches.len() >= MAX_MATCHES {
                result.is_cut = true;
                return Ok(());
            }
            result.matches.push(found);
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Ok(());
            }
        }
    }
}

impl CompiledRule {
    fn is_possible(&self, kind: u16) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.binary_search(&kind).is_ok())
    }
}

struct RuleMatcher<'a> {
    search: &'a CodeSearch,
    budget: &'a TimeBudget<'a>,
    lines: &'a LineIndex,
}

impl RuleMatcher<'_> {
    fn find(
        &self,
        node: &Target<'_>,
        source: &ParsedSource<'_>,
    ) -> Result<Option<CodeMatch>, SearchError> {
        let mut environment = Cow::Owned(Environment::new());
        // A root that matches any node is meant for named ones.
        if !node.is_named() || !self.matches(&self.search.rule, node, &mut environment)? {
            return Ok(None);
        }
        if !self.meets_constraints(&environment)
            || has_torn_list(&environment)
            || self.search.rule.ends_early(node, &environment)
        {
            return Ok(None);
        }
        // The symbols around a match are looked for among all of the file.
        self.budget.check()?;
        let range = node.range();
        Ok(Some(CodeMatch {
            lines: self.lines.lines(&range),
            kind: self.search.grammar.kind_name(node.kind_id()).to_owned(),
            symbol: symbols_around(source, &range),
            captures: captures(&environment),
            replaced: range.start..self.search.rule.match_end(node),
            range,
        }))
    }

    fn matches<'t>(
        &self,
        rule: &CompiledRule,
        node: &Target<'t>,
        environment: &mut Cow<'_, Environment<'t>>,
    ) -> Result<bool, SearchError> {
        self.budget.step()?;
        if !rule.is_possible(node.kind_id()) {
            return Ok(false);
        }
        for condition in &rule.conditions {
            if !self.holds(condition, node, environment)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn holds<'t>(
        &self,
        condition: &Condition,
        node: &Target<'t>,
        environment: &mut Cow<'_, Environment<'t>>,
    ) -> Result<bool, SearchError> {
        match condition {
            Condition::Kind(kinds) => Ok(kinds.contains(&node.kind_id())),
            Condition::Pattern(pattern) => {
                Ok(pattern.match_node_with_env(node.clone(), environment).is_some())
            }
            Condition::Regex(regex) => Ok(regex.is_match(&node.text())),
            Condition::All(rules) => {
                for rule in rules {
                    if !self.matches(rule, node, environment)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Condition::Any(rules) => {
                for rule in rules {
                    if self.attempt(rule, node, environment)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Condition::Not(rule) => {
                let mut discarded = environment.clone();
                Ok(!self.matches(rule, node, &mut discarded)?)
            }
            Condition::Inside(relation) => self.inside(relation, node, environment),
            Condition::Has(relation) => self.has(relation, node, environment),
            Condition::Precedes(relation) => {
                self.sibling(relation, node, environment, SyntaxNode::next_named_sibling)
            }
            Condition::Follows(relation) => {
                self.sibling(relation, node, environment, SyntaxNode::prev_named_sibling)
            }
        }
    }

    /// Matches a rule, and keeps what it captured only if it holds.
    fn attempt<'t>(
        &self,
        rule: &CompiledRule,
        node: &Target<'t>,
        environment: &mut Cow<'_, Environment<'t>>,
    ) -> Result<bool, SearchError> {
        if !rule.is_possible(node.kind_id()) {
            return Ok(false);
        }
        let mut attempt = Cow::Owned(environment.as_ref().clone());
        let holds = self.matches(rule, node, &mut attempt)?;
        if holds {
            *environment.to_mut() = attempt.into_owned();
        }
        Ok(holds)
    }

    /// Tells whether a relation ends at a node that was not the one.
    fn ends_at<'t>(
        &self,
        distance: &Distance,
        node: &Target<'t>,
        environment: &Environment<'t>,
    ) -> Result<bool, SearchError> {
        match distance {
            Distance::Neighbor => Ok(true),
            Distance::End => Ok(false),
            Distance::Rule(rule) => {
                let mut discarded = Cow::Borrowed(environment);
                self.matches(rule, node, &mut discarded)
            }
        }
    }

    fn inside<'t>(
        &self,
        relation: &CompiledRelation,
        node: &Target<'t>,
        environment: &mut Cow<'_, Environment<'t>>,
    ) -> Result<bool, SearchError> {
        let mut inner = node.get_inner_node();
        while let Some(outer) = inner.parent() {
            self.budget.step()?;
            let target = node.root().adopt(outer);
            let is_in_field = relation.field.is_none_or(|field| is_in_field(outer, inner, field));
            if is_in_field && self.attempt(&relation.rule, &target, environment)? {
                return Ok(true);
            }
            if self.ends_at(&relation.distance, &target, environment)? {
                return Ok(false);
            }
            inner = outer;
        }
        Ok(false)
    }

    fn has<'t>(
        &self,
        relation: &CompiledRelation,
        node: &Target<'t>,
        environment: &mut Cow<'_, Environment<'t>>,
    ) -> Result<bool, SearchError> {
        let top = node.get_inner_node();
        let mut cursor = top.walk();
        if !cursor.goto_first_child() {
            return Ok(false);
        }
        let mut depth = 1;
        loop {
            self.budget.step()?;
            let inner = cursor.node();
            let is_in_field = depth > 1
                || relation
                    .field
                    .is_none_or(|field| cursor.field_id().map(u16::from) == Some(field));
            let mut enters = false;
            if is_in_field {
                let target = node.root().adopt(inner);
                if self.attempt(&relation.rule, &target, environment)? {
                    return Ok(true);
                }
                enters = !self.ends_at(&relation.distance, &target, environment)?;
            }
            if enters && cursor.goto_first_child() {
                depth += 1;
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return Ok(false);
                }
                depth -= 1;
                if depth == 0 {
                    return Ok(false);
                }
            }
        }
    }

    fn sibling<'t>(
        &self,
        relation: &CompiledRelation,
        node: &Target<'t>,
        environment: &mut Cow<'_, Environment<'t>>,
        next: impl Fn(&SyntaxNode<'t>) -> Option<SyntaxNode<'t>>,
    ) -> Result<bool, SearchError> {
        let mut current = node.get_inner_node();
        while let Some(sibling) = next(&current) {
            self.budget.step()?;
            let target = node.root().adopt(sibling);
            if self.attempt(&relation.rule, &target, environment)? {
                return Ok(true);
            }
            if self.ends_at(&relation.distance, &target, environment)? {
                return Ok(false);
            }
            current = sibling;
        }
        Ok(false)
    }

    fn meets_constraints(&self, environment: &Environment<'_>) -> bool {
        self.search.constraints.iter().all(|(name, constraint)| {
            let one = environment.get_match(name).cloned();
            let all = environment.get_multiple_matches(name);
            let mut nodes = one.iter().chain(all.iter().filter(|node| node.is_named()));
            nodes.all(|node| constraint.is_met(node))
        })
    }
}

impl CompiledConstraint {
    fn is_met(&self, node: &Target<'_>) -> bool {
        self.regex.as_ref().is_none_or(|regex| regex.is_match(&node.text()))
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&node.kind_id()))
    }
}

impl CompiledRule {
    /// Tells whether a list took too little of a node, so that named parts of it are left behind the last variable.
    fn ends_early(&self, node: &Target<'_>, environment: &Environment<'_>) -> bool {
        let last = self.conditions.iter().find_map(|condition| match condition {
            Condition::Pattern(pattern) => pattern::variable_behind_list(&pattern.node),
            _ => None,
        });
        let Some(end) =
            last.and_then(|name| environment.get_match(name)).map(|last| last.range().end)
        else {
            return false;
        };
        let is_left = |child: &Target<'_>| {
            child.is_named() && !child.is_extra() && child.range().start >= end
        };
        node.children().any(|child| is_left(&child))
    }

    /// Returns the end of a match without the trailing tokens that its pattern lacks.
    fn match_end(&self, node: &Target<'_>) -> usize {
        let patterns = self.conditions.iter().filter_map(|condition| match condition {
            Condition::Pattern(pattern) => Some(pattern),
            _ => None,
        });
        let lengths = patterns.filter_map(|pattern| pattern.get_match_len(node.clone()));
        let end = node.range().end;
        lengths.max().map_or(end, |length| (node.range().start + length).min(end))
    }
}

fn is_in_field(outer: SyntaxNode<'_>, inner: SyntaxNode<'_>, field: u16) -> bool {
    let mut cursor = outer.walk();
    let mut goes_on = cursor.goto_first_child();
    while goes_on {
        if cursor.node().id() == inner.id() {
            return cursor.field_id().map(u16::from) == Some(field);
        }
        goes_on = cursor.goto_next_sibling();
    }
    false
}

/// Tells whether a list goes on behind the bracket that closes it, as the pairs of a table do behind its head.
fn has_torn_list(environment: &Environment<'_>) -> bool {
    let is_closing =
        |node: &Target<'_>| !node.is_named() && matches!(node.text().as_ref(), ")" | "]" | "}");
    environment.get_matched_variables().any(|variable| {
        let MetaVariable::MultiCapture(name) = variable else { return false };
        let nodes = environment.get_multiple_matches(&name);
        nodes.iter().skip_while(|node| !is_closing(node)).any(Node::is_named)
    })
}

fn captures(environment: &Environment<'_>) -> Vec<Capture> {
    let mut captures: Vec<Capture> = environment
        .get_matched_variables()
        .filter_map(|variable| match variable {
            MetaVariable::Capture(name, _) => {
                let node = environment.get_match(&name)?;
                let range = trimmed(node);
                let (begins_line, ends_line) = (is_directive(node), ends_line(node));
                let nodes = vec![range.clone()];
                Some(Capture { name, is_variadic: false, range, nodes, begins_line, ends_line })
            }
            MetaVariable::MultiCapture(name) => {
                let nodes = environment.get_multiple_matches(&name);
                Some(variadic(name, &nodes))
            }
            MetaVariable::Dropped(_) | MetaVariable::Multiple => None,
        })
        .collect();
    captures.sort_by(|a, b| a.name.cmp(&b.name));
    captures
}

fn variadic(name: String, nodes: &[Target<'_>]) -> Capture {
    let is_content =
        |node: &&Target<'_>| node.is_named() && node.kind().as_ref() != "line_continuation";
    let content: Vec<_> = nodes.iter().filter(is_content).collect();
    let begins_line = content.first().is_some_and(|node| is_directive(node));
    let ends_line = content.last().is_some_and(|node| ends_line(node));
    let named: Vec<Range<usize>> = content.into_iter().map(trimmed).collect();
    // Separators at either end belong to what is around the list.
    let range = match (named.first(), named.last()) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => 0..0,
    };
    Capture { name, is_variadic: true, range, nodes: named, begins_line, ends_line }
}

fn is_directive(node: &Target<'_>) -> bool {
    node.kind().starts_with("preproc_")
}

/// Tells whether the last part of a node lasts to the end of its line.
fn ends_line(node: &Target<'_>) -> bool {
    const DELIMITED: [&str; 4] = ["/*", "--[", "<!--", "=begin"];
    let mut node = node.clone();
    loop {
        if is_directive(&node) {
            return true;
        }
        if node.kind().contains("comment") {
            let text = node.text();
            return !DELIMITED.iter().any(|opening| text.starts_with(opening));
        }
        let last = node.children().last();
        match last {
            Some(last) => node = last,
            None => return false,
        }
    }
}

/// Returns the range of a node without the line feed that some grammars put at its end.
fn trimmed(node: &Target<'_>) -> Range<usize> {
    let range = node.range();
    range.start..range.start + node.text().trim_end().len()
}
