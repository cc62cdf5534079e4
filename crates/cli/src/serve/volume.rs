//! The volume of this process: its workspaces, their runner and their audit log.

use std::path::Path;
use std::sync::Arc;

use carrel_config::Environment;
use carrel_domain::{SystemClock, VolumeId};
use carrel_exec::LazySpawner;
use carrel_runner::{Runner, diagnose};
use carrel_service::{HostedWorkspaces, HostedWorkspacesOptions};
use carrel_tools::{AuditLog, GitOptions};
use serde_json::{Value, json};

use super::backend::Backend;
use super::settings::Settings;
use crate::arguments::SandboxArguments;
use crate::error::Result;
use crate::sandbox;
use crate::workspace::own_program;

/// The id of the only volume of an embedded store, independent of its directory.
const EMBEDDED_VOLUME: [u8; 16] = [0; 16];

#[derive(Debug)]
pub(crate) struct LocalVolume {
    pub(crate) spaces: HostedWorkspaces,
    pub(crate) events: AuditLog,
    runner: Runner,
    state: std::path::PathBuf,
}

/// Opens the volume. `data` is the directory for the audit log; without it, the volume's own one.
pub(crate) fn open(
    arguments: &SandboxArguments,
    environment: &Environment,
    settings: &Settings,
    data: Option<&Path>,
    backend: &Backend,
) -> Result<LocalVolume> {
    let beside = || data.unwrap_or(Path::new(".")).join("workspaces");
    let root = settings.volume.clone().unwrap_or_else(beside);
    let own = || root.join(sandbox::OWN_DIRECTORY);
    let events = sandbox::events_in(&data.map_or_else(own, Path::to_owned));
    let runner = sandbox::server_runner(arguments, environment, events.clone())?;
    let options = HostedWorkspacesOptions {
        root: root.clone(),
        volume: (!backend.is_shared()).then(|| VolumeId::from_bytes(EMBEDDED_VOLUME)),
        quota: settings.quota,
        runner: runner.clone(),
        commands: LazySpawner::new(own_program()?),
        environment: environment.clone(),
        reserve: settings.reserve,
        git: GitOptions {
            hosts: settings.hosts.to_vec(),
            authorities: settings.authorities.clone(),
            ..GitOptions::new(environment)
        },
        clock: Arc::new(SystemClock),
    };
    let spaces = HostedWorkspaces::open(options, Arc::clone(backend.tasks.store()))?;
    Ok(LocalVolume { spaces, events, runner, state: data.map_or(root, Path::to_owned) })
}

impl LocalVolume {
    /// Returns the guarantees of this machine, as `carrel doctor` does.
    pub(crate) async fn diagnosis(&self) -> Value {
        match diagnose(&self.runner, &self.state).await {
            Ok(diagnosis) => json!(diagnosis),
            Err(error) => json!({ "error": carrel_domain::message_of(&error) }),
        }
    }
}
