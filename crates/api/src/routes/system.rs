//! Whether the server is well.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::StatusCode;
use carrel_domain::Coded as _;
use serde_json::json;

use crate::answer::{Answered, bytes_answer, json_answer, ok};
use crate::auth::Scope;
use crate::extract::Who;
use crate::state::Api;

/// The process answers.
pub(super) async fn alive() -> Answered {
    Ok(ok(&json!({ "status": "ok" })))
}

/// What it needs answers, too.
pub(super) async fn ready(State(api): State<Api>) -> Answered {
    match api.inner.tasks.store().ping().await {
        Ok(()) => Ok(ok(&json!({ "status": "ready", "store": "ok" }))),
        Err(error) => {
            let body = json!({ "status": "not_ready", "store": error.code().name() });
            Ok(json_answer(StatusCode::SERVICE_UNAVAILABLE, &body))
        }
    }
}

/// Figures for Prometheus.
pub(super) async fn metrics(State(api): State<Api>, Who(caller): Who) -> Answered {
    caller.check_scope(Scope::Read)?;
    let counts = api.inner.tasks.store().counts().await?;
    let mut text = String::new();
    for (name, help, value) in [
        ("carrel_tasks_queued", "Tasks that wait.", counts.queued),
        ("carrel_tasks_running", "Tasks that run.", counts.running),
        ("carrel_workspaces", "Workspaces.", counts.workspaces),
    ] {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
    }
    Ok(bytes_answer(StatusCode::OK, "text/plain; version=0.0.4", text))
}
