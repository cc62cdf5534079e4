//! The way of a process into the namespaces of a cell.
//!
//! A server that runs as root opens every source of the root directory first, while it may still open them,
//! and becomes a mapped user of a new user namespace then. An ordinary user may mount only after it has
//! entered its user namespace, and opens the sources there.
//!
//! The tree of a fork is mounted in a mount namespace ([`crate::MountedOverlay`]) that the cell joins before it
//! opens the sources. An ordinary user has to join the user namespace that owns it, too, and lives in that
//! one: cells of one fork share it, and each has every other namespace of its own. Root needs the mounts only.

use std::io;

use carrel_domain::Network;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::UnshareFlags;

use super::root::{self, PartialRoot, PrebuiltRoot, PreparedRoot};
use super::{CellLifetime, CellResources, SetupError, SetupStep, StepContext};
use crate::namespaces::{self, IdMapping, NetworkNamespace, UserNamespace};
use crate::overlay::OverlayNamespaces;
use crate::plan::{CommandUser, Plan};
use crate::policy::Owner;

pub(super) fn switch_user(run_as: CommandUser) -> Result<(), SetupError> {
    match run_as {
        CommandUser::Server(_) => Ok(()),
        CommandUser::WorkspaceOwner(owner) | CommandUser::Mapped { inside: owner, .. } => {
            become_user(owner).during(SetupStep::CommandUser)
        }
    }
}

pub(crate) fn become_user(Owner { user, group }: Owner) -> io::Result<()> {
    use rustix::thread::{set_thread_res_gid, set_thread_res_uid};
    let user = rustix::process::Uid::from_raw(user);
    let group = rustix::process::Gid::from_raw(group);
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    Ok(())
}

/// Drops the supplementary groups of root.
pub(super) fn drop_groups(run_as: CommandUser) -> Result<(), SetupError> {
    match run_as {
        CommandUser::Server(_) => Ok(()),
        CommandUser::WorkspaceOwner(_) | CommandUser::Mapped { .. } => {
            rustix::thread::set_thread_groups(&[]).during(SetupStep::CommandUser)
        }
    }
}

/// Moves the calling process into the namespaces of a cell, with its own root directory. Returns its network
/// namespace if other cells can share it.
pub(super) fn enter_namespaces(
    plan: &Plan,
    resources: &mut CellResources,
) -> Result<Option<NetworkNamespace>, SetupError> {
    let own_network = resources.companion.is_none() && plan.network != Network::Full;
    let wanted = root::namespaces(own_network);
    let overlay = resources.overlay.take();
    // The holder of the user namespace is dropped at the end, because ending a process takes time.
    let (sources, _holder) = match (plan.run_as, overlay) {
        (CommandUser::Mapped { .. }, overlay) => {
            enter_as_root(plan, resources, wanted, overlay.as_ref())?
        }
        (CommandUser::Server(_) | CommandUser::WorkspaceOwner(_), Some(overlay)) => {
            (enter_overlay(plan, resources, wanted, &overlay)?, None)
        }
        (CommandUser::Server(_) | CommandUser::WorkspaceOwner(_), None) => {
            let prepared = resources.prepared.take().map(|prepared| prepared.users);
            let users = own_users(plan, resources, wanted, prepared)?;
            move_in(plan, resources, wanted, users.as_ref())?;
            (open_sources(plan, resources)?, users)
        }
    };
    let is_shared =
        plan.network == Network::Loopback && resources.lifetime == CellLifetime::ManyCommands;
    let network = is_shared.then(NetworkNamespace::of_this_process).transpose();
    let network = network.during(SetupStep::Namespaces)?;
    root::build(plan, &sources, resources.lifetime)?;
    if own_network && plan.network == Network::Loopback {
        namespaces::raise_loopback().during(SetupStep::Loopback)?;
    }
    Ok(network)
}

fn enter_as_root(
    plan: &Plan,
    resources: &mut CellResources,
    wanted: UnshareFlags,
    overlay: Option<&OverlayNamespaces>,
) -> Result<(PreparedRoot, Option<UserNamespace>), SetupError> {
    let (prepared, found) = resources
        .prepared
        .take()
        .map(|prepared| (prepared.users, (prepared.system, prepared.owners)))
        .unzip();
    let (system, owners) = found.unwrap_or_default();
    let users = own_users(plan, resources, wanted, prepared)?;
    // Before the switch to a mapped user, who may be unable to open some of the sources.
    let partial = PartialRoot::begin(plan, resources, system)?;
    overlay.map_or(Ok(()), OverlayNamespaces::join_mounts)?;
    let sources = PreparedRoot::open(partial, plan, resources, owners)?;
    move_in(plan, resources, wanted, users.as_ref())?;
    Ok((sources, users))
}

/// Moves an ordinary user into the namespaces of an overlay, and into others of its own.
fn enter_overlay(
    plan: &Plan,
    resources: &mut CellResources,
    wanted: UnshareFlags,
    overlay: &OverlayNamespaces,
) -> Result<PreparedRoot, SetupError> {
    // They belong to another user namespace.
    drop(resources.prepared.take());
    overlay.join_users()?;
    overlay.join_mounts()?;
    let companion = resources.companion.as_ref();
    let joined = companion.map_or(Ok(()), NetworkNamespace::join_network);
    joined.during(SetupStep::Namespaces)?;
    namespaces::unshare(UnshareFlags::NEWNS | wanted).during(SetupStep::Namespaces)?;
    open_sources(plan, resources)
}

fn open_sources(plan: &Plan, resources: &CellResources) -> Result<PreparedRoot, SetupError> {
    let partial = PartialRoot::begin(plan, resources, PrebuiltRoot::default())?;
    PreparedRoot::open(partial, plan, resources, None)
}

/// Creates the cell's user namespace, unless it joins that of a companion.
fn own_users(
    plan: &Plan,
    resources: &CellResources,
    wanted: UnshareFlags,
    prepared: Option<UserNamespace>,
) -> Result<Option<UserNamespace>, SetupError> {
    match resources.companion {
        None => user_namespace(plan, wanted, prepared).map(Some),
        Some(_) => Ok(None),
    }
}

/// Switches the user, and moves the process into its own user namespace or that of its companion, and into
/// the other namespaces.
fn move_in(
    plan: &Plan,
    resources: &CellResources,
    wanted: UnshareFlags,
    users: Option<&UserNamespace>,
) -> Result<(), SetupError> {
    drop_groups(plan.run_as)?;
    let joined = match (users, &resources.companion) {
        (Some(users), _) => users.join(wanted).during(SetupStep::UserNamespace)?,
        (None, companion) => {
            let joined = companion.as_ref().map_or(Ok(()), NetworkNamespace::join);
            joined.during(SetupStep::Namespaces)?;
            UnshareFlags::empty()
        }
    };
    switch_user(plan.run_as)?;
    let missing = UnshareFlags::NEWNS | wanted.difference(joined);
    namespaces::unshare(missing).during(SetupStep::Namespaces)
}

/// Creates the cell's user namespace, or takes the prepared one, and writes its id maps.
fn user_namespace(
    plan: &Plan,
    others: UnshareFlags,
    prepared: Option<UserNamespace>,
) -> Result<UserNamespace, SetupError> {
    // The files of an undumpable process in `/proc` belong to root, and its maps could not be written.
    set_dumpable_behavior(DumpableBehavior::Dumpable).during(SetupStep::UserNamespace)?;
    let (mapping, meanwhile) = match plan.run_as {
        // The caller has nothing to do while the other namespaces are created, so it creates them itself.
        CommandUser::Server(owner) | CommandUser::WorkspaceOwner(owner) => {
            (IdMapping { inside: owner, outside: owner, privileged: false }, UnshareFlags::empty())
        }
        CommandUser::Mapped { inside, outside, .. } => {
            (IdMapping { inside, outside, privileged: true }, others)
        }
    };
    let made = prepared.map_or_else(|| UserNamespace::create(meanwhile), Ok);
    let users = made.during(SetupStep::UserNamespace)?;
    users.write_id_maps(mapping).during(SetupStep::UserNamespace)?;
    Ok(users)
}
