//! Facts about snapshots and changes, as replies give them.

use carrel_domain::ByteSize;
use carrel_snapshot::{Change, ChangeKind, Reason};
use carrel_wire::{Snapshot, SnapshotChange};

pub(super) fn snapshot(snapshot: &carrel_snapshot::Snapshot) -> Snapshot {
    let reason = match snapshot.reason {
        Reason::Asked => "asked",
        Reason::Automatic(_) => "automatic",
        Reason::BeforeRestore => "before_restore",
    };
    Snapshot {
        id: snapshot.id.to_string(),
        name: snapshot.name.as_ref().map(ToString::to_string),
        created: snapshot.created.to_string(),
        reason: reason.to_owned(),
        description: snapshot.description.clone(),
        files: snapshot.totals.files,
        bytes: snapshot.totals.bytes,
        added_bytes: snapshot.added_bytes,
    }
}

/// Returns the name, or the number of a snapshot that has none.
pub(super) fn label(snapshot: &Snapshot) -> &str {
    snapshot.name.as_deref().unwrap_or(&snapshot.id)
}

/// Returns the size in words.
pub(super) fn size(snapshot: &Snapshot) -> String {
    let (bytes, added) = (ByteSize::bytes(snapshot.bytes), ByteSize::bytes(snapshot.added_bytes));
    format!("{} files, {bytes}, {added} new in the store", snapshot.files)
}

pub(super) fn change(change: &Change) -> SnapshotChange {
    let from = match &change.kind {
        ChangeKind::Renamed { from } => Some(from.display().to_string()),
        ChangeKind::Added
        | ChangeKind::Deleted
        | ChangeKind::Modified
        | ChangeKind::Mode
        | ChangeKind::Type => None,
    };
    let path = change.path.display().to_string();
    SnapshotChange { path, change: change.kind.as_str().to_owned(), from }
}

/// Returns a change as a line of a list.
pub(super) fn change_line(change: &SnapshotChange) -> String {
    match &change.from {
        Some(from) => format!("{} {from} -> {}", change.change, change.path),
        None => format!("{} {}", change.change, change.path),
    }
}
