//! What a candidate changed: the size, and a diff for people.

use carrel_domain::Failure;
use carrel_snapshot::{Omission, Renames, Side, Trust};
use carrel_trial::DiffSize;

use super::host::OpenFork;
use super::open_fork::{AFTER, BEFORE, named};
use crate::snapshots::diff;
use crate::text::line;

/// Bounds the diff that is kept for people.
const MAX_DIFF: usize = 1 << 20;

/// Bounds the list of changes above it.
const MAX_STAT: usize = 64 << 10;

/// The size that a file counts with which is too large for a snapshot.
const LEFT_OUT_BYTES: u64 = 64 << 20;

/// Compares the snapshots of a fork before and after the run. Returns the size, and for people a list of the changes,
/// an empty line, and as much of the diff as is kept.
pub(super) async fn measure(fork: &OpenFork) -> Result<(DiffSize, String), Failure> {
    fork.in_store(|store, _| {
        let (old, new) = (Side::Snapshot(named(BEFORE)?), Side::Snapshot(named(AFTER)?));
        let trust = Trust::Keys;
        let measured =
            store.compare_and_read(&old, &new, Renames::Joined, &trust, |found, contents| {
                let mut size =
                    DiffSize { files: found.changes.len() as u64, ..DiffSize::default() };
                let (mut stat, mut text, mut left_out) = (String::new(), String::new(), 0_usize);
                for change in &found.changes {
                    let section = diff::section(contents, change)?;
                    if stat.len() <= MAX_STAT {
                        let (kind, path) = (change.kind.as_str(), change.path.display());
                        let (added, removed) = (section.added, section.removed);
                        line(&mut stat, &format!("{kind:<9} {path} +{added} -{removed}"));
                    }
                    size.added += section.added;
                    size.removed += section.removed;
                    size.bytes += section.bytes;
                    if left_out == 0 && text.len() + section.text.len() <= MAX_DIFF {
                        text.push_str(&section.text);
                    } else {
                        left_out += 1;
                    }
                }
                for (path, _) in found.incomparable.iter().filter(|(_, why)| counts(*why)) {
                    size.files += 1;
                    size.bytes += LEFT_OUT_BYTES;
                    line(&mut stat, &format!("too large to compare: {}", path.display()));
                }
                if left_out > 0 {
                    line(&mut text, &format!("[{left_out} more changes]"));
                }
                stat.push('\n');
                stat.push_str(&text);
                Ok::<_, Failure>((size, stat))
            });
        measured?
    })
    .await
}

/// Tells whether something that a snapshot leaves out is a change that the budget is about.
fn counts(omission: Omission) -> bool {
    match omission {
        Omission::TooLarge
        | Omission::OverTotal
        | Omission::Special
        | Omission::Unreadable
        | Omission::Torn => true,
        Omission::Ignored | Omission::Mount | Omission::TooDeep | Omission::Repository => false,
    }
}
