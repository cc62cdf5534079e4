//! The result of a trust check, as callers and models see it.

use std::path::PathBuf;

use serde::Serialize;

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// A new file or configuration entry.
    Added,
    /// Other contents, another target or another kind of file.
    Changed,
    /// A file or configuration entry that vanished.
    Removed,
}

/// One change of a file that the operator's own tools would run later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrustChange {
    /// The file, relative to the workspace.
    #[serde(with = "carrel_domain::lossy_path")]
    pub path: PathBuf,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The purpose of the file: `git hook`, `git config core.hooksPath`, `shell start-up file`, …
    pub what: String,
    /// True if the trusted state was restored.
    pub restored: bool,
    /// The reason for a change that was not restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// The path in the quarantine of what the command wrote, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    pub put_aside: Option<PathBuf>,
}

/// The changes since the last check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustReport {
    /// The changes, in the order of paths; at most [`MAX_CHANGES`].
    pub trust_changes: Vec<TrustChange>,
    /// The number of further changes, which were treated alike.
    pub omitted: usize,
    /// A directory with more watched entries than the bounds of a scan. What is beyond them was not
    /// checked.
    pub unchecked: Option<PathBuf>,
}

/// The most changes that are listed, so that a command cannot flood its reply.
pub const MAX_CHANGES: usize = 64;

/// The most characters of a name out of a hostile file that are repeated.
const MAX_SHOWN: usize = 200;

impl TrustReport {
    /// Returns whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.trust_changes.is_empty()
    }

    pub(super) fn push(&mut self, mut change: TrustChange) {
        if self.trust_changes.len() >= MAX_CHANGES {
            self.omitted += 1;
            return;
        }
        change.what = carrel_domain::excerpt::one_line(&change.what, MAX_SHOWN);
        self.trust_changes.push(change);
    }
}

#[expect(clippy::ref_option, reason = "the shape that serde asks for")]
fn shown<S: serde::Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => carrel_domain::lossy_path::serialize(path, serializer),
        None => serializer.serialize_none(),
    }
}
