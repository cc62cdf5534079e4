//! An event as one line for people: time, interface, workspace, and the words of its kind.

use serde_json::Value;

/// Returns the line of an event. A kind without words of its own is printed with all its fields.
pub(super) fn line(event: &Value) -> String {
    let field = |name: &str| event[name].as_str().unwrap_or("-");
    let start = format!("{}  {:<5}  {}", field("at"), field("interface"), field("workspace"));
    let lost = event["lost"]
        .as_u64()
        .map_or_else(String::new, |lost| format!("  ({lost} events before this one were lost)"));
    format!("{start}  {}{lost}", words(event))
}

fn words(event: &Value) -> String {
    let field = |name: &str| event[name].as_str().unwrap_or("-");
    match field("event") {
        "tool.call" => {
            let code = event["code"].as_str().map_or_else(String::new, |code| format!(" [{code}]"));
            format!("{} {}{code}  {}", field("tool"), field("outcome"), milliseconds(event))
        }
        "api.call" => format!(
            "{} {} {}  {}",
            field("method"),
            field("route"),
            event["status"],
            milliseconds(event)
        ),
        "lifecycle.workspace.sandbox" => {
            let access = if event["read_only"] == true { "read-only" } else { "read-write" };
            format!("session {} uses {} {access}", field("session"), field("sandbox_root"))
        }
        "lifecycle.workspace.unlocked" => {
            format!("writes are not serialised: {}", field("reason"))
        }
        "lifecycle.workspace.profile" => format!(
            "profile of {}: {}, tests: {}",
            field("directory"),
            field("ecosystem"),
            field("test_command")
        ),
        "lifecycle.effect.format" => effect("formatted", &files(event), event),
        "lifecycle.effect.lint" => effect("linted", &files(event), event),
        "lifecycle.effect.install" => effect("installed with", field("command"), event),
        "lifecycle.sandbox.violation" => {
            let code = event["code"].as_str().map_or_else(String::new, |code| format!(" [{code}]"));
            let layer = match field("layer") {
                "kernel" => "denied by the sandbox",
                _ => "refused",
            };
            format!("VIOLATION {} {layer}{code}: {}", field("tool"), detail(&event["detail"]))
        }
        _ => event.to_string(),
    }
}

fn files(event: &Value) -> String {
    let files = event["files"].as_array().into_iter().flatten();
    files.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

fn effect(verb: &str, object: &str, event: &Value) -> String {
    let errors = if event["has_errors"] == true { ", with errors" } else { "" };
    format!("{verb} {object}{errors}")
}

fn milliseconds(event: &Value) -> String {
    format!("{:.0} ms", event["duration_ms"].as_f64().unwrap_or_default())
}

/// Returns the objects of denials, or else the facts of a refusal.
fn detail(detail: &Value) -> String {
    let Some(denials) = detail["denials"].as_array() else { return detail.to_string() };
    let texts: Vec<String> = denials
        .iter()
        .map(|denial| {
            let word = |name: &str| denial[name].as_str().unwrap_or("-");
            format!("{} {}", word("rule"), word("object"))
        })
        .collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn each_kind_has_its_words() {
        let head = |event: Value| {
            let mut head =
                json!({ "at": "T", "interface": "cli", "session": "s", "workspace": "w" });
            head.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
            line(&head)
        };
        for (event, expected) in [
            (
                json!({ "event": "tool.call", "tool": "Read", "outcome": "failed", "code": "E_NOT_FOUND", "duration_ms": 1.4 }),
                "T  cli    w  Read failed [E_NOT_FOUND]  1 ms",
            ),
            (
                json!({ "event": "api.call", "method": "POST", "route": "/api/x", "status": 204, "duration_ms": 2.0, "lost": 3 }),
                "T  cli    w  POST /api/x 204  2 ms  (3 events before this one were lost)",
            ),
            (
                json!({ "event": "lifecycle.sandbox.violation", "tool": "exec", "layer": "kernel", "code": null, "detail": { "denials": [{ "rule": "write", "object": "/etc/x" }] } }),
                "T  cli    w  VIOLATION exec denied by the sandbox: write /etc/x",
            ),
            (
                json!({ "event": "lifecycle.effect.lint", "files": ["a.ts", "b.ts"], "has_errors": true }),
                "T  cli    w  linted a.ts, b.ts, with errors",
            ),
            (
                json!({ "event": "lifecycle.effect.install", "command": "npm install", "has_errors": false }),
                "T  cli    w  installed with npm install",
            ),
            (
                json!({ "event": "lifecycle.workspace.sandbox", "sandbox_root": "/srv/w", "read_only": true }),
                "T  cli    w  session s uses /srv/w read-only",
            ),
        ] {
            assert_eq!(head(event), expected);
        }
    }
}
