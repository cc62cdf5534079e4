//! Rules as callers write them.
//!
//! A rule is a pattern, or an object of conditions that all have to hold. Unknown fields are errors that name
//! the field, because a misspelt condition that is left out would match too much.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, MapAccess, Visitor, value::MapAccessDeserializer};

/// Conditions on a node, all of which have to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Its shape.
    pub pattern: Option<PatternText>,
    /// The name of its kind in the grammar.
    pub kind: Option<String>,
    /// An expression that its text matches, at any place.
    pub regex: Option<String>,
    /// A node around it.
    pub inside: Option<Box<Relation>>,
    /// A node inside of it.
    pub has: Option<Box<Relation>>,
    /// A sibling behind it.
    pub precedes: Option<Box<Relation>>,
    /// A sibling before it.
    pub follows: Option<Box<Relation>>,
    /// Rules that all hold.
    pub all: Option<Vec<Rule>>,
    /// Rules of which one holds.
    pub any: Option<Vec<Rule>>,
    /// A rule that does not hold.
    pub not: Option<Box<Rule>>,
}

/// A condition on a node nearby.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relation {
    /// The conditions on that node.
    pub rule: Rule,
    /// The field of the outer node that the inner one is in, by its name in the grammar.
    pub field: Option<String>,
    /// The distance that is looked at.
    pub stop_by: StopBy,
}

/// The distance that a relation looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StopBy {
    /// The next node only: the parent, a child, the sibling beside it.
    #[default]
    Neighbor,
    /// All nodes in that direction.
    End,
    /// All nodes up to and including the first that the rule matches.
    Rule(Box<Rule>),
}

/// A pattern: source text with metavariables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternText {
    /// The source text, or source text around the part that is meant.
    pub text: String,
    /// The kind of the first node of the text that is the pattern, if not all of it is.
    pub selector: Option<String>,
    /// The exactness of matches.
    pub strictness: Strictness,
}

/// The nodes that a match may leave out of account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strictness {
    /// None: every token has to be there.
    Cst,
    /// Tokens that the pattern leaves out, and comments.
    #[default]
    Smart,
    /// All tokens without a name, such as commas.
    Ast,
    /// The same, and comments.
    Relaxed,
    /// The same, and the text of names and literals.
    Signature,
}

/// A condition on the nodes that a metavariable captured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// An expression that their text matches.
    pub regex: Option<String>,
    /// The name of their kind.
    pub kind: Option<String>,
}

/// Conditions on metavariables, by their names without `$`.
pub type Constraints = BTreeMap<String, Constraint>;

impl Rule {
    /// Creates the rule of a pattern.
    pub fn pattern(text: impl Into<String>) -> Self {
        let text = text.into();
        let pattern = PatternText { text, selector: None, strictness: Strictness::default() };
        Self { pattern: Some(pattern), ..Self::default() }
    }

    /// Returns a few words for messages: the pattern, or the names of the conditions.
    pub fn summary(&self) -> String {
        let count = |rules: &Option<Vec<Self>>| rules.as_ref().map(Vec::len);
        let parts = [
            self.pattern.as_ref().map(|pattern| format!("pattern `{}`", pattern.text)),
            self.kind.as_ref().map(|kind| format!("kind {kind}")),
            self.regex.as_ref().map(|regex| format!("regex /{regex}/")),
            self.inside.as_ref().map(|_| "inside".to_owned()),
            self.has.as_ref().map(|_| "has".to_owned()),
            self.precedes.as_ref().map(|_| "precedes".to_owned()),
            self.follows.as_ref().map(|_| "follows".to_owned()),
            count(&self.all).map(|count| format!("all({count})")),
            count(&self.any).map(|count| format!("any({count})")),
            self.not.as_ref().map(|_| "not".to_owned()),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl PatternText {
    fn of_text(text: &str) -> Self {
        Self { text: text.to_owned(), selector: None, strictness: Strictness::default() }
    }
}

/// All fields of all objects that may stand for a rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Fields {
    context: Option<String>,
    selector: Option<String>,
    strictness: Option<Strictness>,
    pattern: Option<PatternText>,
    kind: Option<String>,
    regex: Option<String>,
    inside: Option<Box<Relation>>,
    has: Option<Box<Relation>>,
    precedes: Option<Box<Relation>>,
    follows: Option<Box<Relation>>,
    all: Option<Vec<Rule>>,
    any: Option<Vec<Rule>>,
    not: Option<Box<Rule>>,
    field: Option<String>,
    stop_by: Option<StopBy>,
}

impl Fields {
    fn relation<E: de::Error>(self) -> Result<Relation, E> {
        let pattern = match (self.context, self.pattern) {
            (Some(_), Some(_)) => {
                return Err(E::custom("a rule has either `pattern` or `context`"));
            }
            (Some(text), None) => {
                let strictness = self.strictness.unwrap_or_default();
                Some(PatternText { text, selector: self.selector, strictness })
            }
            (None, _) if self.selector.is_some() || self.strictness.is_some() => {
                return Err(E::custom(
                    "`selector` and `strictness` belong to `context`, the text of the pattern",
                ));
            }
            (None, pattern) => pattern,
        };
        let rule = Rule {
            pattern,
            kind: self.kind,
            regex: self.regex,
            inside: self.inside,
            has: self.has,
            precedes: self.precedes,
            follows: self.follows,
            all: self.all,
            any: self.any,
            not: self.not,
        };
        if rule.is_empty() {
            return Err(E::custom(
                "a rule needs one of `pattern`, `kind`, `regex`, `inside`, `has`, `precedes`, `follows`, `all`, \
                 `any`, `not`",
            ));
        }
        Ok(Relation { rule, field: self.field, stop_by: self.stop_by.unwrap_or_default() })
    }
}

struct RelationVisitor;

impl<'de> Visitor<'de> for RelationVisitor {
    type Value = Relation;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pattern or an object of conditions")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Relation, E> {
        Ok(Relation { rule: Rule::pattern(text), ..Relation::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Relation, A::Error> {
        Fields::deserialize(MapAccessDeserializer::new(map))?.relation()
    }
}

impl<'de> Deserialize<'de> for Relation {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RelationVisitor)
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let relation = Relation::deserialize(deserializer)?;
        if relation.field.is_some() || relation.stop_by != StopBy::Neighbor {
            return Err(de::Error::custom(
                "`field` and `stopBy` belong into `inside`, `has`, `precedes` or `follows`",
            ));
        }
        Ok(relation.rule)
    }
}

impl<'de> Deserialize<'de> for StopBy {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let relation = Relation::deserialize(deserializer)?;
        match relation.rule.pattern.as_ref().filter(|pattern| pattern.selector.is_none()) {
            Some(pattern) if pattern.text == "neighbor" => Ok(Self::Neighbor),
            Some(pattern) if pattern.text == "end" => Ok(Self::End),
            _ => Ok(Self::Rule(Box::new(relation.rule))),
        }
    }
}

impl<'de> Deserialize<'de> for PatternText {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct InContext {
            context: String,
            selector: Option<String>,
            #[serde(default)]
            strictness: Strictness,
        }
        struct PatternVisitor;
        impl<'de> Visitor<'de> for PatternVisitor {
            type Value = PatternText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a pattern or an object with `context`, `selector` and `strictness`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<PatternText, E> {
                Ok(PatternText::of_text(text))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PatternText, A::Error> {
                let pattern = InContext::deserialize(MapAccessDeserializer::new(map))?;
                let InContext { context: text, selector, strictness } = pattern;
                Ok(PatternText { text, selector, strictness })
            }
        }
        deserializer.deserialize_any(PatternVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn rule(json: &str) -> Result<Rule, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_rule_is_a_pattern_or_an_object() {
        assert_eq!(rule("\"$A + 1\""), Ok(Rule::pattern("$A + 1")));
        assert_eq!(rule(r#"{"pattern": "$A + 1"}"#), Ok(Rule::pattern("$A + 1")));
        let context = PatternText {
            text: "({ $A })".to_owned(),
            selector: Some("object".to_owned()),
            strictness: Strictness::Ast,
        };
        let in_context = Rule { pattern: Some(context), ..Rule::default() };
        let text = r#"{"context": "({ $A })", "selector": "object", "strictness": "ast"}"#;
        assert_eq!(rule(text), Ok(in_context.clone()));
        assert_eq!(rule(&format!("{{\"pattern\": {text}}}")), Ok(in_context));
        let nested = rule(
            r#"{"any": ["a", {"kind": "b"}], "inside": {"regex": "c", "field": "body", "stopBy": "end"},
                "not": {"has": {"pattern": "d", "stopBy": {"kind": "e"}}}}"#,
        )
        .unwrap();
        assert_eq!(nested.summary(), "inside, any(2), not");
        let inside = nested.inside.unwrap();
        assert_eq!((inside.field.as_deref(), inside.stop_by), (Some("body"), StopBy::End));
        let has = nested.not.unwrap().has.unwrap();
        let kind = Rule { kind: Some("e".to_owned()), ..Rule::default() };
        assert_eq!(has.stop_by, StopBy::Rule(Box::new(kind)));
    }

    #[test]
    fn a_rule_with_a_field_that_is_none_is_refused() {
        for (json, expected) in [
            (r#"{"patern": "a"}"#, "unknown field `patern`"),
            (r#"{"not": {"insde": "a"}}"#, "unknown field `insde`"),
            ("{}", "a rule needs one of `pattern`"),
            (r#"{"kind": "a", "stopBy": "end"}"#, "`field` and `stopBy` belong into"),
            (r#"{"kind": "a", "selector": "b"}"#, "`selector` and `strictness` belong to"),
            (r#"{"context": "a", "pattern": "b"}"#, "either `pattern` or `context`"),
            (r#"{"context": "a", "strictness": "template"}"#, "unknown variant `template`"),
            ("1", "expected a pattern or an object of conditions"),
        ] {
            let error = rule(json).unwrap_err();
            assert!(error.contains(expected), "{json}: {error}");
        }
    }
}
