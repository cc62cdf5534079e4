//! Spans as OTLP writes them in JSON.

use std::time::UNIX_EPOCH;

use serde_json::{Value as Json, json};

use crate::span::{Kind, Span, Value};

/// The path of a collector for spans.
pub const PATH: &str = "/v1/traces";

/// The status of a span that went wrong.
const FAILED: u8 = 2;

/// Returns the body of a request that carries spans of one resource.
pub fn request(resource: &[(String, String)], version: &str, spans: &[Span]) -> Vec<u8> {
    let resource: Vec<_> = resource.iter().map(|(name, value)| text(name, value)).collect();
    let spans: Vec<_> = spans.iter().map(written).collect();
    let scope = json!({ "name": "carrel", "version": version });
    let all = json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    }]});
    all.to_string().into_bytes()
}

/// Returns how many spans a collector did not take although it answered well, and why.
pub fn rejected(answer: &[u8]) -> Option<(u64, String)> {
    let answer: Json = serde_json::from_slice(answer).ok()?;
    let part = answer.get("partialSuccess")?;
    let count = &part["rejectedSpans"];
    // 64 bits are written as text, and not by everybody.
    let count = count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or(0);
    let why = part["errorMessage"].as_str().unwrap_or_default();
    (count > 0).then(|| (count, why.chars().take(200).collect()))
}

fn written(span: &Span) -> Json {
    let attributes = span.attributes.iter().map(|(name, value)| attribute(name, value));
    let began = span.began.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut written = json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "flags": u8::from(span.context.sampled),
        "name": span.name,
        "kind": number(span.kind),
        "startTimeUnixNano": began.as_nanos().to_string(),
        "endTimeUnixNano": (began + span.took).as_nanos().to_string(),
        "attributes": attributes.collect::<Vec<_>>(),
    });
    if let Some(parent) = span.parent {
        written["parentSpanId"] = format!("{parent:016x}").into();
    }
    if span.failed {
        written["status"] = json!({ "code": FAILED });
    }
    written
}

fn number(kind: Kind) -> u8 {
    match kind {
        Kind::Internal => 1,
        Kind::Server => 2,
        Kind::Consumer => 5,
    }
}

fn attribute(name: &str, value: &Value) -> Json {
    let value = match value {
        Value::Text(value) => return text(name, value),
        Value::Number(value) => json!({ "intValue": value.to_string() }),
        Value::Float(value) => json!({ "doubleValue": value }),
        Value::Flag(value) => json!({ "boolValue": value }),
    };
    json!({ "key": name, "value": value })
}

fn text(name: &str, value: &str) -> Json {
    json!({ "key": name, "value": { "stringValue": value } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use std::time::Duration;

    #[test]
    fn spans_are_written_as_the_specification_says() {
        let context = "00-00f92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
        let span = Span {
            context,
            parent: Some(0xb7),
            name: "GET /a".to_owned(),
            kind: Kind::Server,
            began: UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789),
            took: Duration::from_nanos(1_500),
            failed: true,
            attributes: vec![
                ("a", Value::Text("\"x\"".to_owned())),
                ("b", Value::Number(-5)),
                ("c", Value::Float(0.5)),
                ("d", Value::Flag(false)),
            ],
        };
        let root = Span { parent: None, failed: false, kind: Kind::Consumer, ..span.clone() };
        let resource = [("service.name".to_owned(), "x".to_owned())];
        let written: Json =
            serde_json::from_slice(&request(&resource, "1.0", &[span, root])).unwrap();
        let spans = &written["resourceSpans"][0]["scopeSpans"][0]["spans"];
        assert_eq!(
            spans[0],
            json!({
                "traceId": "00f92f3577b34da6a3ce929d0e0e4736",
                "spanId": "00f067aa0ba902b7",
                "parentSpanId": "00000000000000b7",
                "flags": 1,
                "name": "GET /a",
                "kind": 2,
                "startTimeUnixNano": "1700000000123456789",
                "endTimeUnixNano": "1700000000123458289",
                "attributes": [
                    { "key": "a", "value": { "stringValue": "\"x\"" } },
                    { "key": "b", "value": { "intValue": "-5" } },
                    { "key": "c", "value": { "doubleValue": 0.5 } },
                    { "key": "d", "value": { "boolValue": false } },
                ],
                "status": { "code": 2 },
            })
        );
        assert_eq!(spans[1]["kind"], 5);
        assert!(spans[1].get("parentSpanId").is_none() && spans[1].get("status").is_none());
        assert_eq!(
            written["resourceSpans"][0]["resource"],
            json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": "x" } }] })
        );
        let scope = &written["resourceSpans"][0]["scopeSpans"][0]["scope"];
        assert_eq!(*scope, json!({ "name": "carrel", "version": "1.0" }));
    }

    #[test]
    fn a_collector_may_take_a_part() {
        for (answer, found) in [
            ("", None),
            ("{}", None),
            ("[]", None),
            (r#"{"partialSuccess":{}}"#, None),
            (r#"{"partialSuccess":{"rejectedSpans":"0"}}"#, None),
            (r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"why"}}"#, Some((2, "why"))),
            (r#"{"partialSuccess":{"rejectedSpans":3}}"#, Some((3, ""))),
        ] {
            let found = found.map(|(count, why)| (count, why.to_owned()));
            assert_eq!(rejected(answer.as_bytes()), found, "{answer}");
        }
    }
}
