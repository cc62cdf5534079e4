//! The transports as clients see them: real sockets and pipes, raw bytes, a made-up server.
//!
//! - `http`, `test_server`: a small HTTP client that shows every byte, and a server on a free port.
//! - `fixture`: the server's handler, with tools for these tests.
//! - `access_control`: host, origin and token.
//! - `sessions`: the revisions with a handshake.
//! - `streams`: event streams, resumption, progress, cancellation.
//! - `stateless`: the revision 2026-07-28.
//! - `direct`: the short way of plain calls against the way through the SDK, byte by byte.
//! - `hostile`: half requests, garbage, floods, clients that stop reading.
//! - `shutdown`: the end of a server with everything open.
//! - `stdio`: the same promises over lines.

mod access_control;
mod direct;
mod fixture;
mod hostile;
mod http;
mod sessions;
mod shutdown;
mod stateless;
mod stdio;
mod streams;
mod test_server;
