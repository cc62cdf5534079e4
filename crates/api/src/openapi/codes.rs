//! Error codes that several routes share, grouped by the layer that raises them.

use carrel_domain::Code;

pub(crate) const STORE: &[Code] =
    &[Code::StoreUnavailable, Code::DiskFull, Code::RecordUnreadable, Code::Internal];

pub(crate) const WORKSPACES: &[Code] = &[
    Code::WorkspaceNotFound,
    Code::WorkspaceBusy,
    Code::WorkspaceFrozen,
    Code::WorkspaceOccupied,
    Code::WorkspaceForeignOwner,
    Code::WorkspaceSymlinkEscape,
    Code::RootUnsafe,
    Code::SchemaTooNew,
    Code::SandboxUnavailable,
    Code::Overloaded,
    Code::WorkerUnreachable,
    Code::Contended,
    Code::Io,
];

pub(crate) const FILES: &[Code] = &[
    Code::SandboxViolation,
    Code::SensitivePath,
    Code::InvalidPath,
    Code::NotFound,
    Code::AlreadyExists,
    Code::NotADirectory,
    Code::IsADirectory,
    Code::NotARegularFile,
    Code::NameTooLong,
    Code::LinkLoop,
    Code::TooLarge,
    Code::CrossesMount,
    Code::PermissionDenied,
    Code::DiskFull,
    Code::QuotaExceeded,
    Code::BinaryFile,
    Code::MaskedWrite,
    Code::RunsLater,
    Code::InvalidArguments,
    Code::Timeout,
    Code::Cancelled,
];

pub(crate) const SNAPSHOTS: &[Code] = &[
    Code::SnapshotNotFound,
    Code::SnapshotDamaged,
    Code::ReadOnly,
    Code::Contended,
    Code::SchemaTooNew,
];

pub(crate) const FORKS: &[Code] =
    &[Code::ForkRefused, Code::ForkConflict, Code::SandboxUnavailable];

pub(crate) const TRIES: &[Code] =
    &[Code::TryNotFound, Code::PatchInvalid, Code::ProjectNotDetected, Code::LanguageNotChosen];

pub(crate) const SEARCH: &[Code] = &[Code::InvalidPattern];

pub(crate) const COMMANDS: &[Code] = &[
    Code::CommandRefused,
    Code::NetworkRefused,
    Code::GitRefused,
    Code::InvalidWorkspaceCwd,
    Code::SpawnFailed,
    Code::TooManyJobs,
];

pub(crate) const TOOLS: &[Code] = &[
    Code::UnknownTool,
    Code::ReadOnly,
    Code::NotRead,
    Code::ChangedSinceRead,
    Code::DirectoryNotEmpty,
    Code::InvalidRange,
    Code::InvalidCursor,
    Code::JobNotFound,
    Code::EditFindNotFound,
    Code::EditMultiMatch,
    Code::EditFindTooLarge,
    Code::EditReplaceTooLarge,
    Code::EditBatchTooLarge,
    Code::EditLineRangeTooLarge,
    Code::EditOverlap,
    Code::EditDuplicatesContext,
    Code::EditNoChange,
    Code::PatchInvalid,
    Code::PatchFailed,
    Code::ProjectNotDetected,
    Code::LanguageNotChosen,
    Code::ScriptNotFound,
    Code::UnknownWorkspace,
    Code::SnapshotNotFound,
    Code::SnapshotDamaged,
    Code::CheckpointNotFound,
    Code::UndoConflict,
    Code::KernelUnsupported,
];
