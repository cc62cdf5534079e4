//! Credentials go in, reach the steps that name them, and come out nowhere.

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::test_environment::{Client, Reply, Service};

/// Values that must be found nowhere.
const KEY: &str = "hunter2-api-key-0815";
const TOKEN: &str = "ghp_SecretTokenForGit4711";

impl Client {
    pub(super) fn put_json(&self, path: &str, words: &[&str], body: &Value) -> Reply {
        let words = [words, &["--request", "PUT"]].concat();
        self.send(&self.at(path), &words, Some(body.to_string().as_bytes()))
    }

    pub(super) fn keep(&self, name: &str, body: &Value) -> Value {
        self.put_json(&format!("/credentials/{name}"), &[], body).expect(200)
    }
}

pub(super) fn step(command: &str, credentials: &[&str]) -> Value {
    json!({ "action": "shell", "command": command, "credentials": credentials })
}

/// Tells which files below a directory hold a text.
pub(super) fn files_with(directory: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(directory) else { return found };
    for entry in entries.flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_with(&entry.path(), text));
        } else if let Ok(bytes) = std::fs::read(entry.path())
            && bytes.windows(text.len()).any(|window| window == text.as_bytes())
        {
            found.push(entry.path().display().to_string());
        }
    }
    found
}

#[test]
fn a_step_gets_what_it_names_and_no_other_step_does() {
    let service = Service::start();
    let client = service.client();
    client.keep("api", &json!({ "env_vars": { "API_KEY": KEY, "OTHER": "shown-nowhere" } }));
    client.keep("me", &json!({ "git_name": "Ada L", "git_email": "ada@example.com" }));
    let names = client.get(&client.at("/credentials")).expect(200);
    assert_eq!(names, json!({ "names": ["api", "me"] }));
    let done = client.done(&json!([
        step("test -z \"$API_KEY\"", &[]),
        // Its length shows that it is there, and not what it is.
        step("echo ${#API_KEY}; echo key=$API_KEY", &["api"]),
        step("test -z \"$API_KEY\"; git init -q r; cd r; git commit -q --allow-empty -m x; git log --format=%an:%ae", &["me"]),
        { "action": "tool", "tool": "git", "arguments": { "operation": "commit", "args": ["--allow-empty", "-m", "y"], "cwd": "r" }, "credentials": ["me", "api"] },
        step("test -z \"$API_KEY$GIT_AUTHOR_NAME\" && git -C r log -1 --format=%cn", &[]),
    ]));
    assert_eq!(done["status"], "completed", "{done}");
    let stdout = |index: usize| done["result"]["steps"][index]["result"]["stdout"].as_str();
    let masked = format!("{}\nkey=[masked secret API_KEY]\n", KEY.len());
    assert_eq!(stdout(1), Some(masked.as_str()));
    assert_eq!(stdout(2), Some("Ada L:ada@example.com\n"));
    assert_eq!(stdout(4), Some("Ada L\n"));
}

#[test]
fn what_a_step_knows_is_told_nowhere() {
    let service = Service::start();
    let client = service.client();
    client.keep("api", &json!({ "env_vars": { "API_KEY": KEY } }));
    client.keep("git", &json!({ "git_token": { "host": "github.com", "token": TOKEN } }));
    let id = client.submit(&json!({ "steps": [
        // Where it could show: output, a line of its own, a path that is not there, an error, a background job. No
        // program is told it as an argument, which would be on its command line.
        step("echo $API_KEY; echo $API_KEY >&2; read -r line < /etc/$API_KEY; cat /proc/self/cmdline; exit 0", &["api"]),
        { "action": "tool", "tool": "Bash", "credentials": ["api"],
          "arguments": { "command": "sleep 1; echo late $API_KEY", "run_in_background": true } },
        { "action": "tool", "tool": "Bash", "arguments": { "command": "sleep 2" } },
        { "action": "git_clone", "repo": "https://github.com/a/b.git", "credentials": ["git"],
          "timeout": 5, "on_error": "continue" },
        step("sleep 1; exit 3", &["api", "git"]),
    ]}));
    client.until(&id, |task| task["status"] == "running");
    crate::eventually("it runs", || client.task(&id)["status"] != "queued");
    let mut seen = Vec::new();
    while client.task(&id)["completed_at"].is_null() {
        seen.extend(command_lines_with(&[KEY, TOKEN]));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(seen, Vec::<String>::new());
    let task = client.finished(&id);
    let events = format!("{:?}", client.events(&id, 0));
    assert!(events.contains("***"), "{events}");
    assert!(task.to_string().contains("[masked secret API_KEY]"), "{task}");
    for secret in [KEY, TOKEN] {
        assert!(!task.to_string().contains(secret), "{task}");
        assert!(!events.contains(secret), "{events}");
        assert!(!service.server.stderr().contains(secret));
    }
    drop(client);
    let mut service = service;
    service.terminate();
    for secret in [KEY, TOKEN] {
        let found = files_with(&service.test_env.path("data"), secret);
        assert_eq!(found, Vec::<String>::new());
    }
}

/// Every command line of this machine with one of these words.
pub(super) fn command_lines_with(words: &[&str]) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| {
        let bytes = std::fs::read(process.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    });
    lines.filter(|line| words.iter().any(|word| line.contains(word))).collect()
}

#[test]
fn credentials_belong_to_one_workspace_and_come_out_of_no_route() {
    let service = Service::start();
    let (one, other) = (service.client(), service.client());
    one.keep("api", &json!({ "env_vars": { "API_KEY": KEY } }));
    let body = json!({ "steps": [step("echo $API_KEY", &["api"])] });
    let refused = other.post("/api/tasks/submit", &body);
    refused.is(422, "E_INVALID_REQUEST");
    assert!(refused.body.contains("steps[0].credentials[0]"), "{}", refused.body);
    assert_eq!(other.get(&other.at("/credentials")).expect(200), json!({ "names": [] }));
    one.get(&one.at("/credentials/api")).is(405, "E_METHOD_NOT_ALLOWED");
    let foreign = Client { workspace: one.workspace.clone(), ..other.clone() };
    foreign.get(&foreign.at("/credentials")).is(403, "E_FORBIDDEN");
    let reader = service.client_for(&one.workspace, "read,exec");
    reader.put_json("/credentials/b", &[], &json!({ "git_name": "a" })).is(403, "E_FORBIDDEN");
    reader.delete(&one.at("/credentials/api")).is(403, "E_FORBIDDEN");
    for (name, body) in [
        ("api", json!({})),
        ("api", json!({ "env_vars": { "LD_PRELOAD": "/x" } })),
        ("api", json!({ "secret": "x" })),
        ("-a", json!({ "git_name": "a" })),
        ("a%2Fb", json!({ "git_name": "a" })),
    ] {
        one.put_json(&format!("/credentials/{name}"), &[], &body).is(422, "E_INVALID_REQUEST");
    }
    let large = json!({ "env_vars": { "A": "x".repeat(70_000) } });
    one.put_json("/credentials/large", &[], &large).is(413, "E_TOO_LARGE");

    // A task that waits when it is deleted gets a clear failure.
    assert_eq!(one.delete(&one.at("/credentials/api")).status, 204);
    one.delete(&one.at("/credentials/api")).is(404, "E_SECRET_UNKNOWN");
    one.post("/api/tasks/submit", &body).is(422, "E_INVALID_REQUEST");
}

#[test]
fn a_credential_sent_again_with_its_key_is_kept_once() {
    let service = Service::start();
    let client = service.client();
    let key = ["--header", "Idempotency-Key: one"];
    let body = json!({ "env_vars": { "API_KEY": KEY } });
    client.put_json("/credentials/a", &key, &body).expect(200);
    assert_eq!(client.delete(&client.at("/credentials/a")).status, 204);
    client.put_json("/credentials/a", &key, &body).expect(200);
    assert_eq!(client.get(&client.at("/credentials")).expect(200)["names"], json!([]));
    let other = json!({ "env_vars": { "API_KEY": "other" } });
    client.put_json("/credentials/a", &key, &other).is(409, "E_IDEMPOTENCY_MISMATCH");
    client.put_json("/credentials/b", &key, &body).is(409, "E_IDEMPOTENCY_MISMATCH");
}

#[test]
fn another_key_is_said_at_the_start_and_the_old_one_opens_everything() {
    let mut service = Service::start();
    let client = service.client();
    client.keep("api", &json!({ "env_vars": { "API_KEY": KEY } }));
    service.terminate();
    let file = service.test_env.path("data").join("credentials.key");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let kept = std::fs::read_to_string(&file).unwrap();

    let mut other = service.serve("127.0.0.1:0");
    other.env("CARREL_CREDENTIAL_KEY", "x".repeat(40));
    let output = other.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("sealed with another key"), "{said}");
    assert!(said.contains("--forget-credentials") && !said.contains(kept.trim()), "{said}");

    // The text of the file means the same in the variable.
    std::fs::remove_file(&file).unwrap();
    service.set("CARREL_CREDENTIAL_KEY", kept.trim());
    service.begin_again();
    let client = Client { address: service.address, ..client };
    let done = client.done(&json!([step("test -n \"$API_KEY\"", &["api"])]));
    assert_eq!(done["status"], "completed", "{done}");
}

#[test]
fn a_secret_in_the_wrong_place_is_not_repeated() {
    let service = Service::start();
    let client = service.client();
    for body in [
        json!({ "git_token": TOKEN }),
        json!({ "env_vars": TOKEN }),
        json!({ "env_vars": [TOKEN] }),
        json!({ "git_token": { "host": "github.com", "token": { "is": TOKEN } } }),
    ] {
        let reply = client.put_json("/credentials/a", &[], &body);
        reply.is(422, "E_INVALID_REQUEST");
        assert!(reply.body.contains("expected"), "{}", reply.body);
        assert!(!reply.body.contains(TOKEN), "{}", reply.body);
    }
}
