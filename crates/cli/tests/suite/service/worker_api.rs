//! The endpoint of a worker.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::cluster::{Cluster, TOKEN, WorkerProcess};
use super::test_environment::{Client, Reply, new_id};
use crate::eventually;
use crate::test_environment::Mark;

const SHOWN: &str = "X-Internal-Token: internal-token-of-the-tests";

/// Asks a worker with the internal token.
fn ask(worker: &WorkerProcess, path: &str, body: Option<&Value>) -> Reply {
    assert!(SHOWN.ends_with(TOKEN));
    let body = body.map(Value::to_string);
    worker.client().send(path, &["--header", SHOWN], body.as_deref().map(str::as_bytes))
}

#[test]
fn a_worker_says_how_it_is_to_anybody_and_the_rest_to_those_with_the_token() {
    let cluster = Cluster::start();
    let api = cluster.api(&[]);
    let worker = cluster.worker("one", &[("WORKER_CONCURRENCY", "2")]);
    let health = worker.client().get("/health").expect(200);
    assert_eq!(health["worker_id"], worker.id);
    assert_eq!((&health["active_tasks"], &health["concurrency"]), (&json!(0), &json!(2)));
    let volume = std::fs::canonicalize(cluster.volume("one")).unwrap();
    assert_eq!(health["volume_path"], volume.to_str().unwrap());
    assert!(
        health["sandbox"]["guarantees"].as_array().is_some_and(|all| !all.is_empty()),
        "{health}"
    );
    eventually("it is well", || worker.client().get("/health").json()["status"] == "healthy");
    // Servers and probes reach it under any name.
    let words = ["--header", "Host: evil.example", "--header", "Origin: http://evil.example"];
    worker.client().send("/health", &words, None).expect(200);

    let client = api.client();
    eventually("the worker is known", || client.write("a.txt", "one\n").status == 200);
    let files = format!("/workspaces/{}/files", client.workspace);
    for words in
        [&[][..], &["--header", "X-Internal-Token: wrong"], &["--header", "X-Internal-Token:"]]
    {
        let refused = worker.client().send(&files, words, None);
        assert_eq!(refused.refused(), (401, "E_UNAUTHENTICATED".to_owned()), "{words:?}");
    }
    // A token of the service opens nothing here, and who asks is believed with the internal one only.
    let stranger = Client { address: worker.address, ..client.clone() };
    assert_eq!(stranger.get(&files).status, 401);
    assert_eq!(
        worker.client().send(&files, &["--header", "X-Carrel-Caller: e30"], None).status,
        401
    );

    let at = |rest: &str| format!("/workspaces/{}{rest}", client.workspace);
    let listing = ask(&worker, &at("/files"), None).expect(200);
    let foreign_host = ["--header", SHOWN, "--header", "Host: evil.example"];
    worker.client().send(&at("/files"), &foreign_host, None).expect(200);
    let names: Vec<_> =
        listing["entries"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert!(names.contains(&&json!("a.txt")), "{listing}");
    let table = [
        (at("/files/content?path=a.txt"), None, 200),
        (at("/files/content?path=.ssh/id"), None, 403),
        (at("/files/content?path=../x"), None, 403),
        (at("/files/content?path=none"), None, 404),
        (at("/files/grep?pattern=one"), None, 200),
        (at("/files/write"), Some(json!({ "path": "b", "content": "x" })), 200),
        (at("/exec"), Some(json!({ "command": "cat a.txt" })), 200),
        (at("/exec"), Some(json!({ "command": "sudo true" })), 403),
        (at("/exec"), Some(json!([1])), 422),
        (at("/git"), Some(json!({ "operation": "explode" })), 422),
        (format!("/workspaces/{}/files", new_id()), None, 404),
        ("/workspaces/..%2Fetc/files".to_owned(), None, 422),
        ("/api/tasks".to_owned(), None, 404),
    ];
    for (path, body, status) in table {
        let reply = ask(&worker, &path, body.as_ref());
        assert_eq!(reply.status, status, "{path}: {reply:?}");
    }
    let big = "x".repeat((2 << 20) + 1);
    client.write("big", &big).expect(200);
    assert_eq!(ask(&worker, &at("/files/content?path=big"), None).status, 413);
}

#[test]
fn work_over_http_shares_the_places_of_tasks_and_looking_does_not() {
    let cluster = Cluster::start();
    let api = cluster.api(&[]);
    let worker = cluster.worker("one", &[("WORKER_CONCURRENCY", "1")]);
    let client = api.client();
    eventually("the worker is known", || client.write("a", "x").status == 200);
    // A worker that waits for tasks leaves its place to requests.
    assert_eq!(client.run("echo hi"), "hi\n");
    let mark = Mark::new();
    let task = client.submit_command(&format!("sleep {}", mark.0));
    eventually("it runs", || !mark.alive().is_empty());
    assert_eq!(worker.client().get("/health").json()["active_tasks"], 1);
    let refused = client.exec("true");
    assert_eq!(refused.refused(), (429, "E_OVERLOADED".to_owned()));
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert_eq!(client.read("a").expect(200)["content"], "x");
    client.send(&format!("/api/tasks/{task}/cancel"), &["--request", "POST"], None);
    eventually("there is a place again", || client.exec("true").status == 200);
    let waits = client.submit_command("true");
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(client.finished(&waits)["status"], "completed");
}

#[test]
fn without_a_token_a_worker_tells_its_health_and_nothing_else() {
    let cluster = Cluster::start();
    let worker = cluster.worker("one", &[("WORKER_INTERNAL_TOKEN", "")]);
    assert_eq!(worker.client().get("/health").status, 200);
    let path = format!("/workspaces/{}/files", new_id());
    for words in [&[][..], &["--header", "X-Internal-Token;"], &["--header", "X-Internal-Token: x"]]
    {
        assert_eq!(worker.client().send(&path, words, None).status, 401, "{words:?}");
    }
}
