//! What a conductor answers over HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{ConductorFixture, Running};
use crate::Run;

const HANG: &str =
    "agent: {kind: command, max_concurrent_agents: 1, command: 'echo begun; sleep 1000'}";

/// The HTTP API of a running conductor, with a token for it.
pub(super) struct StateApi {
    address: String,
    token: String,
}

pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Value,
}

impl StateApi {
    pub(super) fn of(fixture: &ConductorFixture, running: &Running) -> Self {
        let mark = "carrel run listening on http://";
        running.until("it listens", || running.log().contains(mark));
        let log = running.log();
        let address = log.split(mark).nth(1).and_then(|rest| rest.split(';').next()).unwrap();
        let token = Run::of(fixture.command(&["token", "new", "--data", "data", "--all"]));
        assert_eq!(token.code, 0, "{}", token.stderr);
        Self { address: address.to_owned(), token: token.stdout.trim().to_owned() }
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}",
            self.address
        )
        .unwrap();
        stream
    }

    pub(super) fn ask_with(&self, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        let mut text = String::new();
        self.send(method, path, headers, body).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = serde_json::from_str(body).unwrap_or_else(|_| json!(body));
        Reply { status, head: head.to_ascii_lowercase(), body }
    }

    pub(super) fn server(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token)
    }

    pub(super) fn get(&self, path: &str) -> Reply {
        self.ask_with("GET", path, &self.bearer(), "")
    }

    fn post(&self, path: &str, body: &str) -> Reply {
        self.ask_with("POST", path, &self.bearer(), body)
    }
}

pub(super) fn code(reply: &Reply) -> (u16, &str) {
    (reply.status, reply.body["error"]["code"].as_str().unwrap_or_default())
}

#[test]
fn item_111_and_118_the_routes_answer_with_their_shapes_and_codes() {
    let fixture = ConductorFixture::with(&format!("{HANG}\nserver: {{port: 1}}"));
    fixture.issue("one");
    fixture.issue("two");
    let running = fixture.start_with(&["--port", "0"]);
    let state_api = StateApi::of(&fixture, &running);
    assert!(state_api.address.starts_with("127.0.0.1:") && !state_api.address.ends_with(":1"));
    running.until("an agent is at work", || {
        state_api.get("/api/v1/state").body["running"][0]["phase"] == "turn"
    });
    let state = state_api.get("/api/v1/state");
    assert_eq!(state.status, 200);
    assert_eq!(state.body["counts"]["running"], 1);
    assert_eq!(state.body["running"][0]["issue_identifier"], "CAR-1");
    assert_eq!(state.body["waiting"][0]["issue_identifier"], "CAR-2");
    assert_eq!(state.body["codex_totals"]["attempts"], 1);
    let one = state_api.get("/api/v1/CAR-1");
    assert_eq!((one.status, &one.body["status"]), (200, &json!("running")));
    let log = &one.body["logs"]["codex_session_logs"][0];
    let transcript = log["path"].as_str().unwrap();
    assert!(std::path::Path::new(transcript).is_file(), "{log}");
    let same = state_api.get("/api/v1/issue?identifier=CAR-1").body;
    assert_eq!(same["issue_id"], one.body["issue_id"]);
    let id = one.body["issue_id"].as_str().unwrap();
    assert_eq!(state_api.get(&format!("/api/v1/issue?id={id}")).status, 200);

    assert_eq!(code(&state_api.get("/api/v1/CAR-9")), (404, "E_ISSUE_NOT_FOUND"));
    assert_eq!(code(&state_api.post("/api/v1/state", "")), (405, "E_METHOD_NOT_ALLOWED"));
    assert_eq!(code(&state_api.get("/api/v1/refresh")), (405, "E_METHOD_NOT_ALLOWED"));
    assert_eq!(code(&state_api.get("/api/v2/state")), (404, "E_UNKNOWN_ROUTE"));
    for headers in ["", "Authorization: Bearer nonsense\r\n"] {
        let reply = state_api.ask_with("GET", "/api/v1/state", headers, "");
        assert_eq!(code(&reply), (401, "E_UNAUTHENTICATED"));
        let reply = state_api.ask_with("POST", "/api/v1/refresh", headers, "{}");
        assert_eq!(code(&reply), (401, "E_UNAUTHENTICATED"));
        assert!(reply.head.contains("www-authenticate: bearer"), "{}", reply.head);
    }
    let refreshed = state_api.post("/api/v1/refresh", "anything");
    assert_eq!((refreshed.status, &refreshed.body["queued"]), (202, &json!(true)));
    assert_eq!(refreshed.body["operations"], json!(["poll", "reconcile"]));
    assert_eq!(running.end(), 0);
}

#[test]
fn orders_are_carried_out_or_refused_over_http() {
    let fixture = ConductorFixture::with(HANG);
    fixture.issue("one");
    let running = fixture.start_with(&["--port", "0"]);
    let state_api = StateApi::of(&fixture, &running);
    let status = |issue: &str| state_api.get(&format!("/api/v1/{issue}")).body["status"].clone();
    running.until("it runs", || status("CAR-1") == "running");
    assert_eq!(code(&state_api.post("/api/v1/CAR-1/retry", "")), (409, "E_ISSUE_CONFLICT"));
    assert_eq!(code(&state_api.post("/api/v1/CAR-1/unblock", "")), (409, "E_ISSUE_CONFLICT"));
    assert_eq!(code(&state_api.post("/api/v1/CAR-7/cancel", "")), (404, "E_ISSUE_NOT_FOUND"));
    let answered = state_api.post("/api/v1/CAR-1/answer", r#"{"answer":"yes"}"#);
    assert_eq!(code(&answered), (409, "E_ISSUE_CONFLICT"));
    for body in ["", "[]", r#"{"answer":""}"#, r#"{"answer":"a","more":1}"#] {
        let reply = state_api.post("/api/v1/CAR-1/answer", body);
        assert_eq!(code(&reply), (422, "E_INVALID_REQUEST"), "{body}");
    }
    assert_eq!(state_api.post("/api/v1/pause", "").body["mode"], "paused");
    assert_eq!(state_api.post("/api/v1/CAR-1/cancel", "").status, 200);
    running.until("it is blocked", || status("CAR-1") == "blocked");
    let blocked = state_api.get("/api/v1/state").body["blocked"][0].clone();
    assert_eq!(blocked["reason"], "cancelled");
    assert_eq!(state_api.post("/api/v1/issue/unblock?identifier=CAR-1", "").status, 200);
    assert_eq!(status("CAR-1"), "retrying", "nothing is begun while it is paused");
    assert_eq!(state_api.post("/api/v1/resume", "").body["mode"], "working");
    running.until("it runs again", || status("CAR-1") == "running");
    assert_eq!(running.end(), 0);
}

#[test]
fn orders_are_given_on_the_command_line_too() {
    let fixture = ConductorFixture::with(HANG);
    fixture.issue("one");
    let running = fixture.start_with(&["--port", "0"]);
    let state_api = StateApi::of(&fixture, &running);
    let tell = |words: &[&str]| {
        let mut command = fixture.command(&[&["conductor"], words].concat());
        command.env("CARREL_SERVER", format!("http://{}", state_api.address));
        command.env("CARREL_TOKEN", &state_api.token);
        Run::of(command)
    };
    running.until("it runs", || tell(&["show", "CAR-1"]).stdout == "CAR-1: running\n");
    let state = tell(&["state"]).stdout;
    assert!(state.starts_with("working: 1 running, 0 to be retried"), "{state}");
    assert_eq!(tell(&["pause"]).stdout, "paused, 1 agents at work\n");
    assert_eq!(tell(&["cancel", "CAR-1", "--json"]).code, 0);
    running.until("it is blocked", || tell(&["show", "CAR-1"]).stdout.contains("blocked"));
    let refused = tell(&["answer", "CAR-1", "yes", "--json"]);
    assert_eq!((refused.code, &refused.error()["code"]), (1, &json!("E_ISSUE_CONFLICT")));
    assert_eq!(tell(&["unblock", "CAR-1"]).stdout, "CAR-1: retrying\n");
    assert_eq!(tell(&["refresh"]).code, 0);
    assert!(tell(&["resume"]).stdout.starts_with("working"));
    running
        .until("it runs again", || tell(&["show", "CAR-1"]).stdout.starts_with("CAR-1: running\n"));
    assert_eq!(tell(&["pause"]).code, 0);
    assert_eq!(running.end(), 0);
    let paused = fixture.once();
    assert_eq!(paused.code, 0, "{}", paused.stderr);
    assert!(paused.stderr.contains("`carrel conductor resume` changes that"), "{}", paused.stderr);
}

#[test]
fn events_are_numbered_and_go_on_where_a_reader_was() {
    let fixture = ConductorFixture::with(HANG);
    let running = fixture.start_with(&["--port", "0"]);
    let state_api = StateApi::of(&fixture, &running);
    let read = |path: &str, wanted: &str| {
        let stream = state_api.send("GET", path, &state_api.bearer(), "");
        let mut ids = Vec::new();
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            ids.extend(line.strip_prefix("id: ").map(|id| id.parse::<u64>().unwrap()));
            if line == format!("event: {wanted}") {
                return ids;
            }
        }
        panic!("no {wanted} in {ids:?}");
    };
    state_api.post("/api/v1/pause", "");
    state_api.post("/api/v1/resume", "");
    let seen = read("/api/v1/events", "mode_changed");
    assert_eq!(seen.last(), Some(&1));
    let rest = read("/api/v1/events?last_event_id=1", "mode_changed");
    assert_eq!(rest, [2]);
    fixture.issue("one");
    let later = read("/api/v1/events?last_event_id=2", "dispatched");
    assert_eq!(later.first(), Some(&3));
    assert_eq!(running.end(), 0);
}

#[test]
fn what_happened_in_a_run_is_read_over_http_also_when_its_issue_is_gone() {
    let fixture = ConductorFixture::with(
        "agent: {kind: command, max_turns: 1, command: 'cat > prompt; echo said something'}",
    );
    fixture.issue("one");
    let running = fixture.start_with(&["--port", "0"]);
    let state_api = StateApi::of(&fixture, &running);
    running.until("a run is over", || {
        state_api.get("/api/v1/CAR-1/runs").body["runs"][0]["outcome"].is_string()
    });
    fixture.shift("CAR-1", "Done");
    running.until("the issue is forgotten", || state_api.get("/api/v1/CAR-1").status == 404);
    let runs = state_api.get("/api/v1/CAR-1/runs");
    let runs = runs.body["runs"].as_array().unwrap();
    let first = runs.last().unwrap();
    let url = first["url"].as_str().unwrap();
    let transcript = state_api.get(url);
    assert_eq!(transcript.status, 200, "{url}");
    assert!(transcript.head.contains("content-type: application/x-ndjson"), "{}", transcript.head);
    let text = transcript.body.as_str().unwrap();
    for words in ["run_started", "Do CAR-1.", "said something", "run_ended"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let number = first["run"].as_u64().unwrap();
    let same = state_api.get(&format!("/api/v1/CAR-1/runs/{number}")).body;
    assert_eq!(same, transcript.body);

    assert_eq!(code(&state_api.get("/api/v1/CAR-9/runs")), (404, "E_ISSUE_NOT_FOUND"));
    assert_eq!(code(&state_api.get("/api/v1/CAR-9/runs/1")), (404, "E_ISSUE_NOT_FOUND"));
    assert_eq!(code(&state_api.get("/api/v1/CAR-1/runs/999")), (404, "E_NOT_FOUND"));
    for run in ["..%2f..%2flock", "-1", "1.jsonl"] {
        let reply = state_api.get(&format!("/api/v1/CAR-1/runs/{run}"));
        assert_eq!(code(&reply), (422, "E_INVALID_REQUEST"), "{run}");
    }
    for path in ["/api/v1/CAR-1/runs", url] {
        let reply = state_api.ask_with("GET", path, "", "");
        assert_eq!(code(&reply), (401, "E_UNAUTHENTICATED"), "{path}");
    }
    let tell = |words: &[&str]| {
        let mut command = fixture.command(&[&["conductor"], words].concat());
        command.env("CARREL_SERVER", format!("http://{}", state_api.address));
        command.env("CARREL_TOKEN", &state_api.token);
        Run::of(command)
    };
    assert!(tell(&["runs", "CAR-1"]).stdout.starts_with(&runs[0]["run"].to_string()));
    let run = number.to_string();
    let shown = tell(&["transcript", "CAR-1", "--run", &run]);
    assert!(shown.stdout.contains("prompt  Do CAR-1."), "{} {}", shown.stdout, shown.stderr);
    assert_eq!(tell(&["transcript", "CAR-1", "--run", &run, "--json"]).stdout, text);
    assert!(tell(&["transcript", "CAR-1"]).stdout.contains("run_started"));
    std::fs::remove_file(first["path"].as_str().unwrap()).unwrap();
    assert_eq!(code(&state_api.get(url)), (404, "E_NOT_FOUND"), "what is not kept is not there");
    assert_eq!(running.end(), 0);
}

#[test]
fn a_token_for_single_workspaces_has_no_business_with_the_conductor() {
    let fixture = ConductorFixture::with(HANG);
    let running = fixture.start_with(&["--port", "0"]);
    let mut state_api = StateApi::of(&fixture, &running);
    let workspace = "11111111-2222-4333-8444-555555555555";
    let token = Run::of(fixture.command(&["token", "new", "--data", "data", "--id", workspace]));
    state_api.token = token.stdout.trim().to_owned();
    assert_eq!(code(&state_api.get("/api/v1/state")), (403, "E_FORBIDDEN"));
    let reader =
        Run::of(fixture.command(&["token", "new", "--data", "data", "--all", "--scope", "read"]));
    state_api.token = reader.stdout.trim().to_owned();
    assert_eq!(state_api.get("/api/v1/state").status, 200);
    assert_eq!(code(&state_api.post("/api/v1/pause", "")), (403, "E_FORBIDDEN"));
    assert_eq!(running.end(), 0);
}

#[test]
fn item_079_a_log_file_that_cannot_be_written_stops_nothing() {
    let fixture = ConductorFixture::with("agent: {kind: command, max_turns: 1, command: 'true'}");
    fixture.issue("one");
    let logs = fixture.fixture.path("logs");
    std::fs::write(&logs, "in the way").unwrap();
    let run = Run::of(fixture.command(&["run", "--once", "--logs-root", logs.to_str().unwrap()]));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("INFO Dispatched"), "{}", run.stderr);
}
