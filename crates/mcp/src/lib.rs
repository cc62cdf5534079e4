//! The Model Context Protocol over standard streams and over HTTP.
//!
//! The crate carries messages; what they do is decided by a handler, a value that implements the
//! SDK's `ServerHandler`. [`serve_stdio`] serves one client over the standard streams until it
//! closes its end. [`serve_http`] serves many clients at `/mcp`: those of the revisions with an
//! `initialize` handshake get a session of their own with streams that can be resumed, those of the
//! revision 2026-07-28 are answered request by request.
//!
//! Both doors promise the same: a call that panics fails alone, a cancelled call has its token
//! cancelled, a message that is too large or not JSON is answered and not fatal, and stopping takes
//! less than two seconds whatever the clients do.
//!
//! ```text
//!            ┌── stdio ──────────────── lines ───┐
//! client ────┤                                   ├──► PanicShield ──► handler
//!            └── http ── gate ──┬── sessions ────┤
//!                               └── stateless ───┘
//! ```
#![forbid(unsafe_code)]

mod http;
mod json_rpc;
mod limits;
mod panic_shield;
mod stdio;
mod tool_handler;

pub use http::{
    BearerToken, EmbeddedEndpoint, HandlerScope, HttpError, HttpOptions, OptionsError,
    ReplyConnection, ReplyFormat, SessionId, SessionOwner, TokenError, serve_http,
};
pub use limits::{
    BODY_READ_TIMEOUT, EOF_GRACE, HEADER_READ_TIMEOUT, JSON_REPLY_TIMEOUT, KEEP_ALIVE,
    MAX_CONNECTIONS, MAX_IN_FLIGHT, MAX_MESSAGE_BYTES, MAX_SESSIONS, MAX_SESSIONS_PER_OWNER,
    SESSION_IDLE, SHUTDOWN_GRACE, STREAM_RETENTION, WRITE_STALL,
};
pub use stdio::{StdioError, serve_lines, serve_stdio};
pub use tool_handler::{
    FactsMode, ToolHandler, ToolProvider, ToolServer, reply_for_client, text_only_tool,
};
