//! `/tries` of a workspace: candidates in forks, compared in the background, and the best promoted.

use carrel_domain::{TokenScope, TrialId};
use carrel_tools::NewTry;
use carrel_trial::{
    Budget, CommandRules, MAX_CANDIDATES, Promote, Run, Spec, Trial, TrialList, TrialReply,
};
use carrel_wire::{NewTrial, RemovedTrial, TrialQuery};
use serde_json::json;

use crate::extract::{Json, QueryParams, WorkspaceRequest};
use crate::openapi::{Header, Route};
use crate::response::{ErrorResponse, Result, RouteResult, ok};
use crate::routes::tasks::check_network;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/workspaces/{workspace_id}/tries", begin)
            .name("begin_try", "Try several candidates", TokenScope::Exec)
            .description(
                "Gives each candidate a fork of this workspace, runs and verifies them there in the background, ranks \
                 them, and promotes the best one that passes if `promote` is true, which also needs the scope `write`. \
                 Only commands of the allow-list are accepted. A try survives the end of the server, and is taken up at \
                 the next start.",
            )
            .header(Header::IdempotencyKey)
            .body::<NewTrial>()
            .json::<Trial>(200, "The try is recorded, and has begun."),
        Route::get("/api/workspaces/{workspace_id}/tries", list)
            .name("list_tries", "List tries", TokenScope::Read)
            .description("Lists the tries of a workspace, the newest first.")
            .json::<TrialList>(200, "The tries."),
        Route::get("/api/workspaces/{workspace_id}/tries/{try}", show)
            .name("get_try", "Get a try", TokenScope::Read)
            .description("Returns the record of a try as it is now, with the comparison when it is over.")
            .query::<TrialQuery>()
            .json::<TrialReply>(200, "The try."),
        Route::delete("/api/workspaces/{workspace_id}/tries/{try}", remove)
            .name("remove_try", "End and remove a try", TokenScope::Exec)
            .description(
                "Ends the commands of a try that runs, and removes it with its forks. The work of candidates that ran \
                 becomes snapshots of this workspace.",
            )
            .json::<RemovedTrial>(200, "The try is gone."),
    ]
}

async fn begin(request: WorkspaceRequest, Json(new, body): Json<NewTrial>) -> RouteResult {
    let workspace = request.workspace(TokenScope::Exec).await?;
    if new.promote {
        request.caller.check(TokenScope::Write, request.id)?;
    }
    check_network(&request.caller, new.network)?;
    let (mut spec, inputs) = specification(new)?;
    spec.network_cap = request.caller.network_cap();
    let work = async {
        let base = carrel_domain::Identifier::parse(workspace.id.to_string())
            .map_err(|_| ErrorResponse::internal())?;
        // It has a directory from here on.
        request.api.open_workspace(&request.caller, TokenScope::Exec, request.id).await?;
        let new = NewTry { base, spec, inputs };
        let begun = request.api.options.spaces.begin_try(new).await;
        Ok(json!(begun.map_err(ErrorResponse::of_failure)?))
    };
    request.run_once("begin_try", &body, work).await
}

/// Reads the specification, and the patches of candidates that have one.
fn specification(new: NewTrial) -> Result<(Spec, Vec<Option<Vec<u8>>>)> {
    let lines = new.runs.into_iter().map(|line| (Run::Command { line }, None));
    let patches = (1..).zip(new.patches).map(|(number, patch)| {
        (Run::Patch { name: format!("patch {number}") }, Some(patch.into_bytes()))
    });
    let mut all: Vec<(Run, Option<Vec<u8>>)> = lines.chain(patches).collect();
    if let Some(count) = new.candidates.map(usize::from) {
        if all.len() == 1 && count >= 1 {
            all = vec![all.remove(0); count];
        } else if all.len() != count {
            let rule = format!(
                "is the number of runs and patches, {}, or there is one for all",
                all.len()
            );
            return Err(ErrorResponse::field("candidates", rule));
        }
    }
    if !(1..=usize::from(MAX_CANDIDATES)).contains(&all.len()) {
        let rule = format!("has 1 to {MAX_CANDIDATES} entries, together with `patches`");
        return Err(ErrorResponse::field("runs", rule));
    }
    let (runs, inputs) = all.into_iter().unzip();
    let usual = Budget::default();
    let spec = Spec {
        verify: new.verify,
        score: new.score,
        budget: Budget {
            candidate_seconds: new.timeout.unwrap_or(usual.candidate_seconds),
            total_seconds: new.total_timeout.unwrap_or(usual.total_seconds),
            max_files: new.max_files.unwrap_or(usual.max_files),
            max_lines: new.max_lines.unwrap_or(usual.max_lines),
            max_bytes: new.max_bytes.unwrap_or(usual.max_bytes),
        },
        promote: if new.promote { Promote::Best } else { Promote::None },
        network: new.network,
        rules: CommandRules::Allowlist,
        parallel: new.parallel,
        ..Spec::new(runs)
    };
    Ok((spec, inputs))
}

async fn list(request: WorkspaceRequest) -> RouteResult {
    let workspace = request.workspace(TokenScope::Read).await?;
    let tries = request.api.options.spaces.tries_of(workspace.id).await;
    Ok(ok(&TrialList { tries: tries.map_err(ErrorResponse::of_failure)? }))
}

async fn show(
    request: WorkspaceRequest,
    QueryParams(query): QueryParams<TrialQuery>,
) -> RouteResult {
    let workspace = request.workspace(TokenScope::Read).await?;
    let (spaces, id) = (&request.api.options.spaces, id(&request)?);
    let trial = spaces.try_of(workspace.id, &id).await.map_err(ErrorResponse::of_failure)?;
    let diff = match query.diff {
        Some(number) => spaces.try_diff(&id, number).await.map_err(ErrorResponse::of_failure)?,
        None => None,
    };
    Ok(ok(&TrialReply { trial, diff }))
}

async fn remove(request: WorkspaceRequest) -> RouteResult {
    let workspace = request.workspace(TokenScope::Exec).await?;
    let id = id(&request)?;
    let removed = request.api.options.spaces.remove_try(workspace.id, &id).await;
    removed.map_err(ErrorResponse::of_failure)?;
    Ok(ok(&RemovedTrial { removed: id.to_string() }))
}

fn id(request: &WorkspaceRequest) -> Result<TrialId> {
    request.name.parse().map_err(|error: carrel_domain::InvalidTrialId| {
        ErrorResponse::field("try", error.to_string())
    })
}
