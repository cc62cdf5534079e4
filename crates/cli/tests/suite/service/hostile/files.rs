//! Files, repositories, and what a tenant leaves in them.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{CANARY, canary};
use crate::service::test_environment::Service;
use crate::test_environment::is_soak;

#[test]
fn links_that_are_swapped_lead_nowhere() {
    let service = Service::start();
    let client = service.client();
    let outside = canary(&service);
    client.run("echo mine > repos/hostname");
    let rounds = if is_soak() { 4000 } else { 400 };
    let swap = format!("for i in {{1..{rounds}}}; do ln -sfn {outside} d; ln -sfn repos d; done");
    let swapping = std::thread::spawn({
        let client = client.clone();
        move || client.exec(&swap).expect(200)
    });
    let (mut seen, mut refused) = (0, 0);
    while !swapping.is_finished() {
        let reply = client.read("d/hostname");
        match reply.status {
            200 => {
                assert_eq!(reply.json()["content"], "mine\n", "H-24: {reply:?}");
                seen += 1;
            }
            403 | 404 | 429 | 503 => refused += 1,
            _ => panic!("H-24: {reply:?}"),
        }
        let raw = client.query(&client.at("/files/raw"), &[("path", "d/hostname")]);
        assert!(!raw.body.contains(CANARY), "H-24: {raw:?}");
        client.write("d/written", "x");
    }
    swapping.join().unwrap();
    assert!(!std::path::Path::new(&outside).join("written").exists(), "H-24: a write went outside");
    eprintln!("{seen} read, {refused} refused");
    client.run(&format!("mkdir -p artifacts/deep; ln -sfn {outside} artifacts/deep/d"));
    client.read("artifacts/deep/d/hostname").is(403, "E_SANDBOX_VIOLATION");
}

#[test]
fn one_policy_holds_for_every_way_to_a_file() {
    let service = Service::start();
    let client = service.client();
    // H-25: nothing of ours is in a workspace that could be linked to.
    assert_eq!(client.run("find . | sort"), ".\n./artifacts\n./repos\n./tasks\n");
    client.run("mkdir .ssh && echo theirs > .ssh/id_ed25519 && ln .ssh/id_ed25519 k");
    assert_eq!(client.read("k").expect(200)["content"], "theirs\n", "H-25: it is the tenant's own");

    // H-26
    for path in [".ssh/id_ed25519", ".SSH/../.ssh/id_ed25519", "./.ssh/id_ed25519"] {
        let (status, _) = client.read(path).refused();
        assert!(matches!(status, 403 | 404), "H-26 {path}: {status}");
        let (status, _) = client.query(&client.at("/files/raw"), &[("path", path)]).refused();
        assert!(matches!(status, 403 | 404), "H-26 {path}: {status}");
    }
    client.query(&client.at("/files"), &[("path", ".ssh")]).is(403, "E_SENSITIVE_PATH");
    client
        .query(&client.at("/files/grep"), &[("pattern", "."), ("path", ".ssh")])
        .is(403, "E_SENSITIVE_PATH");
    let found = client.query(&client.at("/files/grep"), &[("pattern", "theirs")]).expect(200);
    assert_eq!(found["matches"], json!([{ "file": "k", "line": 1, "content": "theirs" }]), "H-26");
    client.write(".ssh/config", "x").is(403, "E_SENSITIVE_PATH");
    for step in [
        json!({ "action": "read_file", "path": ".ssh/id_ed25519" }),
        json!({ "action": "write_file", "path": ".ssh/config", "content": "x" }),
        json!({ "action": "list_directory", "path": ".ssh" }),
        json!({ "action": "create_directory", "path": ".aws/x" }),
    ] {
        let task = client.done(&json!([step]));
        assert_eq!(task["result"]["steps"][0]["code"], "E_SENSITIVE_PATH", "H-26: {task}");
    }
    let listed = client.get(&client.at("/files")).expect(200);
    assert!(!listed.to_string().contains(".ssh"), "H-26: {listed}");

    // H-27
    for id in ["..%2F..%2Fetc", "..", "%2e%2e%2fetc", "x"] {
        let reply = client.get(&format!("/api/workspaces/{id}/files/content?path=hostname"));
        let (status, _) = reply.refused();
        assert!(matches!(status, 404 | 422), "H-27 {id}: {reply:?}");
    }
    // H-28
    let sibling =
        service.test_env.path("data").join("workspaces").join(format!("{}-evil", client.workspace));
    std::fs::create_dir(&sibling).unwrap();
    std::fs::write(sibling.join("s"), CANARY).unwrap();
    let path = format!("../{}-evil/s", client.workspace);
    client.read(&path).is(403, "E_SANDBOX_VIOLATION");
    client.query(&client.at("/files/raw"), &[("path", &path)]).is(403, "E_SANDBOX_VIOLATION");

    // H-53: below the top, where the trust diff leaves links alone.
    client.run(
        "mkdir artifacts/l && cd artifacts/l && ln -s /nowhere dangling && ln -s loop loop && \
         ln -s /etc/hostname out",
    );
    let listed = client.query(&client.at("/files"), &[("path", "artifacts/l")]).expect(200);
    for name in ["dangling", "loop", "out"] {
        assert!(listed.to_string().contains(name), "H-53 {name}: {listed}");
    }
    client.read("artifacts/l/loop").is(422, "E_LINK_LOOP");
    client.read("artifacts/l/loop/x").is(422, "E_LINK_LOOP");
    for path in ["artifacts/l/dangling", "artifacts/l/out"] {
        client.read(path).is(403, "E_SANDBOX_VIOLATION");
    }
    // H-54
    client.run("python3 -c 'import os; os.mkfifo(\"fifo\")'");
    let begun = Instant::now();
    client.read("fifo").is(422, "E_NOT_A_REGULAR_FILE");
    client.query(&client.at("/files/raw"), &[("path", "fifo")]).is(422, "E_NOT_A_REGULAR_FILE");
    client.query(&client.at("/files/grep"), &[("pattern", "x")]).expect(200);
    assert!(begun.elapsed() < Duration::from_secs(10), "H-54: {:?}", begun.elapsed());
}

#[test]
fn what_a_tenant_configures_runs_in_no_git_of_ours() {
    let service = Service::start();
    let client = service.client();
    // H-29
    let evil = "[core]\n sshCommand = touch /tmp/pwned\n[protocol \"ext\"]\n allow = always\n";
    client.write(".gitconfig", evil).is(403, "E_SENSITIVE_PATH");
    client.run("printf '[protocol \"ext\"]\\n allow = always\\n[alias]\\n log = !touch pwned\\n' > .gitconfig");
    let git = |body: Value| client.post(&client.at("/git"), &body);
    git(json!({ "operation": "clone", "args": ["ext::sh -c touch% pwned"], "cwd": "repos" }))
        .is(403, "E_GIT_REFUSED");
    let body = json!({ "steps": [{ "action": "git_clone", "repo": "ext::sh -c touch% pwned" }] });
    client.post("/api/tasks/submit", &body).is(422, "E_INVALID_REQUEST");

    // H-40
    client.run("git init -q repos/r && cd repos/r && git config user.email a@b && git config user.name n && touch f && git add f && git commit -qm one");
    client.write("repos/r/evil.sh", "#!/bin/sh\ntouch ../../pwned; cat\n").expect(200);
    client.run("chmod +x repos/r/evil.sh");
    client.run("cd repos/r && echo '* filter=evil' > .gitattributes && echo changed > f");
    // Through a script, as a copied repository would have it.
    client.exec("cd repos/r && git config core.fsmonitor ./evil.sh; git config filter.evil.clean ./evil.sh; git config core.hooksPath .; cp evil.sh post-commit");
    for (operation, args) in
        [("status", ""), ("diff", ""), ("add", "f"), ("commit", "-m two"), ("log", "")]
    {
        let reply = git(json!({ "operation": operation, "args": args, "cwd": "repos/r" }));
        assert!(matches!(reply.status, 200 | 403), "H-40 {operation}: {reply:?}");
    }
    client.read("pwned").is(404, "E_NOT_FOUND");
    client.read("repos/pwned").is(404, "E_NOT_FOUND");
}

#[test]
fn a_tenant_cannot_break_its_workspace_for_later() {
    let service = Service::start();
    let client = service.client();
    let outside = canary(&service);
    // H-30
    for line in [
        "echo x > .workspace_meta.json".to_owned(),
        "rm .workspace_meta.json && mkdir .workspace_meta.json".to_owned(),
        format!("rm -r .workspace_meta.json && ln -s {outside}/hostname .workspace_meta.json"),
    ] {
        let task = client.done(&json!([{ "action": "shell", "command": line }]));
        assert_eq!(task["status"], "completed", "H-30: {task}");
        let task = client.done(&json!([{ "action": "shell", "command": "true" }]));
        assert_eq!(task["status"], "completed", "H-30: {task}");
    }
    assert_eq!(std::fs::read_to_string(format!("{outside}/hostname")).unwrap(), CANARY, "H-30");
    // H-31
    let task = client.done(&json!([{
        "action": "shell",
        "command": "rm -rf repos tasks artifacts && touch repos tasks artifacts",
    }]));
    assert_eq!(task["status"], "completed", "H-31: {task}");
    let task = client.done(&json!([{ "action": "shell", "command": "echo still" }]));
    assert_eq!(task["status"], "completed", "H-31: {task}");
    let clone = json!([{ "action": "git_clone", "repo": "https://github.com/a/b" }]);
    let task = client.done(&clone);
    assert_eq!(task["status"], "failed", "H-31: {task}");
    assert!(task["error_message"].as_str().unwrap().contains("repos"), "H-31: {task}");
    assert_eq!(
        client.run("rm repos && mkdir repos && ls -d repos"),
        "repos\n",
        "H-31: it can be mended"
    );
}

#[test]
fn repositories_come_from_addresses_that_were_taken_apart() {
    let service = Service::start();
    let client = service.client();
    for (case, address) in [
        ("H-35", "file:///workspaces/x/repos/x"),
        ("H-35", "http://10.0.0.5/a/b"),
        ("H-35", "ssh://git@github.com/a/b"),
        ("H-35", "git@github.com:a/b.git"),
        ("H-35", "https://10.0.0.5/a/b"),
        ("H-37", "https://github.com/a/.."),
        ("H-37", "https://github.com/.git"),
        ("H-37", "https://github.com/a/.git"),
        ("H-38", "https://x-access-token:canary-5e1f@github.com/a/b"),
        ("H-39", "https://github.com/a/b?u=https://github.com"),
        ("H-39", "https://github.com:8443/a/x"),
        ("H-39", "https://github.com.evil.example/a/b"),
        ("H-39", "https://github.com/a/b#x"),
        ("H-39", "https://github.com/a/%2e%2e"),
    ] {
        let step = json!({ "steps": [{ "action": "git_clone", "repo": address }] });
        let replies = [
            client.post("/api/tasks/submit", &step),
            client.post(&client.at("/github/clone"), &json!({ "repo_url": address })),
        ];
        for reply in replies {
            assert_eq!(
                (case, reply.refused()),
                (case, (422, "E_INVALID_REQUEST".to_owned())),
                "{address}"
            );
            assert!(!reply.body.contains(CANARY), "H-38: {reply:?}");
        }
    }
    // H-38: what was refused is kept nowhere.
    assert_eq!(client.get("/api/tasks").expect(200)["total"], 0);
    // H-41: a name is one line, and never becomes more than that.
    let body = json!({ "git_name": "a\n[core]\n\tsshCommand = id" }).to_string();
    let words = ["--request", "PUT"];
    let reply = client.send(&client.at("/credentials/me"), &words, Some(body.as_bytes()));
    reply.is(422, "E_INVALID_REQUEST");

    // H-36: the second of a name has a place of its own.
    client.run("git init -q repos/app && git -C repos/app remote add origin https://github.com/carrel-suite-a/app.git");
    let clone = |owner: &str| {
        let repo = format!("https://github.com/{owner}/app");
        let task = client.done(&json!([{ "action": "git_clone", "repo": repo, "timeout": 5 }]));
        let told = format!("{:?}", client.events(task["id"].as_str().unwrap(), 0));
        assert!(!told.contains("workspaces/"), "where the server keeps it: {told}");
        let result = task["result"]["steps"][0]["result"].clone();
        (result["repo_path"].clone(), result["cached"].clone())
    };
    assert_eq!(clone("carrel-suite-a"), (json!("repos/app"), json!(true)), "H-36");
    assert_eq!(clone("carrel-suite-b"), (json!("repos/carrel-suite-b-app"), json!(false)), "H-36");
}
