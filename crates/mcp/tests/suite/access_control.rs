//! Who is let in at all.

use carrel_mcp::{Authentication, BearerToken, HttpOptions, OptionsError, serve_http};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    fixture::{Fixture, FixtureState},
    http::initialize,
    test_server::TestServer,
};

const TOKEN: &str = "a-token-of-some-length";

#[tokio::test]
async fn a_page_that_rebinds_its_name_is_refused() {
    let server = TestServer::start().await;
    for host in ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.nip.io"] {
        let mut client = server.connect().await;
        let reply = client.post(&[("host", host)], &initialize("2025-11-25")).await;
        assert_eq!(reply.status, 403, "{host}: {reply:?}");
    }
    for origin in ["http://evil.example", "null", "http://localhost.evil.example", "garbage"] {
        let mut client = server.connect().await;
        let reply = client.post(&[("origin", origin)], &initialize("2025-11-25")).await;
        assert_eq!(reply.status, 403, "{origin}: {reply:?}");
    }
}

#[tokio::test]
async fn access_control_comes_before_every_method() {
    let server = TestServer::start().await;
    for method in ["GET", "POST", "DELETE", "OPTIONS", "PUT"] {
        let mut client = server.connect().await;
        let reply = client.request(method, &[("host", "evil.example")], "").await;
        assert_eq!(reply.status, 403, "{method}");
    }
}

#[tokio::test]
async fn only_a_page_of_the_same_origin_is_accepted() {
    let server = TestServer::start().await;
    let own = format!("http://{}", server.address);
    let others = ["http://localhost:3000", "http://127.0.0.1", "http://[::1]:9", "null"];
    let cases = std::iter::once((own.as_str(), 200)).chain(others.map(|origin| (origin, 403)));
    for (origin, status) in cases {
        let mut client = server.connect().await;
        let reply = client.post(&[("origin", origin)], &initialize("2025-11-25")).await;
        assert_eq!(reply.status, status, "{origin}: {reply:?}");
    }
}

#[tokio::test]
async fn names_and_origins_can_be_allowed() {
    let server = TestServer::with(|options| {
        let named = options.clone().allow_host("box.example").expect("a host");
        *options = named.allow_origin("https://app.example").expect("an origin");
    })
    .await;
    let mut client = server.connect().await;
    let headers = [("host", "box.example:8443"), ("origin", "https://app.example")];
    assert_eq!(client.post(&headers, &initialize("2025-11-25")).await.status, 200);
}

#[tokio::test]
async fn a_request_with_two_hosts_is_refused() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let host = server.address;
    let request = format!(
        "GET /mcp HTTP/1.1\r\nhost: {host}\r\nhost: evil.example\r\ncontent-length: 0\r\n\r\n"
    );
    client.raw(request.as_bytes()).await;
    assert_eq!(client.reply().await.status, 403);
}

#[tokio::test]
async fn a_missing_or_wrong_token_is_challenged() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let token = BearerToken::new(TOKEN).expect("a token");
    let options = HttpOptions::new(address, Authentication::Bearer(token)).expect("options");
    let server = TestServer::serve(listener, options);
    let right = format!("Bearer {TOKEN}");
    let cases = [
        ("", 401),
        ("Bearer wrong-token-of-some-length", 401),
        ("Basic YTpi", 401),
        (TOKEN, 401),
        (right.as_str(), 200),
        ("bearer a-token-of-some-length", 200),
    ];
    for (authorization, status) in cases {
        let mut client = server.connect().await;
        let headers = [("authorization", authorization)];
        let reply = client.post(&headers, &initialize("2025-11-25")).await;
        assert_eq!(reply.status, status, "{authorization}: {reply:?}");
        if status == 401 {
            assert!(reply.headers["www-authenticate"].starts_with("Bearer"), "{reply:?}");
        }
    }
}

#[tokio::test]
async fn a_listener_that_other_machines_reach_is_not_served_without_a_token() {
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    assert_eq!(
        HttpOptions::new(address, Authentication::Unauthenticated).err(),
        Some(OptionsError::TokenRequired { address })
    );
    // Options for one address do not open another.
    let loopback = "127.0.0.1:1".parse().expect("an address");
    let options = HttpOptions::new(loopback, Authentication::Unauthenticated);
    let state = FixtureState::new();
    let make = move |_| Fixture::new(&state);
    let outcome =
        serve_http(listener, options.expect("loopback"), make, CancellationToken::new()).await;
    assert!(outcome.is_err());
}

#[tokio::test]
async fn a_probe_needs_neither_name_nor_token() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let token = BearerToken::new(TOKEN).expect("a token");
    let options = HttpOptions::new(address, Authentication::Bearer(token)).expect("options");
    let server = TestServer::serve(listener, options);
    let mut client = server.connect().await;
    client.raw(b"GET /healthz HTTP/1.1\r\nhost: 10.0.0.7\r\n\r\n").await;
    let reply = client.reply().await;
    assert_eq!((reply.status, reply.body.as_str()), (200, r#"{"status":"ok"}"#));
}
