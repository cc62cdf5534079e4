//! Who may do what where.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::test_environment::{Client, Service, new_id};
use crate::eventually;

/// The status of every kind of request.
fn statuses(client: &Client) -> Vec<(&'static str, u16)> {
    let shell = |network: &str| json!({ "steps": [{ "action": "shell", "command": "true", "network": network }] });
    let tool = json!({ "steps": [{
        "action": "tool",
        "tool": "Bash",
        "arguments": { "command": "true", "network": "loopback" },
    }] });
    let post = |path: &str, body| client.post(path, &body).status;
    vec![
        ("list files", client.get(&client.at("/files")).status),
        ("list tasks", client.get("/api/tasks").status),
        ("tools", client.get("/api/tools").status),
        ("metrics", client.get("/metrics").status),
        ("workspaces", client.get("/api/workspaces").status),
        ("write", client.write("f", "x").status),
        (
            "tool that writes",
            post(&client.at("/tools/Write"), json!({ "file_path": "g", "content": "x" })),
        ),
        ("exec", client.exec("true").status),
        ("tool that runs", post(&client.at("/tools/Bash"), json!({ "command": "true" }))),
        ("submit", post("/api/tasks/submit", shell("none"))),
        (
            "exec with a network",
            post(&client.at("/exec"), json!({ "command": "true", "network": "loopback" })),
        ),
        (
            "tool with a network",
            post(&client.at("/tools/Bash"), json!({ "command": "true", "network": "loopback" })),
        ),
        ("step with a network", post("/api/tasks/submit", shell("loopback"))),
        ("tool step with a network", post("/api/tasks/submit", tool)),
        ("new workspace", post("/api/workspaces", json!({ "name": "x" }))),
        ("remove", client.delete(&client.at("")).status),
    ]
}

#[test]
fn each_scope_allows_its_own_and_nothing_else() {
    let service = Service::start();
    let reads = ["list files", "list tasks", "tools", "metrics", "workspaces"];
    let writes = ["write", "tool that writes"];
    let runs = ["exec", "tool that runs", "submit"];
    let networks = [
        "exec with a network",
        "tool with a network",
        "step with a network",
        "tool step with a network",
    ];
    let all = [&reads[..], &writes, &runs, &networks].concat();
    for (scopes, allowed) in [
        ("read", reads.to_vec()),
        ("write", writes.to_vec()),
        ("exec", runs.to_vec()),
        ("net", vec![]),
        ("exec,net", [&runs[..], &networks].concat()),
        ("read,write,exec", [&reads[..], &writes, &runs].concat()),
        ("admin", [&all[..], &["new workspace"]].concat()),
    ] {
        let client = service.client_for(&new_id(), scopes);
        // Others have been here, so that nothing is missing.
        service.client_for(&client.workspace, "read").get(&client.at("")).expect(200);
        let found = statuses(&client);
        for (what, status) in found {
            let expected = match what {
                "new workspace" => allowed.contains(&what).then_some(201),
                // Its tasks may still run.
                "remove" => (scopes == "admin").then_some(if status == 409 { 409 } else { 204 }),
                _ => allowed.contains(&what).then_some(200),
            };
            assert_eq!(status, expected.unwrap_or(403), "{what} with {scopes}");
        }
    }
}

#[test]
fn a_token_of_one_workspace_is_worth_nothing_in_another() {
    let service = Service::start();
    let (mine, theirs) = (service.client(), service.client());
    theirs.write("secret", "theirs").expect(200);
    let task = theirs.submit_command("sleep 300");
    let thief = Client { workspace: theirs.workspace.clone(), ..mine.clone() };
    thief.get(&thief.at("")).is(403, "E_FORBIDDEN");
    thief.read("secret").is(403, "E_FORBIDDEN");
    thief.write("secret", "mine").is(403, "E_FORBIDDEN");
    thief.exec("cat secret").is(403, "E_FORBIDDEN");
    thief.get(&thief.at("/usage")).is(403, "E_FORBIDDEN");
    thief.post(&thief.at("/git"), &json!({ "operation": "status" })).is(403, "E_FORBIDDEN");
    thief.post(&thief.at("/tools/Read"), &json!({ "file_path": "secret" })).is(403, "E_FORBIDDEN");
    let clone = json!({ "repo_url": "https://github.com/a/b" });
    thief.post(&thief.at("/github/clone"), &clone).is(403, "E_FORBIDDEN");
    thief.get(&format!("/api/tasks?workspace_id={}", theirs.workspace)).is(403, "E_FORBIDDEN");
    let body = json!({ "steps": [{ "action": "shell", "command": "ls" }], "workspace_id": theirs.workspace });
    thief.post("/api/tasks/submit", &body).is(403, "E_FORBIDDEN");
    let header = format!("X-Workspace-ID: {}", theirs.workspace);
    thief.send("/api/tasks", &["--header", &header], None).is(403, "E_FORBIDDEN");
    // A task of theirs is not even there.
    for path in ["", "/events"] {
        thief.get(&format!("/api/tasks/{task}{path}")).is(404, "E_TASK_NOT_FOUND");
    }
    for path in ["/cancel", "/events/ticket"] {
        thief.post(&format!("/api/tasks/{task}{path}"), &json!({})).is(404, "E_TASK_NOT_FOUND");
    }
    assert_eq!(theirs.read("secret").expect(200)["content"], "theirs");
}

#[test]
fn whoever_has_several_workspaces_says_which() {
    let service = Service::start();
    let (one, two) = (new_id(), new_id());
    let token = service.token(&["--id", &one, "--id", &two]);
    let client = Client { address: service.address, token: Some(token), workspace: one.clone() };
    let mut body = json!({ "steps": [{ "action": "shell", "command": "true" }] });
    client.post("/api/tasks/submit", &body).is(422, "E_INVALID_REQUEST");
    client.get("/api/tasks").is(422, "E_INVALID_REQUEST");
    body["workspace_id"] = json!(two);
    let task = client.submit(&body);
    assert_eq!(client.finished(&task)["workspace_id"], two.as_str());
    let header = format!("X-Workspace-ID: {one}");
    assert_eq!(client.send("/api/tasks", &["--header", &header], None).expect(200)["total"], 0);
    client
        .send("/api/tasks", &["--header", "X-Workspace-ID: one"], None)
        .is(422, "E_INVALID_REQUEST");
    // Who names two has named none.
    let body = json!({ "steps": [{ "action": "shell", "command": "true" }], "workspace_id": two });
    let words = ["--header", &header];
    let reply = client.send("/api/tasks/submit", &words, Some(body.to_string().as_bytes()));
    reply.is(422, "E_INVALID_REQUEST");
    let path = format!("/api/tasks?workspace_id={two}");
    client.send(&path, &words, None).is(422, "E_INVALID_REQUEST");
    // A token for all of them makes none by the way.
    service
        .operator()
        .get(&format!("/api/workspaces/{}/files", new_id()))
        .is(404, "E_WORKSPACE_NOT_FOUND");
}

#[test]
fn without_a_valid_token_there_is_nothing() {
    let service = Service::start();
    let client = service.client();
    let task = client.submit_command("true");
    let token = client.token.clone().unwrap();
    let (head, signature) = token.rsplit_once('.').unwrap();
    let flipped: String = signature.chars().rev().collect();
    let short = service.token(&["--id", &client.workspace, "--ttl", "4s"]);
    let expiring = Client { token: Some(short), ..client.clone() };
    expiring.get(&client.at("/files")).expect(200);
    let other = Service::start();
    let tokens = [
        None,
        Some("x".to_owned()),
        Some(format!("{head}.{flipped}")),
        Some(format!("{head}.")),
        Some(other.token(&["--id", &client.workspace])),
    ];
    for token in tokens {
        let client = Client { token, ..client.clone() };
        for path in ["/api/tasks", "/api/tools", "/api/workspaces", "/metrics"] {
            let reply = client.get(path);
            reply.is(401, "E_UNAUTHENTICATED");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        }
        client.get(&client.at("/files")).is(401, "E_UNAUTHENTICATED");
        client.exec("true").is(401, "E_UNAUTHENTICATED");
        client.get(&format!("/api/tasks/{task}/events")).is(401, "E_UNAUTHENTICATED");
    }
    eventually("the token ends", || expiring.get(&client.at("/files")).status == 401);
    expiring.get(&client.at("/files")).is(401, "E_UNAUTHENTICATED");

    // These tell nothing and are open.
    let stranger = service.stranger();
    assert_eq!(stranger.get("/healthz").expect(200), json!({ "status": "ok" }));
    let ready = json!({ "status": "ready", "store": "ok", "queue": "ok", "space": "ok" });
    assert_eq!(stranger.get("/readyz").expect(200), ready);
}

#[test]
fn the_printed_link_begins_one_session_and_is_worth_nothing_then() {
    let service = Service::start();
    let stranger = service.stranger();
    let said = service.server.stderr();
    let link = said.split_once("/?token=").unwrap().1.split_whitespace().next().unwrap();
    let path = format!("/?token={link}");
    let page = stranger.get("/");
    assert_eq!(page.status, 200);
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    assert!(page.body.contains("<html"), "{page:?}");
    stranger.get("/?token=wrong").is(401, "E_UNAUTHENTICATED");

    let begun = stranger.get(&path);
    assert_eq!((begun.status, begun.header("location")), (303, Some("/")));
    let cookie = begun.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    stranger.get(&path).is(401, "E_UNAUTHENTICATED");

    let with = |path: &str, more: &[&str], body: Option<&[u8]>| {
        stranger.send(path, &[&["--header", &cookie], more].concat(), body)
    };
    with("/api/workspaces", &[], None).expect(200);
    let new: &[u8] = br#"{"name":"of the page"}"#;
    // Another page of this machine can send the cookie and cannot say that it is ours.
    with("/api/workspaces", &[], Some(new)).is(403, "E_FORBIDDEN");
    with("/api/workspaces", &["--header", "Origin: http://127.0.0.1:1"], Some(new))
        .is(403, "E_HOST_REFUSED");
    with("/api/workspaces", &["--header", "X-Carrel-Console: 1"], Some(new)).expect(201);
    let ended =
        with("/api/session", &["--request", "DELETE", "--header", "X-Carrel-Console: 1"], None);
    assert!(
        ended.status == 204 && ended.header("set-cookie").unwrap().contains("Max-Age=0"),
        "{ended:?}"
    );
}

#[test]
fn no_other_page_is_let_in() {
    let service = Service::start();
    let client = service.client();
    let words = [
        "--request",
        "OPTIONS",
        "--header",
        "Origin: http://evil.example",
        "--header",
        "Access-Control-Request-Method: POST",
    ];
    let reply = client.send("/api/tasks/submit", &words, None);
    assert_eq!(reply.header("access-control-allow-origin"), None);
    let reply = client.send("/api/tasks", &["--header", "Origin: http://evil.example"], None);
    assert_eq!(reply.header("access-control-allow-origin"), None);
}

#[test]
fn the_rate_of_one_workspace_is_limited_and_that_of_another_is_its_own() {
    let service = Service::start_with(&[("CARREL_RATE_LIMIT", "100")]);
    let (busy, quiet) = (service.client(), service.client());
    quiet.get(&quiet.at("")).expect(200);
    // One `curl` with many addresses is quick enough to use up what a workspace may ask for.
    let url = format!("http://{}{}", busy.address, busy.at(""));
    let words: Vec<_> = std::iter::repeat_n(url.as_str(), 700).collect();
    let all = busy.send(
        &busy.at(""),
        &[&["--parallel", "--parallel-max", "40"], &words[..]].concat(),
        None,
    );
    assert!(all.body.contains("E_OVERLOADED") || all.status == 429, "nothing was turned away");
    assert!(all.body.to_lowercase().contains("retry-after: "), "nobody is told when to come back");
    quiet.get(&quiet.at("")).expect(200);
}
