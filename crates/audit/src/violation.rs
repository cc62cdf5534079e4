//! Violations: refusals at a boundary, with their caller.

use std::fmt;
use std::sync::Arc;

use carrel_domain::Code;
use serde_json::{Value, json};

use crate::audit_log::{AuditEvent, AuditLog, ViolationLayer};
use crate::interface::Interface;

/// Bounds each text in the detail of an event, so that callers cannot fill the log.
const MAX_TEXT: usize = 512;

/// A call as its audit events name it: caller, interface, operation and workspace.
#[derive(Clone, Debug)]
pub struct AuditedCall {
    /// The id of the session, or the subject of an API token.
    pub session: String,
    /// The interface of the call.
    pub interface: Interface,
    /// The tool, or the operation that stands for one: `exec`, `hook`, `agent`, or method and route of the API.
    pub tool: String,
    /// The name of the workspace, if the call is about one.
    pub workspace: Option<String>,
    /// Masks known secrets in details.
    pub mask: Mask,
}

impl AuditedCall {
    /// Returns the call that stands for an operation of Carrel's command line.
    pub fn of_command_line(operation: &str) -> Self {
        Self {
            session: "cli".to_owned(),
            interface: Interface::Cli,
            tool: operation.to_owned(),
            workspace: None,
            mask: Mask::default(),
        }
    }
}

type MaskFunction = dyn Fn(&mut Value) + Send + Sync;

/// A function that masks known secrets in a JSON value; by default it masks nothing.
#[derive(Clone, Default)]
pub struct Mask(Option<Arc<MaskFunction>>);

impl Mask {
    /// Makes a mask from a function.
    pub fn new(mask: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(mask)))
    }

    fn apply(&self, value: &mut Value) {
        if let Some(mask) = &self.0 {
            mask(value);
        }
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Mask(…)" } else { "Mask" })
    }
}

/// A refusal at a boundary.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    layer: ViolationLayer,
    code: Option<Code>,
    detail: Value,
}

impl Violation {
    /// Returns the violation of a refusal; `None` for a code that is no violation.
    pub fn of_code(code: Code, detail: Value) -> Option<Self> {
        let violation = Self { layer: ViolationLayer::Argument, code: Some(code), detail };
        code.is_violation().then_some(violation)
    }

    /// Returns the violation of a command that the sandbox denied operations.
    pub fn of_denials(denials: &impl serde::Serialize) -> Self {
        let detail = json!({ "denials": denials });
        Self { layer: ViolationLayer::Kernel, code: None, detail }
    }
}

impl AuditLog {
    /// Adds the event of a violation.
    pub fn add_violation(&self, audited_call: &AuditedCall, violation: Violation) {
        let Violation { layer, code, mut detail } = violation;
        // Masked first: a secret that is cut in two would not be found.
        audited_call.mask.apply(&mut detail);
        shorten(&mut detail);
        let event = AuditEvent::SandboxViolation {
            tool: audited_call.tool.clone(),
            workspace: audited_call.workspace.clone(),
            layer,
            code: code.map(Code::name),
            detail,
        };
        self.add(&audited_call.session, audited_call.interface, event);
    }
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => text.truncate(text.floor_char_boundary(MAX_TEXT)),
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_violation_is_masked_and_bounded() {
        let (log, events) = AuditLog::to_receiver();
        let mask = Mask::new(|value| {
            let text = value["path"].as_str().unwrap().replace("s3cret", "[masked]");
            value["path"] = text.into();
        });
        let audited_call = AuditedCall { mask, ..AuditedCall::of_command_line("exec") };
        let path = format!("{}s3cret{}", "x".repeat(MAX_TEXT - 10), "y".repeat(MAX_TEXT));
        let violation = Violation::of_code(Code::SandboxViolation, json!({ "path": path }));
        log.add_violation(&audited_call, violation.unwrap());
        let AuditEvent::SandboxViolation { tool, code, detail, .. } = events.recv().unwrap().event
        else {
            panic!("another event");
        };
        assert_eq!((tool.as_str(), code), ("exec", Some("E_SANDBOX_VIOLATION")));
        let path = detail["path"].as_str().unwrap();
        assert!(path.len() == MAX_TEXT && path.contains("[masked]"), "{path}");
    }

    #[test]
    fn a_failure_that_is_no_refusal_is_no_violation() {
        for code in [Code::NotFound, Code::Forbidden, Code::Internal] {
            assert_eq!(Violation::of_code(code, json!({})), None, "{code:?}");
        }
    }
}
