//! The service from the outside.
//!
//! [`Connections`] carries requests to servers and keeps connections open between them. It follows no
//! redirect, so that what is sent to one server never reaches another. A [`WorkspaceClient`] speaks the
//! service's API over it with types; [`follow`](WorkspaceClient::follow_task) reads the events of a task
//! across broken connections, each once and in order. [`agent_answer`] says what came out in the words
//! that agents know.
#![forbid(unsafe_code)]

mod agent;
mod answers;
mod body;
mod client;
mod commands;
mod conductor;
mod connection;
mod error;
mod files;
mod follow;
mod frames;
mod github;
mod limits;
mod server;
mod tasks;
mod workspaces;

pub use agent::agent_answer;
pub use answers::{
    Accepted, CancelReply, CommandReply, Directory, DirectoryEntry, FileContent, Matches,
    MatchingLine, NewWorkspace, Repository, RepositoryList, Submission, Task, TaskList, Usage,
    Workspace, WorkspaceList, Written,
};
pub use body::{Body, empty, read_all, whole};
pub use client::{Credentials, WorkspaceClient};
pub use commands::{Exec, Git};
pub use connection::{Connections, SendError};
pub use error::{ClientError, Refusal};
pub use files::Search;
pub use follow::{FollowOptions, TaskEvent, Told};
pub use github::RepositoryQuery;
pub use limits::*;
pub use server::{InvalidServer, Server, piece};
pub use tasks::TaskQuery;
