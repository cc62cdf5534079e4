//! What holds on this machine, found out by trying.

use std::path::Path;

use carrel_config::TierChoice;
use carrel_domain::{Network, Tier};
use carrel_exec::CellError;
use carrel_sandbox::{Guarantee, Owner};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::error::RunError;
use crate::request::{CommandForm, RunRequest};
use crate::runner::{Feature, Runner, SandboxMode};
use crate::scratch_directory::{Scratch, ScratchHome, Swept};
use crate::workspace_handle::WorkspaceHandle;
use carrel_workspace::blocking;

/// What holds on a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The release of the kernel.
    pub kernel: String,
    /// The version of Landlock; zero for none.
    pub landlock_abi: u32,
    /// The tier that commands get; none if they are refused.
    pub tier: Option<Tier>,
    /// The parts of a boundary, and whether they are there.
    pub layers: Vec<Layer>,
    /// What follows for a command without network.
    pub guarantees: Vec<Guarantee>,
}

/// A part of a boundary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// Its name.
    pub name: &'static str,
    /// Whether it is there.
    pub available: bool,
    /// What was found, or what is missing and how to get it.
    pub detail: String,
}

/// The result of trying a tier.
type Trial = Result<Vec<Guarantee>, String>;

/// Tries both tiers with a real command, and says what was found. `state` is where Carrel keeps what
/// it remembers.
pub async fn diagnose(runner: &Runner, state: &Path) -> Result<Diagnosis, RunError> {
    let full = try_tier(runner, state, Tier::Full).await?;
    let landlock = try_tier(runner, state, Tier::Landlock).await?;
    let wanted = match runner.inner.options.sandbox {
        SandboxMode::Enforced(TierChoice::Only(tier)) => vec![tier],
        SandboxMode::Enforced(TierChoice::Auto) => vec![Tier::Full, Tier::Landlock],
        SandboxMode::Off => Vec::new(),
    };
    let trial = |tier: Tier| match tier {
        Tier::Full => &full,
        Tier::Landlock => &landlock,
    };
    let tier = wanted.into_iter().find(|tier| trial(*tier).is_ok());
    let guarantees = tier.and_then(|tier| trial(tier).clone().ok());
    Ok(Diagnosis {
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        landlock_abi: runner.inner.host.landlock,
        tier,
        layers: layers(runner, &full, &landlock),
        guarantees: guarantees.unwrap_or_else(carrel_sandbox::without_sandbox),
    })
}

/// Runs a command that does nothing. Everything that can fail on this machine fails here.
async fn try_tier(runner: &Runner, state: &Path, tier: Tier) -> Result<Trial, RunError> {
    let inner = &runner.inner;
    let user = inner.options.policy.uids.first();
    let owner = inner.host.is_root().then_some(Owner { user, group: user });
    let home = ScratchHome::of_state(state);
    let scratch = blocking(move || Scratch::make(&home, &Swept::default(), owner, tier)).await?;
    let workspace = WorkspaceHandle::for_directory(&scratch.directory().path().join("tmp"), state)?;
    match run_in(runner, &workspace, tier).await {
        Ok(guarantees) => Ok(Ok(guarantees)),
        Err(error) => Ok(Err(reason(&error))),
    }
}

async fn run_in(
    runner: &Runner,
    workspace: &WorkspaceHandle,
    tier: Tier,
) -> Result<Vec<Guarantee>, RunError> {
    let inner = &runner.inner;
    let request = RunRequest::new(CommandForm::Argv(vec!["true".into()]));
    let walled = inner.cells.try_tier(inner, workspace, tier).await?;
    let group = inner.make_group(&request.limits(runner.policy()))?;
    let spec = runner.prepare(workspace, &request, &walled, Network::None, group.as_ref()).await?;
    let outcome = walled.spawner().run(spec, &CancellationToken::new()).await?;
    if outcome.succeeded() {
        return Ok(inner.sandbox_report(&walled).guarantees);
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
    let groups = inner.cgroups().grouped();
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
                _ => "system calls are filtered, and refusals are explained".to_owned(),
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
