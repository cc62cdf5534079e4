//! Repositories on GitHub, which is on loopback here.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::test_environment::{Client, Service, new_id};

const TOKEN: &str = "ghs_1234_eyJtoken.of-an.installation";

/// GitHub, for as long as this lives.
struct GitHub {
    directory: tempfile::TempDir,
    server: Child,
    host: String,
}

impl GitHub {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        std::fs::write(at.join("token"), TOKEN).unwrap();
        run(
            at,
            "openssl",
            &[
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=test",
                "-addext",
                "subjectAltName=IP:127.0.0.1",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
                "-keyout",
                "key.pem",
                "-out",
                "cert.pem",
            ],
        );
        run(at, "openssl", &["genrsa", "-out", "app.pem", "2048"]);
        run(at, "git", &["init", "-q", "-b", "main", "work"]);
        std::fs::write(at.join("work/file"), "one\n").unwrap();
        let commit = ["-C", "work", "-c", "user.name=a", "-c", "user.email=a@b"];
        run(at, "git", &[&commit[..], &["add", "."]].concat());
        run(at, "git", &[&commit[..], &["commit", "-qm", "one"]].concat());
        run(at, "git", &["clone", "-q", "--bare", "work", "acme/app.git"]);
        let mut server = Command::new("python3")
            .args(["-c", include_str!("github.py")])
            .current_dir(at)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let host = format!("127.0.0.1:{}", port.trim());
        Self { directory, server, host }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    /// What was noted.
    fn noted(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn serve(&self, more: &[(&str, &str)]) -> Service {
        let (url, certificate) = (format!("https://{}", self.host), self.path("cert.pem"));
        let usual = [
            ("SSL_CERT_FILE", certificate.as_str()),
            ("CARREL_GIT_HOSTS", &self.host),
            ("CARREL_GITHUB_HOST", &self.host),
            ("CARREL_GITHUB_API_URL", &url),
        ];
        Service::start_with(&[&usual[..], more].concat())
    }

    fn clone_with(&self, client: &Client, body: &Value) -> Value {
        let mut body = body.clone();
        body["repo_url"] = json!(format!("https://{}/acme/app", self.host));
        let taken = client.post(&client.at("/github/clone"), &body).expect(200);
        client.finished(taken["task_id"].as_str().unwrap())
    }
}

impl Drop for GitHub {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn run(at: &Path, program: &str, words: &[&str]) {
    let output = Command::new(program).args(words).current_dir(at).output().unwrap();
    assert!(output.status.success(), "{program} {words:?}: {output:?}");
}

/// Asserts that the token is in no file of the server, no answer and no event.
#[track_caller]
fn assert_nowhere(service: &Service, client: &Client, task: &Value) {
    let id = task["id"].as_str().unwrap();
    let events = client.read_some(&format!("/api/tasks/{id}/events"), &[]);
    for (place, text) in
        [("events", events), ("task", task.to_string()), ("log", service.server.stderr())]
    {
        assert!(!text.contains("ghs_1234") && !text.contains("eyJtoken"), "{place}: {text}");
    }
    for directory in ["data", "home", "state"] {
        let found = Command::new("grep")
            .args(["-rlaF", TOKEN])
            .arg(service.test_env.path(directory))
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "", "{directory}");
    }
}

#[test]
fn a_private_repository_is_cloned_with_the_token_of_an_app_which_is_nowhere_afterwards() {
    let github = GitHub::start();
    let (workspace, other) = (new_id(), new_id());
    let (allow, key) = (format!("{workspace}=acme"), github.path("app.pem"));
    let service = github.serve(&[
        ("GITHUB_APP_ID", "1234"),
        ("GITHUB_APP_PRIVATE_KEY_FILE", &key),
        ("CARREL_GITHUB_ALLOW", &allow),
    ]);
    let client = service.client_for(&workspace, "read,write,exec");
    let listed = client.get(&client.at("/github/repos")).expect(200);
    assert_eq!(
        (&listed["repos"][0]["full_name"], &listed["page"], &listed["per_page"]),
        (&json!("acme/app"), &json!(1), &json!(30))
    );

    let task = github.clone_with(&client, &json!({ "branch": "main" }));
    assert_eq!(task["status"], "completed", "{task}");
    assert_eq!(client.read("repos/app/file").expect(200)["content"], "one\n");
    let configuration = client.run("cat repos/app/.git/config");
    assert!(
        configuration.contains(&format!("https://{}/acme/app.git", github.host)),
        "{configuration}"
    );
    assert!(github.noted("granted").contains("/acme/app.git/info/refs"));
    assert!(
        github.noted("asked").contains(r#""repositories":["app"]"#),
        "{}",
        github.noted("asked")
    );
    assert_nowhere(&service, &client, &task);
    // The second time it is brought up to date, with the token that is kept.
    let again = github.clone_with(&client, &json!({}));
    assert_eq!(again["result"]["steps"][0]["result"]["cached"], true, "{again}");
    assert_eq!(again["status"], "completed", "{again}");
    assert_nowhere(&service, &client, &again);
    assert_eq!(github.noted("leaks"), "");

    // Another workspace gets neither the list nor the repository.
    let other = service.client_for(&other, "read,write,exec");
    other.get(&other.at("/github/repos")).is(404, "E_GITHUB_NOT_CONNECTED");
    let refused = github.clone_with(&other, &json!({}));
    assert_eq!(refused["status"], "failed", "{refused}");
    let asked = github.noted("asked").lines().count();
    assert_eq!(asked, 2, "one token for the list and one for the repository");
}

#[test]
fn a_token_can_be_brought_along_or_kept_as_a_credential() {
    let github = GitHub::start();
    let service = github.serve(&[]);
    let client = service.client();
    client.get(&client.at("/github/repos")).is(501, "E_NOT_CONFIGURED");
    let with = |token: &str| {
        let header = format!("X-GitHub-Token: {token}");
        client.send(&client.at("/github/repos?page=3&per_page=7"), &["--header", &header], None)
    };
    let listed = with("brought-along").expect(200);
    assert_eq!((&listed["page"], &listed["per_page"]), (&json!(3), &json!(7)));
    assert!(github.noted("heard").contains("per_page=7&page=3"));
    let refused = with("another-token");
    refused.is(502, "E_UPSTREAM_FAILED");
    assert!(refused.body.contains("Bad credentials") && !refused.body.contains("another-token"));
    for query in ["?page=0", "?per_page=101", "?per_page=0", "?credential=a/b", "?page=x"] {
        client.get(&client.at(&format!("/github/repos{query}"))).is(422, "E_INVALID_REQUEST");
    }

    let body = json!({ "git_token": { "host": github.host, "token": TOKEN } }).to_string();
    let put = ["--request", "PUT"];
    client.send(&client.at("/credentials/github"), &put, Some(body.as_bytes())).expect(200);
    client.get(&client.at("/github/repos?credential=github")).is(502, "E_UPSTREAM_FAILED");
    client.get(&client.at("/github/repos?credential=none")).is(404, "E_SECRET_UNKNOWN");
    let failed = github.clone_with(&client, &json!({}));
    assert_eq!(failed["status"], "failed", "without a token: {failed}");
    let task = github.clone_with(&client, &json!({ "credential": "github" }));
    assert_eq!(task["status"], "completed", "{task}");
    assert_eq!(client.read("repos/app/file").expect(200)["content"], "one\n");
    assert_nowhere(&service, &client, &task);
    assert_eq!(github.noted("leaks"), "");
}
