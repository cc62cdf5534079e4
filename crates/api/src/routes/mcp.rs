//! `/mcp`: the tools over MCP, restricted by the token.
//!
//! A session lists the tools that the scopes of its token allow. Each call names its workspace unless the
//! token covers a single one. Scope, coverage, rate limit, permits and quota are checked as for REST.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use axum::extract::{Request, State};
use axum::http::Extensions;
use axum::routing::{MethodRouter, any};
use carrel_domain::{Code, TokenScope, WorkspaceId};
use carrel_mcp::{
    CallPath, EmbeddedEndpoint, FactsMode, HttpOptions, SessionOwner, ToolProvider, ToolServer,
};
use carrel_tools::{CallOptions, Definition, Session, ToolContent, ToolResponse, WorkspaceCount};
use carrel_traces::TraceParent;
use carrel_wire::limits::MAX_PAGE;
use serde_json::{Map, Value, json};

use crate::audit::McpToolCall;
use crate::auth::{Caller, Coverage};
use crate::extract::{Authenticated, read_body};
use crate::host_check;
use crate::response::{ErrorResponse, Result, RouteResult};
use crate::routes::commands::ToolCall;
use crate::routes::tools::{check_asked_network, definitions, find};
use crate::state::{Api, AuthMode};

const WORKSPACES: &str = "workspaces";

const WORKSPACE: &str = "workspace";

pub(crate) fn mounted(api: &Api) -> EmbeddedEndpoint {
    let server = ToolServer::new(Arc::new(Tools { api: api.clone() }), FactsMode::Auto);
    let stop = api.options.stop.clone();
    let mut options = HttpOptions::embedded();
    options.call_path = CallPath::Direct;
    EmbeddedEndpoint::new(options, move |scope| server.for_http(&scope), stop)
}

pub(crate) fn route(mcp: EmbeddedEndpoint) -> MethodRouter<Api> {
    let serve = async move |State(api): State<Api>,
                            Authenticated(caller): Authenticated,
                            request: Request|
                -> RouteResult {
        check_origin(&api, &request)?;
        let mut request = within_bodies(&api, request).await?;
        request.extensions_mut().insert(SessionOwner(caller.session_owner().into()));
        request.extensions_mut().insert(caller);
        Ok(mcp.serve(request).await)
    };
    any(serve)
}

/// Reads the body of a message within the memory of all request bodies.
async fn within_bodies(api: &Api, request: Request) -> Result<Request> {
    let (parts, body) = request.into_parts();
    let body = read_body(body, api).await?;
    Ok(Request::from_parts(parts, body.into()))
}

/// Rejects browser requests of other origins, which the protocol demands also of requests with a token. A
/// server that forwarded the request has done so.
fn check_origin(api: &Api, request: &Request) -> Result<()> {
    match api.options.auth_mode {
        AuthMode::Internal(_) => Ok(()),
        AuthMode::Public => {
            let (uri, extensions) = (request.uri(), request.extensions());
            let rules = &api.options.host_rules;
            Ok(rules
                .check_origin(uri, extensions, request.headers())
                .map_err(host_check::refused)?)
        }
    }
}

#[derive(Debug)]
struct Tools {
    api: Api,
}

#[async_trait]
impl ToolProvider for Tools {
    fn tools(&self, head: &Extensions) -> Vec<Definition> {
        let Some(caller) = head.get::<Caller>() else { return Vec::new() };
        let allowed = |tool: &&Definition| caller.check_scope(tool.about.rules.token_scope).is_ok();
        definitions().filter(allowed).cloned().collect()
    }

    async fn call(
        &self,
        head: &Extensions,
        session: &Arc<Session>,
        name: &str,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> ToolResponse {
        let Some(caller) = head.get::<Caller>() else {
            return refused(&ErrorResponse::plain(Code::Unauthenticated, "nobody asks"));
        };
        let workspace = arguments.get(WORKSPACE).and_then(|chosen| id(chosen).ok());
        // MCP sessions run in a task of their own, outside the span of the request.
        let options = CallOptions { under: head.get::<TraceParent>().copied(), ..options };
        let call = McpToolCall { head, caller, workspace, started: Instant::now() };
        let response = self.run(caller, session, name, arguments, options).await;
        response.unwrap_or_else(|failed| {
            call.audit_refusal(&self.api, &failed);
            refused(&failed)
        })
    }

    fn workspace_count(&self, head: &Extensions) -> WorkspaceCount {
        match head.get::<Caller>().map(|caller| &caller.coverage) {
            Some(Coverage::Only(ids)) if ids.len() == 1 => WorkspaceCount::One,
            Some(Coverage::Only(_) | Coverage::All) | None => WorkspaceCount::Several,
        }
    }

    fn instructions(&self) -> String {
        "Tools for work in the workspaces that your token covers; `workspaces` lists them. Pass \
         `workspace` with the id of one, unless there is only one. Paths are relative to the \
         workspace. A file has to be read before Edit or Write change it. Commands run in a kernel \
         sandbox. A refusal says which rule it was and what would be allowed."
            .to_owned()
    }
}

impl Tools {
    async fn run(
        &self,
        caller: &Caller,
        session: &Arc<Session>,
        name: &str,
        mut arguments: Map<String, Value>,
        options: CallOptions,
    ) -> Result<ToolResponse> {
        let tool = find(name, "tools/list names them")?;
        caller.check_scope(tool.about.rules.token_scope)?;
        let chosen = arguments.remove(WORKSPACE).filter(|chosen| !chosen.is_null());
        if name == WORKSPACES && chosen.is_none() {
            return self.workspaces(caller).await;
        }
        let workspace = caller.workspace(chosen.as_ref().map(id).transpose()?)?;
        check_asked_network(caller, &arguments)?;
        let call = ToolCall { caller, workspace, tool, arguments, network: None };
        call.run(&self.api, Arc::clone(session), options).await
    }

    async fn workspaces(&self, caller: &Caller) -> Result<ToolResponse> {
        let ids: Vec<WorkspaceId> = match &caller.coverage {
            Coverage::Only(ids) => ids.iter().copied().take(MAX_PAGE as usize).collect(),
            Coverage::All => {
                let known = self.api.options.tasks.store().workspaces(None, MAX_PAGE).await?;
                known.into_iter().map(|workspace| workspace.id).collect()
            }
        };
        let read_only = caller.check_scope(TokenScope::Write).is_err();
        let suffix = if read_only { " (read-only)" } else { "" };
        let root = self.api.options.spaces.root();
        let shown = ids.iter().map(|id| (id.to_string(), root.join(id.to_string())));
        let shown: Vec<_> = shown.map(|(id, path)| (id, path.display().to_string())).collect();
        let lines = shown.iter().map(|(id, path)| format!("{id}\t{path}{suffix}"));
        let text = lines.collect::<Vec<_>>().join("\n");
        let facts = shown
            .iter()
            .map(|(id, path)| json!({ "name": id, "path": path, "read_only": read_only }));
        let structured = json!({ "workspaces": facts.collect::<Vec<_>>() });
        Ok(ToolResponse {
            content: vec![ToolContent::Text(text)],
            structured,
            data: None,
            is_error: false,
        })
    }
}

fn id(value: &Value) -> Result<WorkspaceId> {
    let text = value.as_str().unwrap_or_default();
    text.parse().map_err(|_| {
        let text: String = text.chars().take(100).collect();
        let message = format!("unknown workspace {text:?}; `workspaces` lists their ids");
        ErrorResponse::new(Code::UnknownWorkspace, message, json!({ "workspace": text }))
    })
}

fn refused(failed: &ErrorResponse) -> ToolResponse {
    let structured = failed.body().clone();
    let message = structured["error"]["message"].as_str().unwrap_or_default().to_owned();
    ToolResponse {
        content: vec![ToolContent::Text(message)],
        structured,
        data: None,
        is_error: true,
    }
}
