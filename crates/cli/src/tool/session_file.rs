//! The session of `carrel tool`, kept in a file between calls.
//!
//! Each `carrel tool` is a process of its own, and an edit needs a read before it. The read tracker and the
//! last test results are therefore stored below the operator's state directory, one file for each set of
//! workspaces. A file that is lost or unreadable costs a second read and nothing else.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use carrel_config::Environment;
use carrel_domain::hex;
use carrel_tools::{Registry, Session};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::sandbox;

const SESSION: &str = "cli";

pub(super) fn load(registry: &Registry, environment: &Environment) -> Arc<Session> {
    let remembered = path(registry, environment).and_then(|path| read(&path));
    Session::resumed(SESSION, remembered.unwrap_or(Value::Null))
}

pub(super) fn save(registry: &Registry, session: &Session, environment: &Environment) {
    let Some(path) = path(registry, environment) else { return };
    if let Err(error) = write(&path, &session.remembered(registry.toolbox())) {
        warn!(%error, "what was read and tested is not remembered");
    }
}

fn path(registry: &Registry, environment: &Environment) -> Option<PathBuf> {
    let mut hash = Sha256::new();
    for workspace in registry.toolbox().workspaces.iter() {
        hash.update(workspace.name());
        hash.update([0]);
        hash.update(workspace.path().as_os_str().as_encoded_bytes());
        hash.update([0]);
    }
    let name = hex::encode(&hash.finalize()[..16]);
    let state = sandbox::state(environment).ok()?;
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
    // Test output may hold secrets of the project: readable by the owner alone.
    let mut file = file.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(value.to_string().as_bytes())?;
    std::fs::rename(&temporary, path)
}
