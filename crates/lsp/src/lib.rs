//! Language servers in the sandbox: answers that are true, or that say why not.
//!
//! [`LanguageServers`] is the set of servers of a process. A query names a workspace and a position in one of its
//! files; the server of the file's language is started when it is first needed, brought up to date with the files
//! before each query, and asked when it has read the project. The reply is an [`Answer`] or the work that it waits for.
//!
//! ```text
//! LanguageServers ──► definition        one row for each server: program, settings, readiness, rules for changes
//!        │            project           the project of a file, and the server's program
//!        ▼
//! LanguageServer ───► documents, stamp  what has changed since the last query
//!        │            activity          what the server still has to do
//!        ▼            query             questions in the protocol's words, answers in Carrel's
//!     Client ───────► framing, message  JSON-RPC over the streams of a process
//!        ▼
//! ServerProcess       the sandbox: read-only tree, no network, memory of a session
//! ```
//!
//! Three promises hold for every server, because the code does not know them apart:
//!
//! - **No answer is older than the last write before it.** Files are compared by their stamps, not by messages of those
//!   who write. What a server cannot take in at once makes a new server.
//! - **An empty answer means that there is nothing.** A server that is not ready gives no answer at all, and one that
//!   cannot know everything says so ([`Answer::incomplete`]).
//! - **Nothing outside of the workspace is read, and nothing inside is written.** Changes are proposed as byte ranges of
//!   contents that are known by their hash.
//!
//! Files that ignore rules exclude, such as installed dependencies, are not compared: a server notices their change when
//! it starts, or by its own means.
#![forbid(unsafe_code)]

mod activity;
mod capabilities;
mod client;
mod definition;
mod documents;
mod fault;
mod framing;
mod language_servers;
mod message;
mod observed;
mod position;
mod process;
mod project;
mod protocol;
mod query;
mod reply;
mod restarts;
mod server;
mod slot;
mod stamp;
mod uri;

pub use fault::QueryError;
pub use language_servers::{LanguageServers, QueryContext, ServerPool};
pub use position::{Place, TextRange};
pub use query::Target;
pub use query::calls::{Call, CallDirection};
pub use query::diagnostics::{Diagnostic, Severity};
pub use query::edits::{ByteEdit, FileEdits, FileOperation, WorkspaceChange};
pub use query::locations::{Location, Locations, MAX_LOCATIONS};
pub use reply::{Answer, NotReady, Reply};
pub use stamp::ContentHash;
