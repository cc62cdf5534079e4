//! Items of the acceptance list that only the whole program shows, by number (`docs/conformance.md`).

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::symlink;
use std::process::Stdio;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::ConductorFixture;
use super::seen::StateApi;
use crate::Run;

/// An agent that holds a lock as long as anything of it lives.
const LASTING: &str = "hooks: {after_run: 'echo $CARREL_ISSUE_IDENTIFIER >> OUTSIDE/ended'}\nagent:\n  kind: command\n  sandbox: {writable: [OUTSIDE]}\n  command: exec 9> OUTSIDE/$CARREL_ISSUE_IDENTIFIER.lock; flock -n 9; echo $CARREL_ISSUE_IDENTIFIER >> OUTSIDE/starts; setsid sleep 100 & sleep 100";

/// Moves its issue on when it has run.
const CLOSING: &str = "hooks:\n  after_run: '\"$CARREL\" issue move \"$CARREL_ISSUE_IDENTIFIER\" Done'\nagent: {kind: command, max_turns: 1, command: 'true'}";

/// Tells whether nothing lives of the agent of an issue.
fn is_gone(fixture: &ConductorFixture, issue: &str) -> bool {
    let lock = File::open(fixture.fixture.path("outside").join(format!("{issue}.lock"))).unwrap();
    lock.try_lock().is_ok()
}

fn starts(fixture: &ConductorFixture) -> Vec<String> {
    let mut starts: Vec<_> = fixture.notes("starts").lines().map(str::to_owned).collect();
    starts.sort();
    starts
}

#[test]
fn item_004_and_077_a_bad_edit_is_shown_begins_nothing_and_stops_nothing() {
    let fixture = ConductorFixture::with(LASTING);
    fixture.issue("one");
    let running = fixture.start_with(&["--port", "0"]);
    let state_api = StateApi::of(&fixture, &running);
    running.until("an agent works", || starts(&fixture) == ["CAR-1"]);
    fixture.write(&format!("{LASTING}\n  max_turns: many"));
    let error = || state_api.get("/api/v1/state").body["workflow_error"].clone();
    running.until("it is shown", || {
        error().as_str().is_some_and(|error| error.contains("agent.max_turns"))
    });
    let told = |line: &str| line.starts_with("WARN") && line.contains("agent.max_turns");
    running.until("it is logged", || running.log().lines().any(told));
    assert!(!is_gone(&fixture, "CAR-1"), "what runs goes on");
    fixture.issue("two");
    // What runs is kept in step, so the tracker has been looked at since.
    fixture.shift("CAR-1", "Done");
    running.until("the workspace is gone", || !fixture.workspace("CAR-1").exists());
    assert_eq!(starts(&fixture), ["CAR-1"]);
    fixture.write(LASTING);
    running.until("the other is begun", || starts(&fixture) == ["CAR-1", "CAR-2"]);
    running.until("nothing is wrong any more", || error() == Value::Null);
    assert_eq!(running.log().lines().filter(|line| told(line)).count(), 1, "it is said once");
    assert_eq!(running.end(), 0);
}

#[test]
fn item_045_046_107_and_108_an_issue_that_moves_on_loses_its_agent_before_its_workspace() {
    let fixture = ConductorFixture::with(LASTING);
    fixture.issue("one");
    fixture.issue("two");
    let running = fixture.start();
    running.until("both agents work", || starts(&fixture) == ["CAR-1", "CAR-2"]);
    assert!(!is_gone(&fixture, "CAR-1") && !is_gone(&fixture, "CAR-2"));
    fixture.shift("CAR-2", "Done");
    running.until("its workspace is gone", || !fixture.workspace("CAR-2").exists());
    assert!(is_gone(&fixture, "CAR-2"), "its agent was gone before");
    assert!(!is_gone(&fixture, "CAR-1"), "the other works on");
    fixture.shift("CAR-1", "Human Review");
    running.until("its agent is gone", || is_gone(&fixture, "CAR-1"));
    running.until("its hook has run", || fixture.notes("ended") == "CAR-2\nCAR-1\n");
    assert!(fixture.workspace("CAR-1").is_dir());
    assert_eq!(running.end(), 0);
    assert!(fixture.workspace("CAR-1").is_dir());
    fixture.shift("CAR-1", "Done");
    let running = fixture.start();
    running.until("it is cleaned up at the start", || !fixture.workspace("CAR-1").exists());
    assert_eq!(running.end(), 0);
    assert_eq!(starts(&fixture), ["CAR-1", "CAR-2"]);
}

#[test]
fn item_010_settings_that_the_tracker_refuses_are_said_by_check_and_by_run() {
    let fixture = ConductorFixture::new();
    let text = "---\ntracker: {kind: github, active_states: [open], terminal_states: [closed], provider: {repo: nonsense, token: ghp_hidden}}\n---\n";
    std::fs::write(fixture.fixture.path("WORKFLOW.md"), text).unwrap();
    for what in ["check", "run"] {
        let run = Run::of(fixture.command(&[what, "--json"]));
        assert_eq!((run.code, &run.error()["code"]), (1, &json!("E_WORKFLOW_INVALID")), "{what}");
        let message = run.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("repo") && message.contains("owner/name"), "{what}: {message}");
        assert!(!run.stderr.contains("hidden"), "{}", run.stderr);
    }
}

#[test]
fn item_021_what_goes_wrong_while_a_workspace_is_filled_ends_the_attempt_and_is_told() {
    let agent = "agent:\n  kind: command\n  max_turns: 1\n  sandbox: {writable: [OUTSIDE]}\n  command: echo x | tee -a OUTSIDE/agent";
    let hook = |hook: &str, timeout: u64| {
        format!("hooks: {{timeout_ms: {timeout}, after_create: '{hook}'}}\n{agent}")
    };
    let fixture = ConductorFixture::new();
    fixture.issue("one");
    for (script, timeout, said) in [
        ("echo no such branch; exit 5", 60_000, "hook after_create failed with status 5"),
        ("sleep 100", 500, "hook after_create timed out after 500 ms"),
    ] {
        fixture.write(&hook(script, timeout));
        let run = fixture.once();
        assert_eq!((run.code, &run.error()["code"]), (1, &json!("E_RUN_FAILED")), "{script}");
        let message = run.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(said), "{script}: {message}");
        assert!(!fixture.workspace("CAR-1").exists(), "{script}");
    }
    assert_eq!(fixture.notes("agent"), "");
    fixture.write(&hook("touch whole", 60_000));
    assert_eq!(fixture.once().code, 0);
    assert!(fixture.workspace("CAR-1").join("whole").exists());
    assert_eq!(fixture.notes("agent"), "x\n");
}

#[test]
fn item_078_and_109_lines_about_a_run_that_fails_name_its_issue_and_session() {
    let fixture = ConductorFixture::with(
        "hooks: {after_run: exit 4}\nagent: {kind: command, max_turns: 1, command: 'echo begun; exit 3'}",
    );
    fixture.issue("one");
    let logs = fixture.fixture.path("logs");
    let run = Run::of(fixture.command(&["run", "--once", "--logs-root", logs.to_str().unwrap()]));
    assert_eq!(run.code, 1, "{}", run.stderr);
    let text = std::fs::read_to_string(logs.join("log/carrel.log")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (message, in_session) in [
        ("Dispatched", false),
        ("Session started", true),
        ("A turn failed", true),
        ("Run ended", true),
        ("Will retry", false),
    ] {
        let line = lines.iter().find(|line| line["message"] == message);
        let line = line.unwrap_or_else(|| panic!("{message}: {text}"));
        let of = |name: &str| line["fields"][name].as_str();
        assert_eq!((of("issue_identifier"), of("issue_id")), (Some("CAR-1"), Some("CAR-1")));
        assert!(!in_session || of("session_id").is_some_and(|id| id.ends_with("-1")), "{line}");
    }
    let hook = |line: &&Value| line["message"].as_str().unwrap().starts_with("Workspace hook");
    let hook = lines.iter().find(hook).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(hook["fields"]["issue_identifier"], "CAR-1", "{hook}");
    assert_eq!(hook["fields"]["issue_id"], "CAR-1", "{hook}");
}

#[test]
fn item_079_a_log_that_takes_nothing_stops_nothing() {
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let closed = || Stdio::from(std::io::pipe().unwrap().1);
    for (what, stderr) in [("full", full()), ("closed", closed())] {
        let fixture = ConductorFixture::with(CLOSING);
        fixture.issue("one");
        let logs = fixture.fixture.path("logs");
        std::fs::create_dir_all(logs.join("log")).unwrap();
        symlink("/dev/full", logs.join("log/carrel.log")).unwrap();
        let mut command = fixture.command(&["run", "--once", "-v", "--logs-root"]);
        let status = command.arg(&logs).stdout(Stdio::null()).stderr(stderr).status().unwrap();
        assert_eq!(status.code(), Some(0), "{what}");
        assert_eq!(fixture.state("CAR-1"), "Done", "{what}");
    }
}

#[test]
fn item_086_088_and_111_what_cannot_be_used_is_said_before_anything_is_begun() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let agent = "agent:\n  kind: command\n  sandbox: {writable: [OUTSIDE]}\n  command: touch OUTSIDE/agent\n";
    for (more, arguments, (status, code), said) in [
        ("server: {port: many}", &[][..], (1, "E_WORKFLOW_INVALID"), "server.port"),
        ("", &["--port", port.as_str()], (1, "E_SPAWN_FAILED"), port.as_str()),
        ("server: {port: 0, host: 0.0.0.0}", &[], (2, "E_USAGE"), "0.0.0.0"),
    ] {
        let fixture = ConductorFixture::with(&format!("{agent}{more}"));
        fixture.issue("one");
        let run = Run::of(fixture.command(&[&["run", "--once", "--json"], arguments].concat()));
        assert_eq!((run.code, run.stdout.as_str()), (status, ""), "{more}: {}", run.stderr);
        let error = run.error();
        assert_eq!(error["code"], code, "{error}");
        assert!(error["message"].as_str().unwrap().contains(said), "{error}");
        assert!(!fixture.fixture.path("outside/agent").exists(), "{more}");
    }
}

/// GitHub, where every repository has one issue, which is open.
fn github() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = BufReader::new(stream.try_clone().unwrap());
            let (mut first, mut length) = (String::new(), 0);
            request.read_line(&mut first).unwrap();
            loop {
                let mut line = String::new();
                request.read_line(&mut line).unwrap();
                let line = line.trim_end().to_ascii_lowercase();
                length = line
                    .strip_prefix("content-length: ")
                    .map_or(length, |length| length.parse().unwrap());
                if line.is_empty() {
                    break;
                }
            }
            request.read_exact(&mut vec![0; length]).unwrap();
            let body = if first.starts_with("GET ") {
                json!([{ "number": 1, "node_id": "I_1", "title": "one", "state": "open" }])
            } else {
                let node = json!({ "id": "I_1", "number": 1, "title": "one", "state": "OPEN" });
                json!({ "data": { "repository": { "i1": node } } })
            };
            let body = body.to_string();
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    address
}

#[test]
fn item_099_issues_of_two_repositories_never_share_a_workspace() {
    let (fixture, github) = (ConductorFixture::new(), github());
    let (root, outside) = (fixture.fixture.root(), fixture.fixture.path("outside"));
    for repo in ["web", "api"] {
        let text = format!(
            "---\ntracker: {{kind: github, active_states: [open], terminal_states: [closed], provider: {{repo: acme/{repo}, token: t, api_url: 'http://{github}'}}}}\nworkspace: {{root: {}}}\nagent:\n  kind: command\n  max_turns: 1\n  sandbox: {{writable: [{}]}}\n  command: echo {repo} | tee -a work {}/agents\n---\nDo it.\n",
            root.display(),
            outside.display(),
            outside.display()
        );
        std::fs::write(fixture.fixture.path(&format!("{repo}.md")), text).unwrap();
    }
    let once = |file: &str| Run::of(fixture.command(&["run", file, "--once", "--json"]));
    let work = || std::fs::read_to_string(fixture.workspace("GH-1").join("work")).unwrap();
    let run = once("web.md");
    assert_eq!((run.code, work()), (0, "web\n".to_owned()), "{}", run.stderr);
    let refused = once("api.md");
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    let message = refused.error()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("another tracker") && message.contains("acme/web"), "{message}");
    assert_eq!((fixture.notes("agents"), work()), ("web\n".to_owned(), "web\n".to_owned()));
    assert_eq!(once("web.md").code, 0, "its own is used again");
    assert_eq!(work(), "web\nweb\n");
}

#[test]
fn item_111_the_api_is_where_the_file_says_and_nowhere_if_nobody_says() {
    let listens = |more: &str| {
        let fixture = ConductorFixture::with(&format!("{LASTING}\n{more}"));
        fixture.issue("one");
        let running = fixture.start();
        running.until("an agent works", || starts(&fixture) == ["CAR-1"]);
        let log = running.log();
        let address = log.split("listening on http://").nth(1);
        let address = address.and_then(|rest| rest.split(';').next()).map(str::to_owned);
        let answered = address.is_some().then(|| {
            let state = StateApi::of(&fixture, &running).get("/api/v1/state");
            (state.status, state.body["counts"]["running"].clone())
        });
        assert_eq!(running.end(), 0);
        (address, answered)
    };
    assert_eq!(listens(""), (None, None));
    for (more, host) in
        [("server: {port: 0}", "127.0.0.1:"), ("server: {port: 0, host: 127.0.0.2}", "127.0.0.2:")]
    {
        let (address, answered) = listens(more);
        assert!(address.as_ref().is_some_and(|there| there.starts_with(host)), "{address:?}");
        assert_eq!(answered, Some((200, json!(1))), "{more}");
    }
}
