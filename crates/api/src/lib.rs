//! The service over HTTP.
//!
//! [`auth`] says who asks and what they may do. It knows nothing of a web framework: its functions
//! take header values and the current time, and a route that wants an answer calls them.
#![forbid(unsafe_code)]

pub mod auth;
