//! Resources and prompts of MCP: what a client lists and reads, what it is notified of, and what stays closed.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::eventually;
use crate::interfaces::{DEADLINE, HttpServer, Stdin, ToolSession as _};
use crate::mcp_tasks::{ask, begin, http, mcp};
use crate::test_environment::TestEnvironment;

fn stdio(test_env: &TestEnvironment) -> Stdin {
    Stdin::start(mcp(test_env, &[]))
}

fn uri(path: &str) -> String {
    format!("carrel://files/workspace/{path}")
}

fn read(client: &mut Stdin, uri: &str) -> Value {
    client.ask("resources/read", &json!({ "uri": uri }))
}

/// The text of a resource that has to be there.
fn text(reply: &Value) -> &str {
    reply["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}"))
}

/// Lists all pages: the URIs, and the sizes of the pages.
fn list(client: &mut Stdin) -> (Vec<String>, Vec<usize>) {
    let (mut uris, mut pages) = (Vec::new(), Vec::new());
    let mut params = json!({});
    loop {
        let result = client.ask("resources/list", &params)["result"].take();
        let page = result["resources"].as_array().unwrap_or_else(|| panic!("{result}"));
        uris.extend(page.iter().map(|one| one["uri"].as_str().unwrap().to_owned()));
        pages.push(page.len());
        match result["nextCursor"].as_str() {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return (uris, pages),
        }
    }
}

#[test]
fn files_jobs_and_pages_are_listed_page_by_page_and_read() {
    let test_env = TestEnvironment::usual();
    for number in 0..450 {
        test_env.write(&format!("many/{number:03}.txt"), "x\n");
    }
    test_env.write("src/a file.rs", "fn main() {}\n");
    test_env.write("ignored.log", "");
    test_env.write(".gitignore", "*.log\n");
    test_env.write(".git-credentials", "https://token@host\n");
    let mut client = stdio(&test_env);
    let offered = &client.greeting["capabilities"];
    assert_eq!(offered["resources"], json!({ "subscribe": true }), "{offered}");
    assert_eq!(offered["prompts"], json!({}), "{offered}");

    let (uris, pages) = list(&mut client);
    assert!(pages.len() >= 3 && pages.iter().all(|size| *size <= 200), "{pages:?}");
    let unique: BTreeSet<_> = uris.iter().collect();
    assert_eq!(unique.len(), uris.len(), "none is listed twice");
    let files: Vec<_> = uris.iter().filter(|uri| uri.starts_with("carrel://files/")).collect();
    assert_eq!(files.len(), 451, "{files:?}");
    assert!(uris.contains(&uri("src/a%20file.rs")), "{uris:?}");
    assert!(!uris.iter().any(|uri| uri.contains("credentials") || uri.contains(".log")));
    assert_eq!(text(&read(&mut client, &uri("src/a%20file.rs"))), "fn main() {}\n");
    assert!(text(&read(&mut client, "carrel://docs/mcp.md")).starts_with("# Agents"));

    let arguments = json!({ "command": "echo from the job" });
    let started = client.call("Bash", arguments);
    let id = started.structured["shell_id"].as_str().unwrap().to_owned();
    let log = format!("carrel://jobs/{id}/log");
    assert!(list(&mut client).0.contains(&log));
    assert_eq!(text(&read(&mut client, &log)), "from the job\n");

    let templates = client.ask("resources/templates/list", &json!({}))["result"].take();
    let forms = templates["resourceTemplates"].as_array().unwrap();
    let forms: Vec<_> = forms.iter().map(|one| one["uriTemplate"].as_str().unwrap()).collect();
    assert_eq!(
        forms,
        [
            "carrel://files/{workspace}/{+path}",
            "carrel://jobs/{shell_id}/log",
            "carrel://docs/{page}"
        ]
    );
}

#[test]
fn a_listing_of_a_huge_workspace_ends() {
    let test_env = TestEnvironment::usual();
    for number in 0..5100 {
        std::fs::write(test_env.workspace().join(format!("{number}.txt")), "").unwrap();
    }
    let (uris, _) = list(&mut stdio(&test_env));
    assert_eq!(uris.iter().filter(|uri| uri.starts_with("carrel://files/")).count(), 5000);
}

#[test]
fn no_uri_leads_out_of_the_workspace_or_to_a_denied_file() {
    let test_env = TestEnvironment::usual();
    std::fs::write(test_env.path("outside.txt"), "outside\n").unwrap();
    test_env.write("inside.txt", "inside\n");
    test_env.write(".git-credentials", "https://token@host\n");
    test_env.write(".ssh/id_ed25519", "key\n");
    test_env.write("binary", "a\0b");
    test_env.write("large", &"x".repeat(600 * 1024));
    for (link, target) in [
        ("out", "../outside.txt"),
        ("absolute", test_env.path("outside.txt").to_str().unwrap()),
        ("up", ".."),
        ("credentials", ".git-credentials"),
    ] {
        std::os::unix::fs::symlink(target, test_env.workspace().join(link)).unwrap();
    }
    let mut client = stdio(&test_env);
    let outside = test_env.path("outside.txt").display().to_string();
    let encoded: Vec<_> = outside.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let encoded = encoded.concat();
    for path in [
        "../outside.txt",
        "%2e%2e/outside.txt",
        "%2E%2E%2Foutside.txt",
        "many/%2e%2e/%2e%2e/outside.txt",
        "./../outside.txt",
        &outside,
        &encoded,
        "out",
        "absolute",
        "up/outside.txt",
        "credentials",
        ".git-credentials",
        ".GIT-credentials",
        "%2egit-credentials",
        ".ssh/id_ed25519",
        "binary",
        "large",
        ".",
        "inside.txt%00",
    ] {
        let reply = read(&mut client, &uri(path));
        assert!(reply["result"].is_null(), "{path}: {reply}");
        let code = reply["error"]["code"].as_i64().unwrap();
        assert!([-32602, -32002].contains(&code), "{path}: {reply}");
        assert!(!reply.to_string().contains("token@host"), "{path}: {reply}");
        if path.contains("outside") || path == "out" || path == "absolute" {
            let subscribed = client.ask("resources/subscribe", &json!({ "uri": uri(path) }));
            assert!(subscribed["error"].is_object(), "{path}: {subscribed}");
        }
    }
    for other in [
        "file:///etc/passwd",
        "carrel://files/other/inside.txt",
        "carrel://files/..%2Fworkspace/inside.txt",
        "carrel://jobs/job_00000000000000000000000000/log",
        "carrel://docs/..%2F..%2Fetc%2Fpasswd",
        "carrel://docs/nothing.md",
        "",
    ] {
        let reply = read(&mut client, other);
        assert_eq!(reply["error"]["code"], -32002, "{other}: {reply}");
    }
    // An encoded path inside is the file, and dots that stay inside are fine.
    for path in ["inside.txt", "%69nside.txt", "many/../inside.txt"] {
        std::fs::create_dir_all(test_env.workspace().join("many")).unwrap();
        assert_eq!(text(&read(&mut client, &uri(path))), "inside\n", "{path}");
    }
    client.close();
    client.server.wait(DEADLINE);
    let events = std::fs::read_to_string(test_env.path("state/carrel/events.jsonl")).unwrap();
    let violations = events.lines().filter(|line| line.contains("sandbox.violation"));
    assert!(violations.count() >= 8, "each refusal of a path outside is an event: {events}");
}

#[test]
fn a_resource_is_masked_and_held_to_the_roots_of_the_client() {
    let test_env = TestEnvironment::usual();
    test_env.write("open/key.txt", "the key is very-secret-value\n");
    test_env.write("closed/b.txt", "b\n");
    let root = format!("file://{}", test_env.workspace().join("open").display());
    let mut command = mcp(&test_env, &[]);
    command.env("CARREL_SECRET_KEY", "very-secret-value");
    let mut client = Stdin::with_roots(command, &[root]);
    let (uris, _) = list(&mut client);
    let files: Vec<_> = uris.iter().filter(|uri| uri.starts_with("carrel://files/")).collect();
    assert_eq!(files, [&uri("key.txt")]);
    let key = read(&mut client, &uri("key.txt"));
    assert_eq!(text(&key), "the key is [masked secret key]\n");
    for path in ["closed/b.txt", "../closed/b.txt", "%2e%2e/closed/b.txt"] {
        let reply = read(&mut client, &uri(path));
        assert!(reply["error"].is_object(), "{path}: {reply}");
    }
}

#[test]
fn jobs_of_another_session_are_not_listed() {
    let test_env = TestEnvironment::usual();
    let server = http(&test_env);
    let (mut one, mut other) = (server.session(), server.session());
    let started = one.call("Bash", json!({ "command": "echo mine" }));
    let id = started.structured["shell_id"].as_str().unwrap().to_owned();
    let jobs = |reply: &Value| -> Vec<String> {
        let listed = reply["result"]["resources"].as_array().unwrap_or_else(|| panic!("{reply}"));
        let uris = listed.iter().map(|one| one["uri"].as_str().unwrap().to_owned());
        uris.filter(|uri| uri.starts_with("carrel://jobs/")).collect()
    };
    assert_eq!(jobs(&one.ask("resources/list", &json!({}))), [format!("carrel://jobs/{id}/log")]);
    assert_eq!(jobs(&other.ask("resources/list", &json!({}))), [""; 0]);
    let stateless = ask(&server, &json!({}), "resources/list", json!({}));
    assert_eq!(jobs(&stateless), [""; 0]);
}

#[test]
fn a_client_is_notified_of_the_files_that_it_subscribed_to_and_of_no_others() {
    let test_env = TestEnvironment::usual();
    test_env.write("a.txt", "one\n");
    test_env.write("b.txt", "one\n");
    let mut client = stdio(&test_env);
    for path in ["a.txt", "new.txt"] {
        let reply = client.ask("resources/subscribe", &json!({ "uri": uri(path) }));
        assert_eq!(reply["result"], json!({}), "{reply}");
    }
    let updates = |client: &Stdin| -> Vec<String> {
        let news = client.news.iter();
        let updates = news.filter(|one| one["method"] == "notifications/resources/updated");
        updates.map(|one| one["params"]["uri"].as_str().unwrap().to_owned()).collect()
    };
    test_env.write("b.txt", "two\n");
    // Replaced by renaming, as editors and tools do.
    std::fs::write(test_env.path("next"), "two\n").unwrap();
    std::fs::rename(test_env.path("next"), test_env.workspace().join("a.txt")).unwrap();
    client.until("a.txt changed", |client| updates(client) == [uri("a.txt")]);
    test_env.write("new.txt", "");
    client.until("new.txt is there", |client| updates(client) == [uri("a.txt"), uri("new.txt")]);
    let reply = client.ask("resources/unsubscribe", &json!({ "uri": uri("a.txt") }));
    assert_eq!(reply["result"], json!({}), "{reply}");
    test_env.write("a.txt", "three\n");
    std::fs::remove_file(test_env.workspace().join("new.txt")).unwrap();
    let expected = [uri("a.txt"), uri("new.txt"), uri("new.txt")];
    client.until("new.txt is gone", |client| updates(client) == expected);
}

#[test]
fn subscriptions_of_the_revision_without_sessions_are_a_stream() {
    let test_env = TestEnvironment::usual();
    test_env.write("a.txt", "one\n");
    let server = http(&test_env);
    let uris = json!([uri("a.txt"), "other://x"]);
    let filter = json!({ "notifications": { "resourceSubscriptions": uris } });
    let mut stream = begin(&server, &json!({}), "subscriptions/listen", filter);
    assert_eq!(stream.head().status, 200);
    let acknowledged = stream.message().unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    let accepted = &acknowledged["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(accepted, &json!([uri("a.txt")]), "{acknowledged}");
    // The first may be about a change from before the subscription, the second cannot.
    for content in ["two\n", "three\n"] {
        test_env.write("a.txt", content);
        let update = stream.message().unwrap();
        assert_eq!(update["method"], "notifications/resources/updated", "{update}");
        assert_eq!(update["params"]["uri"], uri("a.txt"), "{update}");
    }

    let outside = json!({ "notifications": { "resourceSubscriptions": [uri("../x")] } });
    let refused = ask(&server, &json!({}), "subscriptions/listen", outside);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

/// A server over HTTP that others still use while one client asks for too much.
fn still_works(server: &HttpServer, test_env: &TestEnvironment) {
    test_env.write("still.txt", "works\n");
    let begun = Instant::now();
    let reply = ask(server, &json!({}), "resources/read", json!({ "uri": uri("still.txt") }));
    assert_eq!(text(&reply), "works\n");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn ten_thousand_subscriptions_are_refused_beyond_a_bound() {
    let test_env = TestEnvironment::usual();
    let server = http(&test_env);
    let uris: Vec<_> = (0..10_000).map(|number| uri(&format!("{number}.txt"))).collect();
    let filter = json!({ "notifications": { "resourceSubscriptions": uris } });
    let refused = ask(&server, &json!({}), "subscriptions/listen", filter);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let expected =
        "too many subscriptions: at most 256 of one request; end some, or watch fewer files";
    assert_eq!(refused["error"]["message"], expected);
    still_works(&server, &test_env);

    let mut client = stdio(&test_env);
    let subscribe = |client: &mut Stdin, uri: &str| {
        client.ask("resources/subscribe", &json!({ "uri": uri }))["error"].take()
    };
    let refusals: Vec<_> = uris.iter().map(|uri| subscribe(&mut client, uri)).collect();
    assert!(refusals[..256].iter().all(Value::is_null), "{:?}", &refusals[..256]);
    let expected =
        "too many subscriptions: at most 256 of one session; end some, or watch fewer files";
    assert!(refusals[256..].iter().all(|error| error["message"] == expected), "{}", refusals[256]);
    // One that ends makes room for another.
    client.ask("resources/unsubscribe", &json!({ "uri": uris[0] }));
    assert!(subscribe(&mut client, &uris[9_999]).is_null());

    // All clients together have a bound too: sixteen requests fill it.
    let full = json!({ "notifications": { "resourceSubscriptions": uris[..256] } });
    let mut streams = Vec::new();
    for _ in 0..16 {
        let mut stream = begin(&server, &json!({}), "subscriptions/listen", full.clone());
        assert_eq!(stream.head().status, 200);
        assert_eq!(stream.message().unwrap()["method"], "notifications/subscriptions/acknowledged");
        streams.push(stream);
    }
    let one = json!({ "notifications": { "resourceSubscriptions": [uri("one")] } });
    eventually("no room is left", || {
        let mut stream = begin(&server, &json!({}), "subscriptions/listen", one.clone());
        stream.head();
        stream.message();
        // A subscription that is taken says nothing until its file changes.
        std::fs::write(test_env.workspace().join("one"), "").unwrap();
        std::fs::write(test_env.workspace().join("one"), "again").unwrap();
        let last = stream.message().unwrap();
        last["error"]["message"].as_str().is_some_and(|text| text.contains("4096 of all clients"))
    });
    still_works(&server, &test_env);
    drop(streams);
}

#[test]
fn prompts_take_arguments_and_are_there_if_their_tools_are() {
    let test_env = TestEnvironment::usual();
    let mut client = stdio(&test_env);
    let names = |client: &mut Stdin| -> Vec<String> {
        let listed = client.ask("prompts/list", &json!({}))["result"]["prompts"].take();
        let all = listed.as_array().unwrap();
        all.iter().map(|prompt| prompt["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&mut client), ["review", "fix-failing-tests"]);
    let get = |client: &mut Stdin, name: &str, arguments: Value| {
        client.ask("prompts/get", &json!({ "name": name, "arguments": arguments }))
    };
    let message = |reply: &Value| {
        reply["result"]["messages"][0]["content"]["text"].as_str().unwrap().to_owned()
    };
    let review = message(&get(&mut client, "review", json!({ "base": "main", "path": "src" })));
    assert!(review.contains("since main") && review.contains("Only src matters."), "{review}");
    let fix = message(&get(&mut client, "fix-failing-tests", json!({ "name": "parses" })));
    assert!(fix.contains("Call run_tests with name \"parses\"."), "{fix}");
    let plain = message(&get(&mut client, "fix-failing-tests", json!({})));
    assert!(plain.contains("Call run_tests."), "{plain}");
    for (name, arguments) in [
        ("nothing", json!({})),
        ("review", json!({ "depth": "1" })),
        ("review", json!({ "base": 1 })),
        ("review", json!({ "focus": "x".repeat(5000) })),
    ] {
        let reply = get(&mut client, name, arguments);
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
    }
    let mut reader = Stdin::start(mcp(&test_env, &["--read-only"]));
    assert_eq!(names(&mut reader), ["review"]);
}
