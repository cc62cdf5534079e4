//! The table of the conductor's routes.
//!
//! The public API has the same routes with handlers that refuse, so that one document describes both servers
//! and a client that asks the wrong one learns where the conductor is.

use carrel_conductor::snapshot::{IssueView, Snapshot};
use carrel_conductor::{NumberedNotice, OperatorCommand as Command};
use carrel_domain::{Code, TokenScope};
use carrel_wire::{AnswerRequest, ConductorEventsQuery, IssueQuery, RefreshReply};

use super::events::events;
use super::runs::{self, RunList, TRANSCRIPT};
use super::{ModeReply, answer, change, order, refresh, show, state};
use crate::conductor_api::ConductorApi;
use crate::host_check::WEBHOOK_ROUTE;
use crate::openapi::{Header, Route, STORE};

pub(super) fn routes() -> Vec<Route<ConductorApi>> {
    let mode_commands = mode_commands()
        .into_iter()
        .map(|route| route.json::<ModeReply>(200, "The mode has changed."));
    let issue_commands = issue_commands().into_iter().map(|route| {
        let route = route.query::<IssueQuery>();
        let route = route.json::<IssueView>(200, "The state of the issue.");
        route.errors(&[Code::IssueNotFound, Code::IssueConflict])
    });
    looking().into_iter().chain(mode_commands).chain(issue_commands).collect()
}

fn looking() -> Vec<Route<ConductorApi>> {
    vec![
        Route::get("/api/v1/state", state)
            .name("show_conductor", "Show the conductor", TokenScope::Read)
            .description(
                "Returns the running, retrying, blocked and waiting issues, and the totals of tokens and \
                 time, running agents included.",
            )
            .json::<Snapshot>(200, "The snapshot."),
        Route::get("/api/v1/events", events)
            .name("follow_conductor", "Follow the conductor", TokenScope::Read)
            .description(
                "Streams events: first those that are kept, then each as it happens. Numbers start over with \
                 the conductor.",
            )
            .header(Header::LastEvent)
            .query::<ConductorEventsQuery>()
            .events::<NumberedNotice>("The events.")
            .errors(&[Code::Overloaded]),
        Route::get("/api/v1/{issue}", show)
            .name("show_issue", "Show an issue", TokenScope::Read)
            .description(
                "Returns the state of an issue, its last events and its runs with their transcripts. An issue \
                 that is called like a route is found as `/api/v1/issue?identifier=…` or `?id=…`.",
            )
            .query::<IssueQuery>()
            .json::<IssueView>(200, "The issue.")
            .errors(&[Code::IssueNotFound])
            .errors(STORE),
        Route::get("/api/v1/{issue}/runs", runs::list)
            .name("list_runs", "List the runs of an issue", TokenScope::Read)
            .description("Returns the last twenty runs, also of an issue that is no longer claimed.")
            .query::<IssueQuery>()
            .json::<RunList>(200, "The runs.")
            .errors(&[Code::IssueNotFound])
            .errors(STORE),
        Route::get("/api/v1/{issue}/runs/{run}", runs::transcript)
            .name("show_transcript", "Read the transcript of a run", TokenScope::Read)
            .description(
                "Returns the transcript of a run so far, one JSON object per line: prompts, events of the \
                 agent, answers, failures. Known secrets are masked.",
            )
            .query::<IssueQuery>()
            .bytes(TRANSCRIPT, "The transcript.")
            .errors(&[Code::IssueNotFound, Code::NotFound, Code::Overloaded])
            .errors(STORE),
        Route::post(WEBHOOK_ROUTE, refresh)
            .name("refresh_conductor", "Poll the tracker now", TokenScope::Exec)
            .description(
                "Polls the tracker now. In place of a token, the signature of the tracker is accepted if \
                 `CARREL_WEBHOOK_SECRET` is set. The body is ignored. Asana chooses its secret when a webhook \
                 is created: the first one is kept and acknowledged.",
            )
            .stream("application/octet-stream")
            .json::<RefreshReply>(202, "A poll follows.")
            .no_content(204, "The handshake of an Asana webhook is acknowledged.")
            .errors(&[Code::TooLarge]),
    ]
}

fn mode_commands() -> [Route<ConductorApi>; 3] {
    [
        Route::post("/api/v1/pause", |api, who| change(api, who, Command::Pause))
            .name("pause_conductor", "Pause dispatching", TokenScope::Exec)
            .description("Starts no runs, also after a restart. Running agents continue."),
        Route::post("/api/v1/drain", |api, who| change(api, who, Command::Drain))
            .name("drain_conductor", "Drain the conductor", TokenScope::Exec)
            .description("Starts no runs, and ends agents after their turns."),
        Route::post("/api/v1/resume", |api, who| change(api, who, Command::Resume))
            .name("resume_conductor", "Resume dispatching", TokenScope::Exec)
            .description(
                "Dispatches again, and forgets announced rate limits of the model provider.",
            ),
    ]
}

fn issue_commands() -> [Route<ConductorApi>; 4] {
    let cancel = |request| order(request, Command::Cancel);
    let retry = |request| order(request, Command::RetryNow);
    let unblock = |request| order(request, Command::Unblock);
    [
        Route::post("/api/v1/{issue}/cancel", cancel)
            .name("cancel_issue", "Cancel the run of an issue", TokenScope::Exec)
            .description(
                "Ends the agent, and keeps the issue claimed until an operator retries it.",
            ),
        Route::post("/api/v1/{issue}/retry", retry)
            .name("retry_issue", "Retry an issue now", TokenScope::Exec)
            .description("For an issue that waits for its back-off or for an operator."),
        Route::post("/api/v1/{issue}/unblock", unblock)
            .name("unblock_issue", "Unblock an issue", TokenScope::Exec)
            .description("Removes the block. An exhausted budget is granted once more."),
        Route::post("/api/v1/{issue}/answer", answer)
            .name("answer_issue", "Answer a question of an agent", TokenScope::Exec)
            .description("The agent continues with the answer, in the same session where it can.")
            .body::<AnswerRequest>(),
    ]
}
