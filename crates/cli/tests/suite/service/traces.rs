//! What a collector of traces is sent, and what it costs when there is none.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::json;

use super::cluster::Cluster;
use super::test_environment::{Client, Service};
use crate::collector::{Collector, Span, text};
use crate::{Run, eventually};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// What no span may have in it: said in a command, in a file, in a variable, in a header.
const MARK: &str = "not-for-a-collector";

const SUBMIT: &str = "POST /api/tasks/submit";

fn traced(collector: &Collector, more: &[(&str, &str)]) -> Service {
    let endpoint = collector.endpoint();
    Service::start_with(&[&[(ENDPOINT, endpoint.as_str())], more].concat())
}

impl Client {
    /// Submits a task as a part of a trace, and waits for its end.
    fn task_within(&self, traceparent: &str, steps: &serde_json::Value) -> String {
        let header = format!("traceparent: {traceparent}");
        let body = json!({ "steps": steps }).to_string();
        let taken = self.send("/api/tasks/submit", &["-H", &header], Some(body.as_bytes()));
        let id = taken.expect(200)["task_id"].as_str().unwrap().to_owned();
        assert_eq!(self.finished(&id)["status"], "completed");
        id
    }
}

fn is_within(inner: &Span, outer: &Span) {
    assert_eq!(inner.trace, outer.trace, "{inner:#?}");
    assert_eq!(inner.parent.as_ref(), Some(&outer.id), "{inner:#?} {outer:#?}");
    assert!(inner.time.0 >= outer.time.0, "{inner:#?} {outer:#?}");
}

#[test]
fn a_task_is_traced_from_its_request_to_its_commands() {
    let collector = Collector::start();
    let headers = format!("x-api-key={MARK}-1,authorization=Bearer%20{MARK}-2");
    let mut service = traced(
        &collector,
        &[
            ("OTEL_EXPORTER_OTLP_HEADERS", &headers),
            ("OTEL_SERVICE_NAME", "tested"),
            ("CARREL_SECRET_X", MARK),
        ],
    );
    let client = service.client();
    let steps = json!([
        { "action": "shell", "command": format!("echo {MARK} >&2; cat a 2>&1; exit 0") },
        { "action": "write_file", "path": MARK, "content": MARK },
        { "action": "shell", "command": "exit 7", "on_error": "continue" },
    ]);
    let task = client.task_within(&format!("00-{TRACE}-{CALLER}-01"), &steps);
    assert_eq!(client.read("missing").status, 404);
    assert!(service.terminate().0.success());

    let request = collector.span(SUBMIT);
    assert_eq!((request.trace.as_str(), request.parent.as_deref()), (TRACE, Some(CALLER)));
    assert_eq!((request.kind, request.failed, request.service.as_str()), (2, false, "tested"));
    let of = |span: &Span, name: &str| text(&span.attributes[name]).to_owned();
    assert_eq!(of(&request, "http.request.method"), "POST");
    assert_eq!(of(&request, "http.route"), "/api/tasks/submit");
    assert_eq!(request.attributes["http.response.status_code"], json!({ "intValue": "200" }));
    assert_eq!(of(&request, "carrel.task.id"), task);
    assert_eq!(of(&request, "carrel.workspace.id"), client.workspace);
    assert_eq!(of(&request, "carrel.request.id").len(), 32);

    let attempt = collector.span("task");
    is_within(&attempt, &request);
    assert_eq!((attempt.kind, attempt.failed), (5, false));
    assert_eq!(of(&attempt, "carrel.task.id"), task);
    assert_eq!(of(&attempt, "carrel.task.status"), "completed");
    assert_eq!(attempt.attributes["carrel.task.attempt"], json!({ "intValue": "1" }));

    let spans: Vec<_> = collector.spans().into_iter().filter(|span| span.trace == TRACE).collect();
    let step = |number: &str| {
        let number = json!({ "intValue": number });
        spans
            .iter()
            .find(|span| span.attributes.get("carrel.step.number") == Some(&number))
            .unwrap()
    };
    let below = |outer: &Span| {
        let inner: Vec<_> =
            spans.iter().filter(|span| span.parent.as_ref() == Some(&outer.id)).collect();
        let [inner] = inner[..] else { panic!("{outer:#?} {spans:#?}") };
        is_within(inner, outer);
        assert!(inner.time.1 <= outer.time.1, "{inner:#?} {outer:#?}");
        inner.clone()
    };
    for (number, name, tool, code, failed) in [
        ("1", "step shell", "workspace_exec", Some("0"), false),
        ("2", "step write_file", "workspace_write_file", None, false),
        ("3", "step shell", "workspace_exec", Some("7"), true),
    ] {
        let step = step(number);
        is_within(step, &attempt);
        assert!(step.time.1 <= attempt.time.1);
        assert_eq!((step.name.as_str(), step.failed), (name, failed));
        let called = below(step);
        assert_eq!(called.name, format!("execute_tool {tool}"));
        assert_eq!(of(&called, "gen_ai.tool.name"), tool);
        if let Some(code) = code {
            let command = below(&called);
            assert_eq!((command.name.as_str(), command.kind), ("command", 1));
            assert_eq!(command.attributes["process.exit.code"], json!({ "intValue": code }));
        }
    }
    let missing = collector.span("GET /api/workspaces/{workspace_id}/files/content");
    assert_eq!(missing.attributes["http.response.status_code"], json!({ "intValue": "404" }));
    assert!(missing.trace != TRACE && missing.parent.is_none() && !missing.failed, "{missing:#?}");

    for request in collector.requests() {
        assert!(request.head.starts_with("post /v1/traces http/1.1\r\n"), "{}", request.head);
        assert!(request.head.contains("content-type: application/json\r\n"), "{}", request.head);
        assert!(request.head.contains(&format!("x-api-key: {MARK}-1\r\n")), "{}", request.head);
        assert!(request.head.contains(&format!("authorization: bearer {MARK}-2\r\n")));
        assert!(!request.body.contains(MARK), "{}", request.body);
        assert!(!request.body.contains(client.token.as_deref().unwrap()));
    }
    assert!(!service.server.stderr().contains(MARK), "{}", service.server.stderr());
}

#[test]
fn what_a_caller_says_about_a_trace_is_believed_if_it_makes_sense() {
    let collector = Collector::start();
    let mut service = traced(&collector, &[]);
    let client = service.client();
    let unkept = format!("00-{TRACE}-{CALLER}-00");
    client.task_within(&unkept, &json!([{ "action": "shell", "command": "true" }]));
    let parent = |value: &str| format!("traceparent: {value}");
    for strange in ["", "x", "00-0-0-01", &unkept.to_uppercase(), &"0".repeat(4000)] {
        let header = if strange.is_empty() { "traceparent;".to_owned() } else { parent(strange) };
        client.send("/healthz", &["-H", &header], None).expect(200);
    }
    let twice = parent(&format!("00-{TRACE}-{CALLER}-01"));
    client.send("/healthz", &["-H", &twice, "-H", &twice], None).expect(200);
    service.terminate();
    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.trace != TRACE), "{spans:#?}");
    let asked = spans.iter().filter(|span| span.name == "GET /healthz");
    assert_eq!(asked.filter(|span| span.parent.is_none()).count(), 6);
}

#[test]
fn what_agents_call_and_leave_running_is_a_part_of_the_request() {
    let collector = Collector::start();
    let mut service = traced(&collector, &[]);
    let client = service.client();
    let agent = client.agent();
    let background = json!({ "command": "sleep 1", "run_in_background": true });
    let called = agent.call("Bash", &background);
    assert_ne!(called["isError"], true, "{called}");
    // What is over is sent although what it began is not.
    eventually("the call is told of", || {
        collector.spans().iter().any(|span| span.name == "execute_tool Bash")
    });
    let called = collector.span("execute_tool Bash");
    let spans = collector.spans();
    let request = spans.iter().find(|span| Some(&span.id) == called.parent.as_ref()).unwrap();
    assert_eq!(request.name, "POST /mcp");
    is_within(&called, request);
    service.terminate();
    let command = collector.span("command");
    is_within(&command, &called);
    assert!(command.time.1 > called.time.1, "{command:#?} {called:#?}");
}

#[test]
fn a_trace_goes_on_at_a_worker_elsewhere() {
    let collector = Collector::start();
    let cluster = Cluster::start();
    let endpoint = collector.endpoint();
    let named = |name| [(ENDPOINT, endpoint.as_str()), ("OTEL_SERVICE_NAME", name)];
    let mut api = cluster.api(&named("server"));
    let mut worker = cluster.worker("one", &named("worker"));
    let client = api.client();
    client.task_within(
        &format!("00-{TRACE}-{CALLER}-01"),
        &json!([{ "action": "shell", "command": "true" }]),
    );
    client.run("true");
    api.terminate();
    worker.terminate();
    let submitted = collector.span(SUBMIT);
    let attempt = collector.span("task");
    is_within(&attempt, &submitted);
    assert_eq!((submitted.service.as_str(), attempt.service.as_str()), ("server", "worker"));
    let here = collector.span("POST /api/workspaces/{workspace_id}/exec");
    let there = collector.span("POST /workspaces/{workspace_id}/exec");
    is_within(&there, &here);
    assert_eq!((here.service.as_str(), there.service.as_str()), ("server", "worker"));
}

#[test]
fn a_collector_that_is_away_costs_one_line_and_gets_what_waits_when_it_is_back() {
    let place = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = place.local_addr().unwrap();
    drop(place);
    let mut service =
        Service::start_with(&[(ENDPOINT, &format!("http://{address}")), ("LOG_LEVEL", "info")]);
    service.client().run("true");
    let said = |service: &Service, what: &str| service.server.stderr().matches(what).count();
    eventually("it is missed", || said(&service, "traces cannot be sent") == 1);
    // It is tried again in vain.
    let closing = TcpListener::bind(address).unwrap();
    drop(closing.accept().unwrap());
    drop(closing);
    let collector = Collector::at(address);
    eventually("it is sent what waits", || {
        collector.spans().iter().any(|span| span.name == "command")
    });
    eventually("that is said", || said(&service, "traces are sent again") == 1);
    service.terminate();
    assert_eq!(said(&service, "traces cannot be sent"), 1, "{}", service.server.stderr());
}

#[test]
fn a_collector_that_never_answers_slows_nothing() {
    let collector = Collector::silent();
    let mut service = traced(&collector, &[]);
    let client = service.client();
    client.run("true");
    eventually("it is asked", || !collector.requests().is_empty());
    let begun = Instant::now();
    for _ in 0..20 {
        client.get("/healthz").expect(200);
    }
    assert_eq!(client.finished(&client.submit_command("true"))["status"], "completed");
    // With nobody to answer, one request would take ten seconds.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    let (status, took) = service.terminate();
    assert!(status.success() && took < Duration::from_secs(6), "{took:?}");
}

#[test]
fn what_a_collector_refuses_is_tried_again_if_that_helps_and_counted_if_not() {
    let collector =
        Collector::answering(&["503 Later\r\nRetry-After: 1", "429 Later", "400 Bad Request"]);
    let service = traced(&collector, &[]);
    let client = service.client();
    let spans = |outcome: &str| {
        let page = client.get("/metrics").body;
        let name = format!("carrel_spans_total{{outcome=\"{outcome}\"}} ");
        let figure = page.lines().find_map(|line| line.strip_prefix(&name)).unwrap();
        figure.parse::<u64>().unwrap()
    };
    eventually("the first are lost", || spans("lost") > 0);
    eventually("the next are sent", || spans("sent") > 0);
    let requests = collector.requests();
    let bodies: Vec<_> = requests.iter().map(|request| &request.body).collect();
    assert!(bodies[0] == bodies[1] && bodies[1] == bodies[2] && bodies[2] != bodies[3]);
    let said = service.server.stderr();
    assert_eq!(said.matches("traces cannot be sent").count(), 1, "{said}");
}

#[test]
fn variables_that_make_no_sense_are_said_and_stop_nothing() {
    let collector = Collector::start();
    let mut service = traced(
        &collector,
        &[
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_HEADERS", MARK),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_TRACES_SAMPLER", "dice"),
            ("OTEL_RESOURCE_ATTRIBUTES", "%%%"),
        ],
    );
    service.client().run("true");
    service.terminate();
    let said = service.server.stderr();
    for name in ["OTLP_PROTOCOL: ", "OTLP_HEADERS: ", "OTLP_TIMEOUT: ", "SAMPLER: ", "ATTRIBUTES: "]
    {
        assert_eq!(said.matches(name).count(), 1, "{name}: {said}");
    }
    assert!(!said.contains(MARK), "{said}");
    assert_eq!(collector.span("command").service, "carrel");
}

#[test]
fn nothing_is_sent_unless_it_is_asked_for_by_a_program_that_goes_on() {
    let collector = Collector::start();
    let mut off = traced(&collector, &[("OTEL_SDK_DISABLED", "true")]);
    let client = off.client();
    client.run("true");
    assert!(!client.get("/metrics").body.contains("carrel_spans"));
    let task = client.finished(&client.submit_command("true"));
    assert_eq!(task["configuration"].get("traceparent"), None, "{task}");
    off.terminate();
    let mut command = off.test_env.carrel();
    command.env(ENDPOINT, collector.endpoint()).arg("doctor");
    assert_eq!(Run::of(command).code, 0);
    assert_eq!(collector.requests().len(), 0);
}
