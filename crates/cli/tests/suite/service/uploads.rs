//! Files that arrive in parts, as large as the workspace has room for.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use pretty_assertions::assert_eq;
use serde_json::json;

use super::test_environment::{Client, Reply, Service};
use crate::test_environment::is_soak;

impl Client {
    fn put(&self, path: &str, words: &[&str], body: &[u8]) -> Reply {
        let words = [words, &["--request", "PUT"]].concat();
        self.send(&self.at(&format!("/files/raw?path={path}")), &words, Some(body))
    }

    /// Sends zeros, without saying how many.
    fn put_zeros(&self, path: &str, bytes: u64) -> Reply {
        let address = format!("http://{}{}", self.address, self.at("/files/raw?path="));
        let line = format!(
            "head -c {bytes} /dev/zero | curl --silent --include --max-time 300 --header 'Expect:' \
             --header 'Authorization: Bearer {}' --header 'Transfer-Encoding: chunked' \
             --upload-file - '{address}{path}'",
            self.token.as_ref().unwrap()
        );
        let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        Reply::parse(&output.stdout).unwrap_or_else(|| panic!("{output:?}"))
    }
}

/// Every entry below the directory of a workspace.
fn tree(service: &Service, client: &Client) -> Vec<PathBuf> {
    fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            found.push(entry.path());
            if entry.file_type().unwrap().is_dir() {
                walk(&entry.path(), found);
            }
        }
    }
    let top = service.test_env.path("data").join("workspaces").join(&client.workspace);
    let mut found = Vec::new();
    walk(&top, &mut found);
    let below = |path: PathBuf| path.strip_prefix(&top).unwrap().to_owned();
    let mut found: Vec<_> = found.into_iter().map(below).collect();
    found.sort();
    found
}

#[test]
fn a_file_is_written_as_it_comes_and_keeps_its_mode_when_it_is_replaced() {
    let service = Service::start();
    let client = service.client();
    let bytes: Vec<u8> = (0..=255).cycle().take(3 << 20).collect();
    let saved = client.put("deep/er/blob.bin", &[], &bytes).expect(200);
    let expected =
        json!({ "written": true, "path": "deep/er/blob.bin", "size_bytes": bytes.len() });
    assert_eq!(saved, expected);
    let top = service.test_env.path("data").join("workspaces").join(&client.workspace);
    assert!(std::fs::read(top.join("deep/er/blob.bin")).unwrap() == bytes);
    client.run("chmod 750 deep/er/blob.bin");
    client.put("deep/er/blob.bin", &[], b"short").expect(200);
    assert_eq!(client.run("stat -c %a:%s deep/er/blob.bin").trim(), "750:5");
    assert_eq!(client.put("empty", &[], b"").expect(200)["size_bytes"], 0);
}

#[test]
fn what_other_doors_refuse_is_refused_and_leaves_nothing() {
    let service = Service::start();
    let client = service.client();
    client.run("git init -q repos/app");
    let before = tree(&service, &client);
    for (path, status, code) in [
        ("/etc/x", 403, "E_SANDBOX_VIOLATION"),
        ("../x", 403, "E_SANDBOX_VIOLATION"),
        (".aws/x", 403, "E_SENSITIVE_PATH"),
        ("new/.ssh/id_rsa", 403, "E_SENSITIVE_PATH"),
        ("repos/app/.git/hooks/pre-commit", 403, "E_RUNS_LATER"),
        ("new/.git/hooks/pre-commit", 403, "E_RUNS_LATER"),
        ("repos", 422, "E_IS_A_DIRECTORY"),
        ("", 422, "E_INVALID_REQUEST"),
    ] {
        let reply = client.put(path, &[], b"#!/bin/sh\n");
        assert_eq!(reply.refused(), (status, code.to_owned()), "{path}: {reply:?}");
        assert_eq!(tree(&service, &client), before, "{path}");
    }
    // So large that nobody looks into it, and so many words that it might hold anything.
    let large = vec![b'#'; 2 << 20];
    client.put("repos/app/.git/config", &[], &large).is(403, "E_RUNS_LATER");
    assert_eq!(tree(&service, &client), before);
    service.client_for(&client.workspace, "read,exec").put("a", &[], b"x").is(403, "E_FORBIDDEN");
    service.stranger().put("a", &[], b"x").is(401, "E_UNAUTHENTICATED");
}

#[test]
fn the_quota_ends_a_file_that_does_not_fit_and_leaves_nothing() {
    let service = Service::start();
    let client = service.cramped(20.0);
    client.run("true");
    let before = tree(&service, &client);
    // Said to be too large, it is not even read.
    client.put("a/b", &[], &vec![b'x'; 24 << 20]).is(507, "E_QUOTA_EXCEEDED");
    assert_eq!(tree(&service, &client), before);
    client.put_zeros("a/b", 400 << 20).is(507, "E_QUOTA_EXCEEDED");
    assert_eq!(tree(&service, &client), before);
    // What fits, fits to the last step.
    client.put_zeros("fits", 18 << 20).expect(200);
    let used = client.get(&client.at("/usage")).expect(200);
    assert!(used["usage_bytes"].as_u64().unwrap() <= 20 << 20, "{used}");
    client.put_zeros("more", 4 << 20).is(507, "E_QUOTA_EXCEEDED");
}

#[test]
fn a_sender_that_goes_away_leaves_nothing() {
    let service = Service::start();
    let client = service.client();
    client.run("true");
    let before = tree(&service, &client);
    let mut connection = TcpStream::connect(client.address).unwrap();
    let head = format!(
        "PUT {} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: 1000000\r\n\r\n",
        client.at("/files/raw?path=new/part"),
        client.token.as_ref().unwrap()
    );
    connection.write_all(head.as_bytes()).unwrap();
    connection.write_all(&vec![b'x'; 100_000]).unwrap();
    crate::eventually("it arrives", || tree(&service, &client).len() > before.len());
    drop(connection);
    crate::eventually("nothing is left", || tree(&service, &client) == before);
}

#[test]
fn a_file_sent_again_with_its_key_is_written_once() {
    let service = Service::start();
    let client = service.client();
    let key = ["--header", "Idempotency-Key: one"];
    let first = client.put("a", &key, b"same").expect(200);
    client.write("a", "changed").expect(200);
    assert_eq!(client.put("a", &key, b"same").expect(200), first);
    assert_eq!(client.read("a").expect(200)["content"], "changed");
    client.put("a", &key, b"other").is(409, "E_IDEMPOTENCY_MISMATCH");
    client.put("b", &key, b"same").is(409, "E_IDEMPOTENCY_MISMATCH");
    client.read("b").is(404, "E_NOT_FOUND");
}

#[test]
fn a_large_file_costs_the_server_little() {
    let service = Service::start();
    let (client, meter) = (service.client(), service.meter());
    let mebibytes = if is_soak() { 4 << 10 } else { 120 };
    let saved = client.put_zeros("large", mebibytes << 20).expect(200);
    assert_eq!(saved["size_bytes"], mebibytes << 20);
    meter.shows_little();
}
