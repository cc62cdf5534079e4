//! Questions to language servers, within the time that a caller waits.
//!
//! A server starts with the first question about a file of its language. While it reads the project it gives no
//! answer, and the tools answer by syntax and say what the server is doing. A tool that changes files waits longer,
//! and refuses where no complete answer comes.
//!
//! Servers are programs of the project or run code of it. For callers that may not start programs
//! ([`crate::HelperPrograms`], read-only workspaces) none is asked, not even one that runs: it may end with the
//! question, and the answer would start the next one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use carrel_audit::Interface;
use carrel_domain::{Code, Failure};
use carrel_lsp::{Answer, LanguageServers, NotReady, QueryContext, QueryError, Reply, Target};

use super::source_file::SourceText;
use crate::tool_context::ToolContext;

/// The time for an answer that syntax can stand in for.
const QUESTION_TIME: Duration = Duration::from_secs(8);

/// The same on the command line, where the server ends with the answer.
const COMMAND_LINE_TIME: Duration = Duration::from_secs(30);

/// The time for an answer that nothing can stand in for.
pub(super) const CHANGE_TIME: Duration = Duration::from_secs(90);

/// A language server in words of a refusal.
const PROGRAM: &str = "language server";

/// The outcome of a question.
#[derive(Debug)]
pub(super) enum Semantics<T> {
    Answered(Answer<T>),
    Unanswered(Reason),
}

/// The reason why no server answered.
#[derive(Clone, Debug)]
pub(super) struct Reason {
    /// In words, for the facts of every reply.
    pub(super) words: String,
    /// It lasts, and the session was told of it before.
    pub(super) is_told: bool,
}

impl Reason {
    /// Returns a reason that concerns this answer alone.
    pub(super) fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), is_told: false }
    }

    /// Returns the words for the text of a reply, none if the session was told of them before.
    pub(super) fn untold(&self) -> &str {
        if self.is_told { "" } else { &self.words }
    }
}

/// Asks the server of a file. All reasons for which there is no answer are words for the reply.
pub(super) async fn ask<T>(
    context: &ToolContext,
    query: impl AsyncFnOnce(&LanguageServers, &QueryContext) -> Result<Reply<T>, QueryError>,
) -> Semantics<T> {
    let time = match context.options.interface {
        Interface::Cli => COMMAND_LINE_TIME,
        Interface::Stdio
        | Interface::Http
        | Interface::Rest
        | Interface::Task
        | Interface::Agent => QUESTION_TIME,
    };
    ask_within(context, time, query).await
}

/// Does the same within a time of the caller's.
pub(super) async fn ask_within<T>(
    context: &ToolContext,
    time: Duration,
    query: impl AsyncFnOnce(&LanguageServers, &QueryContext) -> Result<Reply<T>, QueryError>,
) -> Semantics<T> {
    if let Some(refusal) = context.helper_refusal(PROGRAM) {
        return Semantics::Unanswered(once(context, refusal.message));
    }
    let query_context = query_context(context, time);
    let asking = query(&context.toolbox.language_servers, &query_context);
    let answered = tokio::select! {
        answered = asking => answered,
        () = context.cancel().cancelled() => {
            return Semantics::Unanswered(Reason::new("the call was cancelled"));
        }
    };
    match answered {
        Ok(Reply::Answer(answer)) => Semantics::Answered(answer),
        Ok(Reply::NotReady(not_ready)) => Semantics::Unanswered(Reason::new(pending(&not_ready))),
        Err(error) => Semantics::Unanswered(once(context, error.to_string())),
    }
}

/// Returns a reason that lasts, such as a missing program. Texts have it the first time that a session is told.
fn once(context: &ToolContext, words: String) -> Reason {
    let is_told = !context.session.state().told_checks.insert(words.clone());
    Reason { words, is_told }
}

/// Asks the server of a file for an answer that nothing can stand in for.
pub(super) async fn require<T>(
    context: &ToolContext,
    query: impl AsyncFnOnce(&LanguageServers, &QueryContext) -> Result<Reply<T>, QueryError>,
) -> Result<Answer<T>, Failure> {
    if let Some(refusal) = context.helper_refusal(PROGRAM) {
        let message = format!(
            "{} needs a language server, and {}; outline, read_symbol, find_definition and find_references need none",
            context.tool, refusal.message
        );
        return Err(Failure { message, ..refusal });
    }
    let query_context = query_context(context, CHANGE_TIME);
    let asking = query(&context.toolbox.language_servers, &query_context);
    let answered = tokio::select! {
        answered = asking => answered,
        () = context.cancel().cancelled() => {
            return Err(Failure::new(Code::Cancelled, "the call was cancelled"));
        }
    };
    match answered {
        Ok(Reply::Answer(answer)) => Ok(answer),
        Ok(Reply::NotReady(not_ready)) => {
            Err(Failure::new(Code::LanguageServer, pending(&not_ready)))
        }
        Err(QueryError::Files(error)) => Err(error.into()),
        Err(error) => Err(Failure::new(Code::LanguageServer, error.to_string())),
    }
}

fn query_context(context: &ToolContext, time: Duration) -> QueryContext {
    QueryContext {
        runner: context.toolbox.runner.clone(),
        workspace: Arc::clone(context.workspace().shared_handle()),
        watch: context.toolbox.symbols.watch(context.workspace()),
        time: context.options.command_settings.timeout.unwrap_or(time).min(time),
    }
}

/// Tells whether a server is known for the language of a file.
pub(super) fn knows(path: &Path) -> bool {
    LanguageServers::knows(path)
}

/// Returns the place of a question in a file as it was read.
pub(super) fn target(file: &SourceText, offset: usize) -> Target {
    Target::new(file.path(), offset).in_content(file.content_hash())
}

fn pending(not_ready: &NotReady) -> String {
    let NotReady { server, pending, estimate } = not_ready;
    let estimate = estimate.map_or(String::new(), |estimate| {
        format!(", for about {} s more", estimate.as_secs().max(1))
    });
    // The server is at work on the question itself.
    let pending = if pending == "the answer" { "it is working on this" } else { pending };
    format!("{server} is not ready ({pending}{estimate}); ask again for its answer")
}
