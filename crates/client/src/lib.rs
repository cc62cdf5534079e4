//! Client of the REST API, and the HTTP client that other crates share.
//!
//! [`HttpClient`] pools connections. [`WorkspaceClient`] has a method for each route, with the types of
//! `carrel-wire`; [`follow_task`](WorkspaceClient::follow_task) returns the events of a task across broken
//! connections. [`agent_reply`] turns results into the JSON that agents expect.
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
