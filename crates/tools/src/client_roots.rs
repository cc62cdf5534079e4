//! The roots of a client: directories that it has open, to which a session is held.
//!
//! A client that declares roots restricts its own session, and the restriction fails closed. Roots that
//! cannot be evaluated, or of which none lies in a workspace, leave the session with nothing, and every call
//! is refused with the reason: a person who opened another directory than the operator did should see that
//! at once, not find the operator's directory changed. No root ever adds to the operator's workspaces.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_domain::{Code, Failure};

use crate::named_workspace::Workspaces;

/// Roots that are looked at, each of which costs a lookup and an open directory; further ones do not count.
const MAX_ROOTS: usize = 256;

/// Roots that a message names. Clients may list hundreds.
const MAX_SHOWN_ROOTS: usize = 3;

/// Characters of each root in a message, since the client chooses them.
const MAX_SHOWN_CHARS: usize = 200;

/// A client's answer to the question for its roots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientRoots {
    /// The client has not answered yet.
    Awaited,
    /// The client answered with an error, which is the text.
    Failed(String),
    /// The URIs that the client listed.
    Listed(Vec<String>),
}

/// The workspaces that a session may use.
#[derive(Clone, Debug, Default)]
pub(crate) enum WorkspaceView {
    /// The operator's: the client has no roots.
    #[default]
    Operator,
    /// The parts within the client's roots.
    Narrowed(Arc<Workspaces>),
    /// None, for this reason.
    Nothing(Box<Failure>),
}

impl WorkspaceView {
    pub(crate) fn of_roots(workspaces: &Workspaces, roots: &ClientRoots) -> Self {
        let uris = match roots {
            ClientRoots::Awaited => {
                return nothing(workspaces, "the client has not said yet which roots it has");
            }
            ClientRoots::Failed(error) => {
                let reason = format!("the client did not list its roots ({})", cut(error));
                return nothing(workspaces, &reason);
            }
            ClientRoots::Listed(uris) => uris,
        };
        let paths: Vec<_> = uris.iter().take(MAX_ROOTS).filter_map(|uri| file_path(uri)).collect();
        let real: Vec<_> = paths.iter().filter_map(|path| real_path(path)).collect();
        if let Some(narrowed) = workspaces.narrowed(&real) {
            return Self::Narrowed(Arc::new(narrowed));
        }
        let shown: Vec<_> = uris.iter().take(MAX_SHOWN_ROOTS).map(|uri| cut(uri)).collect();
        let shown = shown.join(", ");
        let more = uris.len().saturating_sub(MAX_SHOWN_ROOTS);
        let shown = if more > 0 { format!("{shown} and {more} more") } else { shown };
        if uris.is_empty() {
            nothing(workspaces, "the client declares roots and lists none")
        } else if paths.is_empty() {
            nothing(
                workspaces,
                &format!("the client's roots are no files of this machine: {shown}"),
            )
        } else {
            let reason = format!("the client's roots lie outside the workspace: {shown}");
            nothing(workspaces, &reason)
        }
    }
}

/// Returns the view without a workspace, whose failure names the reason and the ways out.
fn nothing(workspaces: &Workspaces, reason: &str) -> WorkspaceView {
    let directories = workspaces.iter().map(|one| one.path().display().to_string());
    let directories = directories.collect::<Vec<_>>().join(" or ");
    let message = format!(
        "{reason}; so this session has no workspace. Open {directories} in the client, or have the \
         operator serve the directory that is open there, or start carrel with --ignore-roots"
    );
    WorkspaceView::Nothing(Box::new(Failure::new(Code::ClientRoots, message)))
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_SHOWN_CHARS).collect()
}

/// Resolves links, as the paths of workspaces are resolved. A directory that does not exist is no root.
#[expect(clippy::disallowed_methods, reason = "compares a path; no file is opened by it")]
fn real_path(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()
}

/// Decodes a `file:` URI of this machine.
fn file_path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file:")?;
    let encoded = match rest.strip_prefix("//") {
        Some(with_host) => with_host.strip_prefix("localhost").unwrap_or(with_host),
        None => rest,
    };
    let mut path = Vec::with_capacity(encoded.len());
    let mut bytes = encoded.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            path.push(u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            path.push(byte);
        }
    }
    let path = PathBuf::from(String::from_utf8(path).ok()?);
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn the_uri_of_a_file_is_its_path() {
        let path = |uri| file_path(uri).map(|path| path.display().to_string());
        for uri in ["file:///a%20b/c", "file:/a%20b/c", "file://localhost/a%20b/c"] {
            assert_eq!(path(uri).as_deref(), Some("/a b/c"), "{uri}");
        }
        for uri in [
            "file://host/a",
            "file://localhostile/a",
            "https://a",
            "/a",
            "",
            "file:a",
            "file:///a%2",
        ] {
            assert_eq!(path(uri), None, "{uri}");
        }
    }
}
