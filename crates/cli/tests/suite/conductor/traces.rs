//! What a collector of traces is sent by a conductor.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{ConductorFixture, tools};
use crate::Run;
use crate::collector::{Collector, Span, text};

#[test]
fn a_run_is_traced_with_its_turns_and_the_agents_program() {
    let collector = Collector::start();
    let fixture = ConductorFixture::with(
        "agent:\n  kind: command\n  max_turns: 1\n  command: cat >/dev/null; echo not-for-a-collector",
    );
    fixture.issue("not-for-a-collector");
    let mut command = fixture.command(&["run", "--once", "--json"]);
    command.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", format!("{}/own", collector.endpoint()));
    let ran = Run::of(command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);

    let run = collector.span("run");
    assert_eq!((run.parent.as_ref(), run.failed, run.kind), (None, false, 1));
    assert_eq!(text(&run.attributes["carrel.issue.identifier"]), "CAR-1");
    assert_eq!(text(&run.attributes["carrel.run.outcome"]), "success");
    let turn = collector.span("invoke_agent");
    assert_eq!((&turn.trace, turn.parent.as_ref()), (&run.trace, Some(&run.id)));
    assert_eq!(turn.attributes["carrel.turn.number"], json!({ "intValue": "1" }));
    let program = collector.span("command");
    assert_eq!((&program.trace, program.parent.as_ref()), (&run.trace, Some(&turn.id)));
    assert_eq!(program.attributes["process.exit.code"], json!({ "intValue": "0" }));
    for request in collector.requests() {
        assert!(request.head.starts_with("post /own http/1.1"), "{}", request.head);
        assert!(!request.body.contains("not-for-a-collector"), "{}", request.body);
    }
}

#[test]
fn what_an_agent_calls_is_a_part_of_its_run() {
    let collector = Collector::start();
    let call = r#"use Bash '{"command":"exit 7"}'; hear"#;
    let fixture = tools::fixture("  tools: [default]", call);
    let mut command = fixture.command(&["run", "--once", "--json"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint());
    let ran = Run::of(command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);

    let (run, called) = (collector.span("run"), collector.span("execute_tool Bash"));
    assert_eq!((&called.trace, called.parent.as_ref()), (&run.trace, Some(&run.id)));
    assert_eq!(text(&called.attributes["carrel.interface"]), "agent");
    let spans = collector.spans();
    let is_below = |span: &&Span| span.parent.as_ref() == Some(&called.id);
    let command = spans.iter().find(is_below).unwrap();
    assert_eq!(command.attributes["process.exit.code"], json!({ "intValue": "7" }));
}
