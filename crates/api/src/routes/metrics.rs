//! `/metrics` in the text format of Prometheus.

use std::fmt::{Display, Write as _};

use axum::extract::State;
use axum::http::StatusCode;
use carrel_domain::{TokenScope, WorkspaceId};
use carrel_fsroot::Capacity;
use carrel_traces::ExportCounts;
use carrel_workspace::Amount;

use crate::extract::Authenticated;
use crate::openapi::Route;
use crate::response::{RouteResult, bytes_response};
use crate::state::Api;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/metrics", metrics)
            .name("show_metrics", "Metrics", TokenScope::Read)
            .description("Returns metrics in the text format of Prometheus.")
            .bytes("text/plain", "The metrics."),
    ]
}

/// Returns the metrics. Those of workspaces are limited to what the caller covers.
async fn metrics(State(api): State<Api>, Authenticated(caller): Authenticated) -> RouteResult {
    caller.check_scope(TokenScope::Read)?;
    let counts = api.options.tasks.store().counts().await?;
    let disk = api.options.spaces.capacity()?;
    let mut text = MetricsText::default();
    text.add(GAUGE, "carrel_tasks_queued", "Tasks that wait.", [("", counts.queued)]);
    text.add(GAUGE, "carrel_tasks_running", "Tasks that run.", [("", counts.running)]);
    text.add(GAUGE, "carrel_workspaces", "Workspaces.", [("", counts.workspaces)]);
    let streams = api.streams() as u64;
    text.add(GAUGE, "carrel_event_streams", "Event streams that are open.", [("", streams)]);
    text.disk(disk);
    let mut used = api.options.spaces.cached_usage();
    used.retain(|(id, _)| caller.coverage.covers(*id));
    used.sort_by_key(|(id, _)| *id);
    text.workspaces(&used);
    let requests = api.inner.requests.counts();
    let requests = requests.into_iter().map(|((method, route, status), count)| {
        (format!("{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}}"), count)
    });
    text.add(COUNTER, "carrel_requests_total", "Requests by route and status.", requests);
    if let Some(ExportCounts { exported, dropped }) = carrel_traces::export_counts() {
        let spans = [("{outcome=\"sent\"}", exported), ("{outcome=\"lost\"}", dropped)];
        let help = "Spans of traces that a collector has, and that were lost.";
        text.add(COUNTER, "carrel_spans_total", help, spans);
    }
    Ok(bytes_response(StatusCode::OK, "text/plain; version=0.0.4", text.0))
}

const GAUGE: &str = "gauge";
const COUNTER: &str = "counter";

type Figure = fn(&Amount) -> u64;

const WORKSPACE_FIGURES: [(&str, &str, Figure); 2] = [
    ("carrel_workspace_bytes", "Bytes", |used| used.bytes),
    ("carrel_workspace_files", "Files", |used| used.files),
];

#[derive(Debug, Default)]
struct MetricsText(String);

impl MetricsText {
    /// Adds a metric with its labels and values.
    fn add<L: Display>(
        &mut self,
        kind: &str,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }

    fn disk(&mut self, Capacity { free, total }: Capacity) {
        for (name, what, free, total) in [
            ("carrel_root_bytes", "Bytes", free.bytes, total.bytes),
            ("carrel_root_inodes", "Inodes", free.inodes, total.inodes),
        ] {
            if total != u64::MAX {
                let used = total.saturating_sub(free);
                let values = [("{state=\"free\"}", free), ("{state=\"used\"}", used)];
                self.add(GAUGE, name, &format!("{what} of the disk of the workspaces."), values);
            }
        }
    }

    fn workspaces(&mut self, used: &[(WorkspaceId, Amount)]) {
        for (name, what, of) in WORKSPACE_FIGURES {
            let values =
                used.iter().map(|(id, used)| (format!("{{workspace=\"{id}\"}}"), of(used)));
            self.add(GAUGE, name, &format!("{what} of open workspaces, as last counted."), values);
        }
    }
}
