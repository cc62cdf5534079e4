//! The routes of a conductor.

use carrel_conductor::snapshot::{IssueView, NoticeRow, Snapshot};
use carrel_domain::Code;

use super::events::{EventParams, events};
use super::runs::{self, RunList, TRANSCRIPT};
use super::{
    AnswerBody, ModeReply, Refreshing, Which, answer, cancel, drain, pause, refresh, resume, retry,
    show, state, unblock,
};
use crate::auth::Scope;
use crate::conductor::ConductorApi;
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
            .called("show_conductor", "Show what the conductor does")
            .says(
                "Returns the issues that are worked on, will be taken up again, wait for somebody or for \
                 a place, and what was used up, agents that are still at work included.",
            )
            .needs(Scope::Read)
            .json::<Snapshot>(200, "How things stand.")
            .fails(AWAY),
        Route::get("/api/v1/events", events)
            .called("follow_conductor", "Follow what the conductor does")
            .says(
                "Returns a stream of events: those that are kept, and then each as it happens. Numbers \
                 begin anew with the conductor.",
            )
            .needs(Scope::Read)
            .header(Header::LastEvent)
            .query::<EventParams>()
            .events::<NoticeRow>("The events.")
            .fails(AWAY)
            .fails(&[Code::Overloaded]),
        Route::get("/api/v1/{issue}", show)
            .called("show_issue", "Show an issue")
            .says(
                "Returns where an issue stands, its last events and its runs with their transcripts. An \
                 issue with the name of another route is found as `/api/v1/issue?identifier=…` or `?id=…`.",
            )
            .needs(Scope::Read)
            .query::<Which>()
            .json::<IssueView>(200, "The issue.")
            .fails(AWAY)
            .fails(&[Code::IssueNotFound])
            .fails(STORE),
        Route::get("/api/v1/{issue}/runs", runs::list)
            .called("list_runs", "List the runs of an issue")
            .says("Returns the last twenty, also of an issue that nobody works on any more.")
            .needs(Scope::Read)
            .query::<Which>()
            .json::<RunList>(200, "The runs.")
            .fails(AWAY)
            .fails(&[Code::IssueNotFound])
            .fails(STORE),
        Route::get("/api/v1/{issue}/runs/{run}", runs::transcript)
            .called("show_transcript", "Read the transcript of a run")
            .says(
                "Returns what was written down about a run so far, a JSON object a line: prompts, what \
                 the agent was heard to do, answers, failures. Known secrets are masked.",
            )
            .needs(Scope::Read)
            .query::<Which>()
            .bytes(TRANSCRIPT, "The transcript.")
            .fails(AWAY)
            .fails(&[Code::IssueNotFound, Code::NotFound, Code::Overloaded])
            .fails(STORE),
    ]
}

fn ordering() -> Vec<Route<ConductorApi>> {
    let order = |route: Route<ConductorApi>| {
        route.needs(Scope::Exec).json::<ModeReply>(200, "It is so.").fails(AWAY)
    };
    vec![
        Route::post("/api/v1/refresh", refresh)
            .called("refresh_conductor", "Look at the tracker now")
            .says(
                "Looks at the tracker at once. Instead of a token, the signature of the tracker is \
                 believed if `CARREL_WEBHOOK_SECRET` is set. Any body is taken. Asana chooses a secret \
                 itself when a webhook is made: the first one is kept and said back.",
            )
            .needs(Scope::Exec)
            .stream("application/octet-stream")
            .json::<Refreshing>(202, "It follows.")
            .nothing(204, "The webhook of Asana is known from now on.")
            .fails(AWAY)
            .fails(&[Code::TooLarge]),
        order(
            Route::post("/api/v1/pause", pause)
                .called("pause_conductor", "Begin nothing")
                .says("Begins nothing from now on, also after a restart. What runs goes on."),
        ),
        order(
            Route::post("/api/v1/drain", drain)
                .called("drain_conductor", "Let agents end")
                .says("Begins nothing from now on, and lets agents end after their turns."),
        ),
        order(Route::post("/api/v1/resume", resume).called("resume_conductor", "Go on with work").says(
            "Begins what can be begun, whatever the limits of the provider were said to be.",
        )),
    ]
}

fn ordering_issues() -> Vec<Route<ConductorApi>> {
    let order = |route: Route<ConductorApi>| {
        let route = route.needs(Scope::Exec).query::<Which>();
        route.json::<IssueView>(200, "Where the issue stands after that.").fails(ORDERS)
    };
    vec![
        order(
            Route::post("/api/v1/{issue}/cancel", cancel)
                .called("cancel_issue", "End the work on an issue")
                .says("Ends its agent, and keeps the issue until somebody says otherwise."),
        ),
        order(
            Route::post("/api/v1/{issue}/retry", retry)
                .called("retry_issue", "Take an issue up again at once")
                .says("For one that waits for its time or for somebody."),
        ),
        order(
            Route::post("/api/v1/{issue}/unblock", unblock)
                .called("unblock_issue", "Lift what holds an issue up")
                .says("A used-up budget is given once more."),
        ),
        order(
            Route::post("/api/v1/{issue}/answer", answer)
                .called("answer_issue", "Answer the question of an agent")
                .says("The agent goes on with the answer, in the same conversation where it can.")
                .body::<AnswerBody>(),
        ),
    ]
}
