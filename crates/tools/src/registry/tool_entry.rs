//! A tool with its types erased, so that tools of all types stand in one table.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use carrel_domain::{Code, Failure};
use serde_json::{Map, Value};

use super::Definition;
use super::fan_out;
use crate::response::{Reply, ToolResponse};
use crate::schema_dialect::or_error;
use crate::tool::{Tool, WorkspaceChoice};
use crate::tool_context::ToolContext;
use crate::tool_schema::{decode, schema_of, with_workspace};

type ResponseFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolResponse, Failure>> + Send + 'a>>;

/// A tool with its definition. The schemas are derived once, when the entry is made.
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
    ) -> ResponseFuture<'a>;
}

impl<T: Tool> AnyTool for T {
    fn call<'a>(
        &'a self,
        schema: &'a Map<String, Value>,
        context: &'a ToolContext,
        arguments: Map<String, Value>,
    ) -> ResponseFuture<'a> {
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

    /// Decodes the arguments and calls the tool.
    pub(super) fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Map<String, Value>,
    ) -> ResponseFuture<'a> {
        self.tool.call(&self.definition.input_schema, context, arguments)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.definition.about.name.fmt(f)
    }
}
