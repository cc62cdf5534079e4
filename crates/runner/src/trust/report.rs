//! What a caller is told.

use std::path::PathBuf;

use serde::Serialize;

/// What happened to a file, or to an entry of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It was not there before.
    Added,
    /// It is another one than before.
    Changed,
    /// It is gone.
    Removed,
}

/// One change to what the operator's own tools would run later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrustChange {
    /// The file, relative to the workspace.
    #[serde(with = "carrel_domain::lossy_path")]
    pub path: PathBuf,
    /// What happened to it.
    pub kind: ChangeKind,
    /// What it is: `git hook`, `git config core.hooksPath`, `shell start-up file`, …
    pub what: String,
    /// Whether it is again as it was.
    pub restored: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// Where what the command wrote was moved to, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    pub put_aside: Option<PathBuf>,
}

/// All that changed since the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrustReport {
    /// The changes, in the order of paths; at most [`MAX_CHANGES`].
    pub trust_changes: Vec<TrustChange>,
    /// How many more there were. They were treated alike.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// A directory with more in it than is looked through, which nobody can vouch for.
    #[serde(skip)]
    pub overfull: Option<PathBuf>,
}

/// How many changes are told one by one, so that a command cannot flood its reply.
pub const MAX_CHANGES: usize = 64;

/// How much of a name out of a hostile file is repeated.
const MAX_SHOWN: usize = 200;

impl TrustReport {
    /// Tells whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.trust_changes.is_empty()
    }

    pub(super) fn push(&mut self, mut change: TrustChange) {
        if self.trust_changes.len() >= MAX_CHANGES {
            self.omitted += 1;
            return;
        }
        change.what = plain(&change.what);
        self.trust_changes.push(change);
    }
}

/// Shortens a text and shows its control characters.
fn plain(text: &str) -> String {
    let mut shown: String =
        text.chars().take(MAX_SHOWN).fold(String::new(), |mut shown, letter| {
            if letter.is_control() {
                shown.extend(letter.escape_debug());
            } else {
                shown.push(letter);
            }
            shown
        });
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[expect(clippy::ref_option, reason = "the shape that serde asks for")]
fn shown<S: serde::Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => carrel_domain::lossy_path::serialize(path, serializer),
        None => serializer.serialize_none(),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde asks for")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
