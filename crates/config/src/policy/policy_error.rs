//! Errors of loading a policy file.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use carrel_domain::{Code, Coded};

use crate::diagnostic::Diagnostic;
use crate::environment::CARREL_POLICY;
use crate::path_expansion::PathError;
use crate::policy::policy_location::PolicyOrigin;

/// Keeps one error message readable when a whole file is wrong.
const MAX_LISTED: usize = 10;

/// A policy file that cannot be used. No command runs then.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// `CARREL_POLICY` is set to nothing.
    #[error(
        "the variable {CARREL_POLICY} is set but empty; set it to the policy file, or unset it"
    )]
    EmptyVariable,
    /// `CARREL_POLICY` does not hold a path.
    #[error("the variable {CARREL_POLICY} cannot be used")]
    Variable {
        /// The error in the path.
        #[source]
        source: PathError,
    },
    /// `CARREL_POLICY` holds a relative path.
    #[error(
        "the variable {CARREL_POLICY} holds the relative path {}; write the absolute path",
        value.display()
    )]
    RelativeVariable {
        /// The variable's value.
        value: PathBuf,
    },
    /// The file does not exist or cannot be read.
    #[error("could not read the policy file {} ({origin})", file.display())]
    Unreadable {
        /// The path as given.
        file: PathBuf,
        /// The source of the path.
        origin: PolicyOrigin,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// The path leads to a directory, a FIFO or another object that is not a regular file.
    #[error("the policy file {} ({origin}) is not a regular file", file.display())]
    NotAFile {
        /// The path as given.
        file: PathBuf,
        /// The source of the path.
        origin: PolicyOrigin,
    },
    /// Another user owns the file or its directory.
    #[error(
        "the policy is not safe from other users: {} belongs to user {owner}, and must belong to root or to user {user}, who runs Carrel; after a look at what it says, run `chown {user} {}`",
        path.display(), path.display()
    )]
    ForeignOwner {
        /// The file or directory.
        path: PathBuf,
        /// The user id of the owner.
        owner: u32,
        /// The user id that Carrel runs as.
        user: u32,
    },
    /// Other users may write to the file or its directory.
    #[error(
        "the policy is not safe from other users: {} has mode {mode:04o}, which lets its group or everyone change it; after a look at what it says, run `chmod go-w {}`",
        path.display(), path.display()
    )]
    WritableByOthers {
        /// The file or directory.
        path: PathBuf,
        /// The permission bits.
        mode: u32,
    },
    /// The file could be read, and its content has errors.
    #[error("{}", list(file, problems))]
    Faulty {
        /// The path as given.
        file: PathBuf,
        /// Every error, in the order of the file; never empty.
        problems: Vec<Diagnostic>,
    },
}

impl PolicyError {
    /// Returns the errors in the file's content; empty if it could not be read.
    pub fn problems(&self) -> &[Diagnostic] {
        match self {
            Self::Faulty { problems, .. } => problems,
            Self::EmptyVariable
            | Self::Variable { .. }
            | Self::RelativeVariable { .. }
            | Self::Unreadable { .. }
            | Self::NotAFile { .. }
            | Self::ForeignOwner { .. }
            | Self::WritableByOthers { .. } => &[],
        }
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

fn list(file: &Path, problems: &[Diagnostic]) -> String {
    let listed = problems.iter().take(MAX_LISTED);
    let lines: Vec<String> =
        listed.map(|diagnostic| diagnostic.located(file).to_string()).collect();
    let mut text = lines.join("; ");
    if problems.len() > MAX_LISTED {
        let more = problems.len() - MAX_LISTED;
        write!(text, " (and {more} more)").expect("writing to a string cannot fail");
    }
    text
}
