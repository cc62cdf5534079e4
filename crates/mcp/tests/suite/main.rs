//! The transports as clients see them: real sockets and pipes, raw bytes, a made-up server.
//!
//! - `http`, `test_server`: a small HTTP client that shows every byte, and a server on a free port.
//! - `access_control`: host, origin and token.
//! - `sessions`: the revisions with a handshake.
//! - `streams`: event streams, resumption, progress, cancellation.
//! - `stateless`: the revision 2026-07-28.
//! - `hostile`: half requests, garbage, floods, clients that stop reading.
//! - `shutdown`: the end of a server with everything open.
//! - `stdio`: the same promises over lines.

#[path = "../fixture/mod.rs"]
mod fixture;

mod access_control;
mod hostile;
mod http;
mod sessions;
mod shutdown;
mod stateless;
mod stdio;
mod streams;
mod test_server;
