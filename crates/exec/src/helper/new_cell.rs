//! The change of a process into a cell.

use std::os::fd::{AsFd, OwnedFd};

use carrel_sandbox::{
    Cell, CellLifetime, CellResources, NetworkNamespace, PreparedNamespaces, SharedMounts,
    SignalQueue,
};
use rustix::process::{Pid, getpid, getppid, set_child_subreaper, set_parent_process_death_signal};

use super::init;
use super::spawner::{Spawner, leave_stderr};
use crate::protocol::{CellDescriptors, MakeCell, Report, to_json};
use crate::socket;

pub(super) enum CellOrigin {
    /// A child of the spawner, with which it ends.
    Spawner { pid: Pid, mounts: SharedMounts },
    /// A process forked ahead for one cell and one command, with the namespaces that it has made. It
    /// notices the end of the server by itself.
    Preforked(Option<Box<PreparedNamespaces>>),
}

/// Turns this process into a cell, and reports the result to the server.
pub(super) fn become_cell(
    make: MakeCell,
    descriptors: CellDescriptors<OwnedFd>,
    origin: CellOrigin,
    signals: SignalQueue,
) -> Option<Spawner> {
    let CellDescriptors { control, requests, workspace, scratch, companion, overlay } = descriptors;
    let (overlay, held) = overlay.map(|overlay| (overlay.namespaces, overlay.lock)).unzip();
    let (spawner, shared_mounts, prepared, lifetime) = match origin {
        CellOrigin::Spawner { pid, mounts } => {
            (Some(pid), mounts, None, CellLifetime::ManyCommands)
        }
        CellOrigin::Preforked(prepared) => (
            None,
            SharedMounts::default(),
            prepared.map(|prepared| *prepared),
            CellLifetime::OneCommand,
        ),
    };
    let resources = CellResources {
        workspace,
        scratch,
        companion,
        overlay,
        held,
        prepared,
        shared_mounts,
        lifetime,
    };
    let entered = Cell::enter(make.plan, resources);
    let cell = match (entered, lifetime) {
        (Ok(mut unsealed), CellLifetime::ManyCommands) => {
            let network = unsealed.take_network();
            unsealed.seal().map(|cell| report_ready(cell, &control, network.as_ref(), spawner))
        }
        // Reported before sealing: the server still has to prepare the command meanwhile.
        (Ok(unsealed), CellLifetime::OneCommand) => {
            report_ready((), &control, None, spawner)?;
            // A reader of the server's stderr does not have to wait for this process.
            leave_stderr().ok()?;
            unsealed.seal().map(Some)
        }
        (Err(failure), _) => Err(failure),
    };
    match cell {
        Ok(cell) => Some(Spawner::new(requests, signals, Some((Box::new(cell?), control)))),
        Err(failure) => {
            // A server that had the report already notices the end of this process instead.
            init::report(&control, &Report::CellFailed(failure));
            None
        }
    }
}

/// Ties the cell to the spawner's life, and reports to the server that it is ready.
fn report_ready<T>(
    cell: T,
    control: &OwnedFd,
    network: Option<&NetworkNamespace>,
    spawner: Option<Pid>,
) -> Option<T> {
    // Orphans of an init that dies become children of the cell, not of the spawner.
    set_child_subreaper(Some(getpid())).ok()?;
    if let Some(spawner) = spawner {
        // Late: a change of user clears it.
        set_parent_process_death_signal(Some(init::PARENT_DIED)).ok()?;
        if getppid() != Some(spawner) {
            return None;
        }
    }
    let carried = network.map(|shared| [shared.users.as_fd(), shared.network.as_fd()]);
    // If the server has ended, this process reads the end of its requests next.
    let _ = socket::send(
        control,
        &to_json(&Report::CellReady),
        carried.as_ref().map_or(&[], |pair| pair),
    );
    Some(cell)
}
