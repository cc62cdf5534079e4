//! Why a policy file cannot be used.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use carrel_domain::{Code, Coded};

use crate::diagnostic::Diagnostic;
use crate::environment::CARREL_POLICY;
use crate::paths::PathError;
use crate::policy::place::PolicyOrigin;

/// Keeps one error message readable when a whole file is wrong.
const MAX_LISTED: usize = 10;

/// Why a policy file cannot be used. Carrel runs no command then.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The variable that names the file holds nothing.
    #[error(
        "the variable {CARREL_POLICY} is set but empty; set it to the policy file, or unset it"
    )]
    EmptyVariable,
    /// The variable that names the file holds no path.
    #[error("the variable {CARREL_POLICY} cannot be used")]
    Variable {
        /// What is wrong with it.
        #[source]
        source: PathError,
    },
    /// The variable that names the file holds a relative path.
    #[error(
        "the variable {CARREL_POLICY} holds the relative path {}; write the absolute path",
        value.display()
    )]
    RelativeVariable {
        /// What it holds.
        value: PathBuf,
    },
    /// The file does not exist or cannot be read.
    #[error("could not read the policy file {} ({origin})", file.display())]
    Unreadable {
        /// The file as it was named.
        file: PathBuf,
        /// Who named it.
        origin: PolicyOrigin,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Something other than a file is at the path.
    #[error("the policy file {} ({origin}) is not a regular file", file.display())]
    NotAFile {
        /// The file as it was named.
        file: PathBuf,
        /// Who named it.
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
        /// Who owns it.
        owner: u32,
        /// Who runs Carrel.
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
        /// Its permissions.
        mode: u32,
    },
    /// The file can be read and what it says is wrong.
    #[error("{}", list(file, problems))]
    Faulty {
        /// The file as it was named.
        file: PathBuf,
        /// Everything that is wrong, in the order of the file; never empty.
        problems: Vec<Diagnostic>,
    },
}

impl PolicyError {
    /// Returns what is wrong inside the file; nothing when it could not be read.
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
