//! Long calls as tasks of MCP: what a client that declares them gets, what stays when it or its server dies,
//! and who finds nothing.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::eventually;
use crate::interfaces::{Answer, Connection, DEADLINE, HttpServer, Stdin, ToolSession as _};
use crate::test_environment::{Mark, TestEnvironment};

/// The extension as a client declares it.
fn tasks() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

/// The parameters of a request of the revision 2026-07-28.
pub(crate) fn alone(mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "kit", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

/// Sends a request of the revision 2026-07-28 on a connection of its own.
pub(crate) fn ask(server: &HttpServer, capabilities: &Value, method: &str, params: Value) -> Value {
    let mut connection = begin(server, capabilities, method, params);
    let reply = connection.reply();
    assert!([200, 400, 404].contains(&reply.status), "{reply:?}");
    reply.messages().last().cloned().unwrap_or_else(|| panic!("no message: {reply:?}"))
}

/// Sends a request of the revision 2026-07-28 without waiting for its reply.
pub(crate) fn begin(
    server: &HttpServer,
    capabilities: &Value,
    method: &str,
    params: Value,
) -> Connection {
    let name = ["name", "uri", "taskId"].into_iter().find_map(|key| params[key].as_str());
    let name = name.unwrap_or_default().to_owned();
    let params = alone(params, capabilities);
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    if !name.is_empty() {
        headers.push(("mcp-name", &name));
    }
    let authorization = server.authorization();
    headers.extend(authorization.iter().map(|(name, value)| (*name, value.as_str())));
    let mut connection = Connection::open(server.address);
    connection.send("POST", &headers, &message.to_string());
    connection
}

pub(crate) fn mcp(test_env: &TestEnvironment, options: &[&str]) -> Command {
    let mut command = test_env.carrel();
    command.arg("mcp").args(options).arg("--workspace").arg(test_env.workspace());
    command
}

pub(crate) fn http(test_env: &TestEnvironment) -> HttpServer {
    HttpServer::start(mcp(test_env, &["--http", "127.0.0.1:0"]))
}

fn bash(command: &str) -> Value {
    json!({ "name": "Bash", "arguments": { "command": command, "run_in_background": true } })
}

/// Starts a task and returns its id.
fn start(server: &HttpServer, call: Value) -> String {
    let reply = ask(server, &tasks(), "tools/call", call);
    let result = &reply["result"];
    assert_eq!(result["resultType"], "task", "{reply}");
    assert_eq!(result["status"], "working", "{reply}");
    result["taskId"].as_str().unwrap().to_owned()
}

fn get(server: &HttpServer, id: &str) -> Value {
    ask(server, &tasks(), "tasks/get", json!({ "taskId": id }))
}

/// Asks for a task until it is over.
fn ended(server: &HttpServer, id: &str) -> Value {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let reply = get(server, id);
        let status = reply["result"]["status"].as_str().unwrap_or_else(|| panic!("{reply}"));
        if status != "working" {
            return reply["result"].clone();
        }
        assert!(Instant::now() < deadline, "never ended: {reply}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_background_command_of_a_client_that_declares_tasks_is_a_task() {
    let test_env = TestEnvironment::usual();
    let server = http(&test_env);
    let discovered = ask(&server, &json!({}), "server/discover", json!({}));
    let offered = &discovered["result"]["capabilities"]["extensions"];
    assert_eq!(offered["io.modelcontextprotocol/tasks"], json!({}), "{discovered}");

    let id = start(&server, bash("echo done; exit 3"));
    assert!(id.starts_with("job_") && id.len() == 30, "{id}");
    let task = ended(&server, &id);
    assert_eq!(task["status"], "completed", "{task}");
    assert_eq!(task["result"]["structuredContent"]["exit_code"], 3, "{task}");
    assert_eq!(task["result"]["content"][0]["text"], "done\nexit: 3\n");
    let update = json!({ "taskId": id, "inputResponses": {} });
    assert!(ask(&server, &tasks(), "tasks/update", update)["error"].is_null());

    // The plain call stays as it is, for clients that declare nothing.
    let reply = ask(&server, &json!({}), "tools/call", bash("echo plain"));
    let plain = Answer::of_message(&reply);
    assert_eq!(plain.structured["running"], true, "{reply}");
    assert!(plain.ok().starts_with("shell_id: job_"), "{reply}");
    // A call that is refused before anything runs is no task either.
    let refused = ask(&server, &tasks(), "tools/call", bash("sudo true"));
    assert_eq!(Answer::of_message(&refused).refused().0, "E_COMMAND_REFUSED", "{refused}");
    let mut reader = Stdin::start(mcp(&test_env, &["--read-only"]));
    let unknown = reader.ask("tools/call", &alone(bash("true"), &tasks()));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let short = json!({ "name": "Bash", "arguments": { "command": "echo short" } });
    let reply = ask(&server, &tasks(), "tools/call", short);
    assert_eq!(Answer::of_message(&reply).ok(), "short\n");
}

#[test]
fn a_client_that_dies_and_returns_reads_its_output_by_the_id_of_the_task() {
    let test_env = TestEnvironment::usual();
    let server = http(&test_env);
    let wait = "echo one; until [ -s go ]; do sleep 0.01; done; cat go";
    let mut connection = begin(&server, &tasks(), "tools/call", bash(wait));
    let reply = connection.reply();
    let id = reply.messages()[0]["result"]["taskId"].as_str().unwrap().to_owned();
    drop(connection);
    let output =
        json!({ "name": "BashOutput", "arguments": { "shell_id": id, "wait_seconds": 9 } });
    let reply = ask(&server, &tasks(), "tools/call", output);
    assert!(Answer::of_message(&reply).ok().contains("one\n"), "{reply}");
    assert_eq!(get(&server, &id)["result"]["status"], "working");
    test_env.write("go", "further\n");
    let task = ended(&server, &id);
    assert_eq!(task["result"]["content"][0]["text"], "one\nfurther\n", "{task}");
}

#[test]
fn a_task_that_is_cancelled_ends_its_command() {
    let test_env = TestEnvironment::usual();
    let server = http(&test_env);
    let mark = Mark::new();
    let id = start(&server, bash(&format!("sleep {}; true", mark.0)));
    eventually("it runs", || !mark.alive().is_empty());
    let cancelled = ask(&server, &tasks(), "tasks/cancel", json!({ "taskId": id }));
    assert!(cancelled["error"].is_null(), "{cancelled}");
    assert_eq!(ended(&server, &id)["status"], "cancelled");
    eventually("it is gone", || mark.alive().is_empty());
}

#[test]
fn a_test_run_is_a_task_whose_result_is_the_verdict() {
    let test_env = TestEnvironment::usual();
    test_env.write("Makefile", "test:\n\t@echo from the tests; exit 1\n");
    let server = http(&test_env);
    let call = json!({ "name": "run_tests", "arguments": {} });
    let id = start(&server, call.clone());
    let task = ended(&server, &id);
    assert_eq!(task["status"], "completed", "{task}");
    assert_eq!(task["result"]["structuredContent"]["verdict"], "failed", "{task}");
    // The id is that of the command, whose whole output it reads.
    let output = json!({ "name": "BashOutput", "arguments": { "shell_id": id, "cursor": 0 } });
    let reply = ask(&server, &json!({}), "tools/call", output);
    assert!(Answer::of_message(&reply).ok().contains("from the tests"), "{reply}");
    let plain = Answer::of_message(&ask(&server, &json!({}), "tools/call", call.clone()));
    assert_eq!(plain.structured["verdict"], "failed", "{plain:?}");

    let mark = Mark::new();
    test_env.write("Makefile", &format!("test:\n\t@sleep {}\n", mark.0));
    let id = start(&server, call);
    eventually("it runs", || !mark.alive().is_empty());
    ask(&server, &tasks(), "tasks/cancel", json!({ "taskId": id }));
    assert_eq!(ended(&server, &id)["status"], "cancelled");
    eventually("it is gone", || mark.alive().is_empty());
}

#[test]
fn ids_that_are_no_tasks_and_clients_that_declare_none_are_refused() {
    let test_env = TestEnvironment::usual();
    let server = http(&test_env);
    let id = start(&server, bash("true"));
    let mut near = id.clone();
    let last = near.pop().unwrap();
    near.push(if last == '0' { '1' } else { '0' });
    for guess in [near.as_str(), "job_00000000000000000000000000", "../../etc/passwd", "1"] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({ "taskId": guess, "inputResponses": {} });
            let reply = ask(&server, &tasks(), method, params);
            assert_eq!(reply["error"]["code"], -32602, "{method} {guess}: {reply}");
        }
    }
    let undeclared = ask(&server, &json!({}), "tasks/get", json!({ "taskId": id }));
    assert_eq!(undeclared["error"]["code"], -32021, "{undeclared}");
}

/// A client over the standard streams that starts a task which prints and stays.
fn stdio_task(test_env: &TestEnvironment) -> (Stdin, String) {
    let mut client = Stdin::start(mcp(test_env, &[]));
    let call = alone(bash("echo ready; sleep 1000"), &tasks());
    let reply = client.ask("tools/call", &call);
    let id = reply["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned();
    let output = client.call("BashOutput", json!({ "shell_id": id, "wait_seconds": 30 }));
    assert!(output.ok().contains("ready\n"));
    (client, id)
}

fn assert_ended_with_server(test_env: &TestEnvironment, id: &str) {
    let mut client = Stdin::start(mcp(test_env, &[]));
    let params = alone(json!({ "taskId": id }), &tasks());
    let reply = client.ask("tasks/get", &params);
    assert_eq!(reply["result"]["status"], "failed", "{reply}");
    assert_eq!(reply["result"]["error"]["data"]["status"], "ended_with_server", "{reply}");
    let output = client.call("BashOutput", json!({ "shell_id": id }));
    assert_eq!(output.structured["status"], "ended_with_server", "{output:?}");
    assert!(output.ok().contains("ready\n"));
    // A client over another interface has another owner.
    let server = http(test_env);
    assert_eq!(get(&server, id)["error"]["code"], -32602);
}

#[test]
fn over_stdio_the_log_stays_and_the_job_ended_with_its_server() {
    let test_env = TestEnvironment::usual();
    let (mut client, id) = stdio_task(&test_env);
    // As long as the server is there, no other finds the job.
    let mut other = Stdin::start(mcp(&test_env, &[]));
    let params = alone(json!({ "taskId": id }), &tasks());
    assert_eq!(other.ask("tasks/get", &params)["error"]["code"], -32602);
    client.close();
    client.server.wait(DEADLINE);
    assert_ended_with_server(&test_env, &id);
}

#[test]
fn the_log_stays_even_if_the_server_is_killed() {
    let test_env = TestEnvironment::usual();
    let (mut client, id) = stdio_task(&test_env);
    client.server.signal(Signal::KILL);
    client.server.wait(DEADLINE);
    assert_ended_with_server(&test_env, &id);
}

#[test]
fn records_of_jobs_are_private_and_hold_neither_ids_nor_secrets() {
    use std::os::unix::fs::MetadataExt as _;
    let test_env = TestEnvironment::usual();
    let mut command = mcp(&test_env, &[]);
    command.env("CARREL_SECRET_KEY", "very-secret-value");
    let mut client = Stdin::start(command);
    let arguments =
        json!({ "command": "echo very-secret-value; sleep 1000", "run_in_background": true });
    let started = client.call("Bash", arguments);
    let id = started.structured["shell_id"].as_str().unwrap().to_owned();
    let jobs = test_env.path("state/carrel/jobs");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&jobs), 0o700);
    let files: Vec<_> =
        std::fs::read_dir(&jobs).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    for file in &files {
        assert_eq!(mode(file), 0o600, "{}", file.display());
        assert!(!file.display().to_string().contains(&id[4..]), "{}", file.display());
    }
    let record = files.iter().find(|file| file.extension().unwrap() == "json").unwrap();
    let record = std::fs::read_to_string(record).unwrap();
    assert!(!record.contains(&id) && !record.contains("very-secret-value"), "{record}");
    // No command finds the directory.
    let list = json!({ "command": format!("ls {0} && echo found", jobs.display()) });
    let listed = client.call("Bash", list);
    assert!(!listed.text.contains("found"), "{listed:?}");
    // A killed command takes its record along.
    client.call("KillShell", json!({ "shell_id": id })).ok();
    assert_eq!(std::fs::read_dir(&jobs).unwrap().count(), 0);
}
