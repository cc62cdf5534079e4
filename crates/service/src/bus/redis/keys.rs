//! The names of keys, lists and channels in Redis. They are interface: other programs use them.

use carrel_domain::{Priority, TaskId, VolumeId};
use carrel_store::WorkerId;

/// The expiry of a task's status hash after its last change.
pub(super) const STATUS_SECONDS: u32 = 7200;

/// The expiry of a worker's announcement.
pub(super) const WORKER_SECONDS: u32 = 60;

/// The list of invalid entries.
pub(super) const DEAD: &str = "workspace:tasks:dead";

/// The channel of cancellations; a message is the id of a task.
pub(super) const CANCEL: &str = "workspace:tasks:cancel";

/// Returns the list of hints of a priority: for the workers of one volume, or of any.
pub(super) fn list(priority: Priority, volume: Option<VolumeId>) -> String {
    match volume {
        None => format!("workspace:tasks:{priority}"),
        Some(volume) => format!("workspace:tasks:{priority}@{volume}"),
    }
}

/// Returns the lists that a worker of a volume pops from, in the order in which Redis tries them.
pub(super) fn lists(volume: VolumeId) -> Vec<(String, Priority)> {
    let of = |priority: Priority| [list(priority, Some(volume)), list(priority, None)];
    let each = |priority: &Priority| of(*priority).map(|list| (list, *priority));
    Priority::ALL.iter().flat_map(each).collect()
}

const TASK: &str = "workspace:task:";
const EVENTS: &str = ":events";

pub(super) fn events(task: TaskId) -> String {
    format!("{TASK}{task}{EVENTS}")
}

/// Returns the task of an events channel.
pub(super) fn task_of(channel: &str) -> Option<TaskId> {
    channel.strip_prefix(TASK)?.strip_suffix(EVENTS)?.parse().ok()
}

pub(super) fn status(task: TaskId) -> String {
    format!("{TASK}{task}:status")
}

pub(super) fn heartbeat(worker: &WorkerId) -> String {
    format!("workspace:worker:{worker}:heartbeat")
}

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
