//! Tries over REST and MCP of the service: in the background, taken up at the next start, and nobody else's.

use std::time::Instant;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::test_environment::{Client, DEADLINE, Service, new_id};

/// One that fails, one that is too large, one that is right.
const RUNS: [&str; 3] = [
    "cp wrong.py calc.py",
    "cp right.py calc.py && cp large.txt numbers.txt",
    "cp right.py calc.py && sleep 1",
];

const VERIFY: &str = "python3 -m unittest";

fn project(base: &Client) {
    for (name, operator) in [("calc", "-"), ("wrong", "*"), ("right", "+")] {
        let text = format!("def add(a, b):\n    return a {operator} b\n");
        base.write(&format!("{name}.py"), &text).expect(200);
    }
    base.write("large.txt", &"a line\n".repeat(5000)).expect(200);
    let tests = "import unittest, calc\nclass T(unittest.TestCase):\n    \
                 def test_small(self): self.assertEqual(calc.add(2, 3), 5)\n    \
                 def test_zero(self): self.assertEqual(calc.add(0, 0), 0)\n";
    base.write("test_calc.py", tests).expect(200);
}

fn specification() -> Value {
    json!({ "runs": RUNS, "verify": VERIFY, "promote": true, "max_lines": 100 })
}

/// Waits until a try is over, and returns its record.
fn ended(base: &Client, id: &str) -> Value {
    let begun = Instant::now();
    loop {
        let record = base.get(&base.at(&format!("/tries/{id}"))).expect(200);
        if record["phase"] == "finished" {
            return record;
        }
        assert!(begun.elapsed() < DEADLINE, "never over: {record:#}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn assert_promoted(base: &Client, record: &Value) {
    assert_eq!(record["outcome"]["kind"], "promoted", "{record:#}");
    assert_eq!(record["outcome"]["candidate"], 3, "{record:#}");
    assert_eq!(record["candidates"][0]["verification"]["verdict"], "failed", "{record:#}");
    assert_eq!(record["candidates"][1]["disqualified"]["reason"], "too_large", "{record:#}");
    assert_eq!(record["candidates"][2]["verification"]["tests"]["passed"], 2, "{record:#}");
    let expected = "def add(a, b):\n    return a + b\n";
    assert_eq!(base.read("calc.py").expect(200)["content"], expected);
    base.read("numbers.txt").is(404, "E_NOT_FOUND");
    assert_eq!(base.get(&base.at("/forks")).expect(200)["forks"], json!([]));
    base.write("thawed.txt", "x\n").expect(200);
    let ended = record["outcome"]["ended"].as_array().unwrap();
    assert_eq!(ended.len(), 2, "{record:#}");
    let snapshot = ended[1]["snapshot"].as_str().unwrap();
    base.post(&base.at(&format!("/snapshots/{snapshot}/restore")), &json!({})).expect(200);
    base.read("numbers.txt").expect(200);
}

#[test]
fn a_try_runs_in_the_background_and_promotes_the_right_candidate() {
    let service = Service::start();
    let base = service.client();
    project(&base);
    let begun = base.post(&base.at("/tries"), &specification()).expect(200);
    let id = begun["id"].as_str().unwrap();
    assert_eq!(begun["phase"], "running", "{begun:#}");
    let record = ended(&base, id);
    assert_promoted(&base, &record);
    let with_diff = base.get(&base.at(&format!("/tries/{id}?diff=3"))).expect(200);
    assert!(with_diff["diff"].as_str().unwrap().contains("+    return a + b"), "{with_diff:#}");
    let listed = base.get(&base.at("/tries")).expect(200);
    assert_eq!(listed["tries"][0]["outcome"]["kind"], "promoted", "{listed:#}");
    base.delete(&base.at(&format!("/tries/{id}"))).expect(200);
    assert_eq!(base.get(&base.at("/tries")).expect(200)["tries"], json!([]));
}

#[test]
fn a_server_that_is_killed_takes_its_tries_up_at_the_next_start() {
    for point in ["forked", "in-run", "verified", "promoting", "promoted"] {
        let mut service = Service::start_with(&[("CARREL_TRY_KILL_AT", point)]);
        let base = service.client();
        project(&base);
        // The server may be gone before it has answered.
        let _ = base.post(&base.at("/tries"), &specification());
        service.server.wait(DEADLINE);
        service.set("CARREL_TRY_KILL_AT", "");
        service.begin_again();
        let base = Client { address: service.address, ..base };
        let listed = base.get(&base.at("/tries")).expect(200);
        let [one] = listed["tries"].as_array().unwrap().as_slice() else {
            panic!("{point}: {listed:#}")
        };
        let record = ended(&base, one["id"].as_str().unwrap());
        assert_promoted(&base, &record);
    }
}

#[test]
fn nobody_else_sees_a_try_and_a_reader_begins_none() {
    let service = Service::start();
    let base = service.client();
    project(&base);
    let none = json!({ "runs": [RUNS[2]], "verify": VERIFY });
    let id = base.post(&base.at("/tries"), &none).expect(200)["id"].as_str().unwrap().to_owned();
    let stranger = service.client_for(&new_id(), "read,write,exec");
    stranger.get(&base.at("/tries")).is(403, "E_FORBIDDEN");
    stranger.get(&base.at(&format!("/tries/{id}"))).is(403, "E_FORBIDDEN");
    stranger.delete(&base.at(&format!("/tries/{id}"))).is(403, "E_FORBIDDEN");
    stranger.write("own.txt", "x\n").expect(200);
    // Nor does its id help at another workspace.
    stranger.get(&stranger.at(&format!("/tries/{id}"))).is(404, "E_TRY_NOT_FOUND");
    stranger.delete(&stranger.at(&format!("/tries/{id}"))).is(404, "E_TRY_NOT_FOUND");
    let reader = service.client_for(&base.workspace, "read");
    reader.get(&base.at(&format!("/tries/{id}"))).expect(200);
    reader.post(&base.at("/tries"), &none).is(403, "E_FORBIDDEN");
    let runner = service.client_for(&base.workspace, "read,exec");
    runner.post(&base.at("/tries"), &specification()).is(403, "E_FORBIDDEN");
    assert_eq!(ended(&base, &id)["outcome"], json!({ "kind": "chosen", "candidate": 1 }));
    // Its fork is a workspace that the token covers.
    let listed = base.get(&base.at("/forks")).expect(200);
    let fork = listed["forks"][0]["id"].as_str().unwrap().to_owned();
    let fork = Client { workspace: fork, ..base.clone() };
    assert_eq!(fork.read("calc.py").expect(200)["content"], "def add(a, b):\n    return a + b\n");
    base.delete(&base.at(&format!("/tries/{id}"))).expect(200);
    assert_eq!(base.get(&base.at("/forks")).expect(200)["forks"], json!([]));
}

#[test]
fn a_try_that_is_removed_ends_its_commands_and_frees_the_base() {
    let service = Service::start();
    let base = service.client();
    project(&base);
    let endless = json!({ "runs": ["sleep 1000"], "candidates": 2, "verify": "true" });
    let id = base.post(&base.at("/tries"), &endless).expect(200)["id"].as_str().unwrap().to_owned();
    let begun = Instant::now();
    base.delete(&base.at(&format!("/tries/{id}"))).expect(200);
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    base.get(&base.at(&format!("/tries/{id}"))).is(404, "E_TRY_NOT_FOUND");
    assert_eq!(base.get(&base.at("/forks")).expect(200)["forks"], json!([]));
    base.write("thawed.txt", "x\n").expect(200);
}

#[test]
fn a_try_over_mcp_of_the_service_has_the_same_result() {
    let service = Service::start();
    let base = service.client();
    project(&base);
    let arguments = json!({ "runs": RUNS, "verify": VERIFY, "promote": true });
    let params = json!({ "name": "try", "arguments": arguments });
    let result = base.stateless("tools/call", params).expect(200)["result"].clone();
    assert_ne!(result["isError"], true, "{result:#}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("promoted candidate 3"), "{text}");
    assert_eq!(base.get(&base.at("/forks")).expect(200)["forks"], json!([]));
    let expected = "def add(a, b):\n    return a + b\n";
    assert_eq!(base.read("calc.py").expect(200)["content"], expected);
    assert_eq!(base.get(&base.at("/tries")).expect(200)["tries"][0]["phase"], "finished");
}

#[test]
fn what_cannot_be_tried_over_rest_says_why() {
    let service = Service::start();
    let base = service.client();
    project(&base);
    let post = |body: Value| base.post(&base.at("/tries"), &body);
    post(json!({ "verify": "true" })).is(422, "E_INVALID_REQUEST");
    post(json!({ "runs": ["ls"], "candidates": 0, "verify": "true" })).is(422, "E_INVALID_REQUEST");
    post(json!({ "runs": ["ls"], "candidates": 101, "verify": "true" }))
        .is(422, "E_INVALID_REQUEST");
    post(json!({ "runs": ["ls", "ls"], "candidates": 3, "verify": "true" }))
        .is(422, "E_INVALID_REQUEST");
    post(json!({ "patches": ["no patch"], "verify": "true" })).is(422, "E_PATCH_INVALID");
    post(json!({ "runs": ["sudo ls"], "verify": "true" })).is(403, "E_COMMAND_REFUSED");
    post(json!({ "runs": ["ls"], "verify": "sudo true" })).is(403, "E_COMMAND_REFUSED");
    post(json!({ "runs": ["ls"], "verify": "true", "network": "full" })).is(403, "E_FORBIDDEN");
    base.get(&base.at("/tries/x")).is(422, "E_INVALID_REQUEST");
    assert_eq!(base.get(&base.at("/tries")).expect(200)["tries"], json!([]));
}
