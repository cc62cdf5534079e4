//! Files, commands, git and tools of a workspace.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::test_environment::{Service, new_id};
use crate::test_environment::Mark;

#[test]
fn a_workspace_is_made_shown_listed_measured_and_removed() {
    let service = Service::start();
    let operator = service.operator();
    let asked = json!({ "name": "Ada's", "layout": "plain", "quota_gb": 2, "network": "loopback" });
    let made = operator.post("/api/workspaces", &asked).expect(201);
    let id = made["id"].as_str().unwrap();
    let expected = json!({
        "id": id,
        "name": "Ada's",
        "layout": "plain",
        "network": "loopback",
        "state": "ready",
        "created_at": made["created_at"],
        "usage_bytes": made["usage_bytes"],
        "quota_bytes": 2_u64 << 30,
    });
    assert_eq!(made, expected);
    let path = format!("/api/workspaces/{id}");
    assert_eq!(operator.get(&path).expect(200)["name"], "Ada's");
    let usual = operator.post("/api/workspaces", &json!({ "name": "b" })).expect(201);
    assert_eq!((&usual["layout"], &usual["quota_bytes"]), (&json!("tenant"), &json!(5_u64 << 30)));

    let page = operator.get("/api/workspaces?limit=1").expect(200);
    assert_eq!(page["workspaces"].as_array().unwrap().len(), 1);
    let next = page["next_after"].as_str().unwrap();
    let page = operator.get(&format!("/api/workspaces?limit=5&after={next}")).expect(200);
    assert_eq!(
        (page["workspaces"].as_array().unwrap().len(), &page["next_after"]),
        (1, &Value::Null)
    );

    let client = service.client_for(id, "read,write,exec");
    client.write("big", &"x".repeat(1 << 20)).expect(200);
    let used = client.get(&client.at("/usage")).expect(200);
    assert!(used["usage_bytes"].as_u64().unwrap() >= 1 << 20, "{used}");
    assert_eq!(used["quota_files"], 1_000_000);
    // A client of one sees that one.
    let seen = client.get("/api/workspaces").expect(200);
    assert_eq!(seen["workspaces"].as_array().unwrap().len(), 1);

    client.delete(&path).is(403, "E_FORBIDDEN");
    let task = client.submit_command("sleep 300");
    operator.delete(&path).is(409, "E_WORKSPACE_BUSY");
    client.post(&format!("/api/tasks/{task}/cancel"), &json!({})).expect(200);
    assert_eq!(operator.delete(&path).status, 204);
    operator.get(&path).is(404, "E_WORKSPACE_NOT_FOUND");
    operator.delete(&path).is(404, "E_WORKSPACE_NOT_FOUND");
    operator.get(&format!("/api/tasks/{task}")).is(404, "E_TASK_NOT_FOUND");
    // Its own token makes it again, empty.
    client.read("big").is(404, "E_NOT_FOUND");
}

#[test]
fn a_workspace_is_removed_with_what_runs_there() {
    let service = Service::start();
    let (operator, mark) = (service.operator(), Mark::new());
    let made = operator.post("/api/workspaces", &json!({ "name": "a" })).expect(201);
    let client = service.client_for(made["id"].as_str().unwrap(), "read,write,exec");
    let line = format!("sleep {}", mark.0);
    let body = json!({ "command": line, "run_in_background": true });
    client.post(&client.at("/tools/Bash"), &body).expect(200);
    crate::eventually("it runs", || !mark.alive().is_empty());
    assert_eq!(operator.delete(&client.at("")).status, 204);
    assert_eq!(mark.alive(), Vec::<i32>::new());

    // A request that runs there ends with it.
    let made = operator.post("/api/workspaces", &json!({ "name": "b" })).expect(201);
    let client = service.client_for(made["id"].as_str().unwrap(), "read,write,exec");
    let running = std::thread::spawn({
        let (client, line) = (client.clone(), line.clone());
        move || client.exec(&line)
    });
    crate::eventually("it runs", || !mark.alive().is_empty());
    assert_eq!(operator.delete(&client.at("")).status, 204);
    let reply = running.join().unwrap();
    assert!(reply.status != 200 || reply.json()["success"] == false, "{reply:?}");
    assert_eq!(mark.alive(), Vec::<i32>::new());
    let directory = service.test_env.path("data").join("workspaces").join(&client.workspace);
    assert!(!directory.exists());
    assert_eq!(operator.get("/api/workspaces").expect(200)["workspaces"], json!([]));
}

#[test]
fn a_workspace_that_makes_no_sense_is_not_made() {
    let service = Service::start();
    let operator = service.operator();
    for body in [
        json!({}),
        json!({ "name": "" }),
        json!({ "name": "a\nb" }),
        json!({ "name": "a".repeat(201) }),
        json!({ "name": "a", "layout": "round" }),
        json!({ "name": "a", "quota_gb": 0 }),
        json!({ "name": "a", "quota_gb": -1 }),
        json!({ "name": "a", "quota_gb": 1e300 }),
        json!({ "name": "a", "network": "some" }),
        json!({ "name": "a", "id": new_id() }),
    ] {
        operator.post("/api/workspaces", &body).is(422, "E_INVALID_REQUEST");
    }
    operator.get("/api/workspaces?after=x").is(422, "E_INVALID_REQUEST");
    operator.get(&format!("/api/workspaces/{}", new_id())).is(404, "E_WORKSPACE_NOT_FOUND");
    assert_eq!(operator.get("/api/workspaces").expect(200)["workspaces"], json!([]));
}

#[test]
fn a_token_makes_its_workspace_on_first_use_whatever_that_is() {
    let service = Service::start();
    for path in ["", "/files", "/usage"] {
        let client = service.client_for(&new_id(), "read");
        client.get(&client.at(path)).expect(200);
    }
    let client = service.client();
    client.write("f", "x").expect(200);
    let client = service.client();
    client.run("ls");
    let client = service.client();
    assert_eq!(client.get("/api/tasks").expect(200)["total"], 0);
    let listed = client.get(&client.at("/files")).expect(200);
    let names: Vec<_> =
        listed["entries"].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, ["artifacts", "repos", "tasks"]);
    // Two that come first together find the same one.
    let client = service.client();
    std::thread::scope(|scope| {
        for number in 0..6 {
            let client = &client;
            scope.spawn(move || client.write(&format!("f{number}"), "x").expect(200));
        }
    });
    assert_eq!(client.run("ls f* | wc -l"), "6\n");
}

#[test]
fn files_are_written_read_listed_and_searched() {
    let service = Service::start();
    let client = service.client();
    let written = client.write("src/main.py", "import os\nprint(1)\n").expect(200);
    assert_eq!(written, json!({ "written": true, "path": "src/main.py", "size_bytes": 19 }));
    let file = client.read("src/main.py").expect(200);
    let expected = json!({
        "path": "src/main.py",
        "name": "main.py",
        "content": "import os\nprint(1)\n",
        "size": 19,
        "language": "python",
        "mime_type": "text/x-python",
        "success": true,
    });
    assert_eq!(file, expected);
    let raw = client.query(&client.at("/files/raw"), &[("path", "src/main.py")]);
    assert_eq!((raw.status, raw.body.as_str()), (200, "import os\nprint(1)\n"));
    assert_eq!(raw.header("content-type"), Some("application/octet-stream"));
    assert_eq!(raw.header("x-content-type-options"), Some("nosniff"));
    let listed = client.query(&client.at("/files"), &[("path", "src")]).expect(200);
    assert_eq!(listed["entries"][0]["path"], "src/main.py");
    let grep = |query: &[(&str, &str)]| client.query(&client.at("/files/grep"), query);
    let found = grep(&[("pattern", "print|nothing"), ("include", "*.py")]).expect(200);
    assert_eq!(
        found["matches"],
        json!([{ "file": "src/main.py", "line": 2, "content": "print(1)" }])
    );
    assert_eq!(grep(&[("pattern", "print"), ("include", "*.rs")]).expect(200)["total"], 0);
    grep(&[("pattern", "(")]).is(422, "E_INVALID_PATTERN");
    for query in [
        &[][..],
        &[("pattern", "")],
        &[("pattern", "x"), ("max_results", "0")],
        &[("pattern", "x"), ("max_results", "-1")],
    ] {
        grep(query).is(422, "E_INVALID_REQUEST");
    }

    client.read("nothing").is(404, "E_NOT_FOUND");
    client.read("src").is(422, "E_IS_A_DIRECTORY");
    client.read("").is(422, "E_INVALID_REQUEST");
    client.query(&client.at("/files"), &[("path", "src/main.py")]).is(422, "E_NOT_A_DIRECTORY");
    client.query(&client.at("/files"), &[("path", "nothing")]).is(404, "E_NOT_FOUND");
    client.write("src", "x").is(422, "E_IS_A_DIRECTORY");
    client.write(&"n".repeat(300), "x").is(422, "E_NAME_TOO_LONG");
    client.write("a\0b", "x").is(422, "E_INVALID_PATH");
    for path in ["../f", "/etc/hostname", "src/../../f"] {
        client.read(path).is(403, "E_SANDBOX_VIOLATION");
        client.write(path, "x").is(403, "E_SANDBOX_VIOLATION");
    }
}

#[test]
fn a_file_is_read_to_two_mebibytes_and_a_body_to_32() {
    let service = Service::start();
    let client = service.client();
    client.write("just", &"x".repeat(2 << 20)).expect(200);
    assert_eq!(client.read("just").expect(200)["size"], 2 << 20);
    client.write("more", &"x".repeat((2 << 20) + 1)).expect(200);
    client.read("more").is(413, "E_TOO_LARGE");
    client.write("most", &"x".repeat(8 << 20)).expect(200);
    client.write("too much", &"x".repeat(32 << 20)).is(413, "E_TOO_LARGE");
    client.read("too much").is(404, "E_NOT_FOUND");
    // Without a length in the head it is counted.
    let body = vec![b' '; (32 << 20) + 1];
    let words = ["--header", "Transfer-Encoding: chunked"];
    client.send(&client.at("/files/write"), &words, Some(&body)).is(413, "E_TOO_LARGE");
}

#[test]
fn commands_run_and_their_end_is_an_answer() {
    let service = Service::start();
    let client = service.client();
    let exec = |body: Value| client.post(&client.at("/exec"), &body);
    let done = exec(json!({ "command": "pwd; echo no >&2; exit 3", "cwd": "repos" })).expect(200);
    assert_eq!((&done["exit_code"], &done["success"]), (&json!(3), &json!(false)));
    assert!(done["stdout"].as_str().unwrap().ends_with("/repos\n"), "{done}");
    assert_eq!(done["stderr"], "no\n");
    assert!(
        done["cost"]["wall_ms"].is_number() && done["sandbox"]["enforced"].is_array(),
        "{done}"
    );
    let done = exec(json!({ "command": "echo early; sleep 60", "timeout": 1 })).expect(200);
    assert_eq!((&done["timed_out"], &done["stdout"]), (&json!(true), &json!("early\n")));
    exec(json!({ "command": "sudo ls" })).is(403, "E_COMMAND_REFUSED");
    exec(json!({ "command": "ls", "cwd": "nothing" })).is(404, "E_NOT_FOUND");
    exec(json!({ "command": "ls", "cwd": "../.." })).is(403, "E_SANDBOX_VIOLATION");
    exec(json!({ "command": "ls", "cwd": "/etc" })).is(403, "E_SANDBOX_VIOLATION");
    for body in [
        json!({}),
        json!({ "command": "" }),
        json!({ "command": 5 }),
        json!({ "command": "x".repeat(4097) }),
        json!({ "command": "ls", "timeout": 0 }),
        json!({ "command": "ls", "timeout": 301 }),
        json!({ "command": "ls", "timeout": 1.5 }),
        json!({ "command": "ls", "env": {} }),
        json!(["ls", null, 5, null]),
    ] {
        exec(body).is(422, "E_INVALID_REQUEST");
    }
}

#[test]
fn honest_commands_pass() {
    let service = Service::start();
    let client = service.client();
    client.run("git init -q . && git config user.email a@b && git config user.name n && touch f && git add f");
    for line in [
        "git commit -qm 'fix; cleanup'",
        "git commit -q --allow-empty -m \"fix: mount option\"",
        "git log --format='%H|%s'",
        "echo mount > f; grep mount f",
        "echo hi > /dev/null",
        "ls 2>/dev/null",
        "(ls)",
        "if true; then ls; fi",
        "for i in 1 2; do ls; done",
        "! false",
        "time ls",
        "[ -f f ]",
        "git commit -q --allow-empty -m 'support su mode'",
        "ls #note | x",
        "ls $HOME",
        "FOO=bar python3 -c 'import os; assert os.environ[\"FOO\"] == \"bar\"'",
    ] {
        client.run(line);
    }
}

#[test]
fn git_takes_operations_and_words_never_a_shell() {
    let service = Service::start();
    let client = service.client();
    client.run(
        "git init -q repos/r && cd repos/r && git config user.email a@b && git config user.name n",
    );
    client.write("repos/r/f", "one\n").expect(200);
    let git = |body: Value| client.post(&client.at("/git"), &body);
    git(json!({ "operation": "add", "args": ["f"], "cwd": "repos/r" })).expect(200);
    let done = git(json!({ "operation": "commit", "args": "-m 'fix; cleanup'", "cwd": "repos/r" }))
        .expect(200);
    assert_eq!(done["exit_code"], 0, "{done}");
    let done =
        git(json!({ "operation": "log", "args": ["--format=%s"], "cwd": "repos/r" })).expect(200);
    assert_eq!(done["stdout"].as_str().unwrap().trim(), "fix; cleanup");
    git(json!({ "operation": "fly" })).is(422, "E_INVALID_ARGUMENTS");
    git(json!({ "operation": "status", "args": "x", "branch": "y" })).is(422, "E_INVALID_REQUEST");
    git(json!({ "operation": "status", "cwd": "artifacts" })).is(403, "E_GIT_REFUSED");
}

#[test]
fn tools_are_listed_and_called() {
    let service = Service::start();
    let client = service.client();
    let tools = client.get("/api/tools").expect(200);
    let tools = tools["tools"].as_array().unwrap();
    let has = |name: &str| {
        tools.iter().any(|tool| tool["name"] == name && tool["input_schema"].is_object())
    };
    assert!(["Read", "Bash", "workspace_exec", "run_tests"].into_iter().all(has), "{tools:?}");
    let call = |name: &str, body: Value| client.post(&client.at(&format!("/tools/{name}")), &body);
    call("Write", json!({ "file_path": "f.txt", "content": "one\ntwo\n" })).expect(200);
    let read = call("Read", json!({ "file_path": "f.txt" })).expect(200);
    assert_eq!(
        (&read["facts"]["total_lines"], &read["content"]),
        (&json!(2), &json!("1\tone\n2\ttwo\n"))
    );
    assert_eq!(
        call("Bash", json!({ "command": "cat f.txt" })).expect(200)["facts"]["exit_code"],
        0
    );
    call("Fly", json!({})).is(404, "E_UNKNOWN_TOOL");
    call("%ff", json!({})).is(422, "E_INVALID_REQUEST");
    call("Read", json!({})).is(422, "E_INVALID_ARGUMENTS");
    call("Read", json!({ "file_path": "f.txt", "workspace": "x" })).is(422, "E_INVALID_REQUEST");
    call("Read", json!({ "file_path": "../f" })).is(403, "E_SANDBOX_VIOLATION");
}

#[test]
fn item_055_a_server_without_a_conductor_says_so() {
    let service = Service::start();
    let client = service.client();
    client.get("/api/v1/state").is(503, "E_CONDUCTOR_UNAVAILABLE");
    client.get("/api/v1/CAR-1").is(503, "E_CONDUCTOR_UNAVAILABLE");
    client.send("/api/v1/refresh", &["--request", "POST"], None).is(503, "E_CONDUCTOR_UNAVAILABLE");
}

#[test]
fn every_route_answers_in_the_one_envelope() {
    let service = Service::start();
    let client = service.client();
    client.get("/nothing").is(404, "E_UNKNOWN_ROUTE");
    client.get("/api").is(404, "E_UNKNOWN_ROUTE");
    client.get(&client.at("/nothing")).is(404, "E_UNKNOWN_ROUTE");
    for path in ["/api/tasks", "/api/tools", "/healthz", "/", "/api/workspaces"] {
        client.send(path, &["--request", "PATCH"], None).is(405, "E_METHOD_NOT_ALLOWED");
    }
    client.get(&client.at("/exec")).is(405, "E_METHOD_NOT_ALLOWED");
    client.get("/api/tasks/submit").refused();
    let id = "0198c0de-7a11-7000-8000-00000000000x";
    for path in ["", "/files", "/files/content?path=x", "/files/grep?pattern=x", "/usage"] {
        client.get(&format!("/api/workspaces/{id}{path}")).is(422, "E_INVALID_REQUEST");
    }
    for path in ["/exec", "/git", "/files/write", "/github/clone", "/tools/Read"] {
        client
            .post(&format!("/api/workspaces/{id}{path}"), &json!({}))
            .is(422, "E_INVALID_REQUEST");
        for text in ["", "{", "[]", "null", "\"x\"", "\u{0}"] {
            client.send(&client.at(path), &[], Some(text.as_bytes())).is(422, "E_INVALID_REQUEST");
        }
    }
    for query in ["path=a&path=b", "path", "colour=red", "path=%ff"] {
        let (status, _) = client.get(&client.at(&format!("/files/content?{query}"))).refused();
        assert!(matches!(status, 404 | 422), "{query}: {status}");
    }
    for (field, value) in [
        ("repo_url", "http://github.com/a/b"),
        ("repo_url", "https://example.org/a/b"),
        ("branch", "--upload-pack=x"),
    ] {
        let mut body = json!({ "repo_url": "https://github.com/a/b" });
        body[field] = json!(value);
        client.post(&client.at("/github/clone"), &body).is(422, "E_INVALID_REQUEST");
    }
}

#[test]
fn absolute_links_that_stay_inside_are_followed_over_rest_too() {
    let service = Service::start();
    let client = service.client();
    client.write("directory/file", "contents").expect(200);
    client.run("mkdir directory/deep && ln -s /etc directory/deep/outward");
    let printed = client.run("ln -s \"$PWD/directory\" inward && cat inward/file");
    assert_eq!(printed, "contents");
    assert_eq!(client.read("inward/file").expect(200)["content"], "contents");
    client.write("inward/file", "written").expect(200);
    assert_eq!(client.read("directory/file").expect(200)["content"], "written");
    client.read("inward/deep/outward/passwd").is(403, "E_SANDBOX_VIOLATION");
}

#[test]
fn code_is_outlined_and_references_are_found_over_rest() {
    let service = Service::start();
    let client = service.client();
    client.write("a.py", "def echo(text):\n    return text\n").expect(200);
    client.write("b.py", "from a import echo\n\necho(1)\n").expect(200);
    let call = |tool: &str, body: Value| {
        client.post(&client.at(&format!("/tools/{tool}")), &body).expect(200)
    };
    let outline = call("outline", json!({ "path": "a.py" }));
    assert_eq!(outline["content"], "a.py (2 lines)\n1-2 def echo(text)\n");
    let found = call("find_references", json!({ "symbol": "echo", "by_name": true }));
    let expected = "Found 3 reference(s) for echo:\na.py\n  1 (definition): def echo(text):\nb.py\n  \
        1 (top level): from a import echo\n  3 (top level): echo(1)\n";
    assert!(found["content"].as_str().unwrap().starts_with(expected), "{found}");
    let facts = ["source", "complete", "total"].map(|fact| found["facts"][fact].clone());
    assert_eq!(facts, [json!("syntactic"), json!(true), json!(3)]);
    let unknown = json!({ "symbol": "ecko" });
    client.post(&client.at("/tools/find_references"), &unknown).is(404, "E_SYMBOL_NOT_FOUND");
}
