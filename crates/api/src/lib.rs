//! The service over HTTP.
//!
//! [`auth`] says who asks and what they may do. The routes take a request apart, ask the service, and
//! put the answer together; none of them implements anything.
#![forbid(unsafe_code)]

mod answer;
pub mod auth;
mod extract;
pub mod limits;
mod observe;
pub mod openapi;
mod repeat;
mod routes;
mod serve;
mod state;
mod streams;

pub use serve::serve;
pub use state::{Api, ApiOptions};
