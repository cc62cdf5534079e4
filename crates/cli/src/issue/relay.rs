//! Access to issues in a database for hooks, which do not see its address.
//!
//! A `carrel run` whose embedded tracker is in PostgreSQL listens on a Unix socket in its data directory,
//! and the `carrel issue` of a hook connects there. Requests carry the key that is stored beside the
//! socket with mode 0600: an agent may reach a socket that it cannot see, but cannot read the key. One
//! request and one reply for each connection, both JSON.

mod client;
mod server;

use std::path::{Path, PathBuf};

use carrel_domain::Timestamp;
use carrel_store::{IssueChange, IssueFilter, NewComment, NewIssue};
use serde::{Deserialize, Serialize};

pub(crate) use self::client::RelayClient;
pub(crate) use self::server::{RelayServer, close};

const DIRECTORY: &str = "conductor";
const SOCKET: &str = "issues.sock";
const KEY: &str = "issues.key";

/// Bounds a request or a reply: the list of all issues with the longest texts.
const MAX_MESSAGE_BYTES: u64 = 256 << 20;

fn directory(data: &Path) -> PathBuf {
    data.join(DIRECTORY)
}

#[derive(Debug, Serialize, Deserialize)]
struct Request {
    key: String,
    now: Timestamp,
    operation: RelayOperation,
}

#[derive(Debug, Serialize, Deserialize)]
enum RelayOperation {
    Add(NewIssue),
    List(IssueFilter),
    Change(u64, IssueChange),
    Comment(u64, NewComment),
    Comments(u64, u32),
    Name,
}
