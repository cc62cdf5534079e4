//! Issues of a database, for hooks, which do not see its address.
//!
//! A `carrel run` whose tracker is in a database listens on a socket in its data directory, and the
//! `carrel issue` of a hook asks there. Whoever may read the data directory knows the key beside the socket;
//! an agent, which may reach sockets that it cannot see, does not.

mod answer;
mod ask;

use std::path::{Path, PathBuf};

use carrel_domain::Timestamp;
use carrel_store::{IssueChange, IssueFilter, NewComment, NewIssue};
use serde::{Deserialize, Serialize};

pub(crate) use self::answer::{Desk, close};
pub(crate) use self::ask::Relay;

const DIRECTORY: &str = "conductor";
const SOCKET: &str = "issues.sock";
const KEY: &str = "issues.key";

/// Bounds what is said at once: a text of each field at its longest, and every issue there is.
const MAX_MESSAGE_BYTES: u64 = 256 << 20;

fn directory(data: &Path) -> PathBuf {
    data.join(DIRECTORY)
}

/// What is asked for.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    key: String,
    now: Timestamp,
    wish: Wish,
}

#[derive(Debug, Serialize, Deserialize)]
enum Wish {
    Add(NewIssue),
    List(IssueFilter),
    Change(u64, IssueChange),
    Comment(u64, NewComment),
    Comments(u64, u32),
    Name,
}
