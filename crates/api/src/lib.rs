//! The service over HTTP.
//!
//! [`auth`] says who asks and what they may do. The routes take a request apart, ask the service, and
//! put the answer together; none of them implements anything. What needs the directory of a workspace that
//! lies elsewhere is passed on to a worker there, which serves the same routes to other servers.
#![forbid(unsafe_code)]

mod answer;
pub mod auth;
mod conductor;
mod extract;
mod forward;
pub mod limits;
mod observe;
pub mod openapi;
mod others;
mod repeat;
mod routes;
mod serve;
mod state;
mod streams;
mod trace;
mod worker;

pub use conductor::{ConductorApi, ConductorOptions, serve_conductor};
pub use others::{Others, OthersOptions};
pub use serve::serve;
pub use state::{Api, ApiOptions, Entrance, WorkerApiOptions};
pub use worker::{Health, serve_worker};
