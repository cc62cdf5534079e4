//! The table of the conductor's routes.
//!
//! The public API has the same routes with handlers that refuse, so that one document describes both servers
//! and a client that asks the wrong one learns where the conductor is.

use carrel_conductor::NumberedNotice;
use carrel_conductor::snapshot::{IssueView, Snapshot};
use carrel_domain::{Code, TokenScope};
use carrel_wire::{AnswerRequest, ConductorEventsQuery, IssueQuery, RefreshReply};

use super::events::events;
use super::runs::{self, RunList, TRANSCRIPT};
use super::{
    ModeReply, answer, cancel, drain, pause, refresh, resume, retry, show, state, unblock,
};
use crate::conductor_api::ConductorApi;
use crate::openapi::{Header, Route, STORE};

const AWAY: &[Code] = &[Code::ConductorUnavailable];
const ORDERS: &[Code] = &[Code::ConductorUnavailable, Code::IssueNotFound, Code::IssueConflict];

pub(super) fn routes() -> Vec<Route<ConductorApi>> {
    let mut all = looking();
    all.extend(ordering());
    all.extend(ordering_issues());
    all
}

fn looking() -> Vec<Route<ConductorApi>> {
    vec![
        Route::get("/api/v1/state", state)
            .name("show_conductor", "Show the conductor")
            .description(
                "Returns the running, retrying, blocked and waiting issues, and the totals of tokens and \
                 time, running agents included.",
            )
            .scope(TokenScope::Read)
            .json::<Snapshot>(200, "The snapshot.")
            .errors(AWAY),
        Route::get("/api/v1/events", events)
            .name("follow_conductor", "Follow the conductor")
            .description(
                "Streams events: first those that are kept, then each as it happens. Numbers start over with \
                 the conductor.",
            )
            .scope(TokenScope::Read)
            .header(Header::LastEvent)
            .query::<ConductorEventsQuery>()
            .events::<NumberedNotice>("The events.")
            .errors(AWAY)
            .errors(&[Code::Overloaded]),
        Route::get("/api/v1/{issue}", show)
            .name("show_issue", "Show an issue")
            .description(
                "Returns the state of an issue, its last events and its runs with their transcripts. An issue \
                 that is called like a route is found as `/api/v1/issue?identifier=…` or `?id=…`.",
            )
            .scope(TokenScope::Read)
            .query::<IssueQuery>()
            .json::<IssueView>(200, "The issue.")
            .errors(AWAY)
            .errors(&[Code::IssueNotFound])
            .errors(STORE),
        Route::get("/api/v1/{issue}/runs", runs::list)
            .name("list_runs", "List the runs of an issue")
            .description("Returns the last twenty runs, also of an issue that is no longer claimed.")
            .scope(TokenScope::Read)
            .query::<IssueQuery>()
            .json::<RunList>(200, "The runs.")
            .errors(AWAY)
            .errors(&[Code::IssueNotFound])
            .errors(STORE),
        Route::get("/api/v1/{issue}/runs/{run}", runs::transcript)
            .name("show_transcript", "Read the transcript of a run")
            .description(
                "Returns the transcript of a run so far, one JSON object per line: prompts, events of the \
                 agent, answers, failures. Known secrets are masked.",
            )
            .scope(TokenScope::Read)
            .query::<IssueQuery>()
            .bytes(TRANSCRIPT, "The transcript.")
            .errors(AWAY)
            .errors(&[Code::IssueNotFound, Code::NotFound, Code::Overloaded])
            .errors(STORE),
    ]
}

fn ordering() -> Vec<Route<ConductorApi>> {
    let order = |route: Route<ConductorApi>| {
        route.scope(TokenScope::Exec).json::<ModeReply>(200, "The mode has changed.").errors(AWAY)
    };
    vec![
        Route::post("/api/v1/refresh", refresh)
            .name("refresh_conductor", "Poll the tracker now")
            .description(
                "Polls the tracker now. In place of a token, the signature of the tracker is accepted if \
                 `CARREL_WEBHOOK_SECRET` is set. The body is ignored. Asana chooses its secret when a webhook \
                 is created: the first one is kept and acknowledged.",
            )
            .scope(TokenScope::Exec)
            .stream("application/octet-stream")
            .json::<RefreshReply>(202, "A poll follows.")
            .no_content(204, "The handshake of an Asana webhook is acknowledged.")
            .errors(AWAY)
            .errors(&[Code::TooLarge]),
        order(
            Route::post("/api/v1/pause", pause)
                .name("pause_conductor", "Pause dispatching")
                .description("Starts no runs, also after a restart. Running agents continue."),
        ),
        order(
            Route::post("/api/v1/drain", drain)
                .name("drain_conductor", "Drain the conductor")
                .description("Starts no runs, and ends agents after their turns."),
        ),
        order(Route::post("/api/v1/resume", resume).name("resume_conductor", "Resume dispatching").description(
            "Dispatches again, and forgets announced rate limits of the model provider.",
        )),
    ]
}

fn ordering_issues() -> Vec<Route<ConductorApi>> {
    let order = |route: Route<ConductorApi>| {
        let route = route.scope(TokenScope::Exec).query::<IssueQuery>();
        route.json::<IssueView>(200, "The state of the issue.").errors(ORDERS)
    };
    vec![
        order(
            Route::post("/api/v1/{issue}/cancel", cancel)
                .name("cancel_issue", "Cancel the run of an issue")
                .description(
                    "Ends the agent, and keeps the issue claimed until an operator retries it.",
                ),
        ),
        order(
            Route::post("/api/v1/{issue}/retry", retry)
                .name("retry_issue", "Retry an issue now")
                .description("For an issue that waits for its back-off or for an operator."),
        ),
        order(
            Route::post("/api/v1/{issue}/unblock", unblock)
                .name("unblock_issue", "Unblock an issue")
                .description("Removes the block. An exhausted budget is granted once more."),
        ),
        order(
            Route::post("/api/v1/{issue}/answer", answer)
                .name("answer_issue", "Answer a question of an agent")
                .description(
                    "The agent continues with the answer, in the same session where it can.",
                )
                .body::<AnswerRequest>(),
        ),
    ]
}
