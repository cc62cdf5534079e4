//! The service from the outside.
//!
//! [`HttpClient`] carries requests to servers and keeps connections open between them. It follows no
//! redirect, so that what is sent to one server never reaches another. A [`WorkspaceClient`] speaks the
//! service's API over it with types; [`follow`](WorkspaceClient::follow_task) reads the events of a task
//! across broken connections, each once and in order. [`agent_reply`] says what came out in the words
//! that agents know.
#![forbid(unsafe_code)]

mod agent_reply;
mod body;
mod client;
mod commands;
mod conductor;
mod error;
mod event_follower;
mod files;
mod github;
mod http_client;
mod limits;
mod server_url;
mod sse;
mod tasks;
mod workspaces;

pub use agent_reply::agent_reply;
pub use body::{Body, empty_body, full_body, read_all};
pub use client::{Credentials, WorkspaceClient};
pub use error::{ApiError, ClientError};
pub use event_follower::FollowOptions;
pub use http_client::{HttpClient, SendError};
pub use limits::*;
pub use server_url::{InvalidServerUrl, ServerUrl, percent_encode};
