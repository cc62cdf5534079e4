//! `/api/tools`, and calls of any tool over REST.

use std::sync::OnceLock;

use axum::extract::State;
use carrel_domain::{Code, TokenScope};
use carrel_tools::{Class, Definition, Exposure, ToolSelection};
use carrel_wire::{ToolArguments, ToolDescription, ToolList, ToolReply};
use serde_json::{Map, Value, json};

use crate::auth::Caller;
use crate::extract::{Authenticated, Json, WorkspaceRequest};
use crate::openapi::{COMMANDS, FILES, Header, Route, SEARCH, STORE, TOOLS, WORKSPACES};
use crate::response::{ErrorResponse, Result, RouteResult, ok};
use crate::routes::commands::ToolCall;
use crate::state::Api;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/tools", list)
            .name("list_tools", "List tools", TokenScope::Read)
            .description("Lists the tools that can be called, with the schemas of their arguments and facts.")
            .json::<ToolList>(200, "The tools."),
        Route::post("/api/workspaces/{workspace_id}/tools/{name}", call)
            .name("call_tool", "Call a tool", TokenScope::Read)
            .description(
                "Calls a tool. The body holds its arguments; `list_tools` describes them. A tool that changes \
                 files needs the scope `write`; one that runs programs, git included, the scope `exec`.",
            )
            .header(Header::IdempotencyKey)
            .body::<ToolArguments>()
            .json::<ToolReply>(200, "The result of the tool.")
            .errors(STORE)
            .errors(WORKSPACES)
            .errors(FILES)
            .errors(SEARCH)
            .errors(COMMANDS)
            .errors(TOOLS),
    ]
}

async fn list(State(_): State<Api>, Authenticated(caller): Authenticated) -> RouteResult {
    static LIST: OnceLock<ToolList> = OnceLock::new();
    caller.check_scope(TokenScope::Read)?;
    let tools = LIST.get_or_init(|| ToolList { tools: definitions().map(shown).collect() });
    Ok(ok(tools))
}

pub(super) fn find(name: &str, hint: &str) -> Result<&'static Definition> {
    definitions().find(|tool| tool.about.name == name).ok_or_else(|| {
        let name: String = name.chars().take(100).collect();
        let message = format!("unknown tool `{name}`; {hint}");
        ErrorResponse::new(Code::UnknownTool, message, json!({ "tool": name }))
    })
}

pub(super) fn definitions() -> impl Iterator<Item = &'static Definition> {
    let all = carrel_tools::definitions(ToolSelection::ALL);
    all.filter(|tool| tool.about.rules.exposure == Exposure::Everywhere)
}

/// Returns the names of the tools that can be called.
pub(crate) fn names() -> Vec<&'static str> {
    definitions().map(|tool| tool.about.name).collect()
}

fn shown(tool: &Definition) -> ToolDescription {
    ToolDescription {
        name: tool.about.name.into(),
        title: tool.about.title.into(),
        description: tool.about.description.into(),
        class: class_word(tool.about.class).into(),
        input_schema: Map::clone(tool.input_schema()),
        output_schema: Map::clone(&tool.output_schema),
    }
}

fn class_word(class: Class) -> &'static str {
    match class {
        Class::Read => "read",
        Class::Write => "write",
        Class::Execute => "execute",
    }
}

/// Requires the scope `net` for arguments that ask for a network.
pub(super) fn check_asked_network(caller: &Caller, arguments: &Map<String, Value>) -> Result<()> {
    if arguments.get("network").is_some_and(|network| network != "none") {
        caller.check_scope(TokenScope::Net)?;
    }
    Ok(())
}

async fn call(
    request: WorkspaceRequest,
    Json(ToolArguments(arguments), body): Json<ToolArguments>,
) -> RouteResult {
    let (caller, workspace) = (&request.caller, request.id);
    let tool = find(&request.name, "GET /api/tools lists them")?;
    if arguments.contains_key("workspace") {
        let rule = "is named in the path, not in the arguments";
        return Err(ErrorResponse::field("workspace", rule));
    }
    check_asked_network(caller, &arguments)?;
    caller.check(tool.about.rules.token_scope, workspace)?;
    let call = ToolCall { caller, workspace, tool, arguments, network: None };
    request.run_once(tool.about.name, &body, call.call(&request.api)).await
}
