//! The transports as clients see them: real sockets and pipes, raw bytes, a made-up server.
//!
//! - `http`, `server`: a small HTTP client that shows everything, and a server on a free port.
//! - `gate`: who is let in at all.
//! - `sessions`: the revisions with a handshake.
//! - `streams`: event streams, resumption, progress, cancellation.
//! - `stateless`: the revision 2026-07-28.
//! - `hostile`: half requests, garbage, floods, clients that stop reading.
//! - `stopping`: the end of a server with everything open.
//! - `stdio`: the same promises over lines.

#[path = "../fixture/mod.rs"]
mod fixture;

mod gate;
mod hostile;
mod http;
mod server;
mod sessions;
mod stateless;
mod stdio;
mod stopping;
mod streams;
