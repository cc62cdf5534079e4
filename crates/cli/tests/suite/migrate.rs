use carrel_testkit::servers;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{Run, World};

fn applied(run: &Run) -> Value {
    assert_eq!(run.code, 0, "{}", run.stderr);
    serde_json::from_str::<Value>(&run.stdout).unwrap()["applied"].clone()
}

#[test]
fn a_file_is_made_and_brought_up_to_date_once() {
    let world = World::new();
    let migrate = || Run::of(world.bare(&["migrate", "--data", "data", "--json"]));
    let all = json!([{ "number": 1, "name": "tasks" }, { "number": 2, "name": "volumes" }]);
    assert_eq!(applied(&migrate()), all);
    assert_eq!(applied(&migrate()), json!([]));
}

#[tokio::test]
async fn a_server_is_brought_up_to_date_and_its_password_is_never_shown() {
    let mut server = servers::Postgres::start().await;
    let world = World::new();
    let migrate = |url: &str, more: &[&str]| {
        let mut command = world.bare(&[&["migrate"], more].concat());
        command.env("DATABASE_URL", url);
        Run::of(command)
    };
    let url = server.database(None).await;
    assert_eq!(migrate(&url, &[]).stdout, "0001 tasks\n");
    assert_eq!(applied(&migrate(&url, &["--json"])), json!([]));
    server.kill();
    for (url, code) in [(url.as_str(), "E_STORE_UNAVAILABLE"), ("secret", "E_INVALID_ARGUMENTS")] {
        let run = migrate(url, &["--json"]);
        assert_eq!((run.code, &run.error()["code"]), (1, &json!(code)), "{}", run.stderr);
        assert!(!run.stderr.contains("secret"), "{}", run.stderr);
    }
}
