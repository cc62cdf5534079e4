//! Snapshots over REST, and what becomes of them with their workspace.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::test_environment::Service;

#[test]
fn snapshots_are_taken_compared_restored_and_deleted() {
    let service = Service::start();
    let client = service.client();
    client.write("src/a.txt", "1\n").expect(200);
    let at = |rest: &str| client.at(&format!("/snapshots{rest}"));
    assert_eq!(client.get(&at("")).expect(200)["snapshots"], json!([]));
    let created = client.post(&at(""), &json!({ "name": "baseline" })).expect(200);
    assert_eq!((&created["name"], &created["files"]), (&json!("baseline"), &json!(1)));
    client.post(&at(""), &json!({ "name": "baseline" })).is(409, "E_ALREADY_EXISTS");
    client.post(&at(""), &json!({ "name": "../x" })).is(422, "E_INVALID_ARGUMENTS");
    client.write("src/a.txt", "2\n").expect(200);
    let diff = client.get(&at("/baseline/diff")).expect(200);
    assert_eq!(diff["changes"], json!([{ "path": "src/a.txt", "change": "modified" }]));
    assert!(diff["text"].as_str().unwrap().contains("-1\n+2\n"), "{diff}");
    let plan = client.post(&at("/baseline/restore"), &json!({ "dry_run": true })).expect(200);
    assert_eq!((&plan["changed"], &plan["before"]), (&json!(1), &json!(null)));
    let restored = client.post(&at("/baseline/restore"), &json!({})).expect(200);
    assert_eq!(restored["changes"], plan["changes"]);
    assert_eq!(client.read("src/a.txt").expect(200)["content"], "1\n");
    let before = restored["before"].as_str().unwrap();
    client.post(&at(&format!("/{before}/restore")), &json!({ "paths": ["src"] })).expect(200);
    assert_eq!(client.read("src/a.txt").expect(200)["content"], "2\n");
    client.post(&at("/nope/restore"), &json!({})).is(404, "E_SNAPSHOT_NOT_FOUND");
    client
        .post(&at("/baseline/restore"), &json!({ "paths": ["/etc"] }))
        .is(403, "E_SANDBOX_VIOLATION");
    client.delete(&at("/baseline")).expect(200);
    client.delete(&at("/baseline")).is(404, "E_SNAPSHOT_NOT_FOUND");

    // Another tenant sees none of it.
    let other = service.client_for(&super::test_environment::new_id(), "read,write");
    assert_eq!(
        other.get(&other.at("/snapshots?automatic=true")).expect(200)["automatic"],
        json!(0)
    );
    let reader = service.client_for(&client.workspace, "read");
    reader.get(&at("")).expect(200);
    reader.post(&at(""), &json!({ "name": "x" })).is(403, "E_FORBIDDEN");
}

#[test]
fn a_task_that_may_write_is_preceded_by_a_snapshot() {
    let service = Service::start();
    let client = service.client();
    client.write("a.txt", "1\n").expect(200);
    let steps = json!([{ "action": "shell", "command": "rm a.txt; mkdir b; echo 2 > b/c.txt" }]);
    let done = client.done(&steps);
    assert_eq!((&done["status"], &done["result"]["snapshot"]), (&json!("completed"), &json!("@1")));
    let restored = client.post(&client.at("/snapshots/@1/restore"), &json!({})).expect(200);
    assert_eq!(restored["changed"], 3, "{restored}");
    assert_eq!(client.read("a.txt").expect(200)["content"], "1\n");
    let list = client.query(&client.at("/snapshots"), &[("automatic", "true")]).expect(200);
    let first = list["snapshots"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(first["reason"], "automatic");
    assert!(first["description"].as_str().unwrap().starts_with("before task "), "{first}");
    // Nothing has changed since the restore but what it put back: one more, and then the same.
    let idle = json!([{ "action": "shell", "command": "true" }]);
    let second = client.done(&idle)["result"]["snapshot"].clone();
    assert_eq!(client.done(&idle)["result"]["snapshot"], second);
    // A task that only reads needs none.
    let reading = client.done(&json!([{ "action": "read_file", "path": "a.txt" }]));
    assert_eq!(reading["result"]["snapshot"], json!(null), "{reading}");
}

#[test]
fn a_frozen_workspace_needs_no_snapshot_before_a_task() {
    let service = Service::start();
    let client = service.client();
    client.write("a.txt", "1\n").expect(200);
    client.post(&client.at("/forks"), &json!({ "count": 1 })).expect(200);
    let done = client.done(&json!([{ "action": "shell", "command": "cat a.txt" }]));
    assert_eq!((&done["status"], &done["result"]["snapshot"]), (&json!("completed"), &json!(null)));
}

#[test]
fn a_command_gets_a_snapshot_on_request() {
    let service = Service::start();
    let client = service.client();
    client.write("a.txt", "1\n").expect(200);
    let exec = json!({ "command": "rm a.txt", "snapshot": true });
    let done = client.post(&client.at("/exec"), &exec).expect(200);
    assert_eq!((&done["exit_code"], &done["snapshot"]), (&json!(0), &json!("@1")));
    client.post(&client.at("/snapshots/@1/restore"), &json!({})).expect(200);
    assert_eq!(client.read("a.txt").expect(200)["content"], "1\n");
    assert_eq!(client.exec("true").expect(200)["snapshot"], json!(null));
}

#[test]
fn the_count_of_what_is_used_follows_a_restore() {
    let service = Service::start();
    let client = service.client();
    client.write("large.txt", &"x".repeat(3 << 20)).expect(200);
    let used = || {
        let shown = client.get(&client.at("")).expect(200);
        shown["usage_bytes"].as_u64().unwrap_or_else(|| panic!("{shown}"))
    };
    let full = used();
    assert!(full > 3 << 20);
    client.post(&client.at("/snapshots"), &json!({ "name": "s" })).expect(200);
    client.run("rm large.txt");
    let little = used();
    assert!(little < 1 << 20);
    client.post(&client.at("/snapshots/s/restore"), &json!({})).expect(200);
    assert!(used() >= full - 4096, "{} {full}", used());
    client.post(&client.at("/tools/Delete"), &json!({ "path": "large.txt" })).expect(200);
}

#[test]
fn the_server_deletes_what_the_policy_does_not_keep_whether_or_not_it_is_used() {
    let mut service = Service::start();
    let client = service.client();
    for number in 1..=3 {
        client.write("a.txt", &format!("{number}\n")).expect(200);
        client.done(&json!([{ "action": "shell", "command": "true" }]));
    }
    let workspace = client.workspace.clone();
    let store = service.test_env.path("data/workspaces/.carrel/snapshots").join(&workspace);
    let records = || {
        let names = std::fs::read_dir(&store).unwrap().map(|one| one.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("snapshot-")).count()
    };
    assert_eq!(records(), 3);
    service.terminate();
    service.test_env.policy("snapshots.keep = 1\n");
    let file = service.test_env.path("policy.toml").display().to_string();
    service.set("CARREL_POLICY", &file);
    service.begin_again();
    crate::eventually("the old ones are gone", || records() == 1);
}
