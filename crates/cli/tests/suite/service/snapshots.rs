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
