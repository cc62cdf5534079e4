//! Errors of loading a policy file.

use std::io;
use std::path::PathBuf;

use carrel_domain::{Code, Coded};

use crate::diagnostic::{Diagnostic, one_line};
use crate::environment::CARREL_POLICY;
use crate::path_expansion::PathError;
use crate::policy::policy_location::PolicyOrigin;

/// A policy file that cannot be used. No command runs then.
#[expect(missing_docs, reason = "the messages say what each variant and field is")]
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error(
        "the variable {CARREL_POLICY} is set but empty; set it to the policy file, or unset it"
    )]
    EmptyVariable,
    #[error("the variable {CARREL_POLICY} cannot be used")]
    Variable {
        #[source]
        source: PathError,
    },
    #[error(
        "the variable {CARREL_POLICY} holds the relative path {}; write the absolute path",
        value.display()
    )]
    RelativeVariable { value: PathBuf },
    /// The file does not exist or cannot be read.
    #[error("could not read the policy file {} ({origin})", file.display())]
    Unreadable {
        file: PathBuf,
        origin: PolicyOrigin,
        #[source]
        source: io::Error,
    },
    /// The path leads to a directory, a FIFO or another object that is not a regular file.
    #[error("the policy file {} ({origin}) is not a regular file", file.display())]
    NotAFile { file: PathBuf, origin: PolicyOrigin },
    #[error(
        "the policy is not safe from other users: {} belongs to user {owner}, and must belong to root or to user {user}, who runs Carrel; after a look at what it says, run `chown {user} {}`",
        path.display(), path.display()
    )]
    ForeignOwner { path: PathBuf, owner: u32, user: u32 },
    #[error(
        "the policy is not safe from other users: {} has mode {mode:04o}, which lets its group or everyone change it; after a look at what it says, run `chmod go-w {}`",
        path.display(), path.display()
    )]
    WritableByOthers { path: PathBuf, mode: u32 },
    /// The file could be read, and its content has errors.
    #[error("{}", one_line(file, problems.iter()))]
    Faulty {
        file: PathBuf,
        /// Every error, in the order of the file; never empty.
        problems: Vec<Diagnostic>,
    },
}

impl PolicyError {
    /// Returns the errors in the file's content; empty if it could not be read.
    pub fn problems(&self) -> &[Diagnostic] {
        if let Self::Faulty { problems, .. } = self { problems } else { &[] }
    }
}

impl Coded for PolicyError {
    fn code(&self) -> Code {
        match self {
            Self::EmptyVariable
            | Self::Variable { .. }
            | Self::RelativeVariable { .. }
            | Self::Unreadable { .. }
            | Self::NotAFile { .. } => Code::PolicyMissing,
            Self::ForeignOwner { .. } | Self::WritableByOthers { .. } => Code::PolicyUnsafe,
            Self::Faulty { .. } => Code::PolicyInvalid,
        }
    }
}
