//! HTTP serving that the API and the Model Context Protocol have in common.
//!
//! [`HttpServer`] accepts connections from a listener, serves an axum router on each and shuts them
//! down within a deadline. A peer cannot hold resources by doing nothing: the number of connections
//! is bounded, a request head must arrive in time, and a response that the peer does not read fails
//! after a while. [`sse`] encodes server-sent events and the headers of their response.
//! [`AllowedHosts`] decides which hosts and origins requests may carry, and [`TrustedProxies`] whose
//! account of a forwarded request counts.
//!
//! The crate knows nothing of routes, tokens or sessions; its two users bring those with their
//! routers.
#![forbid(unsafe_code)]

mod allowed_hosts;
mod inline_wake;
mod lingering_close;
mod server;
pub mod sse;
mod stall_timeout;
mod trusted_proxies;

pub use allowed_hosts::{AllowedHosts, HostError, HostName, Origin, requested_host};
pub use server::{ConnectionLimits, HttpServer};
pub use trusted_proxies::{AddressRange, ConnectionEnds, Forwarded, TrustedProxies};
