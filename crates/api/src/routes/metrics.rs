//! `/metrics` in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use axum::extract::State;
use axum::http::StatusCode;
use carrel_domain::{TokenScope, WorkspaceId};
use carrel_fsroot::Capacity;
use carrel_traces::ExportCounts;
use carrel_workspace::Amount;

use crate::extract::Authenticated;
use crate::openapi::{Route, STORE};
use crate::response::{RouteResult, bytes_response};
use crate::state::Api;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/metrics", metrics)
            .name("show_metrics", "Metrics")
            .description("Returns metrics in the text format of Prometheus.")
            .scope(TokenScope::Read)
            .bytes("text/plain", "The metrics.")
            .errors(STORE),
    ]
}

/// Returns the metrics. Those of workspaces are limited to what the caller covers.
async fn metrics(State(api): State<Api>, Authenticated(caller): Authenticated) -> RouteResult {
    caller.check_scope(TokenScope::Read)?;
    let counts = api.inner.tasks.store().counts().await?;
    let disk = api.inner.spaces.capacity()?;
    let mut text = MetricsText::default();
    text.gauge("carrel_tasks_queued", "Tasks that wait.", counts.queued);
    text.gauge("carrel_tasks_running", "Tasks that run.", counts.running);
    text.gauge("carrel_workspaces", "Workspaces.", counts.workspaces);
    text.gauge("carrel_event_streams", "Event streams that are open.", api.streams() as u64);
    text.disk(disk);
    let used = api.inner.spaces.cached_usage().into_iter();
    text.workspaces(used.filter(|(id, _)| caller.coverage.covers(*id)));
    text.requests(&api.inner.requests.counts());
    if let Some(counts) = carrel_traces::export_counts() {
        text.spans(counts);
    }
    Ok(bytes_response(StatusCode::OK, "text/plain; version=0.0.4", text.into_string()))
}

#[derive(Debug, Default)]
struct MetricsText(String);

impl MetricsText {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "gauge");
        self.line(name, "", value);
    }

    fn disk(&mut self, Capacity { free, total }: Capacity) {
        for (name, what, free, total) in [
            ("carrel_root_bytes", "Bytes", free.bytes, total.bytes),
            ("carrel_root_inodes", "Inodes", free.inodes, total.inodes),
        ] {
            if total == u64::MAX {
                continue;
            }
            self.head(name, &format!("{what} of the disk of the workspaces."), "gauge");
            self.line(name, "{state=\"free\"}", free);
            self.line(name, "{state=\"used\"}", total.saturating_sub(free));
        }
    }

    fn workspaces(&mut self, used: impl Iterator<Item = (WorkspaceId, Amount)>) {
        let mut used: Vec<_> = used.collect();
        used.sort_by_key(|(id, _)| *id);
        let of = |amount: fn(&Amount) -> u64| used.iter().map(move |(id, used)| (id, amount(used)));
        for (name, what, figures) in [
            ("carrel_workspace_bytes", "Bytes", of(|used| used.bytes).collect::<Vec<_>>()),
            ("carrel_workspace_files", "Files", of(|used| used.files).collect()),
        ] {
            self.head(name, &format!("{what} of open workspaces, as last counted."), "gauge");
            for (id, figure) in figures {
                self.line(name, &format!("{{workspace=\"{id}\"}}"), figure);
            }
        }
    }

    fn requests(&mut self, counts: &BTreeMap<(&'static str, String, u16), u64>) {
        let name = "carrel_requests_total";
        self.head(name, "Requests by route and status.", "counter");
        for ((method, route, status), count) in counts {
            let labels = format!("{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}}");
            self.line(name, &labels, count);
        }
    }

    fn spans(&mut self, ExportCounts { exported: sent, dropped: lost }: ExportCounts) {
        let name = "carrel_spans_total";
        self.head(name, "Spans of traces that a collector has, and that were lost.", "counter");
        self.line(name, "{outcome=\"sent\"}", sent);
        self.line(name, "{outcome=\"lost\"}", lost);
    }

    fn into_string(self) -> String {
        self.0
    }
}
