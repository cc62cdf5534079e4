//! What the service uses of this machine: a volume with workspaces, and what commands run behind.

use std::path::Path;
use std::sync::Arc;

use carrel_config::Environment;
use carrel_domain::{SystemClock, VolumeId};
use carrel_exec::LazySpawner;
use carrel_runner::{Runner, RunnerMode, diagnose};
use carrel_service::{HostedWorkspaces, HostedWorkspacesOptions};
use carrel_tools::{AuditLog, GitOptions};
use serde_json::{Value, json};

use super::backend::Backend;
use super::settings::Settings;
use crate::arguments::BoundaryArguments;
use crate::failure::Failure;
use crate::workspace::own_program;
use crate::{boundary, toolbox};

/// The name of the volume of a store that no other process uses: there is one, whatever lies in its
/// directory.
const ONLY: [u8; 16] = [0; 16];

/// What the service uses of this machine.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) spaces: HostedWorkspaces,
    /// Where events of tools and requests go.
    pub(crate) events: AuditLog,
    runner: Runner,
    state: std::path::PathBuf,
}

/// Opens it. `data` is the directory for what is kept beside the workspaces; without it events are not
/// kept.
pub(crate) fn open(
    arguments: &BoundaryArguments,
    environment: &Environment,
    settings: &Settings,
    data: Option<&Path>,
    backend: &Backend,
) -> Result<Machine, Failure> {
    let loaded = boundary::policy(arguments, environment)?;
    let runner = boundary::runner(arguments, loaded.policy, environment, RunnerMode::Server)?;
    let beside = || data.unwrap_or(Path::new(".")).join("workspaces");
    let root = settings.volume.clone().unwrap_or_else(beside);
    let events = data.map_or_else(AuditLog::none, toolbox::events_in);
    let options = HostedWorkspacesOptions {
        root: root.clone(),
        volume: (!backend.is_shared()).then(|| VolumeId::from_bytes(ONLY)),
        quota: settings.quota,
        runner: runner.clone(),
        commands: LazySpawner::new(own_program()?),
        environment: environment.clone(),
        events: events.clone(),
        reserve: settings.floor,
        git: GitOptions {
            hosts: settings.hosts.to_vec(),
            authorities: settings.authorities.clone(),
            ..GitOptions::new(environment)
        },
        clock: Arc::new(SystemClock),
    };
    let spaces = HostedWorkspaces::open(options, Arc::clone(backend.tasks.store()))?;
    Ok(Machine { spaces, events, runner, state: data.map_or(root, Path::to_owned) })
}

impl Machine {
    /// Says what holds on this machine, as `carrel doctor` does.
    pub(crate) async fn diagnosis(&self) -> Value {
        match diagnose(&self.runner, &self.state).await {
            Ok(diagnosis) => json!(diagnosis),
            Err(error) => json!({ "error": carrel_domain::message_of(&error) }),
        }
    }
}
