//! The tool `hover`.

use carrel_domain::ToolGroup;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::AnswerFacts;
use super::find_definition::prepare;
use super::question::TargetInput;
use super::semantics::require;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// Bytes of a documentation.
const MAX_TEXT: usize = 6_000;

pub(super) struct Hover;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    #[serde(flatten)]
    target: TargetInput,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    #[serde(flatten)]
    answer: AnswerFacts,
    /// The name that was asked about.
    name: String,
}

impl Tool for Hover {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "hover",
        title: "Type and documentation",
        group: ToolGroup::Code,
        in_default_set: false,
        description: "The type and documentation of a symbol, by a language server.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        let (question, _) = prepare(context, input.target).await?;
        let place = question.only_place()?;
        let found = require(context, async |servers, query| servers.hover(query, &place).await);
        let found = found.await?;
        let mut text = match &found.value {
            Some(text) => super::outline::cut(text.trim(), MAX_TEXT),
            None => format!("nothing is known about {}", question.short_label()),
        };
        let answer = AnswerFacts::of_server(&found);
        answer.notes().for_each(|note| line(&mut text, &note));
        Ok(Reply::text(text, Facts { answer, name: question.name }))
    }
}
