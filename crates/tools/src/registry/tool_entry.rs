//! A tool with its types erased, so that tools of all types stand in one table.

use std::pin::Pin;
use std::sync::Arc;

use carrel_domain::{Code, Failure};
use schemars::JsonSchema as _;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Definition;
use super::fan_out;
use crate::response::{Reply, ToolResponse};
use crate::schema_dialect::or_error;
use crate::tool::{About, Tool, WorkspaceChoice};
use crate::tool_context::ToolContext;
use crate::tool_schema::{Derived, InputSchemas, decode, schema_of};

/// The work of any tool.
pub(super) type ResponseFuture<'a> =
    Pin<Box<dyn Future<Output = Result<ToolResponse, Failure>> + Send + 'a>>;

type Arguments = Map<String, Value>;

/// A tool with its definition. The schemas are derived once, when the entry is made.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) definition: Definition,
    call: for<'a> fn(&'a Arguments, &'a ToolContext, Arguments) -> ResponseFuture<'a>,
}

fn call_with_schema<'a, T: Tool>(
    schema: &'a Arguments,
    context: &'a ToolContext,
    arguments: Arguments,
) -> ResponseFuture<'a> {
    Box::pin(async move { encode(T::call(context, decode(schema, arguments)?).await?) })
}

/// Encodes the facts of a reply as JSON.
pub(crate) fn encode<F: Serialize>(reply: Reply<F>) -> Result<ToolResponse, Failure> {
    let Reply { content, facts, data } = reply;
    let structured = serde_json::to_value(facts).map_err(|error| unencoded(&error))?;
    Ok(ToolResponse { content, structured, data, is_error: false })
}

fn unencoded(error: &serde_json::Error) -> Failure {
    Failure::new(Code::Internal, format!("could not encode the facts: {error}"))
}

impl Entry {
    pub(super) fn new<T: Tool>() -> Self {
        let definition = define(T::ABOUT, T::Input::json_schema, T::Facts::json_schema);
        Self { definition, call: call_with_schema::<T> }
    }

    pub(super) fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> ResponseFuture<'a> {
        (self.call)(self.definition.input_schema(), context, arguments)
    }
}

fn define(about: About, input: Derived, facts: Derived) -> Definition {
    let facts = schema_of(facts);
    let output_schema = match about.workspaces {
        WorkspaceChoice::OneOrAll => or_error(vec![facts.into(), fan_out::schema()]),
        WorkspaceChoice::One | WorkspaceChoice::Optional => or_error(vec![facts.into()]),
    };
    let input = InputSchemas::of(input, about.workspaces);
    Definition { about, input, output_schema: Arc::new(output_schema) }
}
