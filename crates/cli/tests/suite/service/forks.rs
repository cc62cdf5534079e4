//! Forks over REST: made with a token for the base, used as workspaces, promoted, and gone.

use std::time::{Duration, Instant};

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
    assert_eq!(listed["idle_seconds"], json!(3600));
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

#[test]
fn a_refused_promotion_leaves_jobs_forks_and_base_as_they_are() {
    let service = Service::start();
    let base = service.client();
    base.write("a.txt", "1\n").expect(200);
    let forks = fork(&base, 2);
    forks[0].write("a.txt", "mine\n").expect(200);
    let job = json!({ "command": "sleep 60", "run_in_background": true });
    let started = forks[1].post(&forks[1].at("/tools/Bash"), &job).expect(200);
    // Past the server, as an editor does.
    let path = service.test_env.path("data/workspaces").join(&base.workspace).join("a.txt");
    std::fs::write(path, "by an editor\n").unwrap();
    let refused = forks[0].post(&forks[0].at("/promote"), &json!({}));
    refused.is(409, "E_FORK_CONFLICT");
    let id = started["facts"]["shell_id"].as_str().unwrap();
    let output = json!({ "shell_id": id });
    let shown = forks[1].post(&forks[1].at("/tools/BashOutput"), &output).expect(200);
    assert!(shown.to_string().contains("running"), "{shown}");
    assert_eq!(forks[0].read("a.txt").expect(200)["content"], "mine\n");
    assert_eq!(base.read("a.txt").expect(200)["content"], "by an editor\n");
    assert_eq!(base.get(&base.at("/forks")).expect(200)["forks"].as_array().unwrap().len(), 2);
    let listed = base.get(&base.at("/snapshots?automatic=true")).expect(200);
    assert_eq!(listed["automatic"], json!(0), "{listed}");
}

#[test]
fn a_failed_making_of_forks_leaves_neither_rows_nor_a_frozen_base() {
    let service = Service::start();
    let base = service.client();
    base.write("a.txt", "1\n").expect(200);
    let first = fork(&base, 1);
    assert_eq!(service.operator().delete(&first[0].at("")).status, 204);
    // A plain file stands where the second fork would be: the first one of the request is taken back.
    let second = {
        let made = fork(&base, 2);
        for one in &made {
            assert_eq!(service.operator().delete(&one.at("")).status, 204);
        }
        made[1].workspace.clone()
    };
    let path = service.test_env.path("data/workspaces").join(second);
    std::fs::write(&path, "in the way").unwrap();
    let refused = base.post(&base.at("/forks"), &json!({ "count": 2 }));
    assert_ne!(refused.status, 200, "{refused:?}");
    assert_eq!(base.get(&base.at("/forks")).expect(200)["forks"], json!([]));
    first[0].read("a.txt").is(404, "E_WORKSPACE_NOT_FOUND");
    base.write("a.txt", "not frozen\n").expect(200);
    std::fs::remove_file(path).unwrap();
    assert_eq!(fork(&base, 2).len(), 2);
}

/// Waits until something is so.
fn eventually(mut is_so: impl FnMut() -> bool, what: &str) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_a_killed_server_left_of_forks_is_removed_by_the_next() {
    let mut service = Service::start();
    let base = service.client();
    base.write("a.txt", "1\n").expect(200);
    let forks = fork(&base, 3);
    service.kill();
    // As a kill leaves it between row and record, between record and directory, and in a removal.
    let root = service.test_env.path("data/workspaces");
    let own = |rest: String| root.join(".carrel").join(rest);
    let [row_only, half_made, whole] = &forks[..] else { panic!("three forks") };
    for fork in [row_only, half_made] {
        std::fs::remove_dir_all(root.join(&fork.workspace)).unwrap();
        std::fs::remove_dir_all(own(format!("forks/{}", fork.workspace))).unwrap();
    }
    std::fs::remove_file(own(format!("records/{}.json", row_only.workspace))).unwrap();
    let record = own(format!("records/{}.json", half_made.workspace));
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replace("\"ready\"", "\"creating\"")).unwrap();
    service.begin_again();
    let at = |client: &Client| Client { address: service.address, ..client.clone() };
    let (base, whole) = (at(&base), at(whole));
    let listed = || base.get(&base.at("/forks")).expect(200)["forks"].as_array().unwrap().len();
    eventually(|| listed() == 1, "what was left of forks stays");
    for gone in [row_only, half_made] {
        at(gone).read("a.txt").is(404, "E_WORKSPACE_NOT_FOUND");
    }
    assert_eq!(whole.read("a.txt").expect(200)["content"], "1\n");
    assert_eq!(service.operator().delete(&whole.at("")).status, 204);
    base.write("a.txt", "thawed\n").expect(200);
    assert_eq!(fork(&base, 3).len(), 3);
}

#[test]
fn a_fork_whose_row_is_lost_ends_at_the_start_and_its_work_is_a_snapshot() {
    let mut service = Service::start();
    let base = service.client();
    base.write("a.txt", "1\n").expect(200);
    let forks = fork(&base, 1);
    forks[0].write("a.txt", "mine\n").expect(200);
    service.kill();
    let database = service.test_env.path("data/carrel.db");
    let statement = "DELETE FROM workspaces WHERE name LIKE '%fork 1'";
    let script =
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()";
    let done = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(database)
        .arg(statement)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    service.begin_again();
    let base = Client { address: service.address, ..base.clone() };
    let thawed = || base.write("b.txt", "x\n").status == 200;
    eventually(thawed, "the base stays frozen");
    let snapshot = format!("fork-{}", forks[0].workspace);
    base.post(&base.at(&format!("/snapshots/{snapshot}/restore")), &json!({})).expect(200);
    assert_eq!(base.read("a.txt").expect(200)["content"], "mine\n");
}

#[test]
fn a_fork_without_requests_ends_and_one_with_a_job_does_not() {
    let test_env = crate::test_environment::TestEnvironment::usual();
    let [_, policy] = test_env.policy("[forks]\nidle = \"2s\"\n");
    let service = Service::start_with(&[("CARREL_POLICY", &policy)]);
    let base = service.client();
    base.write("a.txt", "1\n").expect(200);
    let forks = fork(&base, 2);
    let [idle, busy] = &forks[..] else { panic!("two forks") };
    idle.write("a.txt", "mine\n").expect(200);
    let job = json!({ "command": "sleep 600", "run_in_background": true });
    let started = busy.post(&busy.at("/tools/Bash"), &job).expect(200);
    let names = || {
        let listed = base.get(&base.at("/forks")).expect(200);
        let all = listed["forks"].as_array().unwrap().iter();
        all.map(|one| one["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    eventually(|| names() == [busy.workspace.clone()], "the idle fork stays");
    idle.read("a.txt").is(404, "E_WORKSPACE_NOT_FOUND");
    let end = json!({ "shell_id": started["facts"]["shell_id"] });
    busy.post(&busy.at("/tools/KillShell"), &end).expect(200);
    eventually(|| names().is_empty(), "the fork whose job has ended stays");
    base.write("a.txt", "thawed\n").expect(200);
    let snapshot = format!("fork-{}", idle.workspace);
    base.post(&base.at(&format!("/snapshots/{snapshot}/restore")), &json!({})).expect(200);
    assert_eq!(base.read("a.txt").expect(200)["content"], "mine\n");
    let events = std::fs::read_to_string(service.test_env.path("data/events.jsonl")).unwrap();
    assert_eq!(events.matches("lifecycle.workspace.fork_expired").count(), 2, "{events}");
}

#[test]
fn forks_are_compared_with_each_other_and_as_a_patch() {
    let service = Service::start();
    let base = service.client();
    base.write("a.txt", "1\n").expect(200);
    let forks = fork(&base, 2);
    forks[0].write("a.txt", "2\n").expect(200);
    forks[1].write("a.txt", "3\n").expect(200);
    let at = forks[0].at("/changes");
    let other = forks[1].workspace.as_str();
    let changes = forks[0].query(&at, &[("against", other), ("patch", "true")]).expect(200);
    assert_eq!(changes["changes"], json!([{ "path": "a.txt", "change": "modified" }]));
    assert!(changes["patch"].as_str().unwrap().contains("-3\n+2\n"), "{changes}");
    assert_eq!(changes["not_shown"], json!(0));
    let patch = forks[0].query(&at, &[("patch", "true")]).expect(200);
    assert!(patch["patch"].as_str().unwrap().contains("-1\n+2\n"), "{patch}");
    // A fork of another base is not compared, and not told of.
    let stranger = service.client_for(&new_id(), "read,write,exec");
    stranger.write("a.txt", "x\n").expect(200);
    let foreign = fork(&stranger, 1);
    let against = [("against", foreign[0].workspace.as_str())];
    forks[0].query(&at, &against).is(403, "E_FORBIDDEN");
}

#[test]
fn the_tools_of_forks_work_over_mcp_and_rest_of_the_service() {
    let service = Service::start();
    let base = service.client();
    base.write("a.txt", "1\n").expect(200);
    let made = base.post(&base.at("/tools/fork"), &json!({ "count": 2 })).expect(200);
    let forks = made["facts"]["forks"].as_array().unwrap();
    let names: Vec<&str> = forks.iter().map(|name| name.as_str().unwrap()).collect();
    let of = |name: &str| Client { workspace: name.to_owned(), ..base.clone() };
    of(names[0]).write("a.txt", "won\n").expect(200);
    let diff = base.post(&base.at("/tools/fork_diff"), &json!({ "fork": names[0] })).expect(200);
    assert_eq!(diff["facts"]["changes"], json!([{ "path": "a.txt", "change": "modified" }]));
    let ended = base.post(&base.at("/tools/fork_end"), &json!({ "fork": names[1] })).expect(200);
    assert_eq!(ended["facts"]["left"], json!([names[0]]));
    of(names[1]).read("a.txt").is(404, "E_WORKSPACE_NOT_FOUND");
    let promote = json!({ "fork": names[0] });
    base.post(&base.at("/tools/fork_promote"), &promote).expect(200);
    assert_eq!(base.read("a.txt").expect(200)["content"], "won\n");
    base.write("a.txt", "thawed\n").expect(200);
    base.post(&base.at("/tools/fork_promote"), &promote).is(422, "E_INVALID_ARGUMENTS");
}

#[test]
fn every_request_that_changes_files_is_refused_in_a_frozen_base_with_the_forks() {
    let service = Service::start();
    let base = service.client();
    base.write("a.txt", "1\n").expect(200);
    base.run("git init -q r && cd r && git config user.email a@b && git config user.name a && echo 1 > f && git add f");
    base.post(&base.at("/snapshots"), &json!({ "name": "baseline" })).expect(200);
    let before = base.run("find . | sort | grep -v '/\\.git/'; cat a.txt");
    let forks = fork(&base, 2);
    let tool = |name: &str, arguments: Value| (format!("/tools/{name}"), arguments);
    let requests = [
        ("/files/write".to_owned(), json!({ "path": "late", "content": "late" })),
        ("/git".to_owned(), json!({ "operation": "commit", "args": ["-m", "late"], "cwd": "r" })),
        ("/snapshots/baseline/restore".to_owned(), json!({})),
        tool("Write", json!({ "file_path": "late", "content": "late" })),
        tool("Delete", json!({ "path": "a.txt" })),
        tool("Move", json!({ "source": "a.txt", "destination": "b.txt" })),
        tool("git", json!({ "operation": "add", "args": "f", "cwd": "r" })),
        tool("undo", json!({})),
        tool("undo_restore", json!({ "checkpointId": "u1" })),
        tool("format", json!({})),
        tool("install", json!({})),
        tool("run_tests", json!({})),
    ];
    for (path, body) in requests {
        let reply = base.post(&base.at(&path), &body);
        reply.is(409, "E_WORKSPACE_FROZEN");
        for fork in &forks {
            assert!(reply.body.contains(&fork.workspace), "{path}: {reply:?}");
        }
    }
    let upload = base.at("/files/raw?path=late.txt");
    base.send(&upload, &["--request", "PUT"], Some(b"late\n")).is(409, "E_WORKSPACE_FROZEN");
    let arguments = json!({ "file_path": "late", "content": "late" });
    let steps = json!([{ "action": "tool", "tool": "Write", "arguments": arguments }]);
    let task = base.done(&steps);
    assert_eq!(task["status"], "failed", "{task}");
    assert!(task.to_string().contains(&forks[0].workspace), "{task}");
    base.post(&base.at("/snapshots"), &json!({ "name": "of-frozen" })).expect(200);
    assert_eq!(base.run("find . | sort | grep -v '/\\.git/'; cat a.txt"), before);
}

#[test]
fn kept_work_and_changes_past_the_server_reach_forks() {
    let service = Service::start();
    let base = service.client();
    base.write("a.txt", "1\n").expect(200);
    let forks = fork(&base, 2);
    let [winner, loser] = forks.as_slice() else { panic!("two forks") };
    winner.write("a.txt", "won\n").expect(200);
    loser.write("b.txt", "lost\n").expect(200);
    let promoted = winner.post(&winner.at("/promote"), &json!({})).expect(200);
    let kept = promoted["ended"][0]["snapshot"].as_str().unwrap().to_owned();

    let two = json!({ "count": 2, "from": kept });
    base.post(&base.at("/forks"), &two).is(422, "E_INVALID_REQUEST");
    let unknown = json!({ "from": "nothing" });
    base.post(&base.at("/forks"), &unknown).is(404, "E_SNAPSHOT_NOT_FOUND");
    assert_eq!(base.get(&base.at("/forks")).expect(200)["forks"], json!([]));
    let made = base.post(&base.at("/forks"), &json!({ "from": kept })).expect(200);
    let again = Client {
        workspace: made["forks"][0]["id"].as_str().unwrap().to_owned(),
        token: base.token.clone(),
        address: base.address,
    };
    assert_eq!(again.read("a.txt").expect(200)["content"], "won\n");
    assert_eq!(again.read("b.txt").expect(200)["content"], "lost\n");

    let path = service.test_env.path("data/workspaces").join(&base.workspace);
    std::fs::write(path.join("c.txt"), "by an editor\n").unwrap();
    again.post(&again.at("/promote"), &json!({})).is(409, "E_FORK_CONFLICT");
    base.post(&base.at("/rebase"), &json!({})).is(409, "E_FORK_REFUSED");
    let reader = service.client_for(&base.workspace, "read");
    reader.post(&again.at("/rebase"), &json!({})).is(403, "E_FORBIDDEN");
    let adopted = again.post(&again.at("/rebase"), &json!({})).expect(200);
    let changed: Vec<_> = adopted["changed"].as_array().unwrap().iter().collect();
    assert!(changed.contains(&&json!("c.txt")), "{adopted}");
    assert_eq!(adopted["base"].as_str(), Some(base.workspace.as_str()));
    assert_eq!(run(&again, "cat a.txt b.txt c.txt")["stdout"], "won\nlost\nby an editor\n");
    again.post(&again.at("/promote"), &json!({})).expect(200);
    assert_eq!(base.read("b.txt").expect(200)["content"], "lost\n");
    assert_eq!(base.read("c.txt").expect(200)["content"], "by an editor\n");

    // What both have changed is named, and no fork is left.
    let forks = fork(&base, 2);
    forks[0].write("a.txt", "one\n").expect(200);
    forks[1].write("a.txt", "two\n").expect(200);
    let promoted = forks[0].post(&forks[0].at("/promote"), &json!({})).expect(200);
    let kept = promoted["ended"][0]["snapshot"].as_str().unwrap();
    let refused = base.post(&base.at("/forks"), &json!({ "from": kept }));
    refused.is(409, "E_FORK_CONFLICT");
    assert_eq!(base.get(&base.at("/forks")).expect(200)["forks"], json!([]));
    base.write("a.txt", "thawed\n").expect(200);
}
