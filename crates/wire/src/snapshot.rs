//! Snapshots of a workspace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// The number, such as `@12`. It stands for the name in other requests.
    pub id: String,
    /// The name; `null` if Carrel took it by itself.
    pub name: Option<String>,
    /// The time at which it was taken.
    pub created: String,
    /// `asked`, `automatic` or `before_restore`.
    pub reason: String,
    /// What it is for.
    pub description: String,
    /// The number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The bytes that it takes in the store beyond the ones before.
    pub added_bytes: u64,
}

/// All snapshots of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotList {
    /// The newest first.
    pub snapshots: Vec<Snapshot>,
    /// The number of those that Carrel took by itself and that are not listed.
    pub automatic: u64,
    /// Files of the store that are damaged, whose snapshots are not listed.
    pub damaged: Vec<String>,
}

/// The snapshots to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotListQuery {
    /// Also those that Carrel took by itself.
    #[serde(default)]
    pub automatic: bool,
}

/// A snapshot to take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSnapshot {
    /// Begins with a letter, digit or `_`, and goes on with those, `.` and `-`.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Also take what ignore rules exclude, such as `node_modules`.
    #[serde(default)]
    pub ignored: bool,
    /// Replace an older snapshot of this name.
    #[serde(default)]
    pub replace: bool,
}

/// A snapshot that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedSnapshot {
    /// The snapshot.
    #[serde(flatten)]
    pub snapshot: Snapshot,
    /// Nothing has changed since the snapshot before.
    pub unchanged: bool,
    /// Paths that ignore rules exclude, at most 200; a restore leaves them alone.
    pub ignored: Vec<String>,
    /// The number of all of them.
    #[serde(default)]
    pub ignored_total: u64,
    /// Other paths that are not in it, at most 200.
    pub left_out: Vec<LeftOutPath>,
    /// The number of all of them.
    #[serde(default)]
    pub left_out_total: u64,
}

/// A path that is not in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutPath {
    /// The path, relative to the workspace.
    pub path: String,
    /// The reason, such as `too_large`, `special` or `unreadable`.
    pub reason: String,
}

/// A difference between two states of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotChange {
    /// The path, relative to the workspace; the new one of a renamed file.
    pub path: String,
    /// `added`, `modified`, `deleted`, `mode`, `type` or `renamed`.
    pub change: String,
    /// The old path of a renamed file; left out for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// The states to compare with a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotDiffQuery {
    /// The newer snapshot; the present files if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Only this file or directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Most bytes of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

/// The differences between two states of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotDiff {
    /// The number of changes.
    pub changed: u64,
    /// The changes, at most 200.
    pub changes: Vec<SnapshotChange>,
    /// The number of changes for which the text has no room.
    pub not_shown: u64,
    /// Paths that only one side has because the other left them out, at most 200.
    pub incomparable: Vec<String>,
    /// The number of all of them.
    #[serde(default)]
    pub incomparable_total: u64,
}

/// The differences between two states of a workspace, with their text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotDiffReply {
    /// The differences.
    #[serde(flatten)]
    pub diff: SnapshotDiff,
    /// The differences in the form of `git diff`.
    pub text: String,
}

/// The part of a snapshot to restore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotRestoreRequest {
    /// Only these files and directories; everything if there are none.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Only list what would change.
    #[serde(default)]
    pub dry_run: bool,
}

/// What a restore changed, or would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestoredSnapshot {
    /// The number of the snapshot.
    pub snapshot: String,
    /// The snapshot of the state before, by which the restore is undone; `null` if nothing was changed.
    pub before: Option<String>,
    /// The number of changes.
    pub changed: u64,
    /// The changes, at most 200.
    pub changes: Vec<SnapshotChange>,
    /// Paths that the snapshot does not have and that stay as they are, such as ignored trees; at most 200.
    pub left_alone: Vec<String>,
    /// The number of all of them.
    #[serde(default)]
    pub left_alone_total: u64,
    /// Paths that could not be restored, since a directory that stays is in their place; at most 200.
    pub blocked: Vec<String>,
    /// The number of all of them.
    #[serde(default)]
    pub blocked_total: u64,
}

/// A snapshot that was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeletedSnapshot {
    /// The number.
    pub id: String,
    /// The name, if it had one.
    pub name: Option<String>,
}
