use carrel_testkit::servers;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{Run, TestRoot};

fn applied(run: &Run) -> Value {
    assert_eq!(run.code, 0, "{}", run.stderr);
    serde_json::from_str::<Value>(&run.stdout).unwrap()["applied"].clone()
}

#[test]
fn a_file_is_made_and_brought_up_to_date_once() {
    let fixture = TestRoot::new();
    let migrate = || Run::of(fixture.bare(&["migrate", "--data", "data", "--json"]));
    let all = json!([
        { "number": 1, "name": "tasks" },
        { "number": 2, "name": "volumes" },
        { "number": 3, "name": "conductor" },
        { "number": 4, "name": "tenures" },
    ]);
    assert_eq!(applied(&migrate()), all);
    assert_eq!(applied(&migrate()), json!([]));
}

#[tokio::test]
async fn a_server_is_brought_up_to_date_and_its_password_is_never_shown() {
    let mut server = servers::PostgresServer::start().await;
    let fixture = TestRoot::new();
    let migrate = |url: &str, more: &[&str]| {
        let mut command = fixture.bare(&[&["migrate"], more].concat());
        command.env("DATABASE_URL", url);
        Run::of(command)
    };
    let url = server.database(None).await;
    assert_eq!(migrate(&url, &[]).stdout, "0001 tasks\n0002 conductor\n0003 keys\n");
    assert_eq!(applied(&migrate(&url, &["--json"])), json!([]));
    server.kill();
    for (url, code) in [(url.as_str(), "E_STORE_UNAVAILABLE"), ("secret", "E_INVALID_ARGUMENTS")] {
        let run = migrate(url, &["--json"]);
        assert_eq!((run.code, &run.error()["code"]), (1, &json!(code)), "{}", run.stderr);
        assert!(!run.stderr.contains("secret"), "{}", run.stderr);
    }
}

#[tokio::test]
async fn a_server_is_verified_with_the_authorities_of_a_variable() {
    let (known, impostor) = (servers::TestAuthority::new(), servers::TestAuthority::new());
    let server = servers::PostgresServer::start_encrypted(&known, "localhost", "sha256").await;
    let fixture = TestRoot::new();
    let port = server.port();
    let url = format!("postgresql://carrel:secret@localhost:{port}/postgres?sslmode=verify-full");
    let migrate = |authority: &servers::TestAuthority| {
        let mut command = fixture.bare(&["migrate", "--json"]);
        command.env("DATABASE_URL", &url).env("SSL_CERT_FILE", authority.certificate());
        Run::of(command)
    };
    let run = migrate(&impostor);
    assert_eq!(run.error()["code"], "E_STORE_UNAVAILABLE", "{}", run.stderr);
    assert!(run.stderr.contains("invalid peer certificate"), "{}", run.stderr);
    assert!(run.stderr.contains("SSL_CERT_FILE"), "{}", run.stderr);
    assert!(!run.stderr.contains("secret"), "{}", run.stderr);
    assert_eq!(applied(&migrate(&known)).as_array().map(Vec::len), Some(3));
}
