//! Calls of trackers that something has changed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use pretty_assertions::assert_eq;
use ring::hmac;

use super::seen::{StateApi, code};
use super::{ConductorFixture, Running};

const SECRET: &str = "hook-secret";

/// A tracker on loopback that has nothing to tell, and counts how often it is asked.
struct Quiet {
    address: String,
    asked: Arc<AtomicUsize>,
}

impl Quiet {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let counted = Arc::clone(&counted);
                std::thread::spawn(move || answer(stream.unwrap(), &counted));
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn answer(stream: TcpStream, asked: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    for line in reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()) {
        let line = line.to_ascii_lowercase();
        length =
            line.strip_prefix("content-length: ").map_or(length, |value| value.parse().unwrap());
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    asked.fetch_add(1, Ordering::SeqCst);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let _ = write!(reader.into_inner(), "{head}Content-Length: 2\r\n\r\n[]");
}

/// An fixture that would look at its tracker once an hour.
fn fixture(tracker: &str, quiet: &Quiet) -> ConductorFixture {
    let fixture = ConductorFixture::new();
    let tracker = tracker.replace("HERE", &format!("http://{}", quiet.address));
    let root = fixture.fixture.root();
    let text = format!(
        "---\ntracker: {tracker}\npolling: {{interval_ms: 3600000}}\nworkspace: {{root: {}}}\nagent: {{kind: command, command: 'true'}}\n---\n",
        root.display()
    );
    std::fs::write(fixture.fixture.path("WORKFLOW.md"), text).unwrap();
    fixture
}

fn start(fixture: &ConductorFixture) -> (Running, StateApi) {
    let log = fixture.fixture.path("run.log");
    let file = std::fs::File::create(&log).unwrap();
    let mut command = fixture.command(&["run", "--port", "0"]);
    for name in ["GITHUB_TOKEN", "LINEAR_API_KEY", "ASANA_PAT"] {
        command.env(name, "key");
    }
    if !fixture.fixture.path("no-secret").exists() {
        command.env("CARREL_WEBHOOK_SECRET", SECRET);
    }
    let child = command.stdout(std::process::Stdio::null()).stderr(file).spawn().unwrap();
    let running = Running { child, log };
    let state_api = StateApi::of(fixture, &running);
    running.until("the first look is over", || {
        let polling = state_api.get("/api/v1/state").body["polling"].clone();
        polling["checking"] == false && polling["next_poll_in_ms"].as_u64() > Some(60_000)
    });
    (running, state_api)
}

fn sign(secret: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, body.as_bytes());
    carrel_domain::hex::encode(tag.as_ref())
}

fn call(state_api: &StateApi, header: &str, body: &str) -> super::seen::Reply {
    state_api.ask_with("POST", "/api/v1/refresh", &format!("{header}\r\n"), body)
}

#[test]
fn a_signed_call_of_the_tracker_makes_it_look_at_once() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let body = format!("{{\"webhookTimestamp\":{now}}}");
    for (tracker, header, prefix) in [
        (
            "{kind: github, provider: {repo: o/r, api_url: HERE}, active_states: [open], terminal_states: [closed]}",
            "X-Hub-Signature-256",
            "sha256=",
        ),
        ("{kind: linear, provider: {project_slug: web, endpoint: HERE}}", "Linear-Signature", ""),
    ] {
        let quiet = Quiet::start();
        let fixture = fixture(tracker, &quiet);
        let (running, state_api) = start(&fixture);
        let before = quiet.asked();
        assert!(before > 0, "{tracker}");
        for (secret, told) in [("other", &*body), (SECRET, "something else")] {
            let header = format!("{header}: {prefix}{}", sign(secret, told));
            let reply = call(&state_api, &header, &body);
            assert_eq!(code(&reply), (401, "E_UNAUTHENTICATED"), "{tracker}");
        }
        assert_eq!(quiet.asked(), before, "{tracker}");
        let reply = call(&state_api, &format!("{header}: {prefix}{}", sign(SECRET, &body)), &body);
        assert_eq!(reply.status, 202, "{tracker}: {}", reply.body);
        running.until("the tracker is asked again", || quiet.asked() > before);
        assert_eq!(running.end(), 0);
    }
}

#[test]
fn asana_chooses_a_secret_that_is_kept_and_said_to_nobody_else() {
    let quiet = Quiet::start();
    let fixture = fixture(
        "{kind: asana, provider: {project_gid: '1200', endpoint: HERE}, active_states: [To do], terminal_states: [Done]}",
        &quiet,
    );
    std::fs::write(fixture.fixture.path("no-secret"), "").unwrap();
    let (running, state_api) = start(&fixture);
    let signed = |secret: &str, body: &str| format!("X-Hook-Signature: {}", sign(secret, body));
    let early = call(&state_api, &signed("chosen-by-asana", "{}"), "{}");
    assert_eq!(code(&early), (401, "E_UNAUTHENTICATED"));

    let reply = call(&state_api, "X-Hook-Secret: chosen-by-asana", "");
    assert_eq!(reply.status, 204, "{}", reply.body);
    assert!(reply.head.contains("x-hook-secret: chosen-by-asana"), "{}", reply.head);
    let again = call(&state_api, "X-Hook-Secret: chosen-by-asana", "");
    assert_eq!(again.status, 204, "it may be told twice");
    let other = call(&state_api, "X-Hook-Secret: chosen-by-another", "");
    assert_eq!(code(&other), (403, "E_FORBIDDEN"));
    assert!(!other.head.contains("chosen") && !other.body.to_string().contains("chosen"));

    let forged = call(&state_api, &signed("chosen-by-another", "{}"), "{}");
    assert_eq!(code(&forged), (401, "E_UNAUTHENTICATED"));
    let before = quiet.asked();
    assert_eq!(call(&state_api, &signed("chosen-by-asana", "{}"), "{}").status, 202);
    running.until("the tracker is asked again", || quiet.asked() > before);
    assert!(!running.log().contains("chosen-by"), "{}", running.log());
    assert_eq!(running.end(), 0);

    let (running, state_api) = start(&fixture);
    let before = quiet.asked();
    assert_eq!(call(&state_api, &signed("chosen-by-asana", "{}"), "{}").status, 202, "it was kept");
    running.until("the tracker is asked again", || quiet.asked() > before);
    assert!(!running.log().contains("chosen-by"), "{}", running.log());
    assert_eq!(running.end(), 0);
}
