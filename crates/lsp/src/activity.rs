//! The work of a server, as it reports it: progress, status, and the notification of being ready.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::definition::Readiness;

/// Work in progress that is known at a time; more is counted and not described.
const MAX_TRACKED: usize = 256;

/// Bytes of a text of a server that are kept, of which each of its works has two.
const MAX_TEXT: usize = 1000;

/// The time for which the first report of a server's work is waited for. Without one, answers say so.
const MAX_SILENCE: Duration = Duration::from_secs(15);

/// The reason of a server that should report the end of its index and has not.
const UNREPORTED: &str = "the server has not reported that it has read the project; the description of its build may \
    name no files";

/// The beginning of a title by which gopls reports as work that a project could not be loaded. It ends when the project
/// can be loaded.
const FAILURE: &str = "Error";

/// The work of a server.
#[derive(Debug)]
pub(crate) struct Activity {
    since: Instant,
    /// By token.
    work: BTreeMap<String, Work>,
    /// Problems that are reported as work without an end, by token.
    failures: BTreeMap<String, String>,
    /// Work that has ended.
    ended: u64,
    status: Option<ServerStatus>,
    is_notified: bool,
}

#[derive(Clone, Debug)]
struct Work {
    title: String,
    message: String,
    percentage: Option<u64>,
    began: Instant,
}

/// The status of rust-analyzer, which its extension of the protocol reports.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ServerStatus {
    is_quiescent: bool,
    /// The problem for which the project could not be loaded.
    failure: Option<String>,
}

/// Work that an answer waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingWork {
    pub(crate) what: String,
    /// The time that it may take, by what it reported so far.
    pub(crate) estimate: Option<Duration>,
}

impl Activity {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            since: now,
            work: BTreeMap::new(),
            failures: BTreeMap::new(),
            ended: 0,
            status: None,
            is_notified: false,
        }
    }

    /// Takes in `$/progress`.
    pub(crate) fn progress(&mut self, params: &Value, now: Instant) {
        let token = params["token"].to_string();
        let value = &params["value"];
        let text = |name: &str| cut(value[name].as_str().unwrap_or_default());
        if token.len() > MAX_TEXT {
            return;
        }
        match value["kind"].as_str() {
            Some("begin") if self.work.len() + self.failures.len() >= MAX_TRACKED => {}
            Some("begin") if text("title").starts_with(FAILURE) => {
                let failure = format!("{}: {}", text("title"), text("message").trim());
                self.failures.insert(token, failure);
            }
            Some("begin") => {
                let percentage = value["percentage"].as_u64();
                let (title, message) = (text("title"), text("message"));
                self.work.insert(token, Work { title, message, percentage, began: now });
            }
            Some("report") => {
                if let Some(work) = self.work.get_mut(&token) {
                    work.message = text("message");
                    work.percentage = value["percentage"].as_u64().or(work.percentage);
                }
            }
            Some("end") => {
                self.failures.remove(&token);
                self.ended += u64::from(self.work.remove(&token).is_some());
            }
            Some(_) | None => {}
        }
    }

    /// Takes in `experimental/serverStatus`.
    pub(crate) fn status(&mut self, params: &Value) {
        let message = params["message"].as_str().unwrap_or("the project could not be loaded");
        // A warning is about manifests or a standard library that could not be read, without which names are not found.
        let is_failure = params["health"] == "error" || params["health"] == "warning";
        self.status = Some(ServerStatus {
            is_quiescent: params["quiescent"].as_bool().unwrap_or(false),
            failure: is_failure.then(|| cut(message.trim())),
        });
    }

    /// Takes in another notification, which may be the one of being ready.
    pub(crate) fn notified(&mut self, method: &str, params: &Value, readiness: Readiness) {
        self.is_notified |= match readiness {
            Readiness::Notified { method: expected, kind } => {
                method == expected && kind.is_none_or(|kind| params["type"] == kind)
            }
            Readiness::Logged(part) => {
                let text = params["message"].as_str().unwrap_or_default();
                method == "window/logMessage" && text.contains(part)
            }
            Readiness::Requests
            | Readiness::QuiescentStatus
            | Readiness::WorkReported
            | Readiness::Settled(_) => false,
        };
    }

    /// Returns the work that a complete answer has to wait for. `reports` tells that the project is one whose work is
    /// reported.
    pub(crate) fn pending(
        &self,
        readiness: Readiness,
        reports: bool,
        now: Instant,
    ) -> Option<PendingWork> {
        let is_awaited = match readiness {
            Readiness::Requests | Readiness::Settled(_) => false,
            Readiness::QuiescentStatus => {
                !self.status.as_ref().is_some_and(|status| status.is_quiescent)
            }
            Readiness::WorkReported => reports && self.ended == 0 && now < self.since + MAX_SILENCE,
            Readiness::Notified { .. } | Readiness::Logged(_) => !self.is_notified,
        };
        let working = self.work.values().max_by_key(|work| work.percentage.unwrap_or(0));
        match working {
            // A status counts priming of caches and the like as no reason to wait.
            Some(_) if !is_awaited && readiness == Readiness::QuiescentStatus => None,
            Some(work) => Some(work.pending(now)),
            None if is_awaited => {
                Some(PendingWork { what: "loading the project".to_owned(), estimate: None })
            }
            None => None,
        }
    }

    /// Returns the reason for doubt about a server that should report its work, and has not reported the end of any.
    pub(crate) fn doubt(&self, readiness: Readiness, reports: bool) -> Option<&'static str> {
        match readiness {
            Readiness::WorkReported if reports && self.ended == 0 => Some(UNREPORTED),
            Readiness::WorkReported
            | Readiness::Requests
            | Readiness::QuiescentStatus
            | Readiness::Notified { .. }
            | Readiness::Logged(_)
            | Readiness::Settled(_) => None,
        }
    }

    /// Returns the reason for which answers are not complete although the server is ready.
    pub(crate) fn failure(&self) -> Option<&str> {
        let status = self.status.as_ref().and_then(|status| status.failure.as_deref());
        status.or_else(|| self.failures.values().next().map(String::as_str))
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

impl Work {
    fn pending(&self, now: Instant) -> PendingWork {
        let parts = [self.title.as_str(), self.message.as_str()].into_iter();
        let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
        let percentage = self.percentage.map(|done| format!(" ({done} %)")).unwrap_or_default();
        PendingWork { what: parts.join(": ") + &percentage, estimate: self.estimate(now) }
    }

    /// Returns the time for the rest, if it goes on as it did so far.
    fn estimate(&self, now: Instant) -> Option<Duration> {
        let done = self.percentage.filter(|done| (1..100).contains(done))?;
        let left = u32::try_from(100 - done).ok()?;
        Some((now - self.began) * left / u32::try_from(done).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    fn begin(percentage: Option<u64>) -> Value {
        json!({ "token": 1, "value": {
            "kind": "begin", "title": "indexing", "message": "1/4", "percentage": percentage,
        } })
    }

    const END: &str = r#"{ "token": 1, "value": { "kind": "end" } }"#;

    #[test]
    fn work_is_pending_until_its_end_with_an_estimate_of_the_rest() {
        let start = Instant::now();
        let mut activity = Activity::new(start);
        activity.progress(&begin(Some(0)), start);
        let report = json!({ "token": 1, "value": { "kind": "report", "message": "2/4", "percentage": 25 } });
        activity.progress(&report, start);
        let pending = activity.pending(Readiness::Requests, true, start + Duration::from_secs(10));
        let expected = PendingWork {
            what: "indexing: 2/4 (25 %)".to_owned(),
            estimate: Some(Duration::from_secs(30)),
        };
        assert_eq!(pending, Some(expected));
        activity.progress(&serde_json::from_str(END).unwrap(), start);
        assert_eq!(activity.pending(Readiness::Requests, true, start), None);
    }

    #[test]
    fn an_index_that_has_not_begun_is_waited_for() {
        let start = Instant::now();
        let mut activity = Activity::new(start);
        let pending = |activity: &Activity, reports, now| {
            activity.pending(Readiness::WorkReported, reports, now).map(|work| work.what)
        };
        assert_eq!(pending(&activity, true, start).as_deref(), Some("loading the project"));
        assert_eq!(pending(&activity, false, start), None);
        assert_eq!(pending(&activity, true, start + MAX_SILENCE), None);
        let doubt = |activity: &Activity, reports| activity.doubt(Readiness::WorkReported, reports);
        assert_eq!((doubt(&activity, true), doubt(&activity, false)), (Some(UNREPORTED), None));
        activity.progress(&begin(None), start);
        assert_eq!(pending(&activity, false, start).as_deref(), Some("indexing: 1/4"));
        activity.progress(&serde_json::from_str(END).unwrap(), start);
        assert_eq!(pending(&activity, true, start), None);
        assert_eq!(doubt(&activity, true), None);
    }

    #[test]
    fn long_texts_are_cut_and_long_tokens_ignored() {
        let now = Instant::now();
        let mut activity = Activity::new(now);
        let long = "\u{e9}".repeat(1 << 20);
        let begin =
            |token: &str| json!({ "token": token, "value": { "kind": "begin", "title": long } });
        activity.progress(&begin(&long), now);
        assert_eq!(activity.pending(Readiness::Requests, true, now), None);
        activity.progress(&begin("1"), now);
        let pending = activity.pending(Readiness::Requests, true, now).unwrap();
        assert_eq!(pending.what.len(), MAX_TEXT);
        activity.status(&json!({ "quiescent": true, "health": "error", "message": long }));
        assert_eq!(activity.failure().map(str::len), Some(MAX_TEXT));
    }

    #[test]
    fn a_status_decides_alone_and_names_a_project_that_failed_to_load() {
        let now = Instant::now();
        let mut activity = Activity::new(now);
        let is_pending =
            |activity: &Activity| activity.pending(Readiness::QuiescentStatus, true, now).is_some();
        assert!(is_pending(&activity));
        activity.status(&json!({ "quiescent": false, "health": "ok" }));
        assert!(is_pending(&activity));
        activity.progress(&begin(None), now);
        activity
            .status(&json!({ "quiescent": true, "health": "error", "message": " no manifest\n" }));
        assert!(!is_pending(&activity));
        assert_eq!(activity.failure(), Some("no manifest"));
        // Without the dependencies of the standard library, uses inside of its macros are not found.
        let sysroot = "Failed to read Cargo metadata with dependencies for sysroot of `x`";
        for (health, failure) in [("ok", None), ("warning", Some(sysroot))] {
            activity.status(&json!({ "quiescent": true, "health": health, "message": sysroot }));
            assert_eq!(activity.failure(), failure);
        }
    }

    #[test]
    fn a_notification_of_the_right_kind_makes_ready() {
        let now = Instant::now();
        let readiness =
            Readiness::Notified { method: "language/status", kind: Some("ServiceReady") };
        let mut activity = Activity::new(now);
        activity.notified("language/status", &json!({ "type": "Starting" }), readiness);
        activity.notified("other", &json!({ "type": "ServiceReady" }), readiness);
        assert!(activity.pending(readiness, true, now).is_some());
        activity.notified("language/status", &json!({ "type": "ServiceReady" }), readiness);
        assert_eq!(activity.pending(readiness, true, now), None);
    }

    #[test]
    fn an_error_that_is_reported_as_work_is_not_waited_for() {
        let now = Instant::now();
        let mut activity = Activity::new(now);
        let value = json!({ "kind": "begin", "title": "Error loading workspace", "message": "no go.sum\n" });
        activity.progress(&json!({ "token": 1, "value": value }), now);
        assert_eq!(activity.pending(Readiness::Requests, true, now), None);
        assert_eq!(activity.failure(), Some("Error loading workspace: no go.sum"));
        activity.progress(&serde_json::from_str(END).unwrap(), now);
        assert_eq!(activity.failure(), None);
    }

    #[test]
    fn reports_without_a_beginning_and_endless_beginnings_cost_nothing() {
        let now = Instant::now();
        let mut activity = Activity::new(now);
        activity.progress(&json!({ "token": "x", "value": { "kind": "report" } }), now);
        activity.progress(&serde_json::from_str(END).unwrap(), now);
        for token in 0..10_000 {
            let value = json!({ "kind": "begin", "title": "x" });
            activity.progress(&json!({ "token": token, "value": value }), now);
        }
        assert_eq!((activity.work.len(), activity.ended), (MAX_TRACKED, 0));
    }
}
