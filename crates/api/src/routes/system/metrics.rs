//! Figures in the format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use carrel_domain::WorkspaceId;
use carrel_fsroot::Capacity;
use carrel_traces::Counts;
use carrel_workspace::Amount;

/// A page of figures.
#[derive(Debug, Default)]
pub(super) struct Text(String);

impl Text {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    /// Adds a figure that goes up and down.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "gauge");
        self.line(name, "", value);
    }

    /// Adds what the disk of the workspaces has.
    pub(super) fn disk(&mut self, Capacity { free, total }: Capacity) {
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

    /// Adds what workspaces use, as last counted.
    pub(super) fn workspaces(&mut self, used: impl Iterator<Item = (WorkspaceId, Amount)>) {
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

    /// Adds how often each route was answered how.
    pub(super) fn requests(&mut self, counts: &BTreeMap<(&'static str, String, u16), u64>) {
        let name = "carrel_requests_total";
        self.head(name, "Requests by route and status.", "counter");
        for ((method, route, status), count) in counts {
            let labels = format!("{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}}");
            self.line(name, &labels, count);
        }
    }

    /// Adds what became of spans.
    pub(super) fn spans(&mut self, Counts { sent, lost }: Counts) {
        let name = "carrel_spans_total";
        self.head(name, "Spans of traces that a collector has, and that were lost.", "counter");
        self.line(name, "{outcome=\"sent\"}", sent);
        self.line(name, "{outcome=\"lost\"}", lost);
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}
