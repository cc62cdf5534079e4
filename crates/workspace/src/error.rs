//! Why something about a workspace was refused or failed.

use std::path::{Path, PathBuf};

use carrel_domain::{ByteSize, Code, Coded, Identifier, InvalidIdentifier};
use carrel_fsroot::{FileKind, Problem};
use serde_json::{Value, json};

use crate::hooks::HookError;

/// Why an operation on a workspace did not happen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text cannot name a workspace.
    #[error(transparent)]
    Identifier(#[from] InvalidIdentifier),
    /// The path is not one where a workspace can be.
    #[error("{rule}: {}", location.workspace.display())]
    Misplaced {
        /// The rule that the path breaks.
        rule: LocationRule,
        /// Which workspace, and below which root.
        location: WorkspaceLocation,
    },
    /// A command may not start there.
    #[error("a command cannot start in {}: {reason}", location.workspace.display())]
    InvalidCwd {
        /// Why not.
        reason: CwdReason,
        /// Which workspace, and below which root.
        location: WorkspaceLocation,
    },
    /// Something else stands where the workspace belongs.
    #[error("a {kind} stands where the workspace belongs: {}", location.workspace.display())]
    Occupied {
        /// What it is.
        kind: FileKind,
        /// Which workspace, and below which root.
        location: WorkspaceLocation,
    },
    /// The directory belongs to somebody else.
    #[error("the directory belongs to user {owner}: {}", location.workspace.display())]
    ForeignOwner {
        /// The user number of the owner.
        owner: u32,
        /// Which workspace, and below which root.
        location: WorkspaceLocation,
    },
    /// It is for an issue of the same name in another tracker.
    #[error(
        "{} is the workspace of an issue of the same name in another tracker ({there}); give this one \
         a workspace.root of its own, or remove that workspace with `carrel workspace rm` if it is of no use any more",
        location.workspace.display()
    )]
    ForeignTracker {
        /// Whose it is, in words.
        there: String,
        /// Which workspace, and below which root.
        location: WorkspaceLocation,
    },
    /// There is no such workspace.
    #[error("no workspace {name:?} in {}", root.display())]
    NotFound {
        /// The identifier or path that was asked for.
        name: String,
        /// Where it was looked for.
        root: PathBuf,
    },
    /// Every key the identifier could have is held by others.
    #[error("every key for {:?} is held by others in {}", identifier.as_str(), root.display())]
    NoKeyLeft {
        /// What a key was wanted for.
        identifier: Identifier,
        /// The root whose record holds the keys.
        root: PathBuf,
    },
    /// Another process holds the workspace.
    #[error("workspace {key} is in use{}", holder_text(holder.as_deref()))]
    Busy {
        /// The key of the workspace.
        key: String,
        /// What the holder wrote about itself.
        holder: Option<String>,
    },
    /// The workspace has work that is saved nowhere else.
    #[error("workspace {key} has unsaved work: {}", reasons.join(", "))]
    Dirty {
        /// The key of the workspace.
        key: String,
        /// What would be lost.
        reasons: Vec<String>,
    },
    /// The workspace has used up its limit.
    #[error("workspace {key} uses {used} of {limit}")]
    QuotaExceeded {
        /// The key of the workspace.
        key: String,
        /// What is used, as a person reads it.
        used: String,
        /// The limit, as a person reads it.
        limit: String,
        /// What is used, in bytes.
        used_bytes: ByteSize,
    },
    /// The records were written by a newer version.
    #[error("the records in {} have schema {found}; this version reads up to {supported}", path.display())]
    SchemaTooNew {
        /// The record.
        path: PathBuf,
        /// The schema it has.
        found: u64,
        /// The newest schema known here.
        supported: u64,
    },
    /// A record is damaged.
    #[error("the record {} cannot be read: {reason}", path.display())]
    RecordUnreadable {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The directory cannot be a root.
    #[error("{} cannot hold workspaces: {reason}", path.display())]
    RootRefused {
        /// The directory.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Others could change what is in the root.
    #[error("{} is not safe as a root: {reason}", path.display())]
    RootUnsafe {
        /// The directory.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A hook failed.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// A file operation failed.
    #[error("{doing}")]
    Files {
        /// What was being done.
        doing: String,
        /// Why it failed.
        #[source]
        source: carrel_fsroot::Error,
    },
    /// A background task ended without an answer.
    #[error("an internal task ended early: {0}")]
    Interrupted(String),
}

/// A workspace and the root it should lie in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceLocation {
    /// The path of the workspace.
    pub workspace: PathBuf,
    /// The path of the root.
    pub root: PathBuf,
}

/// The rules about where a workspace lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationRule {
    /// It is not the root itself.
    #[error("the path is the root itself, not a workspace in it")]
    NotTheRoot,
    /// It is a direct child of the root.
    #[error("the path is not a direct child of the root")]
    DirectChild,
    /// It is reached without links.
    #[error("a symbolic link stands between the root and the workspace")]
    NoLinks,
}

/// Why a command cannot start in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CwdReason {
    /// It is the root.
    #[error("it is the root")]
    WorkspaceRoot,
    /// It is elsewhere.
    #[error("it is not a workspace of this root")]
    OutsideWorkspaceRoot,
    /// A link stands on the way.
    #[error("a symbolic link stands on the way")]
    SymlinkEscape,
    /// Another directory has taken its place.
    #[error("the directory was replaced since the workspace was opened")]
    Replaced,
    /// It is gone or cannot be read.
    #[error("the directory is missing or cannot be read")]
    PathUnreadable,
}

impl CwdReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::WorkspaceRoot => "workspace_root",
            Self::OutsideWorkspaceRoot => "outside_workspace_root",
            Self::SymlinkEscape => "symlink_escape",
            Self::Replaced => "replaced",
            Self::PathUnreadable => "path_unreadable",
        }
    }
}

fn holder_text(holder: Option<&str>) -> String {
    holder.map(|holder| format!(" ({holder})")).unwrap_or_default()
}

impl Error {
    /// Says why a text cannot name a workspace of a root: `.` and the empty text are
    /// the root itself, and `..` is outside.
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

    /// Wraps a file error with what was being done.
    pub fn files(doing: impl Into<String>) -> impl FnOnce(carrel_fsroot::Error) -> Self {
        let doing = doing.into();
        |source| Self::Files { doing, source }
    }
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Identifier(_) | Self::NoKeyLeft { .. } => Code::InvalidIdentifier,
            Self::Misplaced { rule: LocationRule::NotTheRoot, .. } => Code::WorkspaceEqualsRoot,
            Self::Misplaced { rule: LocationRule::DirectChild, .. } => Code::WorkspaceOutsideRoot,
            Self::Misplaced { rule: LocationRule::NoLinks, .. } => Code::WorkspaceSymlinkEscape,
            Self::InvalidCwd { .. } => Code::InvalidWorkspaceCwd,
            Self::Occupied { .. } => Code::WorkspaceOccupied,
            Self::ForeignOwner { .. } => Code::WorkspaceForeignOwner,
            Self::ForeignTracker { .. } => Code::WorkspaceForeignTracker,
            Self::NotFound { .. } => Code::WorkspaceNotFound,
            Self::Busy { .. } => Code::WorkspaceBusy,
            Self::Dirty { .. } => Code::WorkspaceDirty,
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
            | Self::ForeignTracker { location, .. } => location_detail(location),
            Self::InvalidCwd { location, reason } => {
                let mut detail = location_detail(location);
                detail["reason"] = reason.as_str().into();
                detail
            }
            Self::NotFound { name, root } => json!({ "identifier": name, "root": shown(root) }),
            Self::NoKeyLeft { identifier, root } => {
                json!({ "identifier": identifier, "root": shown(root) })
            }
            Self::Busy { key, holder } => json!({ "key": key, "holder": holder }),
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

/// Tells whether a file error says that a link stands in the way.
pub(crate) fn is_link(error: &carrel_fsroot::Error) -> bool {
    error.problem() == Problem::Link
}
