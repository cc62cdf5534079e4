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
