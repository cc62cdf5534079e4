//! The network as a cap in the service: policy, workspace, token, step and request.

use std::path::PathBuf;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::test_environment::{Client, Service, new_id};
use crate::network_cap::HostService;

/// A service whose operator allows requests this network.
struct LimitedService {
    service: Service,
    _directory: tempfile::TempDir,
}

impl LimitedService {
    fn start(limit: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let policy: PathBuf = directory.path().join("policy.toml");
        std::fs::write(&policy, format!("network_limit = \"{limit}\"\n")).unwrap();
        let service = Service::start_as(&["--policy", policy.to_str().unwrap()], &[]);
        Self { service, _directory: directory }
    }

    /// A client of a new workspace with a network.
    fn client(&self, network: &str, scopes: &str) -> Client {
        let asked = json!({ "name": "x", "network": network });
        let made = self.service.operator().post("/api/workspaces", &asked).expect(201);
        self.service.client_for(made["id"].as_str().unwrap(), scopes)
    }
}

/// The code of a failed step.
fn step_code(client: &Client, step: &Value) -> Option<String> {
    let task = client.done(&json!([step]));
    task["result"]["steps"][0]["code"].as_str().map(str::to_owned)
}

/// Tries to reach the host in every way that a client has, and returns the code of each refusal.
fn attempts(
    client: &Client,
    host: &HostService,
    network: &str,
) -> Vec<(&'static str, Option<String>)> {
    let line = host.attack();
    // `exec` of the shell is not in the allow-list.
    let allowed = format!(
        "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {}))\"",
        host.port()
    );
    let of_reply = |reply: super::test_environment::Reply| {
        reply.json()["error"]["code"].as_str().map(str::to_owned)
    };
    let bash = json!({ "command": line, "network": network });
    let of_agent =
        |answer: Value| answer["structuredContent"]["error"]["code"].as_str().map(str::to_owned);
    let mut over_mcp = bash.clone();
    over_mcp["workspace"] = json!(client.workspace);
    let shell = json!({ "action": "shell", "command": allowed, "network": network });
    let tool = json!({ "action": "tool", "tool": "Bash", "arguments": bash });
    let exec = json!({ "command": allowed, "network": network });
    vec![
        ("exec", of_reply(client.post(&client.at("/exec"), &exec))),
        ("tool", of_reply(client.post(&client.at("/tools/Bash"), &bash))),
        ("mcp", of_agent(client.agent().call("Bash", &over_mcp))),
        ("step", step_code(client, &shell)),
        ("tool step", step_code(client, &tool)),
    ]
}

fn all(code: &str) -> Vec<(&'static str, Option<String>)> {
    ["exec", "tool", "mcp", "step", "tool step"].map(|way| (way, Some(code.to_owned()))).to_vec()
}

#[test]
fn without_a_policy_no_caller_reaches_the_host() {
    let service = Service::start();
    let host = HostService::start();
    let client = service.client_for(&new_id(), "read,write,exec,net");
    assert_eq!(attempts(&client, &host, "full"), all("E_NETWORK_REFUSED"));
    assert!(!host.was_reached());
    let asked = json!({ "name": "x", "network": "full" });
    let refused = service.operator().post("/api/workspaces", &asked);
    refused.is(403, "E_NETWORK_REFUSED");
    let text = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(text.contains("the operator decides") && !text.contains("policy.toml"), "{text}");
}

#[test]
fn a_callers_request_reaches_the_host_where_the_operator_allows_it() {
    let limited = LimitedService::start("full");
    let host = HostService::start();
    let client = limited.service.client_for(&new_id(), "read,write,exec,net");
    for (way, code) in attempts(&client, &host, "full") {
        assert_eq!(code, None, "{way}");
        assert!(host.was_reached(), "{way}");
    }
}

#[test]
fn the_network_of_a_workspace_is_a_cap_for_its_commands_and_tasks() {
    let limited = LimitedService::start("full");
    let host = HostService::start();
    for network in ["none", "loopback"] {
        let client = limited.client(network, "read,write,exec,net");
        assert_eq!(attempts(&client, &host, "full"), all("E_NETWORK_REFUSED"), "{network}");
        assert!(!host.was_reached(), "{network}");
    }
}

#[test]
fn a_token_without_the_scope_gives_no_network_although_the_workspace_has_one() {
    let limited = LimitedService::start("full");
    let host = HostService::start();
    let line = format!(
        "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {}))\"",
        host.port()
    );
    let with = limited.client("full", "read,write,exec,net");
    with.exec(&line).expect(200);
    assert!(host.was_reached(), "the workspace's network is the default of its commands");
    let without = limited.service.client_for(&with.workspace, "read,write,exec");
    without.exec(&line).expect(200);
    let bash = json!({ "command": host.attack() });
    without.post(&without.at("/tools/Bash"), &bash).expect(200);
    let mut over_mcp = bash.clone();
    over_mcp["workspace"] = json!(without.workspace);
    without.agent().call("Bash", &over_mcp);
    without.done(&json!([{ "action": "shell", "command": line, "on_error": "continue" },
        { "action": "tool", "tool": "Bash", "arguments": bash }]));
    assert!(!host.was_reached());
}

#[test]
fn the_network_of_a_step_is_a_cap_for_its_tool() {
    let limited = LimitedService::start("full");
    let host = HostService::start();
    let client = limited.service.client_for(&new_id(), "read,write,exec,net");
    let step = json!({
        "action": "tool", "tool": "Bash", "network": "loopback",
        "arguments": { "command": host.attack(), "network": "full" },
    });
    assert_eq!(step_code(&client, &step).as_deref(), Some("E_NETWORK_REFUSED"));
    assert!(!host.was_reached());
}
