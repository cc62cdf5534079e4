//! `/credentials` of a workspace. They are written and never read back.

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use carrel_domain::TokenScope;
use carrel_service::ServiceError;
use carrel_service::credentials::{CredentialContent, check_credential_name};
use carrel_wire::{CredentialNames, StoredCredential};
use serde_json::json;

use crate::extract::{Json, WorkspaceRequest};
use crate::openapi::{Header, Route};
use crate::response::{Result, RouteResult, ok};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/workspaces/{workspace_id}/credentials", list)
            .name("list_credentials", "List credentials", TokenScope::Read)
            .description("Lists the names of the credentials that steps can use. No route returns their content.")
            .json::<CredentialNames>(200, "The names."),
        Route::put("/api/workspaces/{workspace_id}/credentials/{credential}", put)
            .name("put_credential", "Store a credential", TokenScope::Write)
            .description(
                "Stores a credential, replacing one of the same name. It is encrypted before it is stored. A \
                 step that names it in `credentials` has it while the step runs.",
            )
            .header(Header::IdempotencyKey)
            .body::<CredentialContent>()
            .example("git_token", "A token for git, and the author of commits", json!({
                "git_token": { "host": "github.com", "token": "ghp_…" },
                "git_name": "Ada",
                "git_email": "ada@example.com",
            }))
            .example("env_vars", "Environment variables", json!({ "env_vars": { "API_KEY": "…" } }))
            .json::<StoredCredential>(200, "The credential is stored."),
        Route::delete("/api/workspaces/{workspace_id}/credentials/{credential}", forget)
            .name("delete_credential", "Delete a credential", TokenScope::Write)
            .description("Deletes a credential. A running step keeps what it has.")
            .no_content(204, "The credential is deleted."),
    ]
}

async fn list(request: WorkspaceRequest) -> RouteResult {
    let workspace = request.workspace(TokenScope::Read).await?.id;
    Ok(ok(&CredentialNames { names: request.api.vault()?.names(workspace).await? }))
}

async fn put(
    request: WorkspaceRequest,
    Json(content, body): Json<CredentialContent>,
) -> RouteResult {
    let workspace = request.workspace(TokenScope::Write).await?.id;
    let (name, vault) = (checked_name(&request)?, request.api.vault()?);
    content.check().map_err(ServiceError::from)?;
    // The stored digest must not allow guessing the content, so that it is keyed.
    let identity = vault.fingerprint(&[name.as_bytes(), b"\0", &body].concat());
    let work = async {
        vault.put(workspace, name, &content, request.api.now()).await?;
        Ok(json!(StoredCredential { name: name.to_owned(), kept: true }))
    };
    request.run_once("put_credential", &identity, work).await
}

async fn forget(request: WorkspaceRequest) -> RouteResult {
    let workspace = request.workspace(TokenScope::Write).await?.id;
    request.api.vault()?.delete(workspace, checked_name(&request)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn checked_name(request: &WorkspaceRequest) -> Result<&str> {
    check_credential_name("credential", &request.name).map_err(ServiceError::from)?;
    Ok(&request.name)
}
