//! Task requests: the JSON body of a submission, its checks, and the plan that a worker reads back.
//!
//! A request is checked completely before anything is stored, so that a queued task can fail only in
//! what it does. The steps are stored as they were written, not as they were understood: a later
//! version reads them again with its own rules, and clients get back what they sent.

use std::time::Duration;

use carrel_domain::{Network, Timestamp, WorkspaceId};
use carrel_store::{IdempotencyKey, NewTask, Task};
use carrel_traces::TraceParent;
use carrel_wire::limits::{
    DEFAULT_ATTEMPTS, MAX_ATTEMPTS, MAX_LABEL_CHARS, MAX_STEPS, MAX_TASK_SECONDS, MIN_TASK_SECONDS,
};
use carrel_wire::{StepRequest, TaskConfiguration, TaskRequest};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::limits::{MAX_TASK_BYTES, MAX_WAITING_TASKS};
use crate::step::{Step, parse_step};

/// The type of a task that names none.
const DEFAULT_TYPE: &str = "background_job";

/// The field of a task's configuration with the trace context of its submission.
const TRACE_PARENT: &str = "traceparent";

/// The field of a task's configuration with the cap of the submission's token.
const NETWORK_CAP: &str = "network_cap";

/// An invalid request: the field and the rule that it breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {rule}")]
pub struct InvalidRequest {
    /// The path of the field, such as `steps[0].command`.
    pub field: String,
    /// The rule as the rest of a sentence that begins with the field: "is required for `shell`".
    pub rule: String,
}

impl InvalidRequest {
    /// Creates the error for a field and a rule.
    pub fn new(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self { field: field.into(), rule: rule.into() }
    }

    /// Returns the error for the field of a step, counted from 0.
    pub(crate) fn in_step(self, index: usize) -> Self {
        Self { field: format!("steps[{index}].{}", self.field), ..self }
    }
}

/// A checked request and its workspace.
#[derive(Clone, Debug)]
pub struct TaskSubmission {
    pub(crate) workspace: WorkspaceId,
    pub(crate) request: TaskRequest,
    pub(crate) configuration: Value,
    networks: Vec<Network>,
}

impl TaskSubmission {
    /// Checks every field and step of a request. `hosts` are the hosts that repositories may come from.
    pub fn check(
        request: TaskRequest,
        workspace: WorkspaceId,
        hosts: &[String],
    ) -> Result<Self, InvalidRequest> {
        let allowed = MIN_TASK_SECONDS..=MAX_TASK_SECONDS;
        if !allowed.contains(&request.timeout_seconds) {
            let rule =
                format!("is a number of seconds from {MIN_TASK_SECONDS} to {MAX_TASK_SECONDS}");
            return Err(InvalidRequest::new("timeout_seconds", rule));
        }
        if request.steps.is_empty() || request.steps.len() > MAX_STEPS {
            return Err(InvalidRequest::new("steps", format!("are 1 to {MAX_STEPS}")));
        }
        if request.max_attempts.is_some_and(|attempts| !(1..=MAX_ATTEMPTS).contains(&attempts)) {
            let rule = format!("is a number from 1 to {MAX_ATTEMPTS}");
            return Err(InvalidRequest::new("max_attempts", rule));
        }
        for (field, word) in [
            ("task_type", &request.task_type),
            ("correlation_id", &request.correlation_id),
            ("idempotency_key", &request.idempotency_key),
        ] {
            check_word(field, word.as_deref())?;
        }
        let mut networks = Vec::new();
        for (index, step) in request.steps.iter().enumerate() {
            let step = parse_step(step, index)?;
            step.check_repository(hosts).map_err(|error| error.in_step(index))?;
            networks.extend(step.network);
            networks.extend(step.tool_network());
        }
        let configuration = json!(TaskConfiguration {
            steps: request.steps.iter().map(as_submitted).collect(),
            retry_failed: request.retry_failed,
            traceparent: None,
            network_cap: None,
        });
        let length = configuration.to_string().len() as u64;
        if length > MAX_TASK_BYTES.as_u64() {
            let rule = format!("are {length} bytes together; {MAX_TASK_BYTES} are allowed");
            return Err(InvalidRequest::new("steps", rule));
        }
        Ok(Self { workspace, request, configuration, networks })
    }
}

/// Returns a step as the JSON object that described it.
fn as_submitted(step: &StepRequest) -> Map<String, Value> {
    match json!(step) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn check_word(field: &str, word: Option<&str>) -> Result<(), InvalidRequest> {
    let Some(word) = word else { return Ok(()) };
    let length = word.chars().count();
    if length == 0 || length > MAX_LABEL_CHARS || word.contains(char::is_control) {
        let rule = format!("is 1 to {MAX_LABEL_CHARS} characters without control characters");
        return Err(InvalidRequest::new(field, rule));
    }
    Ok(())
}

impl TaskSubmission {
    /// Caps the network of its steps by the scopes of the token that submits it. The attempt runs without the
    /// token, so that the cap is stored with the task.
    #[must_use]
    pub fn capped(mut self, token: Option<Network>) -> Self {
        if let Some(network) = token {
            self.configuration[NETWORK_CAP] = network.as_str().into();
        }
        self
    }

    /// Returns the networks that its steps request, for the check of the token's scopes.
    pub fn networks(&self) -> impl Iterator<Item = Network> {
        self.networks.iter().copied()
    }

    /// Returns the names of credentials in the steps, each with the path of its field.
    pub(crate) fn credentials(&self) -> impl Iterator<Item = (String, &str)> {
        self.request.steps.iter().enumerate().flat_map(|(step, raw)| {
            let names = raw.credentials.iter().enumerate();
            names.map(move |(index, name)| {
                (format!("steps[{step}].credentials[{index}]"), name.as_str())
            })
        })
    }

    /// Returns the number of steps.
    pub fn steps(&self) -> usize {
        self.request.steps.len()
    }

    /// Returns the task to insert. `scope` separates the idempotency keys of different callers.
    pub(crate) fn into_task(self, scope: &str, now: Timestamp) -> NewTask {
        let Self { workspace, request, mut configuration, networks: _ } = self;
        // The attempt, perhaps in another process, is traced as a part of this request.
        if let Some(here) = carrel_traces::current_context() {
            configuration[TRACE_PARENT] = here.to_string().into();
        }
        let idempotency_key = request.idempotency_key.as_ref().map(|key| IdempotencyKey {
            scope: format!("{workspace} {scope}"),
            key: key.clone(),
            digest: digest(&request),
        });
        NewTask {
            id: carrel_domain::TaskId::generate(),
            workspace,
            task_type: request.task_type.unwrap_or_else(|| DEFAULT_TYPE.to_owned()),
            priority: request.priority,
            configuration,
            timeout: Duration::from_secs(request.timeout_seconds),
            max_attempts: request.max_attempts.unwrap_or(DEFAULT_ATTEMPTS),
            correlation_id: request.correlation_id,
            now,
            max_waiting: MAX_WAITING_TASKS,
            idempotency_key,
        }
    }

    pub(crate) fn idempotency_key(&self) -> Option<&str> {
        self.request.idempotency_key.as_deref()
    }
}

/// Returns the trace context of a task's submission, if that was traced.
pub(crate) fn trace_parent(task: &Task) -> Option<TraceParent> {
    task.configuration.get(TRACE_PARENT)?.as_str()?.parse().ok()
}

fn digest(request: &TaskRequest) -> [u8; 32] {
    let text = serde_json::to_vec(request).unwrap_or_default();
    Sha256::digest(text).into()
}

/// The steps of a task, parsed from its stored configuration.
#[derive(Clone, Debug)]
pub(crate) struct TaskPlan {
    pub(crate) steps: Vec<Step>,
    /// The most network that the token of the submission allows.
    pub(crate) network_cap: Option<Network>,
    pub(crate) retry_failed: bool,
}

impl TaskPlan {
    /// Parses the configuration of a task. Fails if a newer version stored steps that this one does not
    /// know.
    pub(crate) fn of(task: &Task) -> Result<Self, InvalidRequest> {
        let configuration: TaskConfiguration =
            serde_json::from_value(task.configuration.clone())
                .map_err(|error| InvalidRequest::new("configuration", error.to_string()))?;
        let steps = configuration.steps.into_iter().enumerate().map(|(index, step)| {
            let step: StepRequest =
                serde_json::from_value(Value::Object(step)).map_err(|error| {
                    InvalidRequest::new(format!("steps[{index}]"), error.to_string())
                })?;
            parse_step(&step, index)
        });
        Ok(Self {
            steps: steps.collect::<Result<_, _>>()?,
            network_cap: configuration.network_cap,
            retry_failed: configuration.retry_failed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::DEFAULT_HOSTS;
    use pretty_assertions::assert_eq;

    fn check(body: Value) -> Result<TaskSubmission, String> {
        let request: TaskRequest =
            serde_json::from_value(body).map_err(|error| error.to_string())?;
        TaskSubmission::check(request, WorkspaceId::generate(), &DEFAULT_HOSTS.map(str::to_owned))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn requests_are_checked_by_the_table() {
        let step = json!({ "action": "shell", "command": "true" });
        let table = [
            (json!({ "steps": [] }), "steps are 1 to 100"),
            (json!({}), "missing field `steps`"),
            (
                json!({ "steps": [step], "timeout_seconds": 9 }),
                "timeout_seconds is a number of seconds from 10 to 3600",
            ),
            (
                json!({ "steps": [step], "priority": "urgent" }),
                "unknown priority \"urgent\"; known are critical, high, normal, low",
            ),
            (json!({ "steps": [step], "prio": "low" }), "unknown field `prio`"),
            (json!({ "steps": [{ "action": "" }] }), "steps[0].action is unknown: \"\"; known are"),
            (
                json!({ "steps": [step, { "action": "shell" }] }),
                "steps[1].command is required for `shell`",
            ),
            (
                json!({ "steps": [{ "action": "write_file", "path": "a" }] }),
                "steps[0].content is required",
            ),
            (
                json!({ "steps": [{ "action": "read_file", "path": "a\0" }] }),
                "steps[0].path contains a NUL byte",
            ),
            (
                json!({ "steps": [{ "action": "shell", "command": "x", "timeout": 0 }] }),
                "steps[0].timeout",
            ),
            (
                json!({ "steps": [step], "max_attempts": 0 }),
                "max_attempts is a number from 1 to 10",
            ),
            (
                json!({ "steps": [{ "action": "shell", "command": "x", "credentials": ["a", "../b"] }] }),
                "steps[0].credentials[1] is the name of a credential",
            ),
            (json!({ "steps": [step], "idempotency_key": "" }), "idempotency_key is 1 to 255"),
        ];
        for (body, expected) in table {
            let found = check(body.clone()).unwrap_err();
            assert!(found.contains(expected), "{body}: {found}");
        }
    }

    #[test]
    fn a_plan_has_the_steps_of_its_request() {
        let body = json!({ "steps": [
            { "action": "git_clone", "repo": "https://github.com/a/b.git", "branch": "main" },
            { "action": "execute_command", "command": "pytest", "cwd": "repos/b", "timeout": 120,
              "on_error": "continue", "network": "loopback" },
        ]});
        let submit = check(body.clone()).unwrap();
        assert_eq!(submit.configuration["steps"], body["steps"]);
        let steps: Vec<_> = submit
            .request
            .steps
            .iter()
            .enumerate()
            .map(|(i, s)| parse_step(s, i).unwrap())
            .collect();
        assert_eq!(steps[1].on_error, OnErrorContinue);
        assert_eq!(steps[0].action_name, "git_clone");
    }

    use carrel_wire::OnError::Continue as OnErrorContinue;
}
