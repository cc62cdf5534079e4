//! A hint that a task is queued, and its form in a Redis list.
//!
//! A hint is not the task: the worker that takes it asks the store for work and may get another task,
//! or none. The JSON of an entry is interface, since other programs read and push entries; fields that
//! this version does not know survive when a hint is put back.

use carrel_domain::{Priority, TaskId, VolumeId, WorkspaceId};
use carrel_store::{QueuedTask, Task};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Steps whose JSON is longer are left out of the entry: the worker reads them from the store anyway.
const MAX_STEPS_BYTES: usize = 16 * 1024;

/// A hint that a task is queued.
#[derive(Clone, Debug, PartialEq)]
pub struct Hint {
    /// The queued task.
    pub task: TaskId,
    /// The workspace of the task.
    pub workspace: WorkspaceId,
    /// The priority, which decides the list.
    pub priority: Priority,
    /// The volume of the workspace, if it is known: only workers of that volume can claim the task.
    pub volume: Option<VolumeId>,
    /// Further fields of the entry, for people and programs that look into the list.
    more: Map<String, Value>,
}

/// A list entry that is not a hint: malformed JSON, or without the two ids.
#[derive(Debug, thiserror::Error)]
#[error("not a hint: {0}")]
pub struct InvalidHint(#[from] serde_json::Error);

#[derive(Deserialize)]
struct Entry {
    task_id: TaskId,
    workspace_id: WorkspaceId,
    #[serde(flatten)]
    more: Map<String, Value>,
}

impl Hint {
    /// Creates the hint for a queued task from its ids alone.
    pub fn new(QueuedTask { task, workspace, priority, volume }: QueuedTask) -> Self {
        Self { task, workspace, priority, volume, more: Map::new() }
    }

    /// Creates the hint for a task, with the fields that other programs expect in an entry.
    pub fn of(task: &Task) -> Self {
        let mut more = Map::new();
        let mut add = |name: &str, value| more.insert(name.to_owned(), value);
        add("task_type", json!(task.task_type));
        add("agent_id", Value::Null);
        add("timeout_seconds", json!(task.timeout.as_secs()));
        add("created_at", json!(task.submitted_at));
        let steps = &task.configuration["steps"];
        if fits(steps) {
            add("steps", steps.clone());
        }
        let (id, workspace, priority) = (task.id, task.workspace, task.priority);
        Self { task: id, workspace, priority, volume: None, more }
    }

    /// Returns the hint addressed to the workers of a volume.
    #[must_use]
    pub fn on(self, volume: VolumeId) -> Self {
        Self { volume: Some(volume), ..self }
    }

    /// Returns the JSON of the list entry.
    pub fn entry(&self) -> String {
        let mut entry = Map::new();
        entry.insert("task_id".to_owned(), json!(self.task));
        entry.insert("workspace_id".to_owned(), json!(self.workspace));
        entry.insert("priority".to_owned(), json!(self.priority));
        entry.extend(self.more.clone());
        Value::Object(entry).to_string()
    }

    /// Parses an entry. The list it was in decides the priority, not the entry.
    pub fn parse(entry: &[u8], priority: Priority) -> Result<Self, InvalidHint> {
        let Entry { task_id, workspace_id, mut more } = serde_json::from_slice(entry)?;
        more.shift_remove("priority");
        Ok(Self { task: task_id, workspace: workspace_id, priority, volume: None, more })
    }

    /// Returns the fields of the task's status hash.
    pub(super) fn status_fields(&self) -> Vec<(&'static str, String)> {
        let text = |name: &str| self.more.get(name).and_then(Value::as_str).unwrap_or_default();
        vec![
            ("workspace_id", self.workspace.to_string()),
            ("priority", self.priority.to_string()),
            ("task_type", text("task_type").to_owned()),
            ("submitted_at", text("created_at").to_owned()),
        ]
    }
}

/// Returns whether the JSON of a value fits into [`MAX_STEPS_BYTES`]. Stops at the limit, since steps may
/// hold 32 MiB.
fn fits(value: &Value) -> bool {
    struct Remaining(usize);
    impl std::io::Write for Remaining {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Remaining(MAX_STEPS_BYTES), value).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_domain::{TaskStatus, Timestamp};
    use pretty_assertions::assert_eq;
    use std::time::Duration;

    fn task(content: &str) -> Task {
        Task {
            id: "0198c0de-7a11-7000-8000-000000000001".parse().unwrap(),
            workspace: "0198c0de-7a11-7000-8000-000000000002".parse().unwrap(),
            task_type: "background_job".to_owned(),
            priority: Priority::High,
            status: TaskStatus::Queued,
            configuration: json!({ "steps": [
                { "action": "write_file", "path": "a", "content": content }
            ]}),
            timeout: Duration::from_mins(5),
            correlation_id: None,
            submitted_at: Timestamp::from_millis(0),
            started_at: None,
            completed_at: None,
            attempt: 0,
            max_attempts: 3,
            worker: None,
            cancel_requested: false,
            result: None,
            error: None,
            execution_time: None,
            last_event: 1,
        }
    }

    #[test]
    fn an_entry_has_the_fields_of_the_lists() {
        let hint = Hint::of(&task("x"));
        let entry: Value = serde_json::from_str(&hint.entry()).unwrap();
        let expected = json!({
            "task_id": "0198c0de-7a11-7000-8000-000000000001",
            "workspace_id": "0198c0de-7a11-7000-8000-000000000002",
            "priority": "high",
            "task_type": "background_job",
            "agent_id": null,
            "timeout_seconds": 300,
            "created_at": json!(Timestamp::from_millis(0)),
            "steps": [{ "action": "write_file", "path": "a", "content": "x" }],
        });
        assert_eq!(entry, expected);
        assert_eq!(Hint::parse(hint.entry().as_bytes(), Priority::High).unwrap(), hint);
    }

    #[test]
    fn long_steps_stay_in_the_row() {
        let hint = Hint::of(&task(&"x".repeat(MAX_STEPS_BYTES)));
        assert!(hint.entry().len() < 1024, "{}", hint.entry());
    }

    #[test]
    fn an_entry_without_both_ids_is_no_hint() {
        let id = "0198c0de-7a11-7000-8000-000000000001";
        for entry in [
            "",
            "x",
            "[]",
            "{}",
            &format!(r#"{{"task_id":"{id}"}}"#),
            &format!(r#"{{"task_id":"{id}","workspace_id":"../x"}}"#),
        ] {
            assert!(Hint::parse(entry.as_bytes(), Priority::Low).is_err(), "{entry}");
        }
        let least = format!(r#"{{"task_id":"{id}","workspace_id":"{id}"}}"#);
        assert_eq!(Hint::parse(least.as_bytes(), Priority::Low).unwrap().priority, Priority::Low);
    }
}
