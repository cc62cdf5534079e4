//! `carrel mcp` from its start to its end: which workspaces, who may connect, what each client has
//! to itself, and that nothing is left behind.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::interfaces::{
    Answer, Connection, HttpServer, Interface, Reply, Server, Session, Stdin, ToolSession,
};
use crate::test_environment::{Mark, Process, TestEnvironment, descendants};
use crate::{Run, eventually};

/// The promise is two seconds; the rest is for a busy machine.
const PROMPTLY: Duration = Duration::from_secs(10);

const TOKEN: &str = "a-token-of-some-length";

/// A environment with two more directories, `primary` and `extension`, each with a file `MARKER`.
fn two() -> TestEnvironment {
    let test_env = TestEnvironment::usual();
    for name in ["primary", "extension"] {
        std::fs::create_dir(test_env.path(name)).unwrap();
        std::fs::write(test_env.path(name).join("MARKER"), format!("{name}\n")).unwrap();
    }
    test_env
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// `carrel mcp OPTIONS…`
fn mcp(test_env: &TestEnvironment, options: &[&str]) -> Command {
    let mut command = test_env.carrel();
    command.arg("mcp").args(options);
    command
}

/// A server over HTTP in the environment's workspace.
fn http(test_env: &TestEnvironment) -> HttpServer {
    HttpServer::start(mcp(
        test_env,
        &["--http", "127.0.0.1:0", "--workspace", text(&test_env.workspace())],
    ))
}

/// A client over the standard streams in the environment's workspace.
fn stdio(test_env: &TestEnvironment) -> Stdin {
    Stdin::start(mcp(test_env, &["--workspace", text(&test_env.workspace())]))
}

// Which workspaces.

#[test]
fn one_workspace_and_several_together_is_wrong_usage() {
    let test_env = two();
    let (one, several) =
        (test_env.path("primary"), format!("a={}", test_env.path("extension").display()));
    for program in ["mcp", "tool"] {
        let mut command = test_env.carrel();
        command.args([program, "--workspace", text(&one), "--workspaces", &several]);
        let run = Run::of(command);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        assert!(run.stderr.contains("--workspace") && run.stderr.contains("--workspaces"));
    }
}

#[test]
fn several_workspaces_are_announced_in_the_words_of_the_seed() {
    let test_env = two();
    let spec = format!(
        "primary={}, extension={} ,",
        test_env.path("primary").display(),
        test_env.path("extension").display()
    );
    let mut client = Stdin::start(mcp(&test_env, &["--workspaces", &spec]));
    let expected = "carrel multi-workspace mode: 2 workspaces configured (extension, primary)";
    eventually("it is announced", || client.server.stderr() == format!("{expected}\n"));
    let instructions = client.greeting["instructions"].as_str().unwrap();
    for name in ["primary", "extension"] {
        let line = format!("- {name}: {}\n", test_env.path(name).display());
        assert!(instructions.contains(&line), "{instructions}");
    }
    let marker = |name: &str| json!({ "file_path": "MARKER", "workspace": name });
    assert_eq!(client.call("Read", marker("primary")).ok(), "1\tprimary\n");
    assert_eq!(client.call("Read", marker("extension")).ok(), "1\textension\n");
    let server =
        HttpServer::start(mcp(&test_env, &["--http", "127.0.0.1:0", "--workspaces", &spec]));
    assert_eq!(server.server.stderr().lines().next(), Some(expected));

    let single = stdio(&test_env);
    assert_eq!(single.server.stderr(), "");
}

#[test]
fn the_two_errors_of_the_seed_are_exact_through_every_door() {
    let test_env = two();
    let spec = format!(
        "primary={},extension={}",
        test_env.path("primary").display(),
        test_env.path("extension").display()
    );
    for interface in Interface::ALL {
        let mut session = interface.open(&test_env, &["--workspaces", &spec]);
        let omitted = session.call("Read", json!({ "file_path": "MARKER" }));
        assert_eq!(
            omitted.refused(),
            (
                "E_WORKSPACE_NOT_CHOSEN",
                "multi-workspace sandbox: 2 workspaces configured (extension, primary) — pass `workspace` to pick one",
            )
        );
        let unknown =
            session.call("Read", json!({ "file_path": "MARKER", "workspace": "frontend" }));
        let expected = "unknown workspace \"frontend\"; configured: extension, primary";
        assert_eq!(unknown.refused(), ("E_UNKNOWN_WORKSPACE", expected));
        let across = json!({ "file_path": "../extension/MARKER", "workspace": "primary" });
        assert_eq!(session.call("Read", across).refused().0, "E_SANDBOX_VIOLATION");
    }
}

/// Every tool that is listed × (omitted, known, unknown, all) × (one, two roots), over the wire.
#[test]
fn every_listed_tool_takes_workspace_in_the_same_way() {
    let test_env = two();
    let one = format!("primary={}", test_env.path("primary").display());
    let both = format!("{one},extension={}", test_env.path("extension").display());
    let not_chosen = "multi-workspace sandbox: 2 workspaces configured (extension, primary) — pass `workspace` to pick one";
    for (spec, names) in [(&one, "primary"), (&both, "extension, primary")] {
        for groups in ["files,shell,verify,git,secrets", "workspace"] {
            let options = ["--workspaces", spec, "--tools", groups, "--definitions", "full"];
            let mut client = Stdin::start(mcp(&test_env, &options));
            for tool in client.tools() {
                let name = tool["name"].as_str().unwrap();
                let property = &tool["inputSchema"]["properties"]["workspace"];
                assert_eq!(property["type"], "string", "{name}");
                let about = property["description"].as_str().unwrap();
                let mut text = |arguments| client.call(name, arguments).text;
                let unknown = text(json!({ "workspace": "bogus" }));
                assert_eq!(unknown, format!("unknown workspace \"bogus\"; configured: {names}"));
                let known = text(json!({ "workspace": " primary " }));
                assert!(!known.contains("configured"), "{name}: {known}");
                let omitted = text(json!({}));
                if about.contains("may be left out") || names == "primary" {
                    assert!(!omitted.contains("configured"), "{name}: {omitted}");
                } else {
                    assert_eq!(omitted, not_chosen, "{name}");
                }
                let all = text(json!({ "workspace": "all" }));
                if about.contains("or `all`") {
                    assert!(all.contains("=== primary ==="), "{name}: {all}");
                } else {
                    assert_eq!(all, format!("unknown workspace \"all\"; configured: {names}"));
                }
            }
        }
    }
}

/// One line of the table: what is wrong, what is given, what is said about it.
type Wrong<'a> = (&'a str, String, &'a str);

#[test]
fn workspaces_that_cannot_be_are_refused_at_the_start() {
    let test_env = two();
    let (primary, extension) = (test_env.path("primary"), test_env.path("extension"));
    let inner = primary.join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(test_env.path("file"), "").unwrap();
    std::os::unix::fs::symlink(&primary, test_env.path("linked")).unwrap();
    let (p, e, inner) = (primary.display(), extension.display(), inner.display());
    let linked = test_env.path("linked");
    let table: Vec<Wrong<'_>> = vec![
        ("nothing", String::new(), "workspaces: no entries parsed from \"\""),
        ("only commas", ",,".into(), "workspaces: no entries parsed from \",,\""),
        ("no path", "name=".into(), "workspaces: empty path in entry \"name=\""),
        ("no name", "/".into(), "workspace[0]: cannot derive a non-empty name from root \"/\""),
        ("all", format!("all={p}"), "workspace[0]: \"all\" is no name"),
        ("a space", format!("a b={p}"), "workspace[0]: \"a b\" is no name"),
        ("one name twice", format!("a={p},a={e}"), "workspace[1]: duplicate name \"a\""),
        ("one root twice", format!("a={p},b={p}"), "is also workspace \"a\""),
        ("one root by a link", format!("a={p},b={}", linked.display()), "is also workspace \"a\""),
        ("inside another", format!("a={p},b={inner}"), "lies inside workspace \"a\""),
        ("around another", format!("a={inner},b={p}"), "contains workspace \"a\""),
    ];
    for (what, spec, expected) in table {
        let run = Run::of(mcp(&test_env, &["--workspaces", &spec]));
        assert_eq!(run.stdout, "", "{what}");
        assert!(run.code != 0 && run.stderr.contains(expected), "{what}: {}", run.stderr);
        let run = Run::of(mcp(&test_env, &["--json", "--workspaces", &spec]));
        assert_eq!(run.error()["code"], "E_WORKSPACES_INVALID", "{what}: {}", run.stderr);
    }
    for (spec, code) in [
        (format!("a={p},b={}", test_env.path("missing").display()), "E_NOT_FOUND"),
        (format!("a={p},b={}", test_env.path("file").display()), "E_NOT_A_DIRECTORY"),
    ] {
        let run = Run::of(mcp(&test_env, &["--json", "--workspaces", &spec]));
        assert_eq!(run.error()["code"], code, "{}", run.stderr);
        let message = run.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("workspace[1] (b)"), "it says which: {message}");
    }
}

#[test]
fn names_with_an_equals_sign_or_a_comma_can_be_roots() {
    let test_env = two();
    for name in ["a=b", "a,b"] {
        std::fs::create_dir(test_env.path(name)).unwrap();
        std::fs::write(test_env.path(name).join("MARKER"), "odd\n").unwrap();
        let spec = format!("odd={}", test_env.path(name).display().to_string().replace(',', "\\,"));
        let mut client = Stdin::start(mcp(&test_env, &["--workspaces", &spec]));
        assert_eq!(client.call("Read", json!({ "file_path": "MARKER" })).ok(), "1\todd\n");
    }
}

#[test]
fn a_read_only_workspace_beside_another_is_only_read() {
    let test_env = two();
    let spec = format!(
        "primary={},extension={}:ro",
        test_env.path("primary").display(),
        test_env.path("extension").display()
    );
    for interface in Interface::ALL {
        let mut session = interface.open(&test_env, &["--workspaces", &spec]);
        let at = |workspace: &str, rest: Value| {
            let mut arguments = rest;
            arguments["workspace"] = json!(workspace);
            arguments
        };
        let read = json!({ "file_path": "MARKER" });
        assert_eq!(session.call("Read", at("extension", read.clone())).ok(), "1\textension\n");
        let changing = [
            ("Write", json!({ "file_path": "new", "content": "" })),
            ("Write", json!({ "file_path": "MARKER", "content": "" })),
            ("Delete", json!({ "path": "MARKER" })),
            ("Bash", json!({ "command": "echo x > MARKER" })),
            ("shell_run", json!({ "cmd": "touch", "args": ["new"] })),
        ];
        for (tool, arguments) in changing {
            let answer = session.call(tool, at("extension", arguments));
            assert_eq!(answer.refused().0, "E_READ_ONLY", "{interface:?} {tool}");
        }
        session.call("Bash", at("primary", json!({ "command": "echo x > new" }))).ok();
        let listed = session.call("workspaces", json!({})).structured;
        let flags: Vec<_> = listed["workspaces"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["name"].clone(), one["read_only"].clone()))
            .collect();
        assert_eq!(flags, [(json!("extension"), json!(true)), (json!("primary"), json!(false))]);
    }
    assert_eq!(std::fs::read_dir(test_env.path("extension")).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(test_env.path("extension/MARKER")).unwrap(), "extension\n");
}

#[test]
fn without_a_name_the_current_directory_is_the_workspace() {
    let test_env = two();
    for interface in Interface::ALL {
        let directory = test_env.path("primary");
        let mut session = interface.open_with(&test_env, &[], move |command| {
            command.current_dir(&directory);
        });
        assert_eq!(session.call("Read", json!({ "file_path": "MARKER" })).ok(), "1\tprimary\n");
        let listed = session.call("workspaces", json!({})).structured;
        assert_eq!(listed["workspaces"][0]["name"], "primary", "{interface:?}");
    }
    // A relative one is relative to whoever starts the server.
    let mut client = Stdin::start(mcp(&test_env, &["--workspace", "extension"]));
    assert_eq!(client.call("Read", json!({ "file_path": "MARKER" })).ok(), "1\textension\n");
}

// Who may connect.

fn hello() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": crate::interfaces::REVISION,
        "capabilities": {},
        "clientInfo": { "name": "kit", "version": "1" },
    } })
}

fn greet(address: std::net::SocketAddr, headers: &[(&str, &str)]) -> Reply {
    Connection::open(address).post(headers, &hello())
}

#[test]
fn an_address_that_others_reach_needs_a_token() {
    let test_env = TestEnvironment::usual();
    let workspace = test_env.workspace();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let options = ["--json", "--http", address, "--workspace", text(&workspace)];
        let run = Run::of(mcp(&test_env, &options));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        assert_eq!(run.error()["code"], "E_USAGE", "{}", run.stderr);
        let message = run.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("a bearer token is required"), "{message}");
    }
    let options = ["--http", "0.0.0.0:0", "--workspace", text(&workspace)];
    let mut empty = mcp(&test_env, &options);
    empty.env("CARREL_MCP_TOKEN", "");
    assert_eq!(Run::of(empty).code, 2, "an empty token is none");

    let file = test_env.path("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let mut of_environment = mcp(&test_env, &options);
    of_environment.env("CARREL_MCP_TOKEN", TOKEN);
    let mut of_file = mcp(&test_env, &options);
    of_file.args(["--token-file", text(&file)]);
    for command in [of_environment, of_file] {
        let server = HttpServer::start(command);
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], server.address.port()));
        let bearer = format!("Bearer {TOKEN}");
        let wrong = format!("Bearer {TOKEN}x");
        assert_eq!(greet(address, &[]).status, 401);
        assert_eq!(greet(address, &[("authorization", &wrong)]).status, 401);
        assert_eq!(greet(address, &[("authorization", &bearer)]).status, 200);
        let reply = greet(address, &[]);
        assert!(reply.headers.contains_key("www-authenticate"), "{reply:?}");
        assert!(!server.server.stderr().contains(TOKEN), "{}", server.server.stderr());
    }
}

#[test]
fn a_loopback_port_needs_a_token_unless_the_operator_says_otherwise() {
    let test_env = TestEnvironment::usual();
    let workspace = test_env.workspace();
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let options = ["--http", address, "--workspace", text(&workspace)];
        let server = HttpServer::start(mcp(&test_env, &options));
        assert_eq!(greet(server.address, &[]).status, 401);
        assert_eq!(greet(server.address, &[("authorization", "Bearer guess")]).status, 401);
        let token = server.token.as_deref().unwrap();
        assert!(token.len() >= 32, "{token}");
        let bearer = format!("Bearer {token}");
        assert_eq!(greet(server.address, &[("authorization", &bearer)]).status, 200);
        let foreign = [("authorization", bearer.as_str()), ("host", "evil.example")];
        assert_eq!(greet(server.address, &foreign).status, 403);
        let again = HttpServer::start(mcp(&test_env, &options));
        assert_ne!(again.token.as_deref(), Some(token), "each start has its own");

        let open = [&options[..], &["--no-token"]].concat();
        let open = HttpServer::start(mcp(&test_env, &open));
        assert_eq!(greet(open.address, &[]).status, 200);
        assert!(!open.server.stderr().contains("Bearer"), "{}", open.server.stderr());
    }
    let public = ["--http", "0.0.0.0:0", "--no-token", "--workspace", text(&workspace)];
    let run = Run::of(mcp(&test_env, &public));
    assert_eq!(run.code, 2, "an address that others reach is never open: {}", run.stderr);
}

#[test]
fn a_page_of_somebody_else_is_refused_by_its_origin_and_its_host() {
    let test_env = TestEnvironment::usual();
    let mut command = mcp(&test_env, &["--http", "127.0.0.1:0", "--no-token", "--workspace"]);
    command.arg(test_env.workspace()).args(["--allow-origin", "https://app.example"]);
    let server = HttpServer::start(command);
    for (headers, status) in [
        (vec![], 200),
        (vec![("origin", "http://evil.example")], 403),
        (vec![("origin", "null")], 403),
        (vec![("host", "evil.example")], 403),
        (vec![("host", "127.0.0.1.evil.example")], 403),
        (vec![("origin", "https://app.example")], 200),
        (vec![("origin", "http://localhost:3000")], 403),
        (vec![("origin", "https://app.example:8443")], 403),
        (vec![("host", "[::1]:1")], 200),
        (vec![("host", "evil.example"), ("x-forwarded-host", "localhost")], 403),
    ] {
        let reply = greet(server.address, &headers);
        assert_eq!(reply.status, status, "{headers:?}");
        let allowed = reply.headers.get("access-control-allow-origin");
        assert!(allowed.is_none_or(|origin| origin != "*"), "{reply:?}");
    }
}

#[test]
fn the_names_of_the_conformance_suite_are_there_only_behind_a_hidden_option() {
    let test_env = TestEnvironment::usual();
    let workspace = test_env.workspace();
    let options = ["--http", "127.0.0.1:0", "--workspace", text(&workspace)];
    let with = [&options[..], &["--conformance-fixtures", "plain"]].concat();
    let names = |options: &[&str]| -> Vec<String> {
        let server = HttpServer::start(mcp(&test_env, options));
        let tools = server.session().tools();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let (usual, fixtures) = (names(&options), names(&with));
    assert!(fixtures.starts_with(&usual), "the product's own tools come first: {fixtures:?}");
    assert!(fixtures.iter().any(|name| name == "test_simple_text"), "{fixtures:?}");
    assert!(!usual.iter().any(|name| name.starts_with("test_")), "{usual:?}");
    let help = Run::of(mcp(&test_env, &["--help"])).stdout;
    assert!(!help.contains("conformance"), "{help}");
}

// How it ends.

/// Everything that a server has started, with what is to be gone after it.
struct Running {
    mark: Mark,
    below: Vec<Process>,
}

impl Running {
    /// Waits until the commands that carry the mark run.
    fn of(mark: Mark, count: usize, server: i32) -> Self {
        eventually("the commands run", || mark.alive().len() >= count);
        Self { mark, below: descendants(server) }
    }

    fn assert_gone(&self, how: &str) {
        let left = || self.below.iter().filter(|process| process.still_runs()).count();
        let deadline = Instant::now() + PROMPTLY;
        while left() + self.mark.alive().len() > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let left: Vec<_> = self.below.iter().filter(|process| process.still_runs()).collect();
        assert!(left.is_empty(), "{how}: {left:?} are left");
        assert_eq!(self.mark.alive(), [0; 0], "{how}");
    }
}

/// A command whose processes have left its session and are deaf to everything but `KILL`.
fn deaf(mark: &Mark) -> String {
    format!("trap '' TERM HUP INT; setsid sleep {0} & sleep {0}; sleep {0}", mark.0)
}

/// The processes of [`deaf`] that carry the mark: the shell, the other and the first sleep.
const DEAF_COUNT: usize = 3;

fn background(session: &mut dyn ToolSession, mark: &Mark) -> String {
    let arguments = json!({ "command": deaf(mark), "run_in_background": true });
    let answer = session.call("Bash", arguments);
    answer.structured["shell_id"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

#[test]
fn sigterm_with_open_streams_and_running_commands_ends_with_zero_and_leaves_nothing() {
    let test_env = TestEnvironment::usual();
    let mut server = http(&test_env);
    let mut session = server.session();
    let mut stream = session.aside("GET", "");
    assert_eq!(stream.head().status, 200);
    let mark = Mark::new();
    background(&mut session, &mark);
    let (_, _waiting) = session.begin_call("Bash", &json!({ "command": deaf(&mark) }));
    let running = Running::of(mark, 2 * DEAF_COUNT, server.server.pid());
    let begun = Instant::now();
    server.server.signal(Signal::TERM);
    let status = server.server.wait(PROMPTLY);
    eprintln!("over HTTP: ended {:?} after SIGTERM", begun.elapsed());
    assert_eq!(status.code(), Some(0), "{}", server.server.stderr());
    running.assert_gone("SIGTERM over HTTP");
}

#[test]
fn sigterm_ends_a_server_over_the_standard_streams_too() {
    let test_env = TestEnvironment::usual();
    let mut client = stdio(&test_env);
    let mark = Mark::new();
    background(&mut client, &mark);
    client.begin_call("Bash", &json!({ "command": deaf(&mark) }));
    let running = Running::of(mark, 2 * DEAF_COUNT, client.server.pid());
    let begun = Instant::now();
    client.server.signal(Signal::TERM);
    let status = client.server.wait(PROMPTLY);
    eprintln!("over stdio: ended {:?} after SIGTERM", begun.elapsed());
    assert_eq!(status.code(), Some(0), "{}", client.server.stderr());
    running.assert_gone("SIGTERM over stdio");
}

#[test]
fn a_killed_server_leaves_no_child() {
    let test_env = TestEnvironment::usual();
    let mut client = stdio(&test_env);
    let mark = Mark::new();
    background(&mut client, &mark);
    client.begin_call("Bash", &json!({ "command": deaf(&mark) }));
    let running = Running::of(mark, 2 * DEAF_COUNT, client.server.pid());
    client.server.signal(Signal::KILL);
    client.server.wait(PROMPTLY);
    running.assert_gone("SIGKILL");
}

#[test]
fn the_end_of_input_ends_the_server_and_its_background_commands() {
    let test_env = TestEnvironment::usual();
    let mut client = stdio(&test_env);
    let mark = Mark::new();
    background(&mut client, &mark);
    let running = Running::of(mark, DEAF_COUNT, client.server.pid());
    let begun = Instant::now();
    client.close();
    let status = client.server.wait(PROMPTLY);
    eprintln!("ended {:?} after the end of input", begun.elapsed());
    assert_eq!(status.code(), Some(0), "{}", client.server.stderr());
    running.assert_gone("the end of input");
}

#[test]
fn a_cancelled_call_kills_its_command_and_the_next_call_works() {
    let test_env = TestEnvironment::usual();
    let mut client = stdio(&test_env);
    let mark = Mark::new();
    let id = client.begin_call("Bash", &json!({ "command": deaf(&mark) }));
    let running = Running { below: Vec::new(), mark: mark.clone() };
    eventually("the command runs", || mark.alive().len() >= DEAF_COUNT);
    client.tell("notifications/cancelled", &json!({ "requestId": id, "reason": "enough" }));
    running.assert_gone("cancelled over stdio");
    assert_eq!(client.call("Bash", json!({ "command": "echo next" })).ok(), "next\n");

    let server = http(&test_env);
    let mut session = server.session();
    let mark = Mark::new();
    let (id, _waiting) = session.begin_call("Bash", &json!({ "command": deaf(&mark) }));
    eventually("the command runs", || mark.alive().len() >= DEAF_COUNT);
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": id } });
    assert_eq!(session.post(&cancelled).status, 202);
    Running { below: Vec::new(), mark }.assert_gone("cancelled over HTTP");
    assert_eq!(session.call("Bash", json!({ "command": "echo next" })).ok(), "next\n");
}

#[test]
fn a_signal_to_the_command_line_ends_its_command() {
    let test_env = TestEnvironment::usual();
    let mark = Mark::new();
    let mut command = test_env.carrel();
    let arguments = json!({ "command": deaf(&mark) }).to_string();
    command.args(["tool", "Bash", &arguments, "--workspace", text(&test_env.workspace())]);
    let mut server = Server::start(command, Stdio::null(), Stdio::null());
    let running = Running::of(mark, DEAF_COUNT, server.pid());
    server.signal(Signal::INT);
    server.wait(PROMPTLY);
    running.assert_gone("SIGINT");
}

// What each client has to itself.

#[test]
fn a_long_command_tells_a_client_that_asked_how_far_it_is() {
    let test_env = TestEnvironment::usual();
    let call = |token: &str| {
        json!({
            "name": "Bash",
            "arguments": { "command": "echo begun; sleep 2.5" },
            "_meta": { "progressToken": token },
        })
    };
    let check = |news: &[Value], token: &str| {
        let progress: Vec<f64> = news
            .iter()
            .filter(|one| one["method"] == "notifications/progress")
            .map(|one| {
                assert_eq!(one["params"]["progressToken"], token, "{one}");
                one["params"]["progress"].as_f64().unwrap()
            })
            .collect();
        assert!(progress.len() >= 2, "{news:?}");
        assert!(progress.is_sorted_by(|one, next| one < next), "it only grows: {progress:?}");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = stdio(&test_env);
            let reply = client.ask("tools/call", &call("one"));
            assert_eq!(reply["result"]["content"][0]["text"], "begun\n");
            check(&client.news, "one");
            // Nobody asked this time.
            client.news.clear();
            client.call("Bash", json!({ "command": "sleep 1.2" })).ok();
            assert_eq!(client.news, [Value::Null; 0]);
        });
        scope.spawn(|| {
            let server = http(&test_env);
            let mut session = server.session();
            let message =
                json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call("two") });
            let messages = session.post(&message).messages();
            let (last, news) = messages.split_last().unwrap();
            assert_eq!(last["result"]["content"][0]["text"], "begun\n");
            check(news, "two");
        });
    });
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// Waits until the client's roots are taken in, which happens after the handshake.
fn listing(client: &mut Stdin, expected: &str) -> Answer {
    let deadline = Instant::now() + PROMPTLY;
    loop {
        let answer = client.call("LS", json!({}));
        if answer.text == expected || Instant::now() > deadline {
            return answer;
        }
    }
}

#[test]
fn the_roots_of_a_client_narrow_and_never_widen() {
    let test_env = TestEnvironment::usual();
    test_env.write("top.txt", "top\n");
    test_env.write("sub/inner.txt", "inner\n");
    std::fs::create_dir(test_env.path("outside")).unwrap();
    std::fs::write(test_env.path("outside/secret"), "secret\n").unwrap();
    let workspace = test_env.workspace();
    let sub = workspace.join("sub");
    let start = |roots: &[String]| {
        Stdin::with_roots(mcp(&test_env, &["--workspace", text(&workspace)]), roots)
    };

    let mut narrow = start(&[uri(&sub)]);
    assert_eq!(listing(&mut narrow, "inner.txt\n").text, "inner.txt\n");
    assert_eq!(narrow.call("Read", json!({ "file_path": "inner.txt" })).ok(), "1\tinner\n");
    for path in ["../top.txt".to_owned(), workspace.join("top.txt").display().to_string()] {
        let answer = narrow.call("Read", json!({ "file_path": path }));
        assert_eq!(answer.refused().0, "E_SANDBOX_VIOLATION", "{path}");
    }
    let shell = narrow.call("Bash", json!({ "command": "pwd; cat ../top.txt" })).ok();
    assert!(shell.starts_with(&format!("{}\n", sub.display())), "{shell}");
    assert!(!shell.contains("\ntop\n"), "{shell}");

    let all = "sub/\ntop.txt\n";
    std::os::unix::fs::symlink(&workspace, test_env.path("link")).unwrap();
    let wide: [(&str, Vec<String>); 5] = [
        ("above", vec![uri(&test_env.path(""))]),
        ("the whole machine", vec!["file:///".into()]),
        ("the workspace by a link", vec![uri(&test_env.path("link"))]),
        ("one of several", vec![uri(&test_env.path("outside")), uri(&workspace)]),
        ("beside garbage", vec!["https://example.org".into(), uri(&workspace)]),
    ];
    for (what, roots) in wide {
        let mut client = start(&roots);
        assert_eq!(listing(&mut client, all).text, all, "{what}");
        let secret = json!({ "file_path": test_env.path("outside/secret") });
        assert_eq!(client.call("Read", secret).refused().0, "E_SANDBOX_VIOLATION", "{what}");
        let bash =
            json!({ "command": format!("cat {}", test_env.path("outside/secret").display()) });
        assert!(!client.call("Bash", bash).text.contains("secret\n"), "{what}");
    }
}

/// Every call of a session without a workspace is refused, with the reason and the ways out.
fn assert_nothing(what: &str, client: &mut dyn ToolSession, workspace: &Path, reason: &str) {
    let calls = [
        ("LS", json!({})),
        ("Read", json!({ "file_path": "top.txt" })),
        ("Read", json!({ "file_path": "top.txt", "workspace": "workspace" })),
        ("Grep", json!({ "pattern": "top", "workspace": "all" })),
        ("Write", json!({ "file_path": "new.txt", "content": "x" })),
        ("Bash", json!({ "command": "cat top.txt" })),
        ("workspaces", json!({})),
        ("git_inspect", json!({ "operation": "status" })),
    ];
    for (tool, arguments) in calls {
        let answer = client.call(tool, arguments);
        let (code, text) = answer.refused();
        assert_eq!(code, "E_CLIENT_ROOTS", "{what}, {tool}: {text}");
        assert!(text.starts_with(reason), "{what}, {tool}: {text}");
        assert!(text.contains(&format!("Open {} in the client", workspace.display())), "{text}");
        assert!(text.contains("--ignore-roots"), "{text}");
    }
}

#[test]
fn roots_that_are_outside_empty_garbage_or_an_error_leave_a_session_nothing() {
    let test_env = TestEnvironment::usual();
    test_env.write("top.txt", "top\n");
    test_env.write("sub/inner.txt", "inner\n");
    std::fs::create_dir(test_env.path("outside")).unwrap();
    let workspace = test_env.workspace();
    std::os::unix::fs::symlink(test_env.path("outside"), workspace.join("way-out")).unwrap();
    let outside = uri(&test_env.path("outside"));
    let list = |roots: &[&str]| {
        let roots: Vec<_> = roots.iter().map(|uri| json!({ "uri": uri })).collect();
        json!({ "result": { "roots": roots } })
    };
    let detour = format!("{}/../../outside", uri(&workspace.join("sub")));
    let linked = uri(&workspace.join("way-out"));
    let missing = uri(&workspace.join("missing"));
    let lie_outside = "the client's roots lie outside the workspace: ";
    let cases = [
        ("elsewhere", list(&[&outside]), lie_outside),
        ("elsewhere by a detour", list(&[&detour]), lie_outside),
        ("elsewhere by a link", list(&[&linked]), lie_outside),
        ("not there", list(&[&missing]), lie_outside),
        ("nothing", list(&[]), "the client declares roots and lists none; "),
        (
            "garbage",
            list(&["https://example.org", "file://other-machine/w", "", "file:///%zz"]),
            "the client's roots are no files of this machine: https://example.org, ",
        ),
        (
            "an error",
            json!({ "error": { "code": -32603, "message": "no window is open" } }),
            "the client did not list its roots (",
        ),
        ("no list", json!({ "result": {} }), "the client did not list its roots ("),
    ];
    for (what, roots, reason) in cases {
        let command = mcp(&test_env, &["--workspace", text(&workspace)]);
        let mut client = Stdin::answering(command, Some(roots));
        assert_nothing(what, &mut client, &workspace, reason);
    }
    assert!(!workspace.join("new.txt").exists());
}

#[test]
fn a_client_that_does_not_answer_for_its_roots_has_nothing_until_it_does() {
    let test_env = TestEnvironment::usual();
    test_env.write("top.txt", "top\n");
    test_env.write("sub/inner.txt", "inner\n");
    test_env.write("other/deep.txt", "deep\n");
    let workspace = test_env.workspace();
    let command = mcp(&test_env, &["--workspace", text(&workspace)]);
    let mut client = Stdin::answering(command, None);
    let silent = "the client has not said yet which roots it has; ";
    let begun = Instant::now();
    assert_nothing("silence", &mut client, &workspace, silent);
    assert!(begun.elapsed() < Duration::from_secs(10), "it is waited for once");
    client.answer_roots(&[uri(&workspace.join("sub"))]);
    assert_eq!(listing(&mut client, "inner.txt\n").text, "inner.txt\n", "a late answer counts");

    // Roots that change are asked for again, and count for nothing until the answer.
    client.roots = None;
    let asked = client.asked_for_roots;
    client.tell("notifications/roots/list_changed", &json!({}));
    client.until("it asks again", |client| client.asked_for_roots > asked);
    assert_nothing("a change", &mut client, &workspace, silent);
    client.answer_roots(&[uri(&workspace.join("other"))]);
    assert_eq!(listing(&mut client, "deep.txt\n").text, "deep.txt\n");
    let old = client.call("Read", json!({ "file_path": workspace.join("sub/inner.txt") }));
    assert_eq!(old.refused().0, "E_SANDBOX_VIOLATION");
}

#[test]
fn all_roots_inside_a_workspace_count() {
    let test_env = TestEnvironment::usual();
    test_env.write("top.txt", "top\n");
    for part in ["one", "two", "two/below", "three"] {
        test_env.write(&format!("{part}/{}.txt", part.replace('/', "-")), "text\n");
    }
    let workspace = test_env.workspace();
    let name = workspace.file_name().unwrap().to_str().unwrap();
    let roots = ["one", "two", "two/below"].map(|part| uri(&workspace.join(part)));
    let command = mcp(&test_env, &["--workspace", text(&workspace)]);
    let mut client = Stdin::with_roots(command, &roots);
    let (one, two) = (format!("{name}/one"), format!("{name}/two"));
    let listed = client.call("workspaces", json!({})).structured;
    let listed: Vec<_> = listed["workspaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(listed, [one.as_str(), two.as_str()], "a root inside another is part of it");
    let at = |workspace: &str, path: &str| json!({ "file_path": path, "workspace": workspace });
    assert_eq!(client.call("Read", at(&one, "one.txt")).ok(), "1\ttext\n");
    assert_eq!(client.call("Read", at(&two, "two.txt")).ok(), "1\ttext\n");
    assert_eq!(client.call("Read", at(&two, "below/two-below.txt")).ok(), "1\ttext\n");
    let pwd = |workspace: &str| json!({ "command": "pwd; ls ..", "workspace": workspace });
    let ran = client.call("Bash", pwd(&two)).ok();
    assert!(ran.starts_with(&workspace.join("two").display().to_string()), "{ran}");
    assert!(!ran.contains("three") && !ran.contains("top.txt"), "{ran}");
    for path in ["../three/three.txt", "../top.txt", "../two/two.txt"] {
        assert_eq!(client.call("Read", at(&one, path)).refused().0, "E_SANDBOX_VIOLATION");
    }
    let unnamed = client.call("Read", json!({ "file_path": "one.txt" }));
    assert_eq!(unnamed.refused().0, "E_WORKSPACE_NOT_CHOSEN");
}

#[test]
fn an_operator_can_have_roots_ignored_and_a_client_without_roots_is_not_asked() {
    let test_env = TestEnvironment::usual();
    test_env.write("top.txt", "top\n");
    let workspace = test_env.workspace();
    let options = ["--workspace", text(&workspace), "--ignore-roots"];
    let roots = json!({ "roots": { "listChanged": true } });
    let mut client = Stdin::with_capabilities(mcp(&test_env, &options), &roots, None);
    assert_eq!(client.call("LS", json!({})).ok(), "top.txt\n");
    let mut plain = stdio(&test_env);
    assert_eq!(plain.call("LS", json!({})).ok(), "top.txt\n");
    assert_eq!((client.asked_for_roots, plain.asked_for_roots), (0, 0));
}

/// A client of the revision without sessions that declares roots cannot be asked for them.
#[test]
fn without_sessions_roots_are_not_asked_for_and_the_workspaces_are_the_operators() {
    let test_env = TestEnvironment::usual();
    test_env.write("top.txt", "top\n");
    let server = http(&test_env);
    for capabilities in [json!({}), json!({ "roots": {} })] {
        let listed = stateless_as(&server, &capabilities, None, "LS", &json!({}));
        assert_eq!(listed.ok(), "top.txt\n", "{capabilities}");
    }
}

#[test]
fn the_roots_of_a_client_over_http_narrow_that_client_only() {
    let test_env = TestEnvironment::usual();
    test_env.write("top.txt", "top\n");
    test_env.write("sub/inner.txt", "inner\n");
    let server = http(&test_env);
    let mut narrow = server.session_with(&[], &json!({ "roots": { "listChanged": true } }));
    let mut stream = narrow.aside("GET", "");
    assert_eq!(stream.head().status, 200);
    let asked = stream.message().unwrap();
    assert_eq!(asked["method"], "roots/list", "{asked}");
    let roots = json!([{ "uri": uri(&test_env.workspace().join("sub")) }]);
    let reply = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "roots": roots } });
    assert_eq!(narrow.post(&reply).status, 202);
    let deadline = Instant::now() + PROMPTLY;
    while narrow.call("LS", json!({})).text != "inner.txt\n" {
        assert!(Instant::now() < deadline, "it is never narrowed");
    }
    let up = narrow.call("Read", json!({ "file_path": "../top.txt" }));
    assert_eq!(up.refused().0, "E_SANDBOX_VIOLATION");
    assert_eq!(server.session().call("LS", json!({})).ok(), "sub/\ntop.txt\n");

    // A client that declares roots and never listens for the question has nothing.
    let mut deaf = server.session_with(&[], &json!({ "roots": {} }));
    let silent = "the client has not said yet which roots it has; ";
    assert_nothing("silence over HTTP", &mut deaf, &test_env.workspace(), silent);
}

/// Ids that a client could try which knows one of its own jobs.
fn guesses(own: &str) -> Vec<String> {
    let (start, last) = own.split_at(own.len() - 1);
    let near = "0123456789abcdefghjkmnpqrstvwxyz".chars().filter(|digit| !last.contains(*digit));
    let near = near.map(|digit| format!("{start}{digit}"));
    let counted = (0..50).flat_map(|number| [format!("job_{number}"), format!("job_{number:026}")]);
    near.chain(counted).collect()
}

#[test]
fn two_clients_have_their_own_memory_and_their_own_shells() {
    let test_env = TestEnvironment::usual();
    test_env.write("a.txt", "old\n");
    let server = http(&test_env);
    let (mut one, mut other) = (server.session(), server.session());
    assert_ne!(one.id(), other.id());
    one.call("Read", json!({ "file_path": "a.txt" })).ok();
    let edit = json!({ "file_path": "a.txt", "old_string": "old", "new_string": "new" });
    assert_eq!(other.call("Edit", edit.clone()).refused().0, "E_NOT_READ");
    let mark = Mark::new();
    let id = background(&mut one, &mark);
    let own = background(&mut other, &mark);
    for guess in guesses(&own) {
        for tool in ["BashOutput", "KillShell", "watch_process_events"] {
            let answer = other.call(tool, json!({ "shell_id": guess }));
            let unknown = format!("unknown shell_id: {guess}");
            assert_eq!(answer.refused(), ("E_JOB_NOT_FOUND", unknown.as_str()), "{tool}");
        }
    }
    other.call("KillShell", json!({ "shell_id": own })).ok();
    one.call("Edit", edit).ok();
    assert_eq!(other.call("Read", json!({ "file_path": "a.txt" })).ok(), "1\tnew\n");
    let again = json!({ "file_path": "a.txt", "old_string": "new", "new_string": "newer" });
    other.call("Edit", again.clone()).ok();
    assert_eq!(one.call("Edit", again).refused().0, "E_CHANGED_SINCE_READ");
    one.call("KillShell", json!({ "shell_id": id })).ok();
    Running { below: Vec::new(), mark }.assert_gone("KillShell");
}

/// Over stdin and stdout each client has a server of its own, in either revision.
#[test]
fn two_clients_over_stdio_have_nothing_of_each_other() {
    let test_env = TestEnvironment::usual();
    test_env.write("a.txt", "old\n");
    let (mut one, mut other) = (stdio(&test_env), stdio(&test_env));
    let alone = |tool: &str, arguments: &Value| {
        json!({ "name": tool, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "kit", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        } })
    };
    one.call("Read", json!({ "file_path": "a.txt" })).ok();
    let mark = Mark::new();
    let id = background(&mut one, &mark);
    let edit = json!({ "file_path": "a.txt", "old_string": "old", "new_string": "new" });
    // The refusal of one that applies would show its lines.
    let unfit = json!({ "file_path": "a.txt", "old_string": "nothing", "new_string": "new" });
    let job = json!({ "shell_id": id });
    for (tool, arguments, code) in [
        ("Edit", &unfit, "E_NOT_READ"),
        ("BashOutput", &job, "E_JOB_NOT_FOUND"),
        ("KillShell", &job, "E_JOB_NOT_FOUND"),
    ] {
        assert_eq!(other.call(tool, arguments.clone()).refused().0, code);
        let reply = other.ask("tools/call", &alone(tool, arguments));
        assert_eq!(Answer::of_message(&reply).refused().0, code, "2026-07-28");
    }
    one.call("Edit", edit).ok();
    one.call("KillShell", job).ok();
    Running { below: Vec::new(), mark }.assert_gone("KillShell");
}

#[test]
fn a_session_that_is_deleted_takes_its_background_commands_along() {
    let test_env = TestEnvironment::usual();
    let server = http(&test_env);
    let (mut one, mut other) = (server.session(), server.session());
    let (mark, kept) = (Mark::new(), Mark::new());
    background(&mut one, &mark);
    let id = background(&mut other, &kept);
    eventually("both run", || mark.alive().len() + kept.alive().len() >= 2 * DEAF_COUNT);
    assert!((200..300).contains(&one.delete()));
    Running { below: Vec::new(), mark }.assert_gone("DELETE");
    assert_eq!(kept.alive().len(), DEAF_COUNT, "those of the other session go on");
    let call = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list" });
    assert_eq!(one.post(&call).status, 404);
    other.call("KillShell", json!({ "shell_id": id })).ok();
}

/// A call of the revision without sessions.
fn stateless(server: &HttpServer, handle: Option<&str>, tool: &str, arguments: &Value) -> Answer {
    stateless_as(server, &json!({}), handle, tool, arguments)
}

fn stateless_as(
    server: &HttpServer,
    capabilities: &Value,
    handle: Option<&str>,
    tool: &str,
    arguments: &Value,
) -> Answer {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "kit", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    if let Some(handle) = handle {
        meta["dev.carrel/session"] = json!(handle);
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": tool, "arguments": arguments, "_meta": meta } });
    let mut headers = vec![
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
    ];
    let authorization = server.authorization();
    headers.extend(authorization.iter().map(|(name, value)| (*name, value.as_str())));
    let reply = Connection::open(server.address).post(&headers, &message);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(!reply.headers.contains_key("mcp-session-id"), "{reply:?}");
    Answer::of_message(reply.messages().last().unwrap())
}

#[test]
fn without_sessions_a_handle_tells_clients_apart() {
    let test_env = TestEnvironment::usual();
    test_env.write("a.txt", "old\n");
    let server = http(&test_env);
    let read = json!({ "file_path": "a.txt" });
    let edit = |old: &str, new: &str| json!({ "file_path": "a.txt", "old_string": old, "new_string": new });
    stateless(&server, Some("one"), "Read", &read).ok();
    for handle in [Some("other"), Some("ONE"), None] {
        let answer = stateless(&server, handle, "Edit", &edit("old", "new"));
        assert_eq!(answer.refused().0, "E_NOT_READ", "{handle:?}");
    }
    stateless(&server, Some("one"), "Edit", &edit("old", "new")).ok();
    let mark = Mark::new();
    let command = json!({ "command": deaf(&mark), "run_in_background": true });
    let started = stateless(&server, Some("one"), "Bash", &command);
    let id = started.structured["shell_id"].as_str().unwrap();
    for guess in guesses(id) {
        let job = json!({ "shell_id": guess });
        let answer = stateless(&server, Some("other"), "KillShell", &job);
        assert_eq!(answer.refused().0, "E_JOB_NOT_FOUND", "{guess}");
    }
    stateless(&server, Some("one"), "KillShell", &json!({ "shell_id": id })).ok();
    Running { below: Vec::new(), mark }.assert_gone("KillShell");
    // A session of the other revisions is nobody's handle.
    let mut session: Session = server.session();
    assert_eq!(session.call("Edit", edit("new", "newer")).refused().0, "E_NOT_READ");
}

/// Two clients at once that send no handle, as those of a stock SDK: neither has anything of the other, and
/// each can work.
#[test]
fn without_sessions_and_handles_no_request_sees_anything_of_another() {
    let test_env = TestEnvironment::usual();
    test_env.write("a.txt", "old\n");
    let server = http(&test_env);
    let call = |tool: &str, arguments: Value| stateless(&server, None, tool, &arguments);
    let edit = |old: &str, new: &str, hash: Option<&Value>| {
        let mut edit = json!({ "file_path": "a.txt", "old_string": old, "new_string": new });
        if let Some(hash) = hash {
            edit["expected_hash"] = hash.clone();
        }
        edit
    };
    // A reads, and B changes what A has read.
    let read = call("Read", json!({ "file_path": "a.txt" }));
    let hash = read.structured["hash"].clone();
    let shown = hash.as_str().unwrap();
    assert_eq!(read.text, format!("1\told\n[hash {shown}]\n"));
    let refused = call("Edit", edit("old", "theirs", None));
    let expected = "refusing to edit a.txt: Read it first and pass its hash as expected_hash";
    let (code, text) = refused.refused();
    assert_eq!(code, "E_NOT_READ");
    assert_eq!(
        text,
        format!("{expected}\n[it would change these lines]\n1\told\n[hash {shown}]\n")
    );
    let write = json!({ "file_path": "a.txt", "content": "theirs\n" });
    assert_eq!(call("Write", write).refused().0, "E_NOT_READ");
    assert_eq!(std::fs::read_to_string(test_env.workspace().join("a.txt")).unwrap(), "old\n");

    // A starts jobs, and B guesses their ids.
    let mark = Mark::new();
    let command = json!({ "command": deaf(&mark), "run_in_background": true });
    let started = call("Bash", command.clone()).structured["shell_id"].clone();
    let watched = call("watch_process", json!({ "command": deaf(&mark) }));
    let watched = watched.structured["shell_id"].clone();
    let own = call("Bash", json!({ "command": "true" })).structured["shell_id"].clone();
    for guess in guesses(own.as_str().unwrap()) {
        for tool in ["BashOutput", "KillShell", "watch_process_events"] {
            let answer = call(tool, json!({ "shell_id": guess }));
            let unknown = format!("unknown shell_id: {guess}");
            assert_eq!(answer.refused(), ("E_JOB_NOT_FOUND", unknown.as_str()), "{tool}");
        }
    }
    assert_eq!(
        call("last_test_failures", json!({})).ok().trim_end(),
        "no run_tests call yet in this session"
    );

    // A works on, with the hash and the ids that it was given.
    let edited = call("Edit", edit("old", "new", Some(&hash)));
    let next = edited.structured["hash"].clone();
    assert!(edited.clone().ok().ends_with(&format!("[hash {}]\n", next.as_str().unwrap())));
    let stale = call("Edit", edit("new", "newer", Some(&hash)));
    let (code, text) = stale.refused();
    assert_eq!(code, "E_CHANGED_SINCE_READ");
    let expected = "refusing to edit a.txt: it has changed since it was read; Read it again\n";
    assert!(text.starts_with(expected), "{text}");
    let write = json!({ "file_path": "a.txt", "content": "all\n", "expected_hash": next });
    call("Write", write).ok();
    assert_eq!(std::fs::read_to_string(test_env.workspace().join("a.txt")).unwrap(), "all\n");
    eventually("both run", || mark.alive().len() >= 2 * DEAF_COUNT);
    let events = call("watch_process_events", json!({ "shell_id": watched })).ok();
    assert!(events.contains("started"), "{events}");
    for id in [started, watched] {
        call("BashOutput", json!({ "shell_id": id })).ok();
        call("KillShell", json!({ "shell_id": id })).ok();
    }
    Running { below: Vec::new(), mark }.assert_gone("KillShell");
}

/// A client that has lost its session reads the output of its command in another one; the id is enough.
#[test]
fn a_job_is_found_by_its_id_in_another_session_of_its_owner() {
    let test_env = TestEnvironment::usual();
    let server = http(&test_env);
    let mut first = server.session();
    let command = json!({ "command": "echo ready; sleep 1000", "run_in_background": true });
    let id = first.call("Bash", command).structured["shell_id"].clone();
    let mut second = server.session();
    let output = second.call("BashOutput", json!({ "shell_id": id, "wait_seconds": 10 })).ok();
    assert!(output.ends_with("ready\n"), "{output}");
    second.call("KillShell", json!({ "shell_id": id })).ok();
    assert_eq!(first.call("BashOutput", json!({ "shell_id": id })).refused().0, "E_JOB_NOT_FOUND");
    let events = || std::fs::read_to_string(test_env.path("state/carrel/events.jsonl")).unwrap();
    eventually("the call is in the log", || events().contains("\"KillShell\""));
    let events = events();
    assert!(!events.contains(id.as_str().unwrap()), "{events}");
}

// What a server does not offer.

#[test]
fn a_capability_that_is_not_declared_is_an_unknown_method() {
    let test_env = TestEnvironment::usual();
    let mut client = stdio(&test_env);
    for (method, params, offers_no) in [
        ("logging/setLevel", json!({ "level": "info" }), "logging"),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "a" }, "argument": { "name": "a", "value": "" } }),
            "completions",
        ),
    ] {
        let error = client.ask(method, &params)["error"].take();
        assert_eq!(error["code"], -32601, "{method}: {error}");
        let expected = format!("{method}: this server offers no {offers_no}");
        assert_eq!(error["message"], expected);
    }
}

#[test]
fn a_cursor_that_the_server_never_gave_is_an_invalid_parameter() {
    let test_env = TestEnvironment::usual();
    let mut client = stdio(&test_env);
    let lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
    let cursors = [
        "garbage",
        "",
        "MTA=",
        "files:",
        "files:-1",
        "files:01",
        "files:9999999",
        "files:1 ",
        "Files:1",
    ];
    for (method, cursor) in lists.iter().flat_map(|method| cursors.map(|cursor| (method, cursor))) {
        let error = client.ask(method, &json!({ "cursor": cursor }))["error"].take();
        assert_eq!(error["code"], -32602, "{method} {cursor}: {error}");
    }
    assert!(client.ask("tools/list", &json!({}))["result"]["tools"].is_array());
}

#[test]
fn a_tool_that_discloses_a_secret_is_not_called_read_only() {
    let test_env = TestEnvironment::usual();
    let workspace = test_env.workspace();
    let options = ["--workspace", text(&workspace), "--tools", "default,secrets"];
    let tools = Stdin::start(mcp(&test_env, &options)).tools();
    let read_only = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool["annotations"]["readOnlyHint"] == true
    };
    let names = ["Read", "BashOutput", "secrets_available", "secret", "Write"];
    assert_eq!(names.map(read_only), [true, true, true, false, false]);
}

#[test]
fn the_operator_sets_the_usual_size_of_a_reply_and_a_call_its_own() {
    let test_env = TestEnvironment::usual();
    let workspace = test_env.workspace();
    let command = json!({ "command": "seq 100000" });
    let mut small =
        Stdin::start(mcp(&test_env, &["--workspace", text(&workspace), "--max-reply", "2000"]));
    let bytes = small.call("Bash", command.clone()).ok().len();
    assert!((1000..2500).contains(&bytes), "{bytes}");
    let more = json!({ "command": "seq 100000", "max_bytes": 20_000 });
    let bytes = small.call("Bash", more).ok().len();
    assert!((19_000..21_000).contains(&bytes), "{bytes}");
    let mut usual = stdio(&test_env);
    let bytes = usual.call("Bash", json!({ "command": "seq 5500" })).ok().len();
    assert!((26_000..27_000).contains(&bytes), "{bytes}");
    // Output that does not fit is an excerpt, of the least size if its lines are short.
    let bytes = usual.call("Bash", command).ok().len();
    assert!((1_000..1_500).contains(&bytes), "{bytes}");
    for wrong in ["999", "102401", "many"] {
        let run = Run::of(mcp(&test_env, &["--max-reply", wrong]));
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains("--max-reply"), "{}", run.stderr);
    }
}
