//! `/exec` and `/git` of a workspace.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use carrel_domain::{Code, Network, WorkspaceId};
use carrel_tools::{CallOptions, Door, Session, Terms};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::answer::{Answered, Failed};
use crate::auth::{Caller, Scope};
use crate::extract::{Id, Json, Who};
use crate::limits::{EXEC_SECONDS, MAX_COMMAND_CHARS};
use crate::repeat::{Change, Done};
use crate::routes::tasks::check_network;
use crate::state::Api;

/// A tool that a route calls.
pub(super) struct Called<'a> {
    pub(super) caller: &'a Caller,
    pub(super) workspace: WorkspaceId,
    pub(super) scope: Scope,
    pub(super) tool: &'a str,
    pub(super) arguments: Map<String, Value>,
    pub(super) network: Option<Network>,
}

impl Called<'_> {
    /// Calls the tool. It takes a place if it works rather than looks something up, and needs room in
    /// the workspace if it may fill it. A client that goes away ends it.
    pub(super) async fn call(self, api: &Api) -> Result<Value, Failed> {
        let space = api.space(self.caller, self.scope, self.workspace).await?;
        let place = api.place().await?;
        if self.scope != Scope::Read {
            api.inner.spaces.check_quota(&space).await?;
        }
        let cancel = CancellationToken::new();
        let _gone = cancel.clone().drop_guard();
        let session =
            Session::new(self.caller.subject.clone().unwrap_or_else(|| "rest".to_owned()));
        let terms = Terms { network: self.network, ..Terms::default() };
        let options = CallOptions { cancel, terms, ..CallOptions::new(Door::Rest) };
        let (tool, arguments) = (self.tool.to_owned(), self.arguments);
        // A request that is dropped drops no command: whoever waits for it has to end it, and its
        // place is free when it is over.
        let calling = tokio::spawn(async move {
            let answer = space.call(&session, &tool, arguments, options).await;
            drop(place);
            answer
        });
        let answer = calling
            .await
            .map_err(|_| Failed::new(Code::Internal, "the server could not do this", json!({})))?;
        if answer.is_error {
            return Err(Failed::of_tool(&answer));
        }
        let text = answer.text();
        Ok(answer.data.unwrap_or_else(|| json!({ "content": text, "facts": answer.structured })))
    }
}

/// Makes arguments of what is not null.
pub(super) fn arguments(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(mut fields) => {
            fields.retain(|_, value| !value.is_null());
            fields
        }
        _ => Map::new(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecBody {
    command: String,
    cwd: Option<String>,
    timeout: Option<u64>,
    network: Option<Network>,
}

pub(super) async fn exec(
    State(api): State<Api>,
    Who(caller): Who,
    Id(workspace): Id<WorkspaceId>,
    headers: HeaderMap,
    Json(asked, body): Json<ExecBody>,
) -> Answered {
    caller.check(Scope::Exec, workspace)?;
    let length = asked.command.chars().count();
    if asked.command.trim().is_empty() || length > MAX_COMMAND_CHARS {
        return Err(Failed::field("command", &format!("is 1 to {MAX_COMMAND_CHARS} characters")));
    }
    let (usual, longest) = EXEC_SECONDS;
    let timeout = asked.timeout.unwrap_or(usual);
    if !(1..=longest).contains(&timeout) {
        return Err(Failed::field(
            "timeout",
            &format!("is a number of seconds from 1 to {longest}"),
        ));
    }
    check_relative("cwd", asked.cwd.as_deref())?;
    check_network(&caller, asked.network)?;
    let change = Change {
        api: &api,
        workspace: Some(workspace),
        route: "exec",
        headers: &headers,
        body: &body,
    };
    let work = async {
        let arguments =
            arguments(json!({ "command": asked.command, "cwd": asked.cwd, "timeout": timeout }));
        let asking = Called {
            caller: &caller,
            workspace,
            scope: Scope::Exec,
            tool: "workspace_exec",
            arguments,
            network: asked.network,
        };
        Done::Ok((StatusCode::OK, asking.call(&api).await?))
    };
    change.once(work).await
}

/// Refuses an absolute path: over this door all are relative to the workspace.
pub(super) fn check_relative(field: &str, path: Option<&str>) -> Result<(), Failed> {
    match path {
        Some(path) if path.starts_with('/') => {
            let message =
                format!("{field} is absolute: {path}; paths are relative to the workspace");
            let code = Code::SandboxViolation;
            Err(Failed::new(code, message, json!({ "path": path })))
        }
        Some(path) if path.contains('\0') => {
            let code = Code::InvalidPath;
            Err(Failed::new(code, format!("{field} holds a NUL byte"), json!({})))
        }
        Some(_) | None => Ok(()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GitBody {
    operation: String,
    args: Option<Value>,
    cwd: Option<String>,
    branch: Option<String>,
}

pub(super) async fn git(
    State(api): State<Api>,
    Who(caller): Who,
    Id(workspace): Id<WorkspaceId>,
    headers: HeaderMap,
    Json(asked, body): Json<GitBody>,
) -> Answered {
    caller.check(Scope::Exec, workspace)?;
    check_relative("cwd", asked.cwd.as_deref())?;
    if asked.branch.is_some() && asked.args.is_some() {
        return Err(Failed::field("branch", "is a word of `args` when there are any"));
    }
    let args = asked.args.or_else(|| asked.branch.map(|branch| json!([branch])));
    let change = Change {
        api: &api,
        workspace: Some(workspace),
        route: "git",
        headers: &headers,
        body: &body,
    };
    let work = async {
        let arguments =
            arguments(json!({ "operation": asked.operation, "args": args, "cwd": asked.cwd }));
        let asking = Called {
            caller: &caller,
            workspace,
            scope: Scope::Exec,
            tool: "workspace_git",
            arguments,
            network: None,
        };
        Done::Ok((StatusCode::OK, asking.call(&api).await?))
    };
    change.once(work).await
}
