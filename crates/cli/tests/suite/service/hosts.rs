//! The names under which the service answers, and the pages that may use it.

use pretty_assertions::assert_eq;

use super::test_environment::{Client, Reply, Service};

/// Begins a session of the console with the printed link, and returns its cookie.
fn cookie(service: &Service) -> String {
    let said = service.server.stderr();
    let link = said.split_once("/?token=").unwrap().1.split_whitespace().next().unwrap();
    let begun = service.stranger().get(&format!("/?token={link}"));
    let cookie = begun.header("set-cookie").unwrap_or_else(|| panic!("{begun:?}"));
    format!("Cookie: {}", cookie.split(';').next().unwrap())
}

/// Sends a `GET` with these headers.
fn get(client: &Client, path: &str, headers: &[&str]) -> Reply {
    let words: Vec<_> = headers.iter().flat_map(|header| ["--header", header]).collect();
    client.send(path, &words, None)
}

const EVIL: [&str; 6] = [
    "Host: evil.example",
    "Host: evil.example:8080",
    "Host: localhost.evil.example",
    "Host: 127.0.0.1.nip.io",
    "Host: 10.9.8.7",
    "Host: localhost@evil.example",
];

#[test]
fn a_foreign_host_gets_nothing_by_cookie_or_without_a_token() {
    let service = Service::start();
    let stranger = service.stranger();
    let cookie = cookie(&service);
    get(&stranger, "/api/workspaces", &[&cookie]).expect(200);
    for host in EVIL {
        for path in ["/", "/docs", "/openapi.json", "/api/workspaces", "/mcp", "/nothing"] {
            get(&stranger, path, &[host]).is(403, "E_HOST_REFUSED");
            get(&stranger, path, &[host, &cookie]).is(403, "E_HOST_REFUSED");
        }
        let post = ["--header", host, "--header", &cookie, "--header", "X-Carrel-Console: 1"];
        stranger.send("/api/workspaces", &post, Some(b"{}")).is(403, "E_HOST_REFUSED");
        // A token that is not valid proves nothing.
        get(&stranger, "/", &[host, "Authorization: Bearer a.b.c"]).is(403, "E_HOST_REFUSED");
    }
    for host in ["Host: localhost", "Host: LOCALHOST.:1", "Host: [::1]:8080", "Host: 127.0.0.1"] {
        get(&stranger, "/api/workspaces", &[host, &cookie]).expect(200);
    }
    let refused = service.audited(|event| event["status"] == 403 && event["route"] == "/docs");
    assert_eq!(refused["session"], "nobody", "refusals are audited: {refused}");
}

#[test]
fn a_foreign_page_gets_nothing_by_cookie_or_without_a_token() {
    let service = Service::start();
    let stranger = service.stranger();
    let cookie = cookie(&service);
    let (other_port, own) = (
        format!("Origin: http://127.0.0.1:{}", service.address.port() ^ 1),
        format!("Origin: http://{}", service.address),
    );
    for origin in ["Origin: http://evil.example", "Origin: null", &other_port] {
        for path in ["/", "/openapi.json", "/api/workspaces", "/mcp"] {
            get(&stranger, path, &[origin]).is(403, "E_HOST_REFUSED");
            get(&stranger, path, &[origin, &cookie]).is(403, "E_HOST_REFUSED");
        }
        let post = ["--header", origin, "--header", &cookie, "--header", "X-Carrel-Console: 1"];
        stranger.send("/api/workspaces", &post, Some(b"{}")).is(403, "E_HOST_REFUSED");
    }
    let post = ["--header", &own, "--header", &cookie];
    stranger.send("/api/workspaces", &post, Some(br#"{"name":"own"}"#)).expect(201);
}

#[test]
fn a_valid_bearer_token_works_under_any_name() {
    let service = Service::start();
    let client = service.client();
    for host in &EVIL[..5] {
        get(&client, "/api/tasks", &[host]).expect(200);
        let page = ["Origin: http://evil.example", host];
        get(&client, "/api/tasks", &page).expect(200);
    }
}

/// The page of `evil.example` lets its name point at the service, and speaks MCP with it.
#[test]
fn dns_rebinding_does_not_reach_mcp() {
    let service = Service::start();
    let stranger = service.stranger();
    let cookie = cookie(&service);
    let initialize = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"page","version":"1"}}}"#;
    let evil = format!("evil.example:{}", service.address.port());
    let (host, origin) = (format!("Host: {evil}"), format!("Origin: http://{evil}"));
    let mut words = vec!["--header", &host, "--header", &origin, "--header", &cookie];
    words.extend(["--header", "Content-Type: application/json"]);
    words.extend(["--header", "Accept: application/json, text/event-stream"]);
    let reply = stranger.send("/mcp", &words, Some(initialize));
    reply.is(403, "E_HOST_REFUSED");
    assert_eq!(reply.header("mcp-session-id"), None);
}

#[test]
fn probes_ask_under_any_name() {
    let service = Service::start();
    let stranger = service.stranger();
    for host in EVIL {
        for path in ["/healthz", "/readyz"] {
            assert_eq!(get(&stranger, path, &[host]).status, 200, "{path}");
        }
        assert_ne!(get(&stranger, "/metrics", &[host]).status, 403);
        let operator = service.operator();
        assert_eq!(get(&operator, "/metrics", &[host]).status, 200);
    }
}

#[test]
fn public_urls_are_names_of_the_service_and_origins_of_its_pages() {
    let urls = "https://carrel.example.com, http://[fd00::5]:8080/";
    let service = Service::start_with(&[("CARREL_PUBLIC_URLS", urls)]);
    let stranger = service.stranger();
    let cookie = cookie(&service);
    for host in ["Host: carrel.example.com", "Host: CARREL.example.com:443", "Host: [fd00:0::5]"] {
        assert_eq!(get(&stranger, "/", &[host]).status, 200, "{host}");
        get(&stranger, "/api/workspaces", &[host, &cookie]).expect(200);
    }
    let post = |origin: &str| {
        let words =
            ["--header", "Host: carrel.example.com", "--header", origin, "--header", &cookie];
        stranger.send("/api/workspaces", &words, Some(br#"{"name":"x"}"#))
    };
    post("Origin: https://carrel.example.com").expect(201);
    post("Origin: https://carrel.example.com:443").expect(201);
    post("Origin: http://[fd00::5]:8080").expect(201);
    for origin in ["https://carrel.example.com:8443", "http://[fd00::5]", "https://example.com"] {
        post(&format!("Origin: {origin}")).is(403, "E_HOST_REFUSED");
    }
    get(&stranger, "/", &["Host: example.com"]).is(403, "E_HOST_REFUSED");
}

#[test]
fn what_a_proxy_forwards_counts_if_the_operator_trusts_it() {
    let forwarded = [
        "Host: backend.internal:8080",
        "X-Forwarded-Host: carrel.example.com",
        "X-Forwarded-Proto: https",
        "X-Forwarded-For: 203.0.113.9",
    ];
    let url = ("CARREL_PUBLIC_URLS", "https://carrel.example.com");
    let trusting = Service::start_with(&[url, ("CARREL_TRUSTED_PROXIES", "10.0.0.0/8,127.0.0.1")]);
    let said = trusting.server.stderr();
    let link = said.split_once("/?token=").unwrap().1.split_whitespace().next().unwrap();
    let begun = get(&trusting.stranger(), &format!("/?token={link}"), &forwarded);
    assert_eq!(begun.status, 303, "{begun:?}");
    let cookie = begun.header("set-cookie").unwrap();
    assert!(cookie.ends_with("; Secure"), "the browser came over TLS: {cookie}");
    let spoofed = ["Host: backend.internal", "X-Forwarded-Host: carrel.example.com, evil.example"];
    get(&trusting.stranger(), "/", &spoofed).is(403, "E_HOST_REFUSED");
    let evil = ["X-Forwarded-Host: evil.example"];
    get(&trusting.stranger(), "/", &evil).is(403, "E_HOST_REFUSED");

    // From another peer the headers are what any client can send.
    for proxies in ["", "10.0.0.0/8"] {
        let service = Service::start_with(&[url, ("CARREL_TRUSTED_PROXIES", proxies)]);
        get(&service.stranger(), "/", &forwarded).is(403, "E_HOST_REFUSED");
        let evil = ["X-Forwarded-Host: evil.example"];
        assert_eq!(get(&service.stranger(), "/", &evil).status, 200, "it is not looked at");
    }
}
