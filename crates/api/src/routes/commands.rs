//! `/exec` and `/git` of a workspace, and the call of a tool that other routes share.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use carrel_domain::{Code, Network, TokenScope, WorkspaceId};
use carrel_tools::{
    CallOptions, Class, CommandSettings, Definition, Interface, QuotaRule, Session, ToolResponse,
};
use carrel_wire::limits::{DEFAULT_EXEC_SECONDS, MAX_COMMAND_CHARS, MAX_EXEC_SECONDS};
use carrel_wire::{CommandReply, ExecRequest, GitArguments, GitReply, GitRequest};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::auth::Caller;
use crate::extract::{Authenticated, Json, PathId};
use crate::idempotency::{IdempotentRequest, KeyScope, WorkResult};
use crate::openapi::{COMMANDS, FILES, Header, Route, STORE, WORKSPACES};
use crate::response::{ErrorResponse, RouteResult};
use crate::routes::tasks::check_network;
use crate::routes::tools::find;
use crate::state::Api;

pub(super) fn routes() -> Vec<Route> {
    let routes = vec![
        Route::post("/api/workspaces/{workspace_id}/exec", exec)
            .name("run_command", "Run a command")
            .description(
                "Runs a command line and returns its output. Only commands of the allow-list are accepted. A \
                 command that fails is a reply, not an error. A network other than `none` also needs the \
                 scope `net`.",
            )
            .scope(TokenScope::Exec)
            .header(Header::IdempotencyKey)
            .body::<ExecRequest>()
            .json::<CommandReply>(200, "The command has ended."),
        Route::post("/api/workspaces/{workspace_id}/git", git)
            .name("run_git", "Run git")
            .description(
                "Runs one operation of git. Each argument is checked against what the operation takes; \
                 no program that the repository configures is run.",
            )
            .scope(TokenScope::Exec)
            .header(Header::IdempotencyKey)
            .body::<GitRequest>()
            .json::<GitReply>(200, "The operation has ended."),
    ];
    let with_errors =
        |route: Route| route.errors(STORE).errors(WORKSPACES).errors(FILES).errors(COMMANDS);
    routes.into_iter().map(with_errors).collect()
}

pub(super) struct ToolCall<'a> {
    pub(super) caller: &'a Caller,
    pub(super) workspace: WorkspaceId,
    pub(super) tool: &'static Definition,
    pub(super) arguments: Map<String, Value>,
    pub(super) network: Option<Network>,
}

impl ToolCall<'_> {
    /// Calls the tool, and returns the reply for programs. If the client disconnects, the tool is cancelled.
    pub(super) async fn call(self, api: &Api) -> Result<Value, ErrorResponse> {
        let cancel = CancellationToken::new();
        let _gone = cancel.clone().drop_guard();
        let session =
            Session::new(self.caller.subject.clone().unwrap_or_else(|| "rest".to_owned()));
        let options = CallOptions { cancel, ..CallOptions::new(Interface::Rest) };
        let response = self.run(api, session, options).await?;
        if response.is_error {
            return Err(ErrorResponse::of_tool(&response));
        }
        let text = response.text();
        Ok(response
            .data
            .unwrap_or_else(|| json!({ "content": text, "facts": response.structured })))
    }

    /// Calls the tool under the rules of its definition: token scope, quota and permit. This is the one
    /// way from a route to a tool, so that no route can call one with less than its scope.
    pub(super) async fn run(
        self,
        api: &Api,
        session: Arc<Session>,
        mut options: CallOptions,
    ) -> Result<ToolResponse, ErrorResponse> {
        let rules = self.tool.about.rules;
        let space = api.open_workspace(self.caller, rules.token_scope, self.workspace).await?;
        let permit = match self.tool.about.class {
            Class::Read => api.read_permit().await?,
            // They share permits with tasks.
            Class::Write | Class::Execute => api.work_permit().await?,
        };
        if rules.quota == QuotaRule::Checked {
            api.inner.spaces.check_quota(&space).await?;
        }
        options.command_settings =
            CommandSettings { network: self.network, ..CommandSettings::default() };
        let (tool, arguments) = (self.tool.about.name, self.arguments);
        // A dropped request does not drop the call: cancellation ends it, and the permit is free when it
        // has ended.
        let running = tokio::spawn(async move {
            let response = space.call(&session, tool, arguments, options).await;
            if rules.quota != QuotaRule::Ignored {
                space.expect_changes();
            }
            drop(permit);
            response
        });
        running.await.map_err(|_| {
            ErrorResponse::new(Code::Internal, "the server could not do this", json!({}))
        })
    }
}

/// Returns the fields that are not `null` as arguments of a tool.
pub(super) fn arguments(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(mut fields) => {
            fields.retain(|_, value| !value.is_null());
            fields
        }
        _ => Map::new(),
    }
}

pub(super) async fn exec(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(workspace): PathId<WorkspaceId>,
    headers: HeaderMap,
    Json(request_body, body): Json<ExecRequest>,
) -> RouteResult {
    caller.check(TokenScope::Exec, workspace)?;
    let length = request_body.command.chars().count();
    if request_body.command.trim().is_empty() || length > MAX_COMMAND_CHARS {
        return Err(ErrorResponse::field(
            "command",
            &format!("is 1 to {MAX_COMMAND_CHARS} characters"),
        ));
    }
    let timeout = request_body.timeout.unwrap_or(DEFAULT_EXEC_SECONDS);
    if !(1..=MAX_EXEC_SECONDS).contains(&timeout) {
        return Err(ErrorResponse::field(
            "timeout",
            &format!("is a number of seconds from 1 to {MAX_EXEC_SECONDS}"),
        ));
    }
    check_relative("cwd", request_body.cwd.as_deref())?;
    check_network(&caller, request_body.network)?;
    let request = IdempotentRequest {
        api: &api,
        scope: KeyScope::Workspace(workspace),
        route: "exec",
        headers: &headers,
        body: &body,
    };
    let work = async {
        let arguments = arguments(
            json!({ "command": request_body.command, "cwd": request_body.cwd, "timeout": timeout }),
        );
        let call = ToolCall {
            caller: &caller,
            workspace,
            tool: find("workspace_exec", "it is not offered here")?,
            arguments,
            network: request_body.network,
        };
        WorkResult::Ok((StatusCode::OK, call.call(&api).await?))
    };
    request.run_once(work).await
}

/// Rejects an absolute path: REST paths are relative to the workspace.
pub(super) fn check_relative(field: &str, path: Option<&str>) -> Result<(), ErrorResponse> {
    match path {
        Some(path) if path.starts_with('/') => {
            let message =
                format!("{field} is absolute: {path}; paths are relative to the workspace");
            let code = Code::SandboxViolation;
            Err(ErrorResponse::new(code, message, json!({ "path": path })))
        }
        Some(path) if path.contains('\0') => {
            let code = Code::InvalidPath;
            Err(ErrorResponse::new(code, format!("{field} holds a NUL byte"), json!({})))
        }
        Some(_) | None => Ok(()),
    }
}

pub(super) async fn git(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(workspace): PathId<WorkspaceId>,
    headers: HeaderMap,
    Json(request_body, body): Json<GitRequest>,
) -> RouteResult {
    caller.check(TokenScope::Exec, workspace)?;
    check_relative("cwd", request_body.cwd.as_deref())?;
    if request_body.branch.is_some() && request_body.args.is_some() {
        return Err(ErrorResponse::field("branch", "is a word of `args` when there are any"));
    }
    let args = request_body
        .args
        .or_else(|| request_body.branch.map(|branch| GitArguments::Words(vec![branch])));
    let request = IdempotentRequest {
        api: &api,
        scope: KeyScope::Workspace(workspace),
        route: "git",
        headers: &headers,
        body: &body,
    };
    let work = async {
        let arguments = arguments(
            json!({ "operation": request_body.operation, "args": args, "cwd": request_body.cwd }),
        );
        let call = ToolCall {
            caller: &caller,
            workspace,
            tool: find("workspace_git", "it is not offered here")?,
            arguments,
            network: None,
        };
        WorkResult::Ok((StatusCode::OK, call.call(&api).await?))
    };
    request.run_once(work).await
}
