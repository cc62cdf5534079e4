//! Servers and workers that share a database: placement, requests passed on, things that go away.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use carrel_testkit::servers::{RedisServer, TestAuthority};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::cluster::{Cluster, holds, until_ready};
use super::test_environment::{Client, assert_whole};
use crate::eventually;
use crate::test_environment::Mark;

type Variables<'a> = &'a [(&'a str, &'a str)];

#[test]
fn variables_that_do_not_go_together_are_refused_with_the_way_out() {
    let test_env = crate::test_environment::TestEnvironment::usual();
    let table: [(&[&str], Variables, &[&str]); 6] = [
        (&["worker"], &[], &["DATABASE_URL", "carrel serve"]),
        (&["worker"], &[("DATABASE_URL", "postgres://x/y")], &["REDIS_URL"]),
        (&["serve"], &[("REDIS_URL", "redis://x")], &["DATABASE_URL", "unset REDIS_URL"]),
        (&["serve", "--no-worker"], &[], &["DATABASE_URL"]),
        (
            &["worker"],
            &[
                ("DATABASE_URL", "postgres://x/y"),
                ("REDIS_URL", "redis://x"),
                ("WORKER_BIND_HOST", "0.0.0.0"),
            ],
            &["WORKER_INTERNAL_TOKEN"],
        ),
        (
            &["worker"],
            &[("DATABASE_URL", "postgres://x/y"), ("REDIS_URL", "http://:secret@x")],
            &["REDIS_URL", "redis://"],
        ),
    ];
    for (arguments, variables, expected) in table {
        let mut command = test_env.carrel();
        command.args(arguments).envs(variables.iter().copied());
        let run = crate::Run::of(command);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.stderr);
        for word in expected {
            assert!(run.stderr.contains(word), "{arguments:?}: {}", run.stderr);
        }
        assert!(!run.stderr.contains("secret"), "{}", run.stderr);
    }
}

#[test]
fn redis_is_talked_to_encrypted_if_an_authority_vouches_for_it() {
    let (authority, other) = (TestAuthority::new(), TestAuthority::new());
    let mut cluster = Cluster::with(RedisServer::start_encrypted(&authority, "localhost"));
    let trusted = authority.certificate().display().to_string();
    let trusted = [("SSL_CERT_FILE", trusted.as_str())];
    let api = cluster.api(&trusted);
    let _worker = cluster.worker("one", &trusted);
    let client = api.client();
    assert_eq!(client.finished(&client.submit_command("true"))["status"], "completed");
    // Another authority, another name and no encryption at all are each no way to it.
    let strange = other.certificate().display().to_string();
    let address = cluster.redis.url();
    let (by_number, plain) =
        (address.replace("localhost", "127.0.0.1"), address.replace("rediss:", "redis:"));
    for (variable, told) in [
        (("SSL_CERT_FILE", strange.as_str()), "certificate"),
        (("REDIS_URL", by_number.as_str()), "certificate"),
        (("REDIS_URL", plain.as_str()), ""),
    ] {
        let server = cluster.serve(&["--no-worker"], &[trusted[0], variable]);
        // A server that has not tried yet is degraded as well, for another reason.
        eventually(&format!("the reason is told: {variable:?}"), || {
            until_ready(&server.stranger(), "degraded").to_string().contains(told)
        });
    }
    cluster.redis.kill();
    until_ready(&api.stranger(), "degraded");
    cluster.redis.restart();
    until_ready(&api.stranger(), "ready");
    assert_eq!(client.finished(&client.submit_command("true"))["status"], "completed");
}

#[test]
fn workspaces_are_placed_where_there_are_fewest_and_stay_there() {
    let cluster = Cluster::start();
    let api = cluster.api(&[]);
    let mut workers = ["one", "two"].map(|volume| cluster.worker(volume, &[]));
    let held = |name: &str| {
        let entries = std::fs::read_dir(cluster.volume(name)).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().len() == 36).count()
    };
    eventually("both workers are known, and hold as many", || {
        // Each new workspace is placed by its first request.
        api.client().write("f", "x").status == 200 && held("one") > 0 && held("one") == held("two")
    });
    let clients: Vec<_> = (0..6).map(|_| api.client()).collect();
    for client in &clients {
        client.write("f", "x").expect(200);
    }
    let here = |name: &str, client: &Client| holds(&cluster.volume(name), &client.workspace);
    let counts = ["one", "two"].map(|name| clients.iter().filter(|one| here(name, one)).count());
    assert_eq!(counts, [3, 3]);
    // Tasks run where the workspace is, whichever worker hears of them first.
    for client in &clients {
        let task = client.finished(&client.submit_command("cat f; pwd >> where"));
        assert_eq!(task["status"], "completed", "{task}");
        let worker = if here("one", client) { &workers[0].id } else { &workers[1].id };
        assert_eq!(task["worker_id"], *worker, "{task}");
    }
    // A workspace whose worker is gone is not placed anew: it is said where it is missing.
    workers[0].terminate();
    let lost = clients.iter().find(|client| here("one", client)).unwrap();
    eventually("nobody answers for it", || lost.read("f").status == 503);
    assert_eq!(lost.read("f").refused(), (503, "E_WORKER_UNREACHABLE".to_owned()));
    let shown = lost.get(&lost.at("")).expect(200);
    assert_eq!(shown["state"], "unreachable");
    let other = clients.iter().find(|client| here("two", client)).unwrap();
    assert_eq!(other.read("f").expect(200)["content"], "x");
    let waits = lost.submit_command("cat f");
    workers[0] = cluster.worker("one", &[]);
    assert_eq!(lost.finished(&waits)["status"], "completed");
    assert_eq!(lost.read("f").expect(200)["content"], "x");
}

/// What each route that needs the directory answers, without what differs by time and place.
fn each_route(client: &Client) -> Vec<(&'static str, u16, Value)> {
    let bare = |reply: super::test_environment::Reply| {
        let mut body: Value = serde_json::from_str(&reply.body).unwrap_or(json!(reply.body));
        forget(&mut body);
        (reply.status, body)
    };
    let mut told = Vec::new();
    let mut tell = |name, reply| {
        let (status, body) = bare(reply);
        told.push((name, status, body));
    };
    tell("write", client.write("src/a.txt", "one\ntwo\n"));
    tell(
        "write again",
        client.post_once(&client.at("/files/write"), "k", &json!({ "path": "b", "content": "b" })),
    );
    tell(
        "write repeated",
        client.post_once(&client.at("/files/write"), "k", &json!({ "path": "b", "content": "b" })),
    );
    tell(
        "write mismatch",
        client.post_once(&client.at("/files/write"), "k", &json!({ "path": "c", "content": "b" })),
    );
    tell("list", client.query(&client.at("/files"), &[("path", "src")]));
    tell("list nothing", client.query(&client.at("/files"), &[("path", "nowhere")]));
    tell("content", client.read("src/a.txt"));
    tell("content sensitive", client.read(".ssh/id"));
    tell("content outside", client.read("../x"));
    tell("content absolute", client.read("/etc/passwd"));
    tell("raw", client.query(&client.at("/files/raw"), &[("path", "src/a.txt")]));
    let upload = client.at("/files/raw?path=up.bin");
    tell("raw upload", client.send(&upload, &["--request", "PUT"], Some(b"\x00\x01two")));
    tell("grep", client.query(&client.at("/files/grep"), &[("pattern", "t.o"), ("path", "src")]));
    tell("grep invalid", client.query(&client.at("/files/grep"), &[("pattern", "(")]));
    tell("exec", client.exec("echo out; echo err >&2; exit 3"));
    tell("exec refused", client.exec("sudo true"));
    tell("exec invalid", client.post(&client.at("/exec"), &json!({ "command": "" })));
    tell(
        "exec network",
        client.post(&client.at("/exec"), &json!({ "command": "true", "network": "full" })),
    );
    tell("git", client.post(&client.at("/git"), &json!({ "operation": "status" })));
    tell("git unknown", client.post(&client.at("/git"), &json!({ "operation": "explode" })));
    tell("tool", client.post(&client.at("/tools/Read"), &json!({ "file_path": "src/a.txt" })));
    tell("tool unknown", client.post(&client.at("/tools/Odd"), &json!({})));
    tell("usage", client.get(&client.at("/usage")));
    tell("show", client.get(&client.at("")));
    tell("remove refused", client.delete(&client.at("")));
    told
}

/// Forgets what differs between two runs that do the same.
fn forget(value: &mut Value) {
    const DIFFERENT: [&str; 12] = [
        "modified_at",
        "modified",
        "created_at",
        "as_of",
        "id",
        "name",
        "cost",
        "duration_ms",
        "usage_bytes",
        "files",
        "enforced",
        "not_enforced",
    ];
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !DIFFERENT.contains(&name.as_str()));
            fields.values_mut().for_each(forget);
        }
        Value::Array(values) => values.iter_mut().for_each(forget),
        Value::String(text) => *text = mask_ids(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces ids in a text.
fn mask_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() == 36 && word.matches('-').count() == 4;
    let words = text.split(|letter: char| !(letter.is_ascii_hexdigit() || letter == '-'));
    words.filter(|word| is_id(word)).fold(text.to_owned(), |text, id| text.replace(id, "ID"))
}

#[test]
fn every_route_answers_the_same_wherever_the_workspace_lies() {
    let alone = super::test_environment::Service::start();
    let expected = each_route(&alone.client());
    let cluster = Cluster::start();
    let api = cluster.api(&[]);
    let _worker = cluster.worker("one", &[]);
    let client = api.client();
    eventually("the worker is known", || client.write("x", "x").status == 200);
    let client = api.client();
    let found = each_route(&client);
    assert!(holds(&cluster.volume("one"), &client.workspace));
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
    // And it goes where it lies.
    let admin = api.client_for(&client.workspace, "admin");
    assert_eq!(admin.delete(&client.at("")).status, 204);
    assert!(!holds(&cluster.volume("one"), &client.workspace));
    assert_eq!(client.get("/api/tasks").expect(200)["total"], 0);
}

#[test]
fn an_agent_works_in_a_workspace_wherever_it_lies() {
    let cluster = Cluster::start();
    let api = cluster.api(&[]);
    let _workers = [cluster.worker("shared", &[]), cluster.worker("shared", &[])];
    let client = api.client();
    eventually("a worker is known", || client.write("x", "x").status == 200);
    let agent = client.agent();
    // A session remembers what was read.
    let wrote = agent.call("Write", &json!({ "file_path": "a.txt", "content": "one\n" }));
    assert_eq!(wrote["isError"], false, "{wrote}");
    let edit = json!({ "file_path": "a.txt", "old_string": "one", "new_string": "two" });
    assert_eq!(agent.call("Edit", &edit)["isError"], false);
    assert_eq!(client.read("a.txt").expect(200)["content"], "two\n");
    let listed = client.stateless("tools/list", json!({}));
    assert!(listed.body.contains("workspace_exec"), "{listed:?}");
    // With a token for all of them the server would have to work here, where nothing lies.
    let operator = api.operator().agent();
    let read = json!({ "file_path": "a.txt", "workspace": client.workspace });
    let refused = operator.call("Read", &read);
    assert_eq!(refused["structuredContent"]["error"]["code"], "E_WORKER_UNREACHABLE", "{refused}");
    assert!(!holds(&api.test_env.path("data").join("workspaces"), &client.workspace));
}

#[test]
fn a_client_that_goes_away_ends_its_command_on_the_other_machine() {
    let cluster = Cluster::start();
    let api = cluster.api(&[]);
    let _worker = cluster.worker("one", &[]);
    let client = api.client();
    eventually("the worker is known", || client.write("x", "x").status == 200);
    let mark = Mark::new();
    let body = json!({ "command": format!("sleep {}", mark.0) }).to_string();
    let asking = std::thread::spawn({
        let (client, path) = (client.clone(), client.at("/exec"));
        move || client.try_send(&path, &["--max-time", "2"], Some(body.as_bytes()))
    });
    eventually("it runs", || !mark.alive().is_empty());
    assert!(asking.join().unwrap().is_err(), "the client gave up");
    let begun = Instant::now();
    eventually("nothing is left of it", || mark.alive().is_empty());
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[test]
fn events_and_the_wish_for_an_end_cross_processes_with_and_without_redis() {
    let mut cluster = Cluster::start();
    let apis = [cluster.api(&[]), cluster.api(&[])];
    let _worker = cluster.worker("one", &[]);
    let client = apis[0].client();
    let other = Client { address: apis[1].address, ..client.clone() };
    for away in [false, true] {
        if away {
            cluster.redis.kill();
            until_ready(&client, "degraded");
        }
        let mark = Mark::new();
        let task = client.submit_command(&format!("echo begun; sleep {}", mark.0));
        let open = other.open_events(&task);
        eventually("it runs", || !mark.alive().is_empty());
        let begun = Instant::now();
        let said = other.send(&format!("/api/tasks/{task}/cancel"), &["--request", "POST"], None);
        let (took, said) = (begun.elapsed(), said.json());
        // With the longest way there, the worker asks every 700 ms.
        assert!(took < Duration::from_millis(1500), "away: {away}, {took:?}");
        assert_eq!(said["status"], "cancelled", "away: {away}, {said}");
        assert!(mark.alive().is_empty());
        assert!(open.ended().contains(r#""status":"cancelled""#));
        assert_whole(&client.events(&task, 0));
    }
}

#[test]
fn a_redis_that_dies_stops_nothing_and_is_found_again() {
    let mut cluster = Cluster::start();
    let api = cluster.api(&[]);
    let _worker = cluster.worker("one", &[]);
    let client = api.client();
    assert_eq!(client.finished(&client.submit_command("true"))["status"], "completed");
    cluster.redis.kill();
    let said = until_ready(&client, "degraded");
    assert_eq!((&said["store"], &said["queue"]), (&json!("ok"), &json!("E_QUEUE_UNAVAILABLE")));
    assert!(said["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{said}");
    let begun = Instant::now();
    let task = client.submit_command("true");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(client.finished(&task)["status"], "completed");
    cluster.redis.restart();
    until_ready(&client, "ready");
    let begun = Instant::now();
    assert_eq!(client.finished(&client.submit_command("true"))["status"], "completed");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[test]
fn submissions_fail_while_redis_is_away_if_the_operator_wants_that() {
    let mut cluster = Cluster::start();
    let api = cluster.api(&[("CARREL_ON_ENQUEUE_FAILURE", "fail")]);
    let client = api.client();
    client.get(&client.at("")).expect(200);
    cluster.redis.kill();
    until_ready(&client, "degraded");
    let body = json!({
        "steps": [{ "action": "shell", "command": "true" }], "idempotency_key": "k"
    });
    let refused = client.post("/api/tasks/submit", &body);
    assert_eq!(refused.refused(), (503, "E_QUEUE_UNAVAILABLE".to_owned()));
    assert!(refused.body.contains("Redis enqueue failed: "), "{}", refused.body);
    assert!(refused.header("retry-after").is_some());
    let failed = refused.json()["error"]["detail"]["task_id"].as_str().unwrap().to_owned();
    let task = client.task(&failed);
    assert_eq!(task["status"], "failed");
    let why = task["error_message"].as_str().unwrap();
    assert!(why.starts_with("Redis enqueue failed: "), "{why}");
    cluster.redis.restart();
    until_ready(&client, "ready");
    let taken = client.submit(&body);
    assert_ne!(taken, failed, "the key is free again");
    assert_eq!(client.submit(&body), taken);
    let _worker = cluster.worker("one", &[]);
    assert_eq!(client.finished(&taken)["status"], "completed");
}

#[test]
fn a_server_waits_for_a_database_that_is_away_and_gets_over_its_death() {
    let mut cluster = Cluster::start();
    cluster.postgres.kill();
    let api = cluster.serve(&[], &[]);
    let client = api.client();
    assert_eq!(client.get("/healthz").status, 200);
    let said = until_ready(&client, "not_ready");
    assert_eq!(said["store"], "E_STORE_UNAVAILABLE");
    let refused = client
        .post("/api/tasks/submit", &json!({ "steps": [{ "action": "shell", "command": "true" }] }));
    assert_eq!(refused.refused(), (503, "E_STORE_UNAVAILABLE".to_owned()));
    cluster.restart_postgres();
    until_ready(&client, "ready");
    assert_eq!(client.finished(&client.submit_command("true"))["status"], "completed");
    // A command that runs while the database dies goes on, and its end is written when it is back.
    let mark = Mark::new();
    let task = client.submit_command(&format!("echo {}; sleep 3; echo over", mark.0));
    client.until(&task, |task| task["status"] == "running");
    cluster.postgres.kill();
    // The length of the outage, shorter than a lease.
    std::thread::sleep(Duration::from_millis(500));
    cluster.restart_postgres();
    until_ready(&client, "ready");
    let task = client.finished(&task);
    assert_eq!((&task["status"], &task["attempt"]), (&json!("completed"), &json!(1)), "{task}");
}

#[test]
fn a_database_without_tables_is_said_to_need_them() {
    let cluster = Cluster::start();
    let api = cluster.serve(&["--no-worker"], &[("CARREL_MIGRATE", "off")]);
    let said = until_ready(&api.stranger(), "not_ready");
    assert!(said["reason"].as_str().unwrap().contains("carrel migrate"), "{said}");
}

#[test]
fn the_tasks_of_a_killed_worker_are_taken_over_on_the_same_volume() {
    let cluster = Cluster::start();
    let api = cluster.api(&[]);
    let mut workers = BTreeMap::new();
    for _ in 0..2 {
        let worker = cluster.worker("shared", &[]);
        workers.insert(worker.id.clone(), worker);
    }
    let client = api.client();
    let line = "echo begun >> log; if [ $(wc -l < log) = 1 ]; then sleep 100; fi; echo over";
    let task = client.submit_command(line);
    let first =
        client.until(&task, |task| task["status"] == "running" && task["worker_id"].is_string());
    eventually("it has begun", || client.read("log").status == 200);
    let id = first["worker_id"].as_str().unwrap();
    workers.get_mut(id).unwrap().kill();
    let begun = Instant::now();
    let done = client.finished(&task);
    assert_eq!((&done["status"], &done["attempt"]), (&json!("completed"), &json!(2)), "{done}");
    assert_ne!(done["worker_id"], id);
    // Three seconds of silence, and a pause before the next attempt.
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_whole(&client.events(&task, 0));
    // Requests find the other one, too.
    assert_eq!(client.read("log").expect(200)["content"], "begun\nbegun\n");
}

#[test]
fn a_worker_that_stops_gives_its_tasks_back_within_its_time() {
    let cluster = Cluster::start();
    let api = cluster.api(&[]);
    let mut first = cluster.worker("shared", &[("CARREL_DRAIN_SECONDS", "1")]);
    let client = api.client();
    let line = "echo begun >> log; if [ $(wc -l < log) = 1 ]; then sleep 100; fi";
    let task = client.submit_command(line);
    client.until(&task, |task| task["status"] == "running");
    eventually("it has begun", || client.read("log").status == 200);
    let _second = cluster.worker("shared", &[]);
    let took = first.terminate();
    assert!(took > Duration::from_millis(900) && took < Duration::from_secs(5), "{took:?}");
    let begun = Instant::now();
    let done = client.finished(&task);
    assert_eq!(done["status"], "completed", "{done}");
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "no lease has to end first: {:?}",
        begun.elapsed()
    );
}

#[test]
fn a_server_alone_with_a_database_needs_no_redis() {
    let cluster = Cluster::start();
    let api = cluster.serve(&[], &[("REDIS_URL", "")]);
    let client = api.client();
    until_ready(&client, "ready");
    for _ in 0..3 {
        let begun = Instant::now();
        assert_eq!(client.finished(&client.submit_command("true"))["status"], "completed");
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    }
    client.write("f", "x").expect(200);
}

#[test]
fn a_request_sent_to_two_processes_at_once_is_carried_out_once() {
    let cluster = Cluster::start();
    let servers = [cluster.api(&[]), cluster.api(&[])];
    let shared = [cluster.worker("one", &[]), cluster.worker("one", &[])];
    let client = servers[0].client();
    eventually("a worker is known", || client.write("f", "x").status == 200);
    // Both servers, and both workers of the volume, as a balancer and a client that gave up might do it.
    let interfaces = |client: &Client| {
        let servers = servers.iter().map(|server| server.stranger().address);
        servers.map(|address| Client { address, ..client.clone() }).collect::<Vec<_>>()
    };
    let at_once = |clients: &[Client], key: &str, path: &str, body: &Value| -> Vec<Value> {
        std::thread::scope(|scope| {
            let asking: Vec<_> = (0..8)
                .map(|number| {
                    let client = &clients[number % clients.len()];
                    scope.spawn(move || client.post_once(path, key, body).json())
                })
                .collect();
            asking.into_iter().map(|asked| asked.join().unwrap()).collect()
        })
    };
    let command = json!({ "command": "sleep 1; echo x >> made" });
    let answers = at_once(&interfaces(&client), "e", &client.at("/exec"), &command);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!(client.run("cat made"), "x\n");
    let operator = servers[0].operator();
    let before = operator.get("/api/workspaces").json();
    let named = json!({ "name": "new" });
    let answers = at_once(&interfaces(&operator), "w", "/api/workspaces", &named);
    assert!(answers.iter().all(|answer| answer["id"] == answers[0]["id"]), "{answers:?}");
    let count = |listed: &Value| listed["workspaces"].as_array().unwrap().len();
    assert_eq!(count(&operator.get("/api/workspaces").json()), count(&before) + 1);
    drop(shared);
}
