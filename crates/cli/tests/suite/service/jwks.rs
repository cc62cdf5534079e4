//! Tokens of a provider that publishes its keys.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pretty_assertions::assert_eq;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::test_environment::{Client, DEADLINE, Service, new_id};
use crate::test_environment::TestEnvironment;

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Whoever signs.
struct Signer(EcdsaKeyPair);

impl Signer {
    fn new() -> Self {
        let (form, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(form, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(form, pkcs8.as_ref(), &random).unwrap())
    }

    fn set(&self) -> String {
        let point = self.0.public_key().as_ref();
        let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
        json!({ "keys": [{ "kty": "EC", "crv": "P-256", "kid": "k", "x": x, "y": y }] }).to_string()
    }

    fn client(&self, service: &Service, audience: &str, workspace: &str) -> Client {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let claims = json!({
            "iss": "https://id.example/", "aud": audience, "sub": "user_1",
            "exp": now + 300, "workspace_id": workspace, "scope": "openid read write exec",
        });
        let header = json!({ "alg": "ES256", "kid": "k", "typ": "JWT" });
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        let token = Some(format!("{signed}.{}", encode(signature)));
        Client { address: service.address, token, workspace: workspace.to_owned() }
    }
}

/// Serves the keys once there are any.
fn publish() -> (String, Arc<Mutex<Option<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
    let keys: Arc<Mutex<Option<String>>> = Arc::default();
    let shared = Arc::clone(&keys);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let text = match &*shared.lock().unwrap() {
                Some(keys) => format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{keys}",
                    keys.len()
                ),
                None => {
                    "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".into()
                }
            };
            let _ = stream.write_all(text.as_bytes());
        }
    });
    (url, keys)
}

fn variables(url: &str) -> Vec<(&str, &str)> {
    vec![
        ("CARREL_JWKS_URL", url),
        ("CARREL_JWT_ISSUER", "https://id.example/"),
        ("CARREL_JWT_AUDIENCE", "carrel"),
    ]
}

fn until_ready(service: &Service) -> Value {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let reply = service.stranger().get("/readyz");
        if reply.status == 200 {
            return reply.json();
        }
        assert!(Instant::now() < deadline, "{reply:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn tokens_of_a_provider_open_their_workspace_and_no_other() {
    let (url, keys) = publish();
    let service = Service::start_with(&variables(&url));
    let signer = Signer::new();
    let client = signer.client(&service, "carrel", &new_id());
    let unready = service.stranger().get("/readyz").expect(503);
    assert_eq!((&unready["status"], &unready["keys"]), (&json!("not_ready"), &json!("missing")));
    client.get("/api/tasks").is(503, "E_KEYS_UNAVAILABLE");
    // Those with a token of this server need no provider.
    service.client().get("/api/tasks").expect(200);

    *keys.lock().unwrap() = Some(signer.set());
    assert_eq!(until_ready(&service)["keys"], "ok");
    assert_eq!(client.run("echo hi"), "hi\n");
    client.get(&format!("/api/workspaces/{}", new_id())).is(403, "E_FORBIDDEN");
    client.delete(&client.at("")).is(403, "E_FORBIDDEN");
    signer.client(&service, "another", &new_id()).get("/api/tasks").is(401, "E_UNAUTHENTICATED");
    let stranger = Signer::new().client(&service, "carrel", &new_id());
    stranger.get("/api/tasks").is(401, "E_UNAUTHENTICATED");
}

#[test]
fn a_provider_can_be_the_only_one_who_is_believed() {
    let (url, keys) = publish();
    let signer = Signer::new();
    *keys.lock().unwrap() = Some(signer.set());
    let closed = [variables(&url), vec![("CARREL_LOCAL_TOKENS", "off")]].concat();
    let service = Service::start_with(&closed);
    until_ready(&service);
    service.operator().get("/api/workspaces").is(401, "E_UNAUTHENTICATED");
    signer.client(&service, "carrel", &new_id()).get("/api/tasks").expect(200);
    let said = service.server.stderr();
    assert!(!said.contains("?token=") && said.contains("a token of your provider"), "{said}");
}

#[test]
fn a_server_does_not_start_with_half_of_the_settings() {
    let test_env = TestEnvironment::usual();
    for (variables, message) in [
        (vec![("CARREL_JWKS_URL", "https://id.example/jwks")], "without CARREL_JWT_ISSUER"),
        (variables("http://id.example/jwks"), "an https URL"),
        (vec![("CARREL_JWT_AUDIENCE", "carrel")], "without CARREL_JWKS_URL"),
        (vec![("CARREL_LOCAL_TOKENS", "off")], "without CARREL_JWKS_URL"),
    ] {
        let mut command = test_env.carrel();
        command.args(["serve", "--bind", "127.0.0.1:0", "--data"]).arg(test_env.path("data"));
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(message), "{said}");
    }
}

/// Serves one file over TLS with a certificate that an authority of the test has signed.
const SECURE: &str = "
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = open('keys.json', 'rb').read()
        self.send_response(200)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words): pass
server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('cert.pem', 'key.pem')
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
";

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn keys_over_https_come_from_whom_an_authority_vouches_for() {
    let directory = tempfile::tempdir().unwrap();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"])
        .args([
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let signer = Signer::new();
    std::fs::write(directory.path().join("keys.json"), signer.set()).unwrap();
    let mut server = Command::new("python3")
        .args(["-c", SECURE])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    let mut output = std::io::BufReader::new(server.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut port).unwrap();
    let _server = Ended(server);
    let url = format!("https://127.0.0.1:{}/jwks", port.trim());

    let certificate = directory.path().join("cert.pem");
    let trusting =
        [variables(&url), vec![("SSL_CERT_FILE", certificate.to_str().unwrap())]].concat();
    let service = Service::start_with(&trusting);
    until_ready(&service);
    signer.client(&service, "carrel", &new_id()).get("/api/tasks").expect(200);

    // The authorities of the system know nothing of it.
    let service = Service::start_with(&variables(&url));
    let deadline = Instant::now() + DEADLINE;
    while !service.server.stderr().contains("could not fetch the keys") {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
    signer.client(&service, "carrel", &new_id()).get("/api/tasks").is(503, "E_KEYS_UNAVAILABLE");
}
