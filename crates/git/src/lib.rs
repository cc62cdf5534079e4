//! Git as a closed list of operations, for callers that are not trusted with a command line.
//!
//! An agent may reach remotes with credentials that it must not see, in repositories whose
//! configuration it can write. Two attacks follow from that. A flag or an address can name a program or
//! another host (`--upload-pack=…`, `ext::…`, `-c core.sshCommand=…`). And the repository itself can
//! configure programs that git starts: hooks, filters, merge drivers, credential helpers.
//!
//! This crate decides and builds; it starts nothing. `tools` runs the result in the sandbox:
//!
//! ```text
//! arguments ──► GitCommandLine::check     flags by table, paths in the workspace; local: any argument
//!           ──► WorkTree::find         the repository, and the configurations to look through
//!           ──► RepositoryConfig       what the repository configures: remotes, drivers, filters
//!           ──► RemoteUrl              https, loopback or a directory of the workspace, nothing else
//!           ──► RemoteAccess           network, protocols, credentials behind a descriptor
//!           ──► GitEnvironment         variables and settings that override the repository's
//! ```
//!
//! Flag tables exist for operations that use the network or credentials and for operations that
//! promise to change nothing. Operations on the local repository (`add`, `commit`, `checkout`, …) take any
//! argument: they run in the sandbox without network and credentials, where the same caller could run
//! `git` as a plain command.
#![forbid(unsafe_code)]

mod allowed_flags;
mod argument_list;
mod command_line;
mod credentials;
mod environment;
mod flag_parser;
mod operand;
mod operation;
mod output;
mod remote_access;
mod remote_url;
mod repository_config;
mod status;
mod work_tree;

pub use argument_list::ArgumentList;
pub use command_line::{GitCommandLine, OutputShape, RemoteSelector};
pub use credentials::{Credential, CredentialSource, EnvironmentCredentials, InheritedFile};
pub use environment::GitEnvironment;
pub use operand::{PathResolver, has_control};
pub use operation::{GitOperation, ReadOnlyOperation};
pub use output::{complete_records, new_commit, split_shortstat};
pub use remote_access::{
    CloneTarget, CredentialLookup, RemoteAccess, default_remote, remote_urls, unknown_remote,
};
pub use remote_url::RemoteUrl;
pub use repository_config::{RepositoryConfig, unreadable_config};
pub use status::{StatusEntry, StatusFacts};
pub use work_tree::{WorkTree, check_clone_destination, is_directory};
