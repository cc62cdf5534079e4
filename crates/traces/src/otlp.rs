//! The JSON encoding of OTLP, by hand.
//!
//! An export request is one nested object, and its encoding is this file; the SDK of OpenTelemetry would
//! bring its own runtime integration and a second HTTP client. Ids are hexadecimal text, and 64-bit
//! integers are text as well, as the protocol's mapping to JSON has it.

use std::time::UNIX_EPOCH;

use serde_json::{Value as Json, json};

use crate::finished_span::{AttributeValue, FinishedSpan};

/// The path below a collector's base address that accepts spans.
pub const PATH: &str = "/v1/traces";

/// `STATUS_CODE_ERROR` of the protocol.
const STATUS_ERROR: u8 = 2;

/// Encodes the body of an export request. `resource` are the attributes of this process, `version` is
/// that of the instrumentation.
pub fn request(resource: &[(String, String)], version: &str, spans: &[FinishedSpan]) -> Vec<u8> {
    let resource: Vec<_> = resource.iter().map(|(name, value)| text(name, value)).collect();
    let spans: Vec<_> = spans.iter().map(encode_span).collect();
    let scope = json!({ "name": "carrel", "version": version });
    let all = json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    }]});
    all.to_string().into_bytes()
}

/// Returns the number of spans that a collector rejected in an otherwise successful reply, with its
/// reason cut to 200 characters.
pub fn rejected(reply: &[u8]) -> Option<(u64, String)> {
    let reply: Json = serde_json::from_slice(reply).ok()?;
    let partial = reply.get("partialSuccess")?;
    let count = &partial["rejectedSpans"];
    // The mapping to JSON writes 64-bit integers as text; some collectors write numbers.
    let count = count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or(0);
    let reason = partial["errorMessage"].as_str().unwrap_or_default();
    (count > 0).then(|| (count, reason.chars().take(200).collect()))
}

fn encode_span(span: &FinishedSpan) -> Json {
    let attributes = span.attributes.iter().map(|(name, value)| attribute(name, value));
    let start = span.started_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut encoded = json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "flags": u8::from(span.context.sampled),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": start.as_nanos().to_string(),
        "endTimeUnixNano": (start + span.duration).as_nanos().to_string(),
        "attributes": attributes.collect::<Vec<_>>(),
    });
    if let Some(parent) = span.parent {
        encoded["parentSpanId"] = format!("{parent:016x}").into();
    }
    if span.failed {
        encoded["status"] = json!({ "code": STATUS_ERROR });
    }
    encoded
}

fn attribute(name: &str, value: &AttributeValue) -> Json {
    let value = match value {
        AttributeValue::Text(value) => return text(name, value),
        AttributeValue::Number(value) => json!({ "intValue": value.to_string() }),
        AttributeValue::Float(value) => json!({ "doubleValue": value }),
        AttributeValue::Flag(value) => json!({ "boolValue": value }),
    };
    json!({ "key": name, "value": value })
}

fn text(name: &str, value: &str) -> Json {
    json!({ "key": name, "value": { "stringValue": value } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finished_span::SpanKind;
    use pretty_assertions::assert_eq;
    use std::time::Duration;

    #[test]
    fn spans_are_encoded_by_the_specification() {
        let context = "00-00f92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
        let span = FinishedSpan {
            context,
            parent: Some(0xb7),
            name: "GET /a".to_owned(),
            kind: SpanKind::Server,
            started_at: UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789),
            duration: Duration::from_nanos(1_500),
            failed: true,
            attributes: vec![
                ("a", AttributeValue::Text("\"x\"".to_owned())),
                ("b", AttributeValue::Number(-5)),
                ("c", AttributeValue::Float(0.5)),
                ("d", AttributeValue::Flag(false)),
            ],
        };
        let root =
            FinishedSpan { parent: None, failed: false, kind: SpanKind::Consumer, ..span.clone() };
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
    fn a_partial_success_names_the_rejected_spans() {
        for (reply, found) in [
            ("", None),
            ("{}", None),
            ("[]", None),
            (r#"{"partialSuccess":{}}"#, None),
            (r#"{"partialSuccess":{"rejectedSpans":"0"}}"#, None),
            (r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"why"}}"#, Some((2, "why"))),
            (r#"{"partialSuccess":{"rejectedSpans":3}}"#, Some((3, ""))),
        ] {
            let found = found.map(|(count, reason)| (count, reason.to_owned()));
            assert_eq!(rejected(reply.as_bytes()), found, "{reply}");
        }
    }
}
