//! Messages of a server on its own account: its work, diagnostics, and requests for settings, folders and registrations.
//!
//! All of it arrives on the task that reads from the server, which must not wait. So state is behind a lock that is held
//! for a moment, and a counter tells waiting queries of each message.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use carrel_domain::sync;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::debug;

use crate::activity::{Activity, PendingWork};
use crate::client::Peer;
use crate::definition::ServerDefinition;
use crate::message::{METHOD_NOT_FOUND, ResponseError};

/// The JSON of pushed diagnostics that is kept, the newest. A server that analyses the whole project pushes some for each
/// file.
const MAX_PUSHED_BYTES: usize = 32 << 20;

/// Registrations of capabilities that are kept, and the bytes of the id and the method of each.
const MAX_REGISTRATIONS: usize = 512;
const MAX_REGISTRATION_BYTES: usize = 512;

/// Sections of settings that are answered at a time. An answer is larger than the question.
const MAX_SECTIONS: usize = 100;

/// The state of a server as far as it has told it.
#[derive(Debug)]
pub(crate) struct Observed {
    definition: &'static ServerDefinition,
    /// The URI of the project's directory.
    root: String,
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    activity: Activity,
    pushed: BTreeMap<String, Arc<Pushed>>,
    /// The sum of their sizes.
    pushed_bytes: usize,
    /// The methods of capabilities that were registered later, by their ids.
    registered: BTreeMap<String, String>,
}

/// The diagnostics of a document that were pushed last.
#[derive(Debug)]
pub(crate) struct Pushed {
    /// The version of the document; none if the server does not say.
    pub(crate) version: Option<i64>,
    pub(crate) diagnostics: Value,
    pub(crate) at: Instant,
    bytes: usize,
}

impl Observed {
    pub(crate) fn new(definition: &'static ServerDefinition, root: String) -> Self {
        let state = State {
            activity: Activity::new(Instant::now()),
            pushed: BTreeMap::new(),
            pushed_bytes: 0,
            registered: BTreeMap::new(),
        };
        let (changes, _) = watch::channel(0);
        Self { definition, root, state: Mutex::new(state), changes }
    }

    /// Returns a receiver that is told of each change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(crate) fn pending(&self, reports: bool) -> Option<PendingWork> {
        let state = sync::lock(&self.state);
        state.activity.pending(self.definition.readiness, reports, Instant::now())
    }

    /// Returns the reason for which the server may not have read the project although nothing is waited for.
    pub(crate) fn doubt(&self, reports: bool) -> Option<&'static str> {
        let state = sync::lock(&self.state);
        state.activity.doubt(self.definition.readiness, reports)
    }

    /// Returns the reason for which answers are not complete.
    pub(crate) fn failure(&self) -> Option<String> {
        sync::lock(&self.state).activity.failure().map(str::to_owned)
    }

    pub(crate) fn pushed(&self, uri: &str) -> Option<Arc<Pushed>> {
        sync::lock(&self.state).pushed.get(uri).cloned()
    }

    /// Returns whether the server has registered a method after its start.
    pub(crate) fn has_registered(&self, method: &str) -> bool {
        sync::lock(&self.state).registered.values().any(|registered| registered == method)
    }

    fn push(&self, mut params: Value) {
        let Some(uri) = params["uri"].as_str().map(str::to_owned) else { return };
        let version = params["version"].as_i64();
        let diagnostics = params["diagnostics"].take();
        let bytes = uri.len() + diagnostics.to_string().len();
        let pushed = Arc::new(Pushed { version, diagnostics, at: Instant::now(), bytes });
        let mut state = sync::lock(&self.state);
        state.pushed_bytes += bytes;
        if let Some(before) = state.pushed.insert(uri, pushed) {
            state.pushed_bytes -= before.bytes;
        }
        state.drop_old_pushes();
    }

    fn register(&self, params: &Value) {
        let mut state = sync::lock(&self.state);
        for registration in params["registrations"].as_array().into_iter().flatten() {
            let text = |name: &str| registration[name].as_str().map(str::to_owned);
            if let (Some(id), Some(method)) = (text("id"), text("method"))
                && state.registered.len() < MAX_REGISTRATIONS
                && id.len() + method.len() <= MAX_REGISTRATION_BYTES
            {
                state.registered.insert(id, method);
            }
        }
    }

    fn unregister(&self, params: &Value) {
        let mut state = sync::lock(&self.state);
        // The name of the member is misspelt in the protocol.
        for registration in params["unregisterations"].as_array().into_iter().flatten() {
            if let Some(id) = registration["id"].as_str() {
                state.registered.remove(id);
            }
        }
    }

    /// Returns the settings of each section that is asked for, null for one that there is not.
    fn configuration(&self, params: &Value) -> Value {
        let settings = self.definition.settings.value();
        let items = params["items"].as_array().into_iter().flatten().take(MAX_SECTIONS);
        items.map(|item| section(&settings, item["section"].as_str().unwrap_or_default())).collect()
    }

    fn folders(&self) -> Value {
        json!([{ "uri": self.root, "name": "workspace" }])
    }
}

impl State {
    /// Drops the oldest pushes beyond the bound, and never the newest.
    fn drop_old_pushes(&mut self) {
        while self.pushed_bytes > MAX_PUSHED_BYTES && self.pushed.len() > 1 {
            let oldest = self.pushed.iter().min_by_key(|(_, pushed)| pushed.at);
            let Some(uri) = oldest.map(|(uri, _)| uri.clone()) else { return };
            if let Some(dropped) = self.pushed.remove(&uri) {
                self.pushed_bytes -= dropped.bytes;
            }
        }
    }
}

/// Returns the settings of a section such as `python.analysis`; all of them for an empty name.
fn section(settings: &Value, name: &str) -> Value {
    let parts = name.split('.').filter(|part| !part.is_empty());
    parts.fold(settings, |settings, part| &settings[part]).clone()
}

impl Peer for Observed {
    fn notified(&self, method: &str, params: Value) {
        match method {
            "$/progress" => sync::lock(&self.state).activity.progress(&params, Instant::now()),
            "experimental/serverStatus" => sync::lock(&self.state).activity.status(&params),
            "textDocument/publishDiagnostics" => self.push(params),
            other => {
                let text = params["message"].as_str().unwrap_or_default();
                debug!(server = self.definition.name, other, text);
                let readiness = self.definition.readiness;
                sync::lock(&self.state).activity.notified(other, &params, readiness);
            }
        }
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn asked(&self, method: &str, params: &Value) -> Result<Value, ResponseError> {
        match method {
            "workspace/configuration" => Ok(self.configuration(params)),
            "workspace/workspaceFolders" => Ok(self.folders()),
            "client/registerCapability" => {
                self.register(params);
                Ok(Value::Null)
            }
            "client/unregisterCapability" => {
                self.unregister(params);
                Ok(Value::Null)
            }
            // No button is pressed, and nothing of what was shown is kept: the next query asks anew.
            "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/codeLens/refresh"
            | "workspace/diagnostic/refresh"
            | "workspace/foldingRange/refresh"
            | "workspace/inlayHint/refresh"
            | "workspace/inlineValue/refresh"
            | "workspace/semanticTokens/refresh" => Ok(Value::Null),
            "window/showDocument" => Ok(json!({ "success": false })),
            "workspace/applyEdit" => Ok(json!({
                "applied": false,
                "failureReason": "files are changed by the tools of the client alone",
            })),
            other => Err(ResponseError {
                code: METHOD_NOT_FOUND,
                message: format!("the client does not know {other}"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::DEFINITIONS;
    use pretty_assertions::assert_eq;

    fn observed(name: &str) -> Observed {
        let definition = DEFINITIONS.iter().find(|definition| definition.name == name).unwrap();
        Observed::new(definition, "file:///w".into())
    }

    #[test]
    fn settings_are_found_by_section_and_missing_ones_are_null() {
        let items =
            json!([{ "section": "python.analysis" }, { "section": "python.nothing.at.all" }, {}]);
        let answer =
            observed("basedpyright").asked("workspace/configuration", &json!({ "items": items }));
        let answer = answer.unwrap();
        assert_eq!(answer[0]["diagnosticMode"], "openFilesOnly");
        assert_eq!((&answer[1], answer.as_array().unwrap().len()), (&Value::Null, 3));
        assert!(answer[2]["basedpyright"].is_object());
    }

    #[test]
    fn edits_are_refused_and_unknown_requests_named() {
        let observed = observed("gopls");
        let refused = observed.asked("workspace/applyEdit", &json!({ "edit": {} })).unwrap();
        assert_eq!(refused["applied"], false);
        let unknown = observed.asked("x/y", &Value::Null).unwrap_err();
        assert_eq!((unknown.code, unknown.message.contains("x/y")), (METHOD_NOT_FOUND, true));
        assert_eq!(observed.asked("workspace/inlayHint/refresh", &Value::Null), Ok(Value::Null));
    }

    #[test]
    fn registrations_hold_until_they_are_taken_back() {
        let observed = observed("gopls");
        let method = "textDocument/diagnostic";
        let registration = json!({ "id": "1", "method": method });
        observed
            .asked("client/registerCapability", &json!({ "registrations": [registration] }))
            .unwrap();
        assert!(observed.has_registered(method));
        let taken = json!({ "unregisterations": [registration] });
        observed.asked("client/unregisterCapability", &taken).unwrap();
        assert!(!observed.has_registered(method));
    }

    #[test]
    fn a_million_registrations_and_questions_cost_little() {
        let observed = observed("basedpyright");
        let registration =
            |id: String| json!({ "id": id, "method": "workspace/didChangeWatchedFiles" });
        let many: Vec<_> = (0..1_000_000).map(|number| registration(number.to_string())).collect();
        observed.asked("client/registerCapability", &json!({ "registrations": many })).unwrap();
        assert_eq!(sync::lock(&observed.state).registered.len(), MAX_REGISTRATIONS);
        let taken = json!({ "unregisterations": many });
        observed.asked("client/unregisterCapability", &taken).unwrap();
        assert!(sync::lock(&observed.state).registered.is_empty());
        let long = json!({ "registrations": [registration("x".repeat(1 << 20))] });
        observed.asked("client/registerCapability", &long).unwrap();
        assert!(sync::lock(&observed.state).registered.is_empty());
        let items = vec![json!({}); 1_000_000];
        let answer = observed.asked("workspace/configuration", &json!({ "items": items })).unwrap();
        assert_eq!(answer.as_array().map(Vec::len), Some(MAX_SECTIONS));
    }

    #[test]
    fn the_last_push_of_a_document_counts() {
        let observed = observed("clangd");
        for version in [1, 2] {
            let params =
                json!({ "uri": "file:///w/a.c", "version": version, "diagnostics": [version] });
            observed.notified("textDocument/publishDiagnostics", params);
        }
        let pushed = observed.pushed("file:///w/a.c").unwrap();
        assert_eq!((pushed.version, &pushed.diagnostics), (Some(2), &json!([2])));
        assert_eq!(*observed.changes().borrow(), 2);
    }

    #[test]
    fn old_pushes_are_dropped_when_they_are_too_many() {
        let observed = observed("clangd");
        let long = "x".repeat(MAX_PUSHED_BYTES / 4);
        for number in 0..10 {
            let params = json!({ "uri": format!("file:///w/{number}.c"), "diagnostics": [long] });
            observed.notified("textDocument/publishDiagnostics", params);
        }
        let kept =
            (0..10).filter(|number| observed.pushed(&format!("file:///w/{number}.c")).is_some());
        assert_eq!(kept.collect::<Vec<_>>(), [7, 8, 9]);
    }
}
