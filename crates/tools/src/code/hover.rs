//! The tool `hover`.

use carrel_domain::{Code, ToolGroup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::AnswerFacts;
use super::find_definition::prepare;
use super::question::{Question, TargetInput};
use super::semantics::{Reason, require};
use super::source_file::SourceFile;
use crate::files::{WorkspaceFiles, run_cancellable};
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// Bytes of a documentation.
const MAX_TEXT: usize = 6_000;

/// Definitions of a name that are shown where no server says which of them is meant.
const MAX_DEFINITIONS: usize = 3;

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
        let (question, by_name) = prepare(context, input.target).await?;
        let place = question.only_place()?;
        let found = require(context, async |servers, query| servers.hover(query, &place).await);
        let found = match found.await {
            Err(failure) if is_about_servers(failure.code) && !question.definitions.is_empty() => {
                let answer = by_name.without_server(Some(Reason::new(failure.message)));
                return of_source(context, question, answer).await;
            }
            found => found?,
        };
        let mut text = match &found.value {
            Some(text) => super::outline::cut(text.trim(), MAX_TEXT),
            None => format!("nothing is known about {}", question.short_label()),
        };
        let answer = AnswerFacts::of_server(&found);
        answer.notes().for_each(|note| line(&mut text, &note));
        Ok(Reply::text(text, Facts { answer, name: question.name }))
    }
}

fn is_about_servers(code: Code) -> bool {
    matches!(code, Code::LanguageServer | Code::ReadOnly | Code::Forbidden)
}

/// Answers with the heads of the definitions of the name, and the comments above them.
async fn of_source(
    context: &ToolContext,
    question: Question,
    answer: AnswerFacts,
) -> ToolResult<Facts> {
    let files = WorkspaceFiles::of(context);
    let own = context.clone();
    run_cancellable(context, move |_, _| {
        let mut text = String::new();
        for one in question.definitions.iter().take(MAX_DEFINITIONS) {
            // A file that vanished since is left out.
            let Ok(file) = SourceFile::load(&files, &own.toolbox.symbols, &one.file) else {
                continue;
            };
            let (comments, head, _) = one.bytes;
            let comments = file.source.get(comments..head).unwrap_or_default().trim();
            line(&mut text, &format!("{}:{}", file.shown, one.line));
            if !comments.is_empty() {
                line(&mut text, &super::outline::cut(comments, MAX_TEXT));
            }
            line(&mut text, &file.signature(one));
        }
        answer.notes().for_each(|note| line(&mut text, &note));
        Ok(Reply::text(text, Facts { answer, name: question.name }))
    })
    .await
}
