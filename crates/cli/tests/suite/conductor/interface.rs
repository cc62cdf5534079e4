use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{ConductorFixture, Running};
use crate::Run;

/// Returns where a conductor listens.
fn address(running: &Running) -> Option<String> {
    let log = running.log();
    let rest = log.split_once("listening on ")?.1;
    rest.split_once(';').map(|(address, _)| address.to_owned())
}

fn ask(address: &str, token: &str, method: &str, path: &str) -> (String, Value) {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-X", method, "-w", "\n%{http_code}", "-H"])
        .arg(format!("Authorization: Bearer {token}"))
        .arg(format!("{address}{path}"));
    let answer = Run::of(curl).stdout;
    let (body, status) = answer.rsplit_once('\n').unwrap();
    (status.to_owned(), serde_json::from_str(body).unwrap_or_default())
}

#[test]
fn programs_see_what_agents_do_and_give_orders() {
    let fixture = ConductorFixture::with(
        "server: {port: 1}\nagent:\n  kind: command\n  sandbox: {writable: [OUTSIDE]}\n  command: echo x >> OUTSIDE/starts; sleep 100",
    );
    fixture.issue("one");
    let running = fixture.start_with(&["--port", "0"]);
    running.until("it listens", || address(&running).is_some());
    let address = address(&running).unwrap();
    let token =
        Run::of(fixture.command(&["token", "new", "--all", "--scope", "read,write,exec,admin"]));
    let token = token.stdout.trim();
    running.until("an agent works", || fixture.notes("starts") == "x\n");
    let (status, state) = ask(&address, token, "GET", "/api/v1/state");
    assert_eq!((status.as_str(), &state["counts"]["running"]), ("200", &json!(1)), "{state}");
    assert_eq!(state["running"][0]["issue_identifier"], "CAR-1");
    let (status, issue) = ask(&address, token, "GET", "/api/v1/CAR-1");
    assert_eq!((status.as_str(), &issue["status"]), ("200", &json!("running")), "{issue}");
    assert_eq!(ask(&address, token, "POST", "/api/v1/refresh").0, "202");
    assert_eq!(ask(&address, "nobody", "GET", "/api/v1/state").0, "401");
    assert_eq!(running.end(), 0);
}

/// Sends a request without a body, and returns its status and the code of a refusal.
fn send(address: &str, method: &str, path: &str, headers: &[&str]) -> (String, Value) {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-X", method, "-w", "\n%{http_code}"]);
    curl.args(headers.iter().flat_map(|header| ["-H", *header]));
    curl.arg(format!("{address}{path}"));
    let answer = Run::of(curl).stdout;
    let (body, status) = answer.rsplit_once('\n').unwrap();
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    (status.to_owned(), body["error"]["code"].clone())
}

#[test]
fn a_foreign_host_or_page_gets_nothing_from_a_conductor_without_a_token() {
    let fixture = ConductorFixture::with("agent: {kind: command, command: 'true'}");
    let running = fixture.start_with(&["--port", "0"]);
    running.until("it listens", || address(&running).is_some());
    let address = address(&running).unwrap();
    let token = Run::of(fixture.command(&["token", "new", "--all", "--scope", "read,exec"]));
    let token = token.stdout.trim();
    let (bearer, cookie) =
        (format!("Authorization: Bearer {token}"), format!("Cookie: carrel_session={token}"));
    let refused = ("403".to_owned(), json!("E_HOST_REFUSED"));
    for foreign in [
        "Host: evil.example",
        "Host: 127.0.0.1.nip.io",
        "Origin: http://evil.example",
        "Origin: null",
    ] {
        for path in ["/api/v1/state", "/api/v1/events", "/api/v1/CAR-1", "/nothing"] {
            assert_eq!(send(&address, "GET", path, &[foreign]), refused, "{foreign} {path}");
            assert_eq!(send(&address, "GET", path, &[foreign, &cookie]), refused, "{foreign}");
            // A token that is not valid proves nothing.
            let forged = [foreign, "Authorization: Bearer a.b.c"];
            assert_eq!(send(&address, "GET", path, &forged), refused, "{foreign} {path}");
        }
        let order = send(&address, "POST", "/api/v1/pause", &[foreign, &cookie]);
        assert_eq!(order, refused, "{foreign}");
        let known = send(&address, "GET", "/api/v1/state", &[foreign, &bearer]);
        assert_eq!(known.0, "200", "{foreign}");
    }
    // A tracker's webhook brings a signature, under the name by which it reaches the conductor.
    let webhook = send(&address, "POST", "/api/v1/refresh", &["Host: tunnel.example"]);
    assert_eq!(webhook, ("401".to_owned(), json!("E_UNAUTHENTICATED")));
    let page = ["Host: evil.example", "Origin: http://evil.example"];
    assert_eq!(send(&address, "POST", "/api/v1/refresh", &page), refused);
    assert_eq!(running.end(), 0);
}

#[test]
fn public_urls_are_names_of_a_conductor() {
    let fixture = ConductorFixture::with("agent: {kind: command, command: 'true'}");
    let running = fixture.start_in(&["--port", "0"], |command| {
        command.env("CARREL_PUBLIC_URLS", "https://carrel.example.com");
    });
    running.until("it listens", || address(&running).is_some());
    let address = address(&running).unwrap();
    let own = ["Host: carrel.example.com", "Origin: https://carrel.example.com"];
    assert_eq!(send(&address, "GET", "/api/v1/state", &own).0, "401");
    let other = send(&address, "GET", "/api/v1/state", &["Host: example.com"]);
    assert_eq!(other, ("403".to_owned(), json!("E_HOST_REFUSED")));
    assert_eq!(running.end(), 0);
}
