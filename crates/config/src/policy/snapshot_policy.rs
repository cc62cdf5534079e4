//! The operator's settings for snapshots that Carrel takes by itself.

use std::time::Duration;

use carrel_domain::ByteSize;

use super::policy_keys as keys;
use super::policy_reader::PolicyReader;

/// The occasions of automatic snapshots, and what is kept of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotPolicy {
    /// One before each task of the queue that may write.
    pub tasks: bool,
    /// One before each turn of an agent.
    pub turns: bool,
    /// One before each command of a tool.
    pub commands: bool,
    /// The most that are kept in a workspace.
    pub keep: u64,
    /// The age up to which they are kept.
    pub keep_for: Duration,
    /// The most bytes that they may add to the store of a workspace.
    pub keep_bytes: ByteSize,
}

impl Default for SnapshotPolicy {
    fn default() -> Self {
        Self {
            tasks: true,
            turns: true,
            commands: false,
            keep: 50,
            keep_for: Duration::from_hours(7 * 24),
            keep_bytes: ByteSize::gib(1),
        }
    }
}

impl SnapshotPolicy {
    pub(super) fn read(reader: &mut PolicyReader<'_>) -> Self {
        let default = Self::default();
        Self {
            tasks: reader.settings.flag(&keys::SNAPSHOT_TASKS),
            turns: reader.settings.flag(&keys::SNAPSHOT_TURNS),
            commands: reader.settings.flag(&keys::SNAPSHOT_COMMANDS),
            keep: reader.settings.count(&keys::SNAPSHOT_KEEP).unwrap_or(default.keep),
            keep_for: reader.settings.time(&keys::SNAPSHOT_KEEP_FOR).unwrap_or(default.keep_for),
            keep_bytes: reader
                .settings
                .size(&keys::SNAPSHOT_KEEP_BYTES)
                .unwrap_or(default.keep_bytes),
        }
    }
}
