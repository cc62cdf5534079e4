use std::path::Path;
use std::sync::Arc;

use carrel_config::TierChoice;
use carrel_domain::{Secret, Tier};
use carrel_git::{Credential, CredentialSource};
use carrel_runner::{CommandForm, RunRequest};
use carrel_tools::{CallOptions, GitOptions, Interface};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{begin, call, repository, sure};
use crate::test_environment::{Setting, TestEnvironment};

fn with_origin(top: &Path) {
    begin(top);
    let main = top.join("main");
    sure(&main, &["clone", "-q", "--bare", ".", "origin.git"]);
    let url = main.join("origin.git").display().to_string();
    sure(&main, &["remote", "add", "origin", &url]);
    std::fs::write(main.join(".git/info/exclude"), "origin.git\ncopy\nserved\n*.py\nport\n")
        .unwrap();
}

#[tokio::test]
async fn a_repository_inside_is_cloned_fetched_pulled_and_pushed_to() {
    for tier in [TierChoice::Auto, TierChoice::Only(Tier::Landlock)] {
        let test_env =
            TestEnvironment::with(Setting { prepare: with_origin, tier, ..Setting::default() });
        test_env.open_to_others(tier);
        clone_and_back(&test_env).await;
    }
}

async fn clone_and_back(test_env: &TestEnvironment) {
    let answer = test_env.call("git", call("clone", "origin.git copy")).await;
    assert_eq!(answer.structured["destination"], "copy", "{}", answer.text());
    assert!(answer.text().ends_with("cloned into copy\n"), "{}", answer.text());
    assert!(!test_env.path("main/copy/.git/hooks").exists(), "no template");

    let in_copy = |operation: &str, args: &str| {
        let mut arguments = call(operation, args);
        arguments["cwd"] = json!("copy");
        arguments
    };
    test_env.put("copy/file", "changed\n");
    test_env.text("git", in_copy("commit", "-am change")).await;
    let answer = test_env.call("git", in_copy("push", "-u origin main")).await;
    assert_eq!(answer.structured["exit_code"], 0, "{}", answer.text());
    assert_eq!(answer.structured["trust_changes"], json!([]));

    let answer = test_env.call("git", call("pull", "--ff-only origin main")).await;
    assert_eq!(answer.structured["exit_code"], 0, "{}", answer.text());
    assert_eq!(test_env.get("file"), "changed\n");
    let answer = test_env.call("git", call("fetch", "")).await;
    assert_eq!(answer.structured["exit_code"], 0, "{}", answer.text());
    let status = test_env.text("git", in_copy("status", "")).await;
    assert!(status.starts_with("## main...origin/main\n"), "{status}");
    // By its path, from a directory below.
    let mut arguments = call("fetch", "../origin.git main");
    arguments["cwd"] = json!("copy");
    let answer = test_env.call("git", arguments).await;
    assert_eq!(answer.structured["exit_code"], 0, "{}", answer.text());
}

#[tokio::test]
async fn a_destination_that_exists_and_an_address_outside_are_refused() {
    let test_env = TestEnvironment::with(Setting { prepare: with_origin, ..Setting::default() });
    test_env.put("taken/x", "x");
    test_env.put("plain", "x");
    std::fs::create_dir(test_env.path("main/empty")).unwrap();
    for (args, says) in [
        ("origin.git taken", "exists and is not empty"),
        ("origin.git plain", "is a file"),
        ("origin.git .", "is the workspace itself"),
        ("origin.git .git/x", "lies in a repository's own directory"),
        ("origin.git ../x", "path leaves the workspace"),
        ("origin.git /tmp/x", "path leaves the workspace"),
        ("../state x", "path leaves the workspace"),
        ("file:///etc x", "path leaves the workspace"),
        ("nowhere x", "`nowhere` is neither a remote nor a directory of the workspace"),
        ("https://github.com/.. x", "names no repository"),
        ("'ext::sh -c touch% ran' x", "is no address"),
        ("ext::id x", "runs programs"),
        ("https://me:hunter2@github.com/a/b", "CARREL_GIT_TOKEN_GITHUB_COM"),
        ("ssh://git@github.com/a/b", "ssh is not set up"),
        ("http://10.0.0.5/a", "use https"),
        ("https://github.com/.git", "no directory name follows from it"),
    ] {
        let (_, text) = test_env.refusal("git", call("clone", args)).await;
        assert!(text.contains(says), "{args}: {text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    let answer = test_env.call("git", call("clone", "origin.git empty")).await;
    assert_eq!(answer.structured["exit_code"], 0, "{}", answer.text());
}

#[tokio::test]
async fn a_remote_is_held_against_the_same_rules_as_an_address() {
    for (url, says) in [
        ("ext::sh -c id", "remote origin: "),
        ("https://me:hunter2@example.com/x", "an address with a user or password is refused"),
        ("git@example.com:x/y", "ssh is not set up"),
        ("/etc", "path leaves the workspace"),
    ] {
        for operation in ["fetch", "pull", "push"] {
            // Each its own: a remote that runs programs is taken out again.
            let test_env = repository();
            sure(&test_env.path("main"), &["remote", "add", "origin", url]);
            let (_, text) = test_env.refusal("git", json!({ "operation": operation })).await;
            assert!(text.contains(says) && !text.contains("hunter2"), "{text}");
        }
    }
    let test_env = repository();
    let main = test_env.path("main");
    sure(&main, &["remote", "add", "origin", "https://example.com/x"]);
    let (_, text) = test_env.refusal("git", call("fetch", "orign")).await;
    assert!(
        text.contains(
            "`orign` is neither a remote nor a directory of the workspace; remotes: origin"
        ),
        "{text}"
    );
    sure(&main, &["config", "url.ext::id.insteadOf", "https://example.com/"]);
    let (_, text) = test_env.refusal("git", call("fetch", "origin")).await;
    assert!(text.contains("insteadof"), "{text}");
}

#[tokio::test]
async fn histories_that_parted_are_merged_or_put_on_top() {
    for (args, subjects) in [
        ("--no-rebase origin main", "Merge branch 'main'|own|theirs|first"),
        ("--rebase origin main", "own|theirs|first"),
    ] {
        let test_env = TestEnvironment::with(Setting {
            prepare: |top| {
                with_origin(top);
                let main = top.join("main");
                sure(&main, &["clone", "-q", "origin.git", "copy"]);
                std::fs::write(main.join("copy/theirs"), "x").unwrap();
                sure(&main.join("copy"), &["add", "theirs"]);
                sure(&main.join("copy"), &["commit", "-q", "-m", "theirs"]);
                sure(&main.join("copy"), &["push", "-q"]);
                sure(&main, &["commit", "-q", "--allow-empty", "-m", "own"]);
            },
            ..Setting::default()
        });
        let answer = test_env.call("git", call("pull", args)).await;
        assert_eq!(answer.structured["exit_code"], 0, "{}", answer.text());
        let log = sure(&test_env.path("main"), &["log", "--topo-order", "--format=%s"]);
        let mut found: Vec<_> =
            log.lines().map(|line| line.split(" of ").next().unwrap()).collect();
        let mut expected: Vec<_> = subjects.split('|').collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn only_hosts_that_the_operator_names_are_reached() {
    let git = GitOptions { hosts: vec!["github.com".into()], ..GitOptions::default() };
    let test_env = TestEnvironment::with(Setting { git, ..Setting::default() });
    let (code, text) = test_env.refusal("git", call("clone", "https://example.com/a/b")).await;
    assert_eq!(code, "E_GIT_REFUSED");
    assert!(text.contains("none of the hosts that git may reach: github.com"), "{text}");
}

/// Serves `served` over http to those who know the password.
const SERVER: &str = r#"
import base64, http.server, os, subprocess, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.serve()
    def do_POST(self): self.serve()
    def log_message(self, *args): pass
    def serve(self):
        expected = "Basic " + base64.b64encode(b"ann:hunter2-token").decode()
        if self.headers.get("Authorization") != expected:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": os.path.abspath("served"), "GIT_HTTP_EXPORT_ALL": "1",
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
               "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_USER": "ann",
               "CONTENT_TYPE": self.headers.get("Content-Type") or "", "CONTENT_LENGTH": str(len(body)),
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
               "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol") or ""}
        done = subprocess.run(["git", "http-backend"], input=body, env=env, stdout=subprocess.PIPE)
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        status = 200
        fields = [line.split(b": ", 1) for line in head.split(b"\r\n")]
        for name, value in fields:
            if name == b"Status": status = int(value.split()[0])
        self.send_response(status)
        for name, value in fields:
            if name != b"Status": self.send_header(name.decode(), value.decode())
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("port", server.server_address[1], flush=True)
server.serve_forever()
"#;

#[derive(Debug)]
struct Ann;

impl CredentialSource for Ann {
    fn for_host(&self, workspace: &str, host: &str) -> Option<Credential> {
        let known = workspace == "main" && host.starts_with("localhost:");
        let password = Secret::new("hunter2-token");
        known.then(|| Credential { username: "ann".into(), password })
    }

    fn known(&self) -> Vec<(String, Secret)> {
        vec![("ann".into(), Secret::new("hunter2-token"))]
    }
}

/// Starts the server in the workspace's own network, and returns its port.
async fn serve(test_env: &TestEnvironment) -> String {
    test_env.put("server.py", SERVER);
    let started = json!({
        "command": "exec /usr/bin/python3 server.py", "run_in_background": true, "network": "loopback"
    });
    let answer = test_env.call("Bash", started).await;
    let shell_id = answer.structured["shell_id"].as_str().unwrap().to_owned();
    let output = json!({ "shell_id": shell_id, "wait_seconds": 30, "cursor": 0 });
    let text = test_env.text("BashOutput", output).await;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("port "))
        .unwrap_or_else(|| panic!("{text}"));
    line.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_reaches_git_and_nothing_else() {
    let git = GitOptions { credentials: Some(Arc::new(Ann)), ..GitOptions::default() };
    let test_env = TestEnvironment::with(Setting {
        git,
        prepare: |top| {
            begin(top);
            let main = top.join("main");
            sure(&main, &["clone", "-q", "--bare", ".", "served/repo.git"]);
            // Programs that would see the credential, or be asked for it.
            for (name, value) in
                [("credential.helper", "!touch ran-helper; true"), ("core.askPass", "./evil")]
            {
                sure(&main, &["config", name, value]);
            }
        },
        ..Setting::default()
    });
    let port = serve(&test_env).await;
    let url = format!("http://localhost:{port}/repo.git");
    let answer = test_env.call("git", call("clone", &format!("{url} copy"))).await;
    assert_eq!(answer.structured["exit_code"], 0, "{}", answer.text());
    assert_eq!(test_env.get("copy/file"), "one\ntwo\nthree\n");

    let in_copy = |operation: &str, args: &str| -> Value {
        let mut arguments = call(operation, args);
        arguments["cwd"] = json!("copy");
        arguments
    };
    test_env.put("copy/file", "changed\n");
    test_env.text("git", in_copy("commit", "-am change")).await;
    for (operation, args) in [("push", "origin main"), ("fetch", "--prune"), ("pull", "")] {
        let answer = test_env.call("git", in_copy(operation, args)).await;
        assert_eq!(answer.structured["exit_code"], 0, "{operation}: {}", answer.text());
        assert!(!answer.text().contains("hunter2"), "{}", answer.text());
    }
    assert_eq!(
        sure(&test_env.path("main"), &["-C", "served/repo.git", "log", "-1", "--format=%s"]),
        "change"
    );
    // With the settings of the repository that has helpers of its own.
    let answer = test_env.call("git", call("fetch", &format!("{url} main"))).await;
    assert_eq!(answer.structured["exit_code"], 0, "{}", answer.text());
    assert!(!test_env.path("main/ran-helper").exists());

    let server = std::fs::read_to_string(test_env.path("main/server.py")).unwrap();
    assert!(server.contains("hunter2-token"));
    std::fs::remove_file(test_env.path("main/server.py")).unwrap();
    let found = std::process::Command::new("grep")
        .args(["-r", "hunter2"])
        .arg(test_env.path("main"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "", "in no file of the workspace");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_credential_is_named() {
    let test_env = TestEnvironment::with(Setting {
        prepare: |top| {
            begin(top);
            sure(&top.join("main"), &["clone", "-q", "--bare", ".", "served/repo.git"]);
        },
        ..Setting::default()
    });
    let port = serve(&test_env).await;
    let answer = test_env
        .call("git", call("clone", &format!("http://localhost:{port}/repo.git copy")))
        .await;
    assert_eq!(answer.structured["exit_code"], 128, "{}", answer.text());
    let variable = format!("CARREL_GIT_TOKEN_LOCALHOST___{port}");
    assert!(answer.text().contains(&variable), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_of_one_call_reaches_that_call_alone_and_its_variables_never_reach_git() {
    let test_env = TestEnvironment::with(Setting {
        prepare: |top| {
            begin(top);
            sure(&top.join("main"), &["clone", "-q", "--bare", ".", "served/repo.git"]);
        },
        ..Setting::default()
    });
    let url = format!("http://localhost:{}/repo.git", serve(&test_env).await);
    let mut options = CallOptions::new(Interface::Task);
    options.command_settings.credentials = Some(Arc::new(Ann));
    options.command_settings.environment = vec![(
        "GIT_TRACE".to_owned(),
        Secret::new(test_env.path("main/trace").display().to_string()),
    )];
    let Value::Object(arguments) = call("clone", &format!("{url} copy")) else { panic!() };
    let answer = test_env.registry.call(&test_env.session, "git", arguments, options).await;
    assert_eq!(answer.structured["exit_code"], 0, "{}", answer.text());
    assert!(!test_env.path("main/trace").exists());
    let answer = test_env.call("git", call("clone", &format!("{url} again"))).await;
    assert_eq!(answer.structured["exit_code"], 128, "{}", answer.text());
}

#[tokio::test]
async fn a_helper_can_read_its_descriptor_in_both_tiers() {
    for tier in [TierChoice::Auto, TierChoice::Only(Tier::Landlock)] {
        let test_env = TestEnvironment::with(Setting { tier, ..Setting::default() });
        test_env.open_to_others(tier);
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::fs::fchmod(&reader, rustix::fs::Mode::from_raw_mode(0o444)).unwrap();
        rustix::io::write(&writer, b"password=x").unwrap();
        drop(writer);
        let argv = ["sh", "-c", "cat /proc/self/fd/100"].iter().map(Into::into).collect();
        let request =
            RunRequest { inherited: vec![reader], ..RunRequest::new(CommandForm::Argv(argv)) };
        let toolbox = test_env.registry.toolbox();
        let workspace = toolbox.workspaces.iter().next().unwrap();
        let completed = toolbox
            .runner
            .run(workspace.handle(), request, &CancellationToken::new())
            .await
            .unwrap();
        assert_eq!(
            completed.outcome.stdout.head, b"password=x",
            "{tier:?}: {:?}",
            completed.outcome
        );
    }
}
