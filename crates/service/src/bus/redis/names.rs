//! The names of what is in Redis.

use carrel_domain::{Priority, TaskId, VolumeId};
use carrel_store::WorkerId;

/// How long the status of a task stays.
pub(super) const STATUS_SECONDS: u32 = 7200;

/// How long a worker counts as alive without another sign.
pub(super) const WORKER_SECONDS: u32 = 60;

/// Entries that were not hints.
pub(super) const DEAD: &str = "workspace:tasks:dead";

/// The channel with the ids of tasks whose end somebody asked for.
pub(super) const CANCEL: &str = "workspace:tasks:cancel";

/// Returns the list of hints for a priority, of all volumes or of one.
pub(super) fn list(priority: Priority, volume: Option<VolumeId>) -> String {
    match volume {
        None => format!("workspace:tasks:{priority}"),
        Some(volume) => format!("workspace:tasks:{priority}@{volume}"),
    }
}

/// Returns every list that a worker of a volume takes hints from, in order.
pub(super) fn lists(volume: VolumeId) -> Vec<(String, Priority)> {
    let of = |priority: Priority| [list(priority, Some(volume)), list(priority, None)];
    let each = |priority: &Priority| of(*priority).map(|list| (list, *priority));
    Priority::ALL.iter().flat_map(each).collect()
}

const TASK: &str = "workspace:task:";
const EVENTS: &str = ":events";

/// Returns the channel with the events of a task.
pub(super) fn events(task: TaskId) -> String {
    format!("{TASK}{task}{EVENTS}")
}

/// Returns the task whose events are on a channel.
pub(super) fn task_of(channel: &str) -> Option<TaskId> {
    channel.strip_prefix(TASK)?.strip_suffix(EVENTS)?.parse().ok()
}

/// Returns the key of the hash with a task's status.
pub(super) fn status(task: TaskId) -> String {
    format!("{TASK}{task}:status")
}

/// Returns the key that is there as long as a worker is.
pub(super) fn heartbeat(worker: &WorkerId) -> String {
    format!("workspace:worker:{worker}:heartbeat")
}

/// Returns the key of the set of tasks that a worker runs.
pub(super) fn running(worker: &WorkerId) -> String {
    format!("workspace:worker:{worker}:tasks")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn lists_are_in_strict_order_and_those_of_the_volume_first() {
        let volume: VolumeId = "0198c0de-7a11-7000-8000-000000000001".parse().unwrap();
        let names: Vec<_> = lists(volume).into_iter().map(|(name, _)| name).collect();
        let of = |word: &str| {
            [format!("workspace:tasks:{word}@{volume}"), format!("workspace:tasks:{word}")]
        };
        assert_eq!(names, ["critical", "high", "normal", "low"].map(of).concat());
    }

    #[test]
    fn a_channel_names_its_task() {
        let task = TaskId::generate();
        assert_eq!(task_of(&events(task)), Some(task));
        assert_eq!(task_of(CANCEL), None);
        assert_eq!(task_of("workspace:task:x:events"), None);
    }
}
