//! Errors of operations on workspaces.

use std::path::{Path, PathBuf};

use carrel_domain::{ByteSize, Code, Coded, Identifier, InvalidIdentifier, TrialId, WorkspaceKey};
use carrel_fsroot::{FileKind, Problem};
use serde::Serialize;
use serde_json::{Value, json};

use crate::hooks::HookError;

/// The reason why an operation on a workspace failed.
///
/// Nothing is left half-done by a failed operation except what `create` and `remove` describe; every
/// variant has a stable code, by which programs tell them apart.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum Error {
    #[error(transparent)]
    Identifier(#[from] InvalidIdentifier),
    #[error("{rule}: {}", location.workspace.display())]
    Misplaced { rule: LocationRule, location: WorkspaceLocation },
    #[error("a command cannot start in {}: {reason}", location.workspace.display())]
    InvalidCwd { reason: CwdReason, location: WorkspaceLocation },
    #[error("a {kind} stands where the workspace belongs: {}", location.workspace.display())]
    Occupied { kind: FileKind, location: WorkspaceLocation },
    #[error("the directory belongs to user {owner}: {}", location.workspace.display())]
    ForeignOwner { owner: u32, location: WorkspaceLocation },
    #[error(
        "{} is the workspace of an issue of the same name in another tracker ({other}); give this one \
         a workspace.root of its own, or remove that workspace with `carrel workspace rm` if it is of no use any more",
        location.workspace.display()
    )]
    ForeignTracker { other: String, location: WorkspaceLocation },
    #[error("no workspace {name:?} in {}", root.display())]
    NotFound { name: String, root: PathBuf },
    #[error("no kept work {name:?} in {}", root.display())]
    KeptNotFound { name: String, root: PathBuf },
    #[error("{name:?} is kept {} times: {}; name one of them", names.len(), names.join(", "))]
    KeptAmbiguous { name: String, names: Vec<String> },
    #[error("the kept work {name} has no identifier; choose one with --as")]
    KeptUnnamed { name: String },
    #[error(
        "{:?} has a workspace already: {}; --as restores under another identifier",
        identifier.as_str(), location.workspace.display()
    )]
    Exists { identifier: Identifier, location: WorkspaceLocation },
    #[error("every key for {:?} is held by others in {}", identifier.as_str(), root.display())]
    NoKeyLeft { identifier: Identifier, root: PathBuf },
    #[error("workspace {key} is in use{}", holder_text(holder.as_deref()))]
    Busy { key: String, holder: Option<String> },
    #[error(
        "workspace {key} is frozen, since it has forks: {}; work in a fork, or promote or remove them",
        names(forks)
    )]
    Frozen { key: String, forks: Vec<WorkspaceKey> },
    #[error("a command that may change {key} is running, and a fork needs a moment without one")]
    Changing { key: String },
    #[error("{key} is a fork itself; fork its base {base}, or promote {key} first")]
    ForkOfFork { key: WorkspaceKey, base: WorkspaceKey },
    #[error("workspace {key} has {most} forks, the most there may be; promote or remove some")]
    TooManyForks { key: String, most: u8 },
    #[error("the promotion of {fork} was interrupted; the next use of {base} finishes it")]
    PromotionInterrupted { fork: String, base: String },
    #[error(
        "the base {base} of the fork {fork} is gone; `carrel workspace rm {fork}` removes the fork, too"
    )]
    BaseGone { fork: String, base: String },
    #[error(
        "the fork {fork} of {base} has lost files that it needs; `carrel workspace rm {fork}` removes it"
    )]
    BrokenFork { fork: String, base: String },
    #[error(
        "the directory of the fork {fork} is missing, and its work is not; `carrel workspace create {fork}` makes the \
         directory again"
    )]
    ForkWithoutDirectory { fork: String, base: String },
    #[error(
        "the fork {fork} is a copy, which shows nothing of what changed in its base, and cannot be rebased; take a patch by \
         `carrel workspace diff {fork} --patch`, and apply it to a new fork"
    )]
    CopyNotRebased { fork: String },
    #[error("the fork {fork} has {} that its base {base} does not have", changes(*count))]
    ChangedFork { fork: String, base: String, count: usize },
    #[error("no try {id} in {}", root.display())]
    TryNotFound { id: TrialId, root: PathBuf },
    #[error(transparent)]
    Layers(#[from] carrel_fork::LayersError),
    #[error(transparent)]
    Copy(#[from] carrel_fork::CopyError),
    #[error(transparent)]
    Changes(#[from] carrel_fork::ChangesError),
    #[error(transparent)]
    Promote(#[from] carrel_fork::PromoteError),
    #[error("workspace {key} has unsaved work: {}", reasons.join(", "))]
    Dirty { key: String, reasons: Vec<String> },
    #[error("workspace {key} uses {used} of {limit}")]
    QuotaExceeded { key: String, used: String, limit: String, used_bytes: ByteSize },
    #[error("the records in {} have schema {found}; this version reads up to {supported}", path.display())]
    SchemaTooNew { path: PathBuf, found: u64, supported: u64 },
    #[error("the record {} cannot be read: {reason}", path.display())]
    RecordUnreadable { path: PathBuf, reason: String },
    #[error("{} cannot hold workspaces: {reason}", path.display())]
    RootRefused { path: PathBuf, reason: String },
    #[error("{} is not safe as a root: {reason}", path.display())]
    RootUnsafe { path: PathBuf, reason: String },
    #[error(transparent)]
    Hook(#[from] HookError),
    #[error("{doing}")]
    Files {
        doing: String,
        #[source]
        source: carrel_fsroot::Error,
    },
    #[error("an internal task ended early: {0}")]
    Interrupted(String),
}

/// The path of a workspace, and that of the root which it belongs to or was requested in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the summary defines both paths")]
pub struct WorkspaceLocation {
    pub workspace: PathBuf,
    pub root: PathBuf,
}

/// A rule about the path of a workspace: a real directory, directly in its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum LocationRule {
    #[error("the path is the root itself, not a workspace in it")]
    NotTheRoot,
    #[error("the path is not a direct child of the root")]
    DirectChild,
    #[error("a symbolic link stands between the root and the workspace")]
    NoLinks,
}

/// The reason why a command cannot start in a directory. The checks run right before each start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum CwdReason {
    #[error("it is the root")]
    WorkspaceRoot,
    #[error("it is not a workspace of this root")]
    OutsideWorkspaceRoot,
    #[error("a symbolic link stands on the way")]
    SymlinkEscape,
    #[error("the directory was replaced since the workspace was opened")]
    Replaced,
    #[error("the directory is missing or cannot be read")]
    PathUnreadable,
}

fn names(keys: &[WorkspaceKey]) -> String {
    keys.iter().map(WorkspaceKey::as_str).collect::<Vec<_>>().join(", ")
}

fn changes(count: usize) -> String {
    if count == 1 { "a change".to_owned() } else { format!("{count} changes") }
}

fn holder_text(holder: Option<&str>) -> String {
    holder.map(|holder| format!(" ({holder})")).unwrap_or_default()
}

impl Error {
    /// Converts the error of an identifier: `.` and the empty text are the root itself, `..` is outside.
    pub fn of_identifier(error: InvalidIdentifier, root: &Path) -> Self {
        let (rule, name) = match &error {
            InvalidIdentifier::Empty => (LocationRule::NotTheRoot, "."),
            InvalidIdentifier::Reserved(name) if name == "." => (LocationRule::NotTheRoot, "."),
            InvalidIdentifier::Reserved(_) => (LocationRule::DirectChild, ".."),
            InvalidIdentifier::TooLong(_) => return Self::Identifier(error),
        };
        let location = WorkspaceLocation { workspace: root.join(name), root: root.to_owned() };
        Self::Misplaced { rule, location }
    }

    /// Returns a function that adds the failed operation to a file error.
    pub fn files(doing: impl Into<String>) -> impl FnOnce(carrel_fsroot::Error) -> Self {
        let doing = doing.into();
        |source| Self::Files { doing, source }
    }
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Identifier(_) | Self::NoKeyLeft { .. } | Self::KeptUnnamed { .. } => {
                Code::InvalidIdentifier
            }
            Self::Misplaced { rule: LocationRule::NotTheRoot, .. } => Code::WorkspaceEqualsRoot,
            Self::Misplaced { rule: LocationRule::DirectChild, .. } => Code::WorkspaceOutsideRoot,
            Self::Misplaced { rule: LocationRule::NoLinks, .. } => Code::WorkspaceSymlinkEscape,
            Self::InvalidCwd { .. } => Code::InvalidWorkspaceCwd,
            Self::Occupied { .. } => Code::WorkspaceOccupied,
            Self::ForeignOwner { .. } => Code::WorkspaceForeignOwner,
            Self::ForeignTracker { .. } => Code::WorkspaceForeignTracker,
            Self::NotFound { .. } => Code::WorkspaceNotFound,
            Self::KeptNotFound { .. } | Self::KeptAmbiguous { .. } => Code::KeptWorkNotFound,
            Self::Exists { .. } => Code::AlreadyExists,
            Self::Busy { .. } | Self::Changing { .. } => Code::WorkspaceBusy,
            Self::Frozen { .. } => Code::WorkspaceFrozen,
            Self::ForkOfFork { .. } | Self::TooManyForks { .. } | Self::CopyNotRebased { .. } => {
                Code::ForkRefused
            }
            Self::PromotionInterrupted { .. }
            | Self::BaseGone { .. }
            | Self::BrokenFork { .. }
            | Self::ForkWithoutDirectory { .. } => Code::ForkConflict,
            Self::TryNotFound { .. } => Code::TryNotFound,
            Self::Layers(error) => error.code(),
            Self::Copy(error) => error.code(),
            Self::Changes(error) => error.code(),
            Self::Promote(error) => error.code(),
            Self::Dirty { .. } | Self::ChangedFork { .. } => Code::WorkspaceDirty,
            Self::QuotaExceeded { .. } => Code::QuotaExceeded,
            Self::SchemaTooNew { .. } => Code::SchemaTooNew,
            Self::RecordUnreadable { .. } => Code::RecordUnreadable,
            Self::RootRefused { .. } => Code::RootRefused,
            Self::RootUnsafe { .. } => Code::RootUnsafe,
            Self::Hook(error) => error.code(),
            Self::Files { source, .. } => source.code(),
            Self::Interrupted(_) => Code::Internal,
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Misplaced { location, .. }
            | Self::Occupied { location, .. }
            | Self::ForeignOwner { location, .. }
            | Self::Exists { location, .. }
            | Self::ForeignTracker { location, .. } => location_detail(location),
            Self::InvalidCwd { location, reason } => {
                let mut detail = location_detail(location);
                detail["reason"] = json!(reason);
                detail
            }
            Self::NotFound { name, root } => json!({ "identifier": name, "root": shown(root) }),
            Self::KeptNotFound { name, root } => json!({ "name": name, "root": shown(root) }),
            Self::KeptAmbiguous { name, names } => json!({ "name": name, "names": names }),
            Self::KeptUnnamed { name } => json!({ "name": name }),
            Self::NoKeyLeft { identifier, root } => {
                json!({ "identifier": identifier, "root": shown(root) })
            }
            Self::Busy { key, holder } => json!({ "key": key, "holder": holder }),
            Self::Frozen { key, forks } => json!({ "key": key, "forks": forks }),
            Self::Changing { key } => json!({ "key": key }),
            Self::ForkOfFork { key, base } => json!({ "key": key, "base": base }),
            Self::TooManyForks { key, most } => json!({ "key": key, "most": most }),
            Self::CopyNotRebased { fork } => json!({ "key": fork }),
            Self::PromotionInterrupted { fork, base }
            | Self::BaseGone { fork, base }
            | Self::BrokenFork { fork, base }
            | Self::ForkWithoutDirectory { fork, base } => json!({ "key": fork, "base": base }),
            Self::ChangedFork { fork, base, count } => {
                json!({ "key": fork, "base": base, "changes": count })
            }
            Self::TryNotFound { id, root } => json!({ "try": id, "root": shown(root) }),
            Self::Layers(error) => error.detail(),
            Self::Copy(error) => error.detail(),
            Self::Changes(error) => error.detail(),
            Self::Promote(error) => error.detail(),
            Self::Dirty { key, reasons } => json!({ "key": key, "reasons": reasons }),
            Self::QuotaExceeded { key, used_bytes, .. } => {
                json!({ "key": key, "usage_bytes": used_bytes })
            }
            Self::SchemaTooNew { path, found, supported } => {
                json!({ "path": shown(path), "found": found, "supported": supported })
            }
            Self::RecordUnreadable { path, .. }
            | Self::RootRefused { path, .. }
            | Self::RootUnsafe { path, .. } => json!({ "path": shown(path) }),
            Self::Hook(error) => error.detail(),
            Self::Files { source, .. } => source.detail(),
            Self::Identifier(_) | Self::Interrupted(_) => json!({}),
        }
    }
}

fn location_detail(location: &WorkspaceLocation) -> Value {
    json!({ "workspace": shown(&location.workspace), "root": shown(&location.root) })
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns whether a path was refused because of a link.
pub(crate) fn is_link(error: &carrel_fsroot::Error) -> bool {
    error.problem() == Problem::Link
}
