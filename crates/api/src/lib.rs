//! The REST API.
//!
//! [`auth`] verifies tokens and decides what callers may do. The routes extract the request, call the service
//! or a tool, and build the reply; none implements an operation. [`openapi`] generates the document from the
//! same table of routes that builds the router. `idempotency` replays the replies of repeated mutations,
//! `audit` counts and logs requests, `host_check` refuses foreign names and pages.
//!
//! There are three servers. [`serve`] is the public API. [`serve_worker`] offers the routes that need a
//! directory to other servers of the installation; the public API forwards requests there when a workspace is
//! on another volume (`worker_proxy`). [`serve_conductor`] is the API of a conductor.
#![forbid(unsafe_code)]

mod audit;
pub mod auth;
mod conductor_api;
mod event_stream;
mod extract;
mod host_check;
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
pub use host_check::HostRules;
pub use serve::serve;
pub use state::{Api, ApiOptions, AuthMode};
pub use worker_api::{WorkerHealth, serve_worker};
pub use worker_proxy::{WorkerProxy, WorkerProxyOptions};
