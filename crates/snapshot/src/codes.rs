//! The stable codes of the errors, for every interface.

use std::io::ErrorKind;

use carrel_domain::{Code, Coded};
use serde_json::{Value, json};

use crate::compare::CompareError;
use crate::create::CreateError;
use crate::error::StorageError;
use crate::rebase::RebaseError;
use crate::restore::RestoreError;
use crate::scan_options::ScanError;
use crate::store::FindError;
use crate::undo::UndoError;

impl Coded for StorageError {
    fn code(&self) -> Code {
        match self {
            Self::Busy => Code::Contended,
            Self::Io { source, .. } => match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Code::DiskFull,
                _ => Code::Io,
            },
            Self::Directory(error) => error.code(),
            Self::Damaged { .. } | Self::DamagedRecord { .. } => Code::SnapshotDamaged,
            Self::NewerVersion { .. } => Code::SchemaTooNew,
        }
    }
}

impl Coded for FindError {
    fn code(&self) -> Code {
        match self {
            Self::Name(_) => Code::InvalidArguments,
            Self::Unknown { .. } => Code::SnapshotNotFound,
            Self::Storage(error) => error.code(),
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Unknown { asked, known } => json!({ "snapshot": asked, "known": known }),
            Self::Name(_) | Self::Storage(_) => json!({}),
        }
    }
}

impl Coded for ScanError {
    fn code(&self) -> Code {
        match self {
            Self::Workspace(error) => error.code(),
            Self::TooManyEntries => Code::TooLarge,
            Self::Storage(error) => error.code(),
        }
    }
}

impl Coded for CreateError {
    fn code(&self) -> Code {
        match self {
            Self::NameTaken { .. } => Code::AlreadyExists,
            Self::Scan(error) => error.code(),
            Self::Storage(error) => error.code(),
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::NameTaken { name } => json!({ "snapshot": name }),
            Self::Scan(_) | Self::Storage(_) => json!({}),
        }
    }
}

impl Coded for CompareError {
    fn code(&self) -> Code {
        match self {
            Self::Find(error) => error.code(),
            Self::Scan(error) => error.code(),
            Self::Storage(error) => error.code(),
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Find(error) => error.detail(),
            Self::Scan(_) | Self::Storage(_) => json!({}),
        }
    }
}

impl Coded for RestoreError {
    fn code(&self) -> Code {
        match self {
            Self::Find(error) => error.code(),
            Self::Path { .. } => Code::InvalidPath,
            Self::UnknownPath { .. } => Code::NotFound,
            Self::Changed { .. } | Self::ChangedMeanwhile { .. } => Code::Contended,
            Self::Scan(error) => error.code(),
            Self::Write { source, .. } => source.code(),
            Self::Storage(error) => error.code(),
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Find(error) => error.detail(),
            Self::Path { path } | Self::UnknownPath { path } | Self::Changed { path } => {
                json!({ "path": path.display().to_string() })
            }
            Self::Write { path, before, .. } | Self::ChangedMeanwhile { path, before, .. } => {
                json!({ "path": path.display().to_string(), "before": before.to_string() })
            }
            Self::Scan(_) | Self::Storage(_) => json!({}),
        }
    }
}

impl Coded for RebaseError {
    fn code(&self) -> Code {
        match self {
            Self::Find(error) => error.code(),
            Self::NoOrigin { .. } => Code::ForkRefused,
            Self::Conflicts { .. } => Code::ForkConflict,
            Self::Scan(error) => error.code(),
            Self::Write { source, .. } => source.code(),
            Self::Storage(error) => error.code(),
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Find(error) => error.detail(),
            Self::NoOrigin { id } => json!({ "snapshot": id.to_string() }),
            Self::Conflicts { id, paths } => {
                let paths: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
                json!({ "snapshot": id.to_string(), "paths": paths })
            }
            Self::Write { path, .. } => json!({ "path": path.display().to_string() }),
            Self::Scan(_) | Self::Storage(_) => json!({}),
        }
    }
}

impl Coded for UndoError {
    fn code(&self) -> Code {
        match self {
            Self::Path { .. } => Code::InvalidPath,
            Self::Unknown { .. } => Code::CheckpointNotFound,
            Self::UnknownPath { .. } => Code::NotFound,
            Self::Write { source, .. } => source.code(),
            Self::Storage(error) => error.code(),
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Path { path } | Self::UnknownPath { path, .. } | Self::Write { path, .. } => {
                json!({ "path": path.display().to_string() })
            }
            Self::Unknown { asked, newest } => {
                json!({ "checkpoint": asked.to_string(), "newest": newest.map(|id| id.to_string()) })
            }
            Self::Storage(_) => json!({}),
        }
    }
}
