//! The prompt template, in Liquid, for an agent's first turn.
//!
//! A template is parsed when the file is loaded, so that its errors come with line and column, and rendered
//! for each run. Names that are not among the variables are errors; a misspelt field must not render as
//! nothing. The engine parses by recursion and panics on extreme numbers: [`template_limits`] rejects
//! templates that it could not survive, and the remaining panics are caught.

mod template_error;
mod template_limits;

use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::diagnostic::{Diagnostic, Position};
use crate::front_matter::SourceText;

pub(crate) use template_limits::{MAX_BYTES, MAX_SPACES, MAX_TAGS};

const BUILT_IN: &str = "\
You work on one issue of a tracker, alone in a workspace made for it.

Identifier: {{ issue.identifier }}
Title: {{ issue.title }}

Body:
{% if issue.description and issue.description != \"\" %}{{ issue.description }}\
{% else %}The issue has no description.{% endif %}";

const ENGINE_PANICKED: &str = "the template engine failed; look for extreme numbers";

/// A template that cannot be parsed or rendered.
#[expect(missing_docs, reason = "the messages say what each variant and field is")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("the prompt is not a valid template: {reason}, at {excerpt:?}")]
    Parse {
        reason: String,
        /// The beginning of the line with the error.
        excerpt: String,
        position: Position,
    },
    /// The template uses an unknown name, or a computation failed.
    #[error("the prompt could not be rendered: {reason}")]
    Render { reason: String },
}

impl TemplateError {
    /// Returns the stable kind of the error, for JSON output.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Parse { .. } => carrel_domain::Code::TemplateParse.kind(),
            Self::Render { .. } => "template_render_error",
        }
    }
}

/// A template, parsed or with the error of parsing it.
#[derive(Clone)]
pub struct Prompt {
    source: String,
    built_in: bool,
    template: Result<Arc<liquid::Template>, TemplateError>,
}

impl Prompt {
    /// Parses the prompt of a file. A blank one becomes the built-in prompt.
    pub(crate) fn parse(part: SourceText) -> Self {
        let built_in = part.text.is_empty();
        let source = if built_in { BUILT_IN.to_owned() } else { part.text };
        let template = compile(&source, part.start).map(Arc::new);
        Self { source, built_in, template }
    }

    /// Returns the text of the template.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns whether this is the built-in template.
    pub fn is_built_in(&self) -> bool {
        self.built_in
    }

    /// Renders the template. A name that is not among the variables is an error; a null value is not.
    pub fn render(&self, variables: &Map<String, Value>) -> Result<String, TemplateError> {
        let template = self.template.as_ref().map_err(Clone::clone)?;
        let failed = |reason: String| TemplateError::Render { reason };
        let object =
            liquid::to_object(variables).map_err(|error| failed(template_error::reason(&error)))?;
        catch_engine_panic(|| template.render(&object))
            .ok_or_else(|| failed(ENGINE_PANICKED.to_owned()))?
            .map_err(|error| failed(template_error::reason(&error)))
    }

    pub(crate) fn fault(&self) -> Option<Diagnostic> {
        match &self.template {
            Err(error @ TemplateError::Parse { position, .. }) => {
                Some(Diagnostic::at(*position, error.to_string()))
            }
            Ok(_) | Err(TemplateError::Render { .. }) => None,
        }
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt")
            .field("source", &self.source)
            .field("built_in", &self.built_in)
            .field("error", &self.template.as_ref().err())
            .finish()
    }
}

fn compile(source: &str, start: Position) -> Result<liquid::Template, TemplateError> {
    let failed = |reason, local| template_error::located(reason, source, local, start);
    if let Err(excess) = template_limits::check(source) {
        return Err(failed(excess.reason, Position::after(&source[..excess.offset])));
    }
    catch_engine_panic(|| liquid::ParserBuilder::with_stdlib().build()?.parse(source))
        .ok_or_else(|| failed(ENGINE_PANICKED.to_owned(), Position::START))?
        .map_err(|error| failed(template_error::reason(&error), template_error::position(&error)))
}

/// Runs the template engine, which panics on numbers beyond its range.
///
/// The engine is only read from, so a panic leaves nothing half-changed.
fn catch_engine_panic<T>(run: impl FnOnce() -> T) -> Option<T> {
    panic::catch_unwind(AssertUnwindSafe(run)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    fn prompt(text: &str) -> Prompt {
        Prompt::parse(SourceText { text: text.to_owned(), start: Position { line: 10, column: 1 } })
    }

    fn render(text: &str) -> Result<String, String> {
        let variables = json!({
            "issue": {
                "identifier": "Å-1", "title": "х 入", "description": null,
                "labels": ["backend", "urgent"], "blocked_by": [{"id": "7"}],
            },
            "attempt": null,
        });
        let Value::Object(variables) = variables else { panic!("an object was written") };
        prompt(text).render(&variables).map_err(|error| error.to_string())
    }

    #[test]
    fn item_104_templates_render_by_the_table() {
        for (template, text) in [
            ("plain Å х 入", "plain Å х 入"),
            ("{{ issue.identifier }}: {{ issue.title }}", "Å-1: х 入"),
            ("{{ issue.labels }}", "backendurgent"),
            ("{{ issue.labels | join: ', ' }}", "backend, urgent"),
            ("[{{ attempt }}]", "[]"),
            ("{% if attempt %}again{% else %}first{% endif %}", "first"),
            ("{% for b in issue.blocked_by %}{{ b.id }};{% endfor %}", "7;"),
            ("{% raw %}{{ x }}{% endraw %}", "{{ x }}"),
        ] {
            assert_eq!(render(template), Ok(text.to_owned()), "{template}");
        }
    }

    #[test]
    fn item_016_and_104_unknown_names_fail_the_rendering() {
        for (template, reason) in [
            ("{{ missing }}", "Unknown variable (requested variable=missing)"),
            ("{{ issue.nope }}", "Unknown index (requested index=nope)"),
            ("{% for x in missing %}{% endfor %}", "Unknown variable (requested variable=missing)"),
            ("{% include 'x' %}", "Partial does not exist (name=x)"),
            (
                "{% tablerow i in (1..3) cols:0 %}{% endtablerow %}",
                "the template engine failed; look for extreme numbers",
            ),
        ] {
            let expected = format!("the prompt could not be rendered: {reason}");
            assert_eq!(render(template), Err(expected), "{template}");
        }
    }

    #[test]
    fn a_blank_prompt_becomes_the_built_in_one() {
        assert!(prompt("").is_built_in());
        let text = render("").unwrap();
        assert!(text.contains("Identifier: Å-1\nTitle: х 入\n"), "{text}");
        assert!(text.ends_with("Body:\nThe issue has no description."), "{text}");
    }

    #[test]
    fn a_broken_template_is_reported_with_its_position_and_a_short_excerpt() {
        let long = format!("one\n{{% nope %}} {}", "secret ".repeat(200));
        for (template, line, column, reason, excerpt) in [
            ("a {{ issue.title", 10, 6, "expected Literal", "a {{ issue.title"),
            ("one\n{% if x %}", 11, 11, "Unclosed block. {% endif %} tag expected.", "{% if x %}"),
            ("{{ x | nope }}", 10, 1, "Unknown filter (requested filter=nope)", "{{ x | nope }}"),
            (long.as_str(), 11, 4, "Unknown tag. (requested=nope)", &long[4..64]),
            (
                "{{ 99999999999999999999 }}",
                10,
                4,
                "the number has too many digits",
                "{{ 99999999999999999999 }}",
            ),
        ] {
            let error = prompt(template).template.err().expect(template);
            let expected = TemplateError::Parse {
                reason: reason.to_owned(),
                excerpt: excerpt.to_owned(),
                position: Position { line, column },
            };
            assert_eq!(error, expected, "{template}");
            assert_eq!(error.kind(), "template_parse_error");
        }
    }

    #[test]
    fn a_template_cannot_exhaust_the_stack() {
        for (part, count) in [
            ("{% if x %}", 20_000),
            ("{%- for i in x -%}", 10_000),
            ("{% case x %}{% when 1 %}", 10_000),
            ("{% if x %}{% elsif x %}", 10_000),
            ("{{ a[", 50_000),
            ("a[", 100_000),
            ("(1..", 50_000),
            ("{% comment %}", 20_000),
        ] {
            assert!(prompt(&part.repeat(count)).fault().is_some(), "{part}");
        }
        assert!(
            prompt(&format!("{{% if x {} %}}{{% endif %}}", "and x ".repeat(9_000)))
                .fault()
                .is_some()
        );
        assert_eq!(prompt(&"- [ ] this and that or so\n".repeat(1_000)).fault(), None);
    }
}
