//! The stable codes of the errors, for every interface.

use carrel_domain::{Code, Coded};
use serde_json::{Value, json};

use crate::copy::CopyError;
use crate::layers::LayersError;
use crate::limits::ChangesError;
use crate::promote::PromoteError;

impl Coded for LayersError {
    fn code(&self) -> Code {
        match self {
            Self::Files(error) => error.code(),
            Self::OtherFileSystem => Code::CrossesMount,
            Self::Incomplete => Code::Io,
        }
    }
}

impl Coded for ChangesError {
    fn code(&self) -> Code {
        match self {
            Self::Files(error) => error.code(),
            Self::TooManyEntries { .. } | Self::TooDeep { .. } => Code::TooLarge,
            Self::Unsupported { .. } => Code::Io,
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Files(error) => error.detail(),
            Self::TooDeep { path } | Self::Unsupported { path, .. } => {
                json!({ "path": path.display().to_string() })
            }
            Self::TooManyEntries { .. } => json!({}),
        }
    }
}

impl Coded for PromoteError {
    fn code(&self) -> Code {
        match self {
            Self::Changes(error) => error.code(),
            Self::Drift { .. } | Self::Unfinished | Self::OtherDirectories => Code::ForkConflict,
            Self::OtherFileSystem => Code::CrossesMount,
            Self::Prepare(error) | Self::Step { source: error, .. } => error.code(),
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Drift { paths } => {
                let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
                json!({ "paths": paths })
            }
            Self::Step { path, .. } => json!({ "path": path.display().to_string() }),
            Self::Changes(error) => error.detail(),
            Self::Unfinished
            | Self::OtherDirectories
            | Self::OtherFileSystem
            | Self::Prepare(_) => json!({}),
        }
    }
}

impl Coded for CopyError {
    fn code(&self) -> Code {
        match self {
            Self::Entry { source, .. } => source.code(),
            Self::TooManyEntries { .. } => Code::TooLarge,
            Self::Cancelled => Code::Cancelled,
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Entry { path, .. } => json!({ "path": path.display().to_string() }),
            Self::TooManyEntries { .. } | Self::Cancelled => json!({}),
        }
    }
}
