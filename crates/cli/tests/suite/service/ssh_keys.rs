//! A step can use the SSH key of a credential that it names, and nobody can read it.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::credentials::{command_lines_with, files_with, step};
use super::test_environment::{Client, Service, new_id};

struct Key {
    text: String,
    fingerprint: String,
}

/// Has ssh-keygen make a key, in a directory that is gone afterwards.
fn key(options: &[&str]) -> Key {
    let directory = tempfile::tempdir().unwrap();
    let keygen = |options: &[&str]| {
        let mut command = Command::new("ssh-keygen");
        let made = command.args(options).args(["-f", "key"]).current_dir(directory.path()).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{made:?}");
        String::from_utf8(made.stdout).unwrap()
    };
    keygen(&[&["-q", "-C", "test"], options].concat());
    let text = std::fs::read_to_string(directory.path().join("key")).unwrap();
    let fingerprint = keygen(&["-l"]).split(' ').nth(1).unwrap().to_owned();
    Key { text, fingerprint }
}

impl Key {
    /// Lines that must be found nowhere.
    fn lines(&self) -> Vec<&str> {
        self.text.lines().filter(|line| !line.is_empty() && !line.starts_with('-')).collect()
    }
}

fn write(client: &Client, path: &str, content: &str) {
    let script = json!({ "path": path, "content": content });
    client.post(&client.at("/files/write"), &script).expect(200);
}

fn sockets(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let below = entries.flat_map(|entry| match entry.file_type().unwrap() {
        kind if kind.is_dir() => sockets(&entry.path()),
        kind if kind.is_socket() => vec![entry.path()],
        _ => Vec::new(),
    });
    below.collect()
}

#[test]
fn a_step_uses_the_key_that_it_names_and_no_other_step_does() {
    let mut service = Service::start();
    let client = service.client();
    let keys = [
        key(&["-t", "ed25519", "-N", ""]),
        key(&["-t", "rsa", "-b", "2048", "-m", "PEM", "-N", ""]),
    ];
    // Which commands a line may hold is not what this is about; what a script does is its own affair.
    let scripts = [
        ("use.sh", "ssh-add -l; echo $OTHER"),
        (
            "look.sh",
            // Where it came from it can be read once, and the agent gives it to nobody.
            "cat /proc/self/fd/100; ssh-add -L; tr '\\0' ' ' < /proc/$SSH_AGENT_PID/cmdline; \
             cat /proc/$SSH_AGENT_PID/environ /proc/$SSH_AGENT_PID/mem; sleep 0.5; true",
        ),
    ];
    for (path, content) in scripts {
        write(&client, path, content);
    }
    let none = "test -z \"$SSH_AUTH_SOCK$SSH_AGENT_PID\" && ! ls /tmp/*/agent 2>/dev/null";
    for Key { text, fingerprint } in &keys {
        client.keep("key", &json!({ "ssh_private_key": text, "env_vars": { "OTHER": "o" } }));
        let id = client.submit(&json!({ "steps": [
            step(none, &[]),
            step("bash use.sh", &["key"]),
            step("bash look.sh", &["key"]),
            step(none, &[]),
            { "action": "shell", "command": "exit 7", "credentials": ["key"], "on_error": "continue" },
            step("git init --quiet", &["key"]),
            { "action": "tool", "tool": "git", "arguments": { "operation": "status" }, "credentials": ["key"] },
            step("ls", &["key"]),
        ]}));
        let lines: Vec<&str> = keys.iter().flat_map(Key::lines).collect();
        let mut seen = Vec::new();
        while client.task(&id)["completed_at"].is_null() {
            seen.extend(command_lines_with(&lines));
        }
        assert_eq!(seen, Vec::<String>::new());
        let task = client.finished(&id);
        assert_eq!(task["status"], "completed", "{task}");
        let steps = &task["result"]["steps"];
        let listed = steps[1]["result"]["stdout"].as_str().unwrap();
        assert!(listed.contains(fingerprint.as_str()) && listed.ends_with("o\n"), "{task}");
        assert_eq!(steps[4]["exit_code"], 7, "{task}");
        let events = format!("{:?}", client.events(&id, 0));
        for line in &lines {
            assert!(!task.to_string().contains(line) && !events.contains(line), "{task}");
        }
        assert_eq!(sockets(&service.test_env.path("data")), Vec::<PathBuf>::new());
    }
    service.terminate();
    for line in keys.iter().flat_map(Key::lines) {
        assert_eq!(files_with(&service.test_env.path("data"), line), Vec::<String>::new());
        assert!(!service.server.stderr().contains(line));
    }
}

/// Begins a step with a key, and returns its task and the word that all its processes have in their
/// command lines.
fn begun(client: &Client, timeout: u32) -> (String, String) {
    let word = format!("word-{}", new_id());
    write(client, "long.sh", "setsid sleep 61 & sleep 60");
    let mut long = step(&format!("bash long.sh {word}"), &["key"]);
    long["timeout"] = json!(timeout);
    let id = client.submit(&json!({ "steps": [long] }));
    crate::eventually("its agent runs", || {
        let lines = command_lines_with(&[&word]);
        lines.iter().any(|line| line.starts_with("/usr/bin/ssh-agent")) && lines.len() > 1
    });
    (id, word)
}

fn until_gone(word: &str) {
    crate::eventually("nothing of it runs", || command_lines_with(&[word]).is_empty());
}

#[test]
fn the_agent_ends_with_its_step_however_that_ends() {
    let mut service = Service::start();
    let client = service.client();
    let key = key(&["-t", "ed25519", "-N", ""]);
    client.keep("key", &json!({ "ssh_private_key": key.text }));
    let data = service.test_env.path("data");

    let (id, word) = begun(&client, 60);
    assert_eq!(sockets(&data).len(), 1);
    client.post(&format!("/api/tasks/{id}/cancel"), &json!({})).expect(200);
    assert_eq!(client.finished(&id)["status"], "cancelled");
    until_gone(&word);
    assert_eq!(sockets(&data), Vec::<PathBuf>::new());

    let (id, word) = begun(&client, 2);
    let late = client.finished(&id);
    assert!(late.to_string().contains("timed out"), "{late}");
    until_gone(&word);
    assert_eq!(sockets(&data), Vec::<PathBuf>::new());

    let (_, word) = begun(&client, 60);
    service.kill();
    until_gone(&word);
    service.begin_again();
    let client = Client { address: service.address, ..client };
    client.run("true");
    crate::eventually("what was left is removed", || {
        let lines = command_lines_with(&[&word]).len();
        // The task begins again, with an agent of its own.
        sockets(&data).len() <= usize::from(lines > 0)
    });
}

#[test]
fn a_key_that_nobody_could_load_is_refused_when_it_is_put() {
    let service = Service::start();
    let client = service.client();
    let locked = key(&["-t", "ed25519", "-N", "hunter2hunter2"]);
    let locked_pem = key(&["-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "hunter2hunter2"]);
    let nonsense = Key { text: "nonsense-key".into(), fingerprint: String::new() };
    for (key, rule) in
        [(locked, "passphrase"), (locked_pem, "passphrase"), (nonsense, "ssh-keygen")]
    {
        let body = json!({ "ssh_private_key": key.text });
        let refused = client.put_json("/credentials/key", &[], &body);
        refused.is(422, "E_INVALID_REQUEST");
        assert!(refused.body.contains("ssh_private_key"), "{}", refused.body);
        assert!(refused.body.contains(rule), "{}", refused.body);
        for line in key.lines() {
            assert!(!refused.body.contains(line), "{}", refused.body);
        }
    }
    assert_eq!(client.get(&client.at("/credentials")).expect(200)["names"], json!([]) as Value);
}
