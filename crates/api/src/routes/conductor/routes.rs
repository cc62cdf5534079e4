//! The routes of a conductor.

use carrel_conductor::snapshot::{IssueView, NoticeRow, Snapshot};
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

/// Every route of this module.
pub(super) fn routes() -> Vec<Route<ConductorApi>> {
    let mut all = looking();
    all.extend(ordering());
    all.extend(ordering_issues());
    all
}

fn looking() -> Vec<Route<ConductorApi>> {
    vec![
        Route::get("/api/v1/state", state)
            .name("show_conductor", "Show what the conductor does")
            .description(
                "Returns the issues that are worked on, will be taken up again, wait for somebody or for \
                 a place, and what was used up, agents that are still at work included.",
            )
            .scope(TokenScope::Read)
            .json::<Snapshot>(200, "How things stand.")
            .errors(AWAY),
        Route::get("/api/v1/events", events)
            .name("follow_conductor", "Follow what the conductor does")
            .description(
                "Returns a stream of events: those that are kept, and then each as it happens. Numbers \
                 begin anew with the conductor.",
            )
            .scope(TokenScope::Read)
            .header(Header::LastEvent)
            .query::<ConductorEventsQuery>()
            .events::<NoticeRow>("The events.")
            .errors(AWAY)
            .errors(&[Code::Overloaded]),
        Route::get("/api/v1/{issue}", show)
            .name("show_issue", "Show an issue")
            .description(
                "Returns where an issue stands, its last events and its runs with their transcripts. An \
                 issue with the name of another route is found as `/api/v1/issue?identifier=…` or `?id=…`.",
            )
            .scope(TokenScope::Read)
            .query::<IssueQuery>()
            .json::<IssueView>(200, "The issue.")
            .errors(AWAY)
            .errors(&[Code::IssueNotFound])
            .errors(STORE),
        Route::get("/api/v1/{issue}/runs", runs::list)
            .name("list_runs", "List the runs of an issue")
            .description("Returns the last twenty, also of an issue that nobody works on any more.")
            .scope(TokenScope::Read)
            .query::<IssueQuery>()
            .json::<RunList>(200, "The runs.")
            .errors(AWAY)
            .errors(&[Code::IssueNotFound])
            .errors(STORE),
        Route::get("/api/v1/{issue}/runs/{run}", runs::transcript)
            .name("show_transcript", "Read the transcript of a run")
            .description(
                "Returns what was written down about a run so far, a JSON object a line: prompts, what \
                 the agent was heard to do, answers, failures. Known secrets are masked.",
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
        route.scope(TokenScope::Exec).json::<ModeReply>(200, "It is so.").errors(AWAY)
    };
    vec![
        Route::post("/api/v1/refresh", refresh)
            .name("refresh_conductor", "Look at the tracker now")
            .description(
                "Looks at the tracker at once. Instead of a token, the signature of the tracker is \
                 believed if `CARREL_WEBHOOK_SECRET` is set. Any body is taken. Asana chooses a secret \
                 itself when a webhook is made: the first one is kept and said back.",
            )
            .scope(TokenScope::Exec)
            .stream("application/octet-stream")
            .json::<RefreshReply>(202, "It follows.")
            .no_content(204, "The webhook of Asana is known from now on.")
            .errors(AWAY)
            .errors(&[Code::TooLarge]),
        order(
            Route::post("/api/v1/pause", pause)
                .name("pause_conductor", "Begin nothing")
                .description("Begins nothing from now on, also after a restart. What runs goes on."),
        ),
        order(
            Route::post("/api/v1/drain", drain)
                .name("drain_conductor", "Let agents end")
                .description("Begins nothing from now on, and lets agents end after their turns."),
        ),
        order(Route::post("/api/v1/resume", resume).name("resume_conductor", "Go on with work").description(
            "Begins what can be begun, whatever the limits of the provider were said to be.",
        )),
    ]
}

fn ordering_issues() -> Vec<Route<ConductorApi>> {
    let order = |route: Route<ConductorApi>| {
        let route = route.scope(TokenScope::Exec).query::<IssueQuery>();
        route.json::<IssueView>(200, "Where the issue stands after that.").errors(ORDERS)
    };
    vec![
        order(
            Route::post("/api/v1/{issue}/cancel", cancel)
                .name("cancel_issue", "End the work on an issue")
                .description("Ends its agent, and keeps the issue until somebody says otherwise."),
        ),
        order(
            Route::post("/api/v1/{issue}/retry", retry)
                .name("retry_issue", "Take an issue up again at once")
                .description("For one that waits for its time or for somebody."),
        ),
        order(
            Route::post("/api/v1/{issue}/unblock", unblock)
                .name("unblock_issue", "Lift what holds an issue up")
                .description("A used-up budget is given once more."),
        ),
        order(
            Route::post("/api/v1/{issue}/answer", answer)
                .name("answer_issue", "Answer the question of an agent")
                .description(
                    "The agent goes on with the answer, in the same conversation where it can.",
                )
                .body::<AnswerRequest>(),
        ),
    ]
}
