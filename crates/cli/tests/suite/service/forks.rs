//! Forks over REST: made with a token for the base, used as workspaces, promoted, and gone.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::test_environment::{Client, Service, new_id};

/// Makes forks of a client's workspace, and returns a client for each.
fn fork(base: &Client, count: u8) -> Vec<Client> {
    let made = base.post(&base.at("/forks"), &json!({ "count": count })).expect(200);
    let ids = made["forks"].as_array().unwrap().iter().map(|fork| fork["id"].as_str().unwrap());
    // The token is the base's.
    ids.map(|id| Client {
        workspace: id.to_owned(),
        token: base.token.clone(),
        address: base.address,
    })
    .collect()
}

fn run(client: &Client, line: &str) -> Value {
    client.post(&client.at("/exec"), &json!({ "command": line })).expect(200)
}

#[test]
fn forks_are_made_used_and_promoted_with_a_token_for_their_base() {
    let service = Service::start();
    let base = service.client();
    base.write("src/a.txt", "1\n").expect(200);
    let forks = fork(&base, 2);
    let [winner, loser] = forks.as_slice() else { panic!("two forks") };
    assert_eq!(winner.read("src/a.txt").expect(200)["content"], "1\n");
    winner.write("src/a.txt", "won\n").expect(200);
    assert_eq!(run(winner, "cat src/a.txt; echo new > src/b.txt")["stdout"], "won\n");
    loser.write("c.txt", "lost\n").expect(200);
    assert_eq!(base.read("src/a.txt").expect(200)["content"], "1\n");
    loser.read("src/b.txt").is(404, "E_NOT_FOUND");

    base.write("src/a.txt", "late\n").is(409, "E_WORKSPACE_FROZEN");
    let upload = base.at("/files/raw?path=late.txt");
    base.send(&upload, &["--request", "PUT"], Some(b"late\n")).is(409, "E_WORKSPACE_FROZEN");
    let late = run(&base, "echo late > late.txt");
    assert_eq!(late["success"], json!(false), "{late}");
    service.operator().delete(&base.at("")).is(409, "E_WORKSPACE_FROZEN");

    let listed = base.get(&base.at("/forks")).expect(200);
    assert_eq!(listed["forks"].as_array().unwrap().len(), 2, "{listed}");
    let changes = winner.get(&winner.at("/changes")).expect(200);
    let expected = json!({
        "changes": [
            { "path": "src/a.txt", "change": "modified" },
            { "path": "src/b.txt", "change": "added" },
        ],
        "total": 2,
    });
    assert_eq!(changes, expected);
    let promoted = winner.post(&winner.at("/promote"), &json!({})).expect(200);
    assert_eq!(promoted["changes"], expected["changes"]);
    assert_eq!(promoted["ended"][0]["id"].as_str(), Some(loser.workspace.as_str()));
    assert_eq!(base.read("src/a.txt").expect(200)["content"], "won\n");
    base.write("src/a.txt", "thawed\n").expect(200);
    assert_eq!(base.get(&base.at("/forks")).expect(200)["forks"], json!([]));
    for gone in [winner, loser] {
        gone.read("src/a.txt").is(404, "E_WORKSPACE_NOT_FOUND");
    }
    let snapshot = promoted["ended"][0]["snapshot"].as_str().unwrap();
    base.post(&base.at(&format!("/snapshots/{snapshot}/restore")), &json!({})).expect(200);
    assert_eq!(base.read("c.txt").expect(200)["content"], "lost\n");
}

#[test]
fn a_fork_is_refused_to_strangers_and_while_a_job_may_write() {
    let service = Service::start();
    let base = service.client();
    base.write("a.txt", "1\n").expect(200);
    let job = json!({ "command": "sleep 60", "run_in_background": true });
    let started = base.post(&base.at("/tools/Bash"), &job).expect(200);
    base.post(&base.at("/forks"), &json!({})).is(409, "E_WORKSPACE_BUSY");
    let id = started["facts"]["shell_id"].as_str();
    let end = json!({ "shell_id": id.unwrap_or_else(|| panic!("{started}")) });
    base.post(&base.at("/tools/KillShell"), &end).expect(200);
    base.post(&base.at("/forks"), &json!({ "count": 0 })).is(422, "E_INVALID_REQUEST");
    let forks = fork(&base, 1);
    let stranger = service.client_for(&new_id(), "read,write,exec");
    stranger.get(&forks[0].at("/changes")).is(403, "E_FORBIDDEN");
    stranger.post(&forks[0].at("/promote"), &json!({})).is(403, "E_FORBIDDEN");
    let reader = service.client_for(&base.workspace, "read");
    reader.get(&forks[0].at("/changes")).expect(200);
    reader.post(&forks[0].at("/promote"), &json!({})).is(403, "E_FORBIDDEN");
    base.post(&base.at("/promote"), &json!({})).is(409, "E_FORK_REFUSED");
    assert_eq!(service.operator().delete(&forks[0].at("")).status, 204);
    base.write("a.txt", "2\n").expect(200);
}
