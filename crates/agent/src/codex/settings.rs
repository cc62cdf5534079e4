//! Approval and sandbox parameters of threads and turns.
//!
//! Inside Carrel's sandbox the server can create no sandbox of its own, and needs none: it gets the policy
//! `externalSandbox`. Of the workflow file's sandbox policy, Carrel enforces read-only access by the
//! workspace mount and passes on a denied network. Without Carrel's sandbox the server gets the
//! policy as it is written, or `workspaceWrite` for the workspace.

use std::path::{Path, PathBuf};

use carrel_config::ConductorConfig;
use carrel_domain::Network;
use serde_json::{Map, Value, json};

/// The `codex` section of a workflow file.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    approval: Value,
    thread_sandbox: String,
    turn_sandbox: Option<Value>,
    network: Network,
}

#[derive(Debug)]
pub(super) struct SessionSettings {
    settings: Settings,
    sandboxed: bool,
    workspace: PathBuf,
}

impl Settings {
    pub(super) fn new(config: &ConductorConfig) -> Self {
        let codex = &config.codex;
        Self {
            approval: approval_policy(&codex.approval_policy),
            thread_sandbox: codex.thread_sandbox.clone(),
            turn_sandbox: codex.turn_sandbox_policy.clone(),
            network: config.agent.network,
        }
    }

    /// Returns true if the thread or turn policy is read-only.
    pub(super) fn reads_only(&self) -> bool {
        let turn = self.turn_sandbox.as_ref().and_then(|policy| policy.get("type"));
        self.thread_sandbox == "read-only" || turn.is_some_and(|kind| kind == "readOnly")
    }

    pub(super) fn for_session(&self, workspace: &Path, sandboxed: bool) -> SessionSettings {
        SessionSettings { settings: self.clone(), sandboxed, workspace: workspace.to_owned() }
    }
}

impl SessionSettings {
    /// Returns true if the policy is `never`: every approval is given.
    pub(super) fn approves_all(&self) -> bool {
        self.settings.approval == "never"
    }

    pub(super) fn thread_params(&self) -> Value {
        let written = self.settings.thread_sandbox.as_str();
        let sandbox = if self.sandboxed { "danger-full-access" } else { written };
        json!({
            "approvalPolicy": self.settings.approval,
            "sandbox": sandbox,
            "cwd": self.workspace.to_string_lossy(),
        })
    }

    pub(super) fn turn_params(&self) -> Value {
        let sandbox = match (self.sandboxed, &self.settings.turn_sandbox) {
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

/// Converts the policy `reject` of earlier servers into `granular` of current ones, which lists what is
/// asked for instead of what is rejected.
fn approval_policy(written: &Value) -> Value {
    let Some(Value::Object(rejected)) = written.get("reject") else { return written.clone() };
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

    fn session(sandboxed: bool, thread: &str, turn: Option<Value>) -> SessionSettings {
        let settings = Settings {
            approval: approval_policy(&json!("never")),
            thread_sandbox: thread.to_owned(),
            turn_sandbox: turn,
            network: Network::Full,
        };
        SessionSettings { settings, sandboxed, workspace: "/w".into() }
    }

    #[test]
    fn the_old_reject_policy_becomes_granular() {
        let written =
            json!({"reject": {"sandbox_approval": true, "rules": true, "skill_approval": false}});
        assert_eq!(
            approval_policy(&written),
            json!({"granular": {
                "sandbox_approval": false, "rules": false, "mcp_elicitations": true, "skill_approval": true,
            }})
        );
        for kept in [json!("on-request"), json!({"granular": {"rules": true}})] {
            assert_eq!(approval_policy(&kept), kept);
        }
    }

    #[test]
    fn item_059_in_a_sandbox_the_server_runs_with_an_external_sandbox_policy() {
        let usual = session(true, "workspace-write", None);
        assert_eq!(
            usual.thread_params(),
            json!({"approvalPolicy": "never", "sandbox": "danger-full-access", "cwd": "/w"})
        );
        let external = |access| json!({"type": "externalSandbox", "networkAccess": access});
        assert_eq!(usual.turn_params()["sandboxPolicy"], external("enabled"));
        let written = json!({"type": "workspaceWrite", "networkAccess": false});
        let narrow = session(true, "workspace-write", Some(written));
        assert_eq!(narrow.turn_params()["sandboxPolicy"], external("restricted"));
    }

    #[test]
    fn item_059_without_a_sandbox_the_server_gets_the_configured_policy() {
        let written = json!({"type": "readOnly", "more": 1});
        let bare = session(false, "read-only", Some(written.clone()));
        assert_eq!(bare.thread_params()["sandbox"], "read-only");
        assert_eq!(bare.turn_params()["sandboxPolicy"], written);
        let usual = session(false, "workspace-write", None).turn_params();
        assert_eq!(
            usual["sandboxPolicy"],
            json!({"type": "workspaceWrite", "writableRoots": ["/w"], "networkAccess": true})
        );
    }

    #[test]
    fn a_read_only_policy_makes_the_workspace_read_only() {
        for (thread, turn, expected) in [
            ("workspace-write", None, false),
            ("read-only", None, true),
            ("workspace-write", Some(json!({"type": "readOnly"})), true),
        ] {
            assert_eq!(session(true, thread, turn).settings.reads_only(), expected);
        }
    }
}
