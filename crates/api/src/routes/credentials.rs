//! `/credentials` of a workspace. They are written and never read back.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use carrel_domain::{Code, TokenScope, WorkspaceId};
use carrel_service::ServiceError;
use carrel_service::credentials::{CredentialContent, check_credential_name};
use carrel_wire::{CredentialNames, StoredCredential};
use serde_json::json;

use crate::extract::{Authenticated, Json, PathId, path_segment};
use crate::idempotency::{IdempotentRequest, KeyScope};
use crate::openapi::{Example, Header, Route, STORE, WORKSPACES};
use crate::response::{ErrorResponse, RouteResult, ok};
use crate::state::Api;

pub(super) fn routes() -> Vec<Route> {
    let routes = vec![
        Route::get("/api/workspaces/{workspace_id}/credentials", list)
            .name("list_credentials", "List credentials")
            .description("Lists the names of the credentials that steps can use. No route returns their content.")
            .scope(TokenScope::Read)
            .json::<CredentialNames>(200, "The names."),
        Route::put("/api/workspaces/{workspace_id}/credentials/{credential}", put)
            .name("put_credential", "Store a credential")
            .description(
                "Stores a credential, replacing one of the same name. It is encrypted before it is stored. A \
                 step that names it in `credentials` has it while the step runs.",
            )
            .scope(TokenScope::Write)
            .header(Header::IdempotencyKey)
            .body::<CredentialContent>()
            .example(Example {
                name: "git_token",
                summary: "A token for git, and the author of commits",
                value: json!({
                    "git_token": { "host": "github.com", "token": "ghp_…" },
                    "git_name": "Ada",
                    "git_email": "ada@example.com",
                }),
            })
            .example(Example {
                name: "env_vars",
                summary: "Environment variables",
                value: json!({ "env_vars": { "API_KEY": "…" } }),
            })
            .json::<StoredCredential>(200, "The credential is stored."),
        Route::delete("/api/workspaces/{workspace_id}/credentials/{credential}", forget)
            .name("delete_credential", "Delete a credential")
            .description("Deletes a credential. A running step keeps what it has.")
            .scope(TokenScope::Write)
            .no_content(204, "The credential is deleted."),
    ];
    let with_errors =
        |route: Route| route.errors(STORE).errors(WORKSPACES).errors(&[Code::SecretUnknown]);
    routes.into_iter().map(with_errors).collect()
}

pub(super) async fn list(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(workspace): PathId<WorkspaceId>,
) -> RouteResult {
    let workspace = api.workspace(&caller, TokenScope::Read, Some(workspace)).await?.id;
    Ok(ok(&CredentialNames { names: api.vault()?.names(workspace).await? }))
}

pub(super) async fn put(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(workspace): PathId<WorkspaceId>,
    Path(parts): Path<Vec<(String, String)>>,
    headers: HeaderMap,
    Json(content, body): Json<CredentialContent>,
) -> RouteResult {
    let workspace = api.workspace(&caller, TokenScope::Write, Some(workspace)).await?.id;
    let (name, vault) = (named(parts)?, api.vault()?);
    content.check().map_err(ServiceError::from)?;
    // The stored digest must not allow guessing the content, so that it is keyed.
    let identity = vault.fingerprint(&[name.as_bytes(), b"\0", &body].concat());
    let request = IdempotentRequest {
        api: &api,
        scope: KeyScope::Workspace(workspace),
        route: "put_credential",
        headers: &headers,
        body: &identity,
    };
    let work = async {
        vault.put(workspace, &name, &content, api.now()).await?;
        Ok((StatusCode::OK, json!(StoredCredential { name: name.clone(), kept: true })))
    };
    request.run_once(work).await
}

pub(super) async fn forget(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(workspace): PathId<WorkspaceId>,
    Path(parts): Path<Vec<(String, String)>>,
) -> RouteResult {
    let workspace = api.workspace(&caller, TokenScope::Write, Some(workspace)).await?.id;
    api.vault()?.delete(workspace, &named(parts)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn named(parts: Vec<(String, String)>) -> Result<String, ErrorResponse> {
    let name = path_segment(parts, "credential");
    check_credential_name("credential", &name).map_err(ServiceError::from)?;
    Ok(name)
}
