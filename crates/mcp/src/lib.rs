//! The Model Context Protocol over stdio and over HTTP.
//!
//! The crate carries messages; a handler, which implements the SDK's `ServerHandler`, decides what they
//! do. [`serve_stdio`] serves one client over the standard streams until it closes its end. [`serve_http`]
//! serves many clients at `/mcp`: clients of the revisions with an `initialize` handshake get sessions with
//! resumable streams, and requests of the revision 2026-07-28 are served one by one.
//! [`EmbeddedEndpoint`] is the same endpoint for a server with its own listener and authentication.
//! [`ToolServer`] makes handlers for Carrel's tools. [`WithFixtures`] adds to a handler what the public
//! conformance suite asks for by name.
//!
//! Both transports promise the same. A call that panics fails alone. Cancelling a call cancels its token.
//! A message that is too large or not JSON gets an error and ends nothing. Stopping takes less than two
//! seconds, even if clients do not read or disconnect.
//!
//! ```text
//!            ┌── stdio ── line_transport ────────────────────────┐
//! client ────┤                                                   ├──► PanicShield ──► handler
//!            └── http ── access_control ──┬── session_table ─────┤
//!                                         └── stateless ─────────┘
//! ```
#![forbid(unsafe_code)]

mod any_handler;
mod conformance;
mod http;
mod json_rpc;
mod limits;
mod panic_shield;
mod stdio;
mod tool_handler;

pub use conformance::{ConformanceFixtures, WithFixtures};
pub use http::{
    Authentication, BearerToken, CallPath, EmbeddedEndpoint, HandlerScope, HttpError, HttpOptions,
    OptionsError, ReplyConnection, ReplyFormat, SessionId, SessionOwner, TokenError, serve_http,
};
pub use limits::{
    BODY_READ_TIMEOUT, EOF_GRACE, HEADER_READ_TIMEOUT, JSON_REPLY_TIMEOUT, KEEP_ALIVE,
    MAX_CONNECTIONS, MAX_IN_FLIGHT, MAX_MESSAGE_BYTES, MAX_SESSIONS, MAX_SESSIONS_PER_OWNER,
    SESSION_IDLE, SHUTDOWN_GRACE, STREAM_RETENTION, WRITE_STALL,
};
pub use stdio::{StdioError, serve_lines, serve_stdio};
pub use tool_handler::{
    DefinitionDetail, FactsMode, RootsMode, ToolHandler, ToolProvider, ToolServer,
    reply_for_client, tool_for_one_workspace,
};
