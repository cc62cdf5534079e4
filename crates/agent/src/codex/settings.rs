//! What the server is told about approvals and sandboxes.
//!
//! Behind Carrel's walls no other sandbox can be made, and none is needed: the server is told that somebody
//! else confines it. What the workflow file says about its sandbox is kept as far as Carrel can keep it.

use std::path::PathBuf;

use carrel_config::{ConductorConfig, Network};
use serde_json::{Map, Value, json};

use crate::launch::AgentWorkspace;

/// What a workflow file says.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    approval: Value,
    thread_sandbox: String,
    turn_sandbox: Option<Value>,
    network: Network,
}

/// The same in a place.
#[derive(Debug)]
pub(super) struct SessionSettings {
    settings: Settings,
    walled: bool,
    workspace: PathBuf,
}

impl Settings {
    pub(super) fn new(config: &ConductorConfig) -> Self {
        let codex = &config.codex;
        Self {
            approval: approval(&codex.approval_policy),
            thread_sandbox: codex.thread_sandbox.clone(),
            turn_sandbox: codex.turn_sandbox_policy.clone(),
            network: config.agent.network,
        }
    }

    /// Tells whether the agent is to leave its workspace as it is.
    pub(super) fn reads_only(&self) -> bool {
        let turn = self.turn_sandbox.as_ref().and_then(|policy| policy.get("type"));
        self.thread_sandbox == "read-only" || turn.is_some_and(|kind| kind == "readOnly")
    }

    pub(super) fn bound(&self, site: &AgentWorkspace, walled: bool) -> SessionSettings {
        SessionSettings { settings: self.clone(), walled, workspace: site.path().to_owned() }
    }
}

impl SessionSettings {
    /// Tells whether whatever the server asks for is allowed.
    pub(super) fn accepts(&self) -> bool {
        self.settings.approval == "never"
    }

    /// Returns what a thread begins with.
    pub(super) fn thread(&self) -> Value {
        let written = self.settings.thread_sandbox.as_str();
        let sandbox = if self.walled { "danger-full-access" } else { written };
        json!({
            "approvalPolicy": self.settings.approval,
            "sandbox": sandbox,
            "cwd": self.workspace.to_string_lossy(),
        })
    }

    /// Returns what a turn begins with.
    pub(super) fn turn(&self) -> Value {
        let sandbox = match (self.walled, &self.settings.turn_sandbox) {
            (true, written) => json!({
                "type": "externalSandbox",
                "networkAccess": if self.has_network(written.as_ref()) { "enabled" } else { "restricted" },
            }),
            (false, Some(written)) => written.clone(),
            (false, None) => json!({
                "type": "workspaceWrite",
                "writableRoots": [self.workspace.to_string_lossy()],
                "networkAccess": self.has_network(None),
            }),
        };
        json!({
            "approvalPolicy": self.settings.approval,
            "sandboxPolicy": sandbox,
            "cwd": self.workspace.to_string_lossy(),
        })
    }

    fn has_network(&self, written: Option<&Value>) -> bool {
        let denied = written.and_then(|policy| policy.get("networkAccess"));
        let denied = denied.is_some_and(|access| access == false || access == "restricted");
        self.settings.network == Network::Full && !denied
    }
}

/// Turns what earlier servers understood into what present ones do.
fn approval(written: &Value) -> Value {
    let Some(Value::Object(rejected)) = written.get("reject") else { return written.clone() };
    // What is not rejected is asked for.
    let usual = ["sandbox_approval", "rules", "mcp_elicitations"];
    let mut asked: Map<String, Value> =
        usual.map(|name| (name.to_owned(), true.into())).into_iter().collect();
    for (name, is_rejected) in rejected {
        asked.insert(name.clone(), (*is_rejected != true).into());
    }
    json!({ "granular": asked })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn bound(walled: bool, thread: &str, turn: Option<Value>) -> SessionSettings {
        let settings = Settings {
            approval: approval(&json!("never")),
            thread_sandbox: thread.to_owned(),
            turn_sandbox: turn,
            network: Network::Full,
        };
        SessionSettings { settings, walled, workspace: "/w".into() }
    }

    #[test]
    fn what_was_rejected_is_not_asked_for() {
        let written =
            json!({"reject": {"sandbox_approval": true, "rules": true, "skill_approval": false}});
        assert_eq!(
            approval(&written),
            json!({"granular": {
                "sandbox_approval": false, "rules": false, "mcp_elicitations": true, "skill_approval": true,
            }})
        );
        for kept in [json!("on-request"), json!({"granular": {"rules": true}})] {
            assert_eq!(approval(&kept), kept);
        }
    }

    #[test]
    fn item_059_in_a_sandbox_the_server_runs_with_an_external_sandbox_policy() {
        let usual = bound(true, "workspace-write", None);
        assert_eq!(
            usual.thread(),
            json!({"approvalPolicy": "never", "sandbox": "danger-full-access", "cwd": "/w"})
        );
        let external = |access| json!({"type": "externalSandbox", "networkAccess": access});
        assert_eq!(usual.turn()["sandboxPolicy"], external("enabled"));
        let written = json!({"type": "workspaceWrite", "networkAccess": false});
        let narrow = bound(true, "workspace-write", Some(written));
        assert_eq!(narrow.turn()["sandboxPolicy"], external("restricted"));
    }

    #[test]
    fn item_059_without_a_sandbox_the_server_gets_the_configured_policy() {
        let written = json!({"type": "readOnly", "more": 1});
        let bare = bound(false, "read-only", Some(written.clone()));
        assert_eq!(bare.thread()["sandbox"], "read-only");
        assert_eq!(bare.turn()["sandboxPolicy"], written);
        let usual = bound(false, "workspace-write", None).turn();
        assert_eq!(
            usual["sandboxPolicy"],
            json!({"type": "workspaceWrite", "writableRoots": ["/w"], "networkAccess": true})
        );
    }

    #[test]
    fn a_server_that_only_reads_gets_a_workspace_that_is_only_read() {
        for (thread, turn, expected) in [
            ("workspace-write", None, false),
            ("read-only", None, true),
            ("workspace-write", Some(json!({"type": "readOnly"})), true),
        ] {
            assert_eq!(bound(true, thread, turn).settings.reads_only(), expected);
        }
    }
}
