//! The service over HTTP.
//!
//! [`auth`] says who asks and what they may do. The routes take a request apart, ask the service, and
//! put the answer together; none of them implements anything. What needs the directory of a workspace that
//! lies elsewhere is passed on to a worker there, which serves the same routes to other servers.
#![forbid(unsafe_code)]

mod audit;
pub mod auth;
mod conductor_api;
mod event_stream;
mod extract;
mod idempotency;
pub mod limits;
pub mod openapi;
mod request_span;
mod response;
mod routes;
mod serve;
mod state;
mod worker_api;
mod worker_proxy;

pub use conductor_api::{ConductorApi, ConductorOptions, serve_conductor};
pub use serve::serve;
pub use state::{Api, ApiOptions, AuthMode, WorkerApiOptions};
pub use worker_api::{WorkerHealth, serve_worker};
pub use worker_proxy::{WorkerProxy, WorkerProxyOptions};
