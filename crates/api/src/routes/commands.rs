//! `/exec` and `/git` of a workspace, and the call of a tool that other routes share.

use std::sync::Arc;

use carrel_domain::{Code, Network, NetworkRequest, TokenScope, WorkspaceId};
use carrel_tools::{
    CallOptions, Class, CommandSettings, Definition, HelperPrograms, Interface, Owner, QuotaRule,
    Session, ToolResponse,
};
use carrel_wire::limits::{DEFAULT_EXEC_SECONDS, MAX_COMMAND_CHARS, MAX_EXEC_SECONDS};
use carrel_wire::{CommandReply, ExecRequest, GitArguments, GitReply, GitRequest};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::auth::Caller;
use crate::extract::{Json, WorkspaceRequest};
use crate::openapi::{Header, Route};
use crate::response::{ErrorResponse, Result, RouteResult};
use crate::routes::tasks::check_network;
use crate::routes::tools::find;
use crate::state::Api;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/workspaces/{workspace_id}/exec", exec)
            .name("run_command", "Run a command", TokenScope::Exec)
            .description(
                "Runs a command line and returns its output. Only commands of the allow-list are accepted. A \
                 command that fails is a reply, not an error. A network other than `none` also needs the \
                 scope `net`, and is at most what the workspace and the operator allow.",
            )
            .header(Header::IdempotencyKey)
            .body::<ExecRequest>()
            .json::<CommandReply>(200, "The command has ended."),
        Route::post("/api/workspaces/{workspace_id}/git", git)
            .name("run_git", "Run git", TokenScope::Exec)
            .description(
                "Runs one operation of git. Each argument is checked against what the operation takes; \
                 no program that the repository configures is run.",
            )
            .header(Header::IdempotencyKey)
            .body::<GitRequest>()
            .json::<GitReply>(200, "The operation has ended."),
    ]
}

pub(super) struct ToolCall<'a> {
    pub(super) caller: &'a Caller,
    pub(super) workspace: WorkspaceId,
    pub(super) tool: &'static Definition,
    pub(super) arguments: Map<String, Value>,
    pub(super) network: Option<Network>,
}

impl ToolCall<'_> {
    /// Calls the tool in a session for this request, and returns the reply for programs. If the client
    /// disconnects, the tool is cancelled.
    pub(super) async fn call(self, api: &Api) -> Result<Value> {
        let cancel = CancellationToken::new();
        let _gone = cancel.clone().drop_guard();
        let id = self.caller.subject.clone().unwrap_or_else(|| "rest".to_owned());
        let session = Session::for_request(Owner::new(self.caller.session_owner()), id);
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
    ) -> Result<ToolResponse> {
        let rules = self.tool.about.rules;
        let space = api.open_workspace(self.caller, rules.token_scope, self.workspace).await?;
        let permit = match self.tool.about.class {
            Class::Read => api.read_permit().await?,
            // They share permits with tasks.
            Class::Write | Class::Execute => api.work_permit().await?,
        };
        if rules.quota == QuotaRule::Checked {
            api.options.spaces.check_quota(&space).await?;
        }
        let token = self.caller.network_cap();
        let network = NetworkRequest { token, ..NetworkRequest::of(self.network) };
        options.command_settings = CommandSettings { network, ..CommandSettings::default() };
        if self.caller.check_scope(TokenScope::Exec).is_err() {
            options.helper_programs = HelperPrograms::Denied;
        }
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
        running.await.map_err(|_| ErrorResponse::internal())
    }
}

impl WorkspaceRequest {
    /// Calls a tool in the workspace, and returns its reply for programs. Arguments that are `null` are left
    /// out.
    pub(super) async fn call_tool(
        &self,
        tool: &str,
        mut arguments: Value,
        network: Option<Network>,
    ) -> Result<Value> {
        let (caller, workspace) = (&self.caller, self.id);
        let tool = find(tool, "it is not offered here")?;
        let mut arguments = arguments.as_object_mut().map(std::mem::take).unwrap_or_default();
        arguments.retain(|_, value| !value.is_null());
        ToolCall { caller, workspace, tool, arguments, network }.call(&self.api).await
    }
}

async fn exec(request: WorkspaceRequest, Json(command, body): Json<ExecRequest>) -> RouteResult {
    request.caller.check(TokenScope::Exec, request.id)?;
    let ExecRequest { command, cwd, timeout, network, snapshot } = command;
    if command.trim().is_empty() || command.chars().count() > MAX_COMMAND_CHARS {
        let rule = format!("is 1 to {MAX_COMMAND_CHARS} characters");
        return Err(ErrorResponse::field("command", rule));
    }
    let timeout = timeout.unwrap_or(DEFAULT_EXEC_SECONDS);
    if !(1..=MAX_EXEC_SECONDS).contains(&timeout) {
        let rule = format!("is a number of seconds from 1 to {MAX_EXEC_SECONDS}");
        return Err(ErrorResponse::field("timeout", rule));
    }
    check_relative("cwd", cwd.as_deref())?;
    check_network(&request.caller, network)?;
    let arguments =
        json!({ "command": command, "cwd": cwd, "timeout": timeout, "snapshot": snapshot });
    let work = request.call_tool("workspace_exec", arguments, network);
    request.run_once("exec", &body, work).await
}

/// Rejects an absolute path: REST paths are relative to the workspace.
pub(super) fn check_relative(field: &str, path: Option<&str>) -> Result<()> {
    match path {
        Some(path) if path.starts_with('/') => {
            let message =
                format!("{field} is absolute: {path}; paths are relative to the workspace");
            let code = Code::SandboxViolation;
            Err(ErrorResponse::new(code, message, json!({ "path": path })))
        }
        Some(path) if path.contains('\0') => {
            let code = Code::InvalidPath;
            Err(ErrorResponse::plain(code, format!("{field} holds a NUL byte")))
        }
        Some(_) | None => Ok(()),
    }
}

async fn git(request: WorkspaceRequest, Json(git, body): Json<GitRequest>) -> RouteResult {
    request.caller.check(TokenScope::Exec, request.id)?;
    let GitRequest { operation, args, cwd, branch } = git;
    check_relative("cwd", cwd.as_deref())?;
    if branch.is_some() && args.is_some() {
        return Err(ErrorResponse::field("branch", "is a word of `args` when there are any"));
    }
    let args = args.or_else(|| branch.map(|branch| GitArguments::Words(vec![branch])));
    let arguments = json!({ "operation": operation, "args": args, "cwd": cwd });
    let work = request.call_tool("workspace_git", arguments, None);
    request.run_once("git", &body, work).await
}
