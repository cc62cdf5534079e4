//! The sandbox features of this host, found by running a command in each tier.
//!
//! Kernel versions and settings only suggest what works; a container runtime or a security module may
//! forbid it. So `carrel doctor` and the server's start make a real cell and run `true` in it.

use std::path::Path;

use carrel_config::TierChoice;
use carrel_domain::{GrantedNetwork, Network, NetworkRequest, Tier};
use carrel_exec::CellError;
use carrel_sandbox::{Guarantee, Owner};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::change_claim::ChangeClaim;
use crate::command_run::CommandRun;
use crate::error::RunError;
use crate::request::{CommandForm, RunRequest};
use crate::runner::{Feature, Runner, SandboxMode};
use crate::scratch_directory::{ScratchDirectory, SweepSchedule};
use crate::server_directory::ServerDirectory;
use crate::workspace_handle::WorkspaceHandle;
use carrel_workspace::blocking;

/// The sandbox features of a host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The release of the kernel.
    pub kernel: String,
    /// The Landlock ABI; zero without Landlock.
    pub landlock_abi: u32,
    /// The tier of commands; none if they would be refused.
    pub tier: Option<Tier>,
    /// The network of a command that asks for none, with the policy alone.
    pub network: Network,
    /// The most that a command may ask for, with the policy alone.
    pub network_cap: Network,
    /// The layers of a sandbox.
    pub layers: Vec<Layer>,
    /// The guarantees for a command without network.
    pub guarantees: Vec<Guarantee>,
}

/// A layer of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// The name in `carrel doctor`.
    pub name: &'static str,
    /// True if it works here.
    pub available: bool,
    /// The version found, or the failure and its remedy.
    pub detail: String,
}

/// The guarantees of a tier that works, or its failure.
type Trial = Result<Vec<Guarantee>, String>;

/// Runs a command in both tiers and returns what works. `state` is Carrel's state directory.
pub async fn diagnose(runner: &Runner, state: &Path) -> Result<Diagnosis, RunError> {
    let full = try_tier(runner, state, Tier::Full).await?;
    let landlock = try_tier(runner, state, Tier::Landlock).await?;
    let tiers = match runner.inner.options.sandbox {
        SandboxMode::Enforced(TierChoice::Only(tier)) => vec![tier],
        SandboxMode::Enforced(TierChoice::Auto) => vec![Tier::Full, Tier::Landlock],
        SandboxMode::Off => Vec::new(),
    };
    let trial = |tier: Tier| match tier {
        Tier::Full => &full,
        Tier::Landlock => &landlock,
    };
    let tier = tiers.into_iter().find(|tier| trial(*tier).is_ok());
    let guarantees = tier.and_then(|tier| trial(tier).clone().ok());
    let granted = NetworkRequest::default().decide(runner.policy().networks(), tier)?;
    Ok(Diagnosis {
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        landlock_abi: runner.inner.host.landlock,
        tier,
        network: granted.network,
        network_cap: granted.cap,
        layers: layers(runner, &full, &landlock),
        guarantees: guarantees.unwrap_or_else(carrel_sandbox::without_sandbox),
    })
}

/// Runs `true` in a cell of a tier.
async fn try_tier(runner: &Runner, state: &Path, tier: Tier) -> Result<Trial, RunError> {
    let inner = &runner.inner;
    let user = inner.options.policy.uids.first();
    let owner = inner.host.is_root().then_some(Owner { user, group: user });
    let parent = ServerDirectory::of_state(state);
    let scratch =
        blocking(move || ScratchDirectory::make(&parent, &SweepSchedule::default(), owner, tier))
            .await?;
    let workspace = WorkspaceHandle::for_trial(&scratch.directory().path().join("tmp"), state)?;
    Ok(run_in(runner, &workspace, tier).await.map_err(|error| reason(&error)))
}

async fn run_in(
    runner: &Runner,
    workspace: &WorkspaceHandle,
    tier: Tier,
) -> Result<Vec<Guarantee>, RunError> {
    let inner = &runner.inner;
    let request = RunRequest::new(CommandForm::Argv(vec!["true".into()]));
    let limits = request.limits(runner.policy());
    let site = &inner.try_tier(workspace, tier).await?;
    let group = inner.make_group(&limits)?;
    inner.make_own_directory(site).await?;
    let network = GrantedNetwork { network: Network::None, cap: Network::None };
    let claim = ChangeClaim::default();
    let run = CommandRun { inner, workspace, request: &request, site, network, limits, claim };
    let outcome = site.spawner().run(run.spec(group.as_ref())?, &CancellationToken::new()).await?;
    if outcome.succeeded() {
        return Ok(inner.sandbox_report(site).guarantees);
    }
    Err(RunError::Trial(outcome.end))
}

fn reason(error: &RunError) -> String {
    match error {
        RunError::Cell(CellError::Refused(failure)) => failure.to_string(),
        other => carrel_domain::message_of(other),
    }
}

fn layers(runner: &Runner, full: &Trial, landlock: &Trial) -> Vec<Layer> {
    let inner = &runner.inner;
    let missing = |feature| inner.options.disabled.contains(&feature);
    let version = inner.host.landlock;
    let tried = |name, trial: &Trial, works: &str, remedy: &str| Layer {
        name,
        available: trial.is_ok(),
        detail: match trial {
            Ok(_) => works.to_owned(),
            Err(why) => format!("{why}; {remedy}"),
        },
    };
    let groups = inner.cgroups().enforced();
    vec![
        tried(
            "namespaces",
            full,
            "users, mounts, processes, network, IPC and host name of their own; tried with a command",
            "allow user namespaces (kernel.unprivileged_userns_clone=1, \
             user.max_user_namespaces > 0, kernel.apparmor_restrict_unprivileged_userns=0, or a \
             container that may use them)",
        ),
        Layer { name: "landlock", available: version > 0, detail: landlock_detail(version) },
        Layer {
            name: "seccomp",
            available: !missing(Feature::Seccomp) && (full.is_ok() || landlock.is_ok()),
            detail: match (full, landlock) {
                (Err(_), Err(why)) => why.clone(),
                _ => "system calls are filtered, and denials are explained".to_owned(),
            },
        },
        tried(
            "landlock_tier",
            landlock,
            "the tier for hosts without user namespaces; tried with a command",
            "Linux 5.13 or later with `landlock` among the lsm= of the kernel's command line",
        ),
        Layer {
            name: "control_groups",
            available: groups.memory && groups.processes,
            detail: inner.cgroups().describe(),
        },
    ]
}

fn landlock_detail(version: u32) -> String {
    match version {
        0 => "not offered; Linux 5.13 or later with `landlock` among the lsm= of the kernel's \
              command line has it"
            .to_owned(),
        1..=5 => format!(
            "version {version}; version 6 (Linux 6.12) also keeps signals and abstract sockets inside"
        ),
        _ => format!("version {version}: files, devices, TCP, signals and abstract sockets"),
    }
}
