//! A tool whose types are forgotten, and a call that cannot take the server down.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use carrel_domain::Code;
use serde_json::{Map, Value};
use tracing::error;

use super::Definition;
use super::fan_out;
use crate::arguments::{decode, schema_of, with_workspace};
use crate::failure::Failure;
use crate::response::{Reply, ToolResponse};
use crate::schema::or_error;
use crate::tool::{Tool, WorkspaceChoice};
use crate::tool_context::ToolContext;

type Answering<'a> = Pin<Box<dyn Future<Output = Result<ToolResponse, Failure>> + Send + 'a>>;

/// A tool with its definition.
pub(super) struct Entry {
    pub(super) definition: Definition,
    tool: Box<dyn AnyTool>,
}

trait AnyTool: Send + Sync {
    fn call<'a>(
        &'a self,
        schema: &'a Map<String, Value>,
        context: &'a ToolContext,
        arguments: Map<String, Value>,
    ) -> Answering<'a>;
}

impl<T: Tool> AnyTool for T {
    fn call<'a>(
        &'a self,
        schema: &'a Map<String, Value>,
        context: &'a ToolContext,
        arguments: Map<String, Value>,
    ) -> Answering<'a> {
        Box::pin(async move {
            let input: T::Input = decode(schema, arguments)?;
            let Reply { content, facts, data } = Tool::call(self, context, input).await?;
            let structured = serde_json::to_value(facts).map_err(|error| {
                Failure::new(Code::Internal, format!("could not encode the facts: {error}"))
            })?;
            Ok(ToolResponse { content, structured, data, is_error: false })
        })
    }
}

impl Entry {
    pub(super) fn new<T: Tool>(tool: T) -> Self {
        let about = T::ABOUT;
        let facts = schema_of::<T::Facts>();
        let output_schema = match about.workspaces {
            WorkspaceChoice::OneOrAll => or_error(vec![facts.into(), fan_out::schema()]),
            WorkspaceChoice::One | WorkspaceChoice::Optional => or_error(vec![facts.into()]),
        };
        let definition = Definition {
            about,
            input_schema: Arc::new(with_workspace(schema_of::<T::Input>(), about.workspaces)),
            output_schema: Arc::new(output_schema),
        };
        Self { definition, tool: Box::new(tool) }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.definition.about.name.fmt(f)
    }
}

/// Runs a tool. A panic fails the call and nothing else.
pub(super) async fn guarded(
    entry: &Entry,
    context: &ToolContext,
    arguments: Map<String, Value>,
) -> Result<ToolResponse, Failure> {
    let mut answering = entry.tool.call(&entry.definition.input_schema, context, arguments);
    let caught = std::future::poll_fn(|context| {
        // What the tool shares with others is behind locks that survive a panic.
        let polled =
            std::panic::catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(context)));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(answered)) => Poll::Ready(Ok(answered)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    });
    caught.await.unwrap_or_else(|panic| {
        let reason = reason(&*panic);
        error!(tool = context.tool, reason, "a tool panicked");
        let message = format!("{} failed because of a defect in Carrel: {reason}", context.tool);
        Err(Failure::new(Code::Internal, message))
    })
}

fn reason(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown reason")
}
