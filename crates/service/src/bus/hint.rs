//! The hint that a task waits, as it lies in a list.

use carrel_domain::{Priority, TaskId, VolumeId, WorkspaceId};
use carrel_store::Task;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Steps that are longer than this, in bytes, are left out: the worker reads the row.
const MAX_STEPS_BYTES: usize = 16 * 1024;

/// The hint that a task waits. Whoever takes it asks the store for work; it may get another task, or
/// none.
#[derive(Clone, Debug, PartialEq)]
pub struct Hint {
    /// The task.
    pub task: TaskId,
    /// Where it works.
    pub workspace: WorkspaceId,
    /// How urgent it is.
    pub priority: Priority,
    /// Where the workspace lies, as far as is known.
    pub volume: Option<VolumeId>,
    /// What else the entry says, for people and programs that look into the list.
    more: Map<String, Value>,
}

/// Why an entry of a list is no hint.
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
    /// Makes the hint for a task that waits, of which only this is known.
    pub fn new(
        task: TaskId,
        workspace: WorkspaceId,
        priority: Priority,
        volume: Option<VolumeId>,
    ) -> Self {
        Self { task, workspace, priority, volume, more: Map::new() }
    }

    /// Makes the hint for a task.
    pub fn of(task: &Task, volume: Option<VolumeId>) -> Self {
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
        Self { more, ..Self::new(task.id, task.workspace, task.priority, volume) }
    }

    /// Returns the same hint for the workers of a volume.
    #[must_use]
    pub fn on(self, volume: VolumeId) -> Self {
        Self { volume: Some(volume), ..self }
    }

    /// Returns the entry for a list.
    pub fn entry(&self) -> String {
        let mut entry = Map::new();
        entry.insert("task_id".to_owned(), json!(self.task));
        entry.insert("workspace_id".to_owned(), json!(self.workspace));
        entry.insert("priority".to_owned(), json!(self.priority));
        entry.extend(self.more.clone());
        Value::Object(entry).to_string()
    }

    /// Reads an entry of the list of a priority.
    pub fn read(entry: &[u8], priority: Priority) -> Result<Self, InvalidHint> {
        let Entry { task_id, workspace_id, mut more } = serde_json::from_slice(entry)?;
        more.shift_remove("priority");
        Ok(Self { task: task_id, workspace: workspace_id, priority, volume: None, more })
    }

    /// Returns what the hash with the task's status says of it.
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

/// Tells whether a value is short, without writing a long one.
fn fits(value: &Value) -> bool {
    struct Room(usize);
    impl std::io::Write for Room {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Room(MAX_STEPS_BYTES), value).is_ok()
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
        let hint = Hint::of(&task("x"), None);
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
        assert_eq!(Hint::read(hint.entry().as_bytes(), Priority::High).unwrap(), hint);
    }

    #[test]
    fn long_steps_stay_in_the_row() {
        let hint = Hint::of(&task(&"x".repeat(MAX_STEPS_BYTES)), None);
        assert!(hint.entry().len() < 1024, "{}", hint.entry());
    }

    #[test]
    fn what_names_no_task_is_no_hint() {
        let id = "0198c0de-7a11-7000-8000-000000000001";
        for entry in [
            "",
            "x",
            "[]",
            "{}",
            &format!(r#"{{"task_id":"{id}"}}"#),
            &format!(r#"{{"task_id":"{id}","workspace_id":"../x"}}"#),
        ] {
            assert!(Hint::read(entry.as_bytes(), Priority::Low).is_err(), "{entry}");
        }
        let least = format!(r#"{{"task_id":"{id}","workspace_id":"{id}"}}"#);
        assert_eq!(Hint::read(least.as_bytes(), Priority::Low).unwrap().priority, Priority::Low);
    }
}
