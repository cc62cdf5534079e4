//! What the calls of one user remember of each other.
//!
//! Each `carrel tool` is a process of its own. A file that one has read may be edited by the next, and
//! tests that failed in one may be run again by the next, so both are kept below the operator's
//! state, for each set of workspaces.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use carrel_config::Environment;
use carrel_tools::{Registry, Session};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::boundary;

/// The name of the session in events.
const SESSION: &str = "cli";

/// Goes on with the session of these workspaces.
pub(super) fn session(registry: &Registry, environment: &Environment) -> Arc<Session> {
    let remembered = path(registry, environment).and_then(|path| read(&path));
    Session::resumed(SESSION, remembered.unwrap_or(Value::Null))
}

/// Remembers what the session has read, and what its tests said.
pub(super) fn keep(registry: &Registry, session: &Session, environment: &Environment) {
    let Some(path) = path(registry, environment) else { return };
    if let Err(error) = write(&path, &session.remembered(registry.toolbox())) {
        warn!(%error, "what was read and tested is not remembered");
    }
}

fn path(registry: &Registry, environment: &Environment) -> Option<PathBuf> {
    let mut hash = Sha256::new();
    for place in registry.toolbox().workspaces.iter() {
        hash.update(place.name());
        hash.update([0]);
        hash.update(place.path().as_os_str().as_encoded_bytes());
        hash.update([0]);
    }
    let name = hash.finalize()[..16].iter().fold(String::new(), |mut name, byte| {
        write!(name, "{byte:02x}").expect("writing to a string cannot fail");
        name
    });
    let state = boundary::state(environment).ok()?;
    Some(state.join("sessions").join(name).with_extension("json"))
}

#[expect(clippy::disallowed_methods, reason = "Carrel's own file")]
fn read(path: &std::path::Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Replaces the file in one step: two commands may end at the same time.
#[expect(clippy::disallowed_methods, reason = "Carrel's own file")]
fn write(path: &std::path::Path, value: &Value) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    std::fs::create_dir_all(directory)?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut file = OpenOptions::new();
    // What tests print is nobody else's business.
    let mut file = file.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(value.to_string().as_bytes())?;
    std::fs::rename(&temporary, path)
}
