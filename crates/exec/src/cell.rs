//! The server's handle to a sandbox cell.
//!
//! A cell is asked for over the spawner's connection and answers on two sockets of its own: one for
//! requests, used like the spawner's, and one that it keeps open until it ends, by which the server
//! notices its death.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use carrel_sandbox::{NetworkNamespace, Plan, SetupError};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::error::{CellError, SpawnError};
use crate::init_connection::InitConnection;
use crate::overlay::OverlayMount;
use crate::protocol::{CellDescriptors, MakeCell, Report, Request};
use crate::spawner::{START_LIMIT, Spawner};
use crate::spawner_connection::SpawnerConnection;

/// A handle to a sandbox cell.
///
/// It is used like the [`Spawner`] that made it, and keeps that spawner alive. When the last handle and
/// the last running command are dropped, the cell ends with everything in it.
#[derive(Clone, Debug)]
pub struct Cell {
    spawner: Spawner,
    /// Its network, if other cells can share it.
    network: Option<Arc<NetworkNamespace>>,
}

/// The tree that a cell shows at the path of its workspace.
#[derive(Clone, Copy, Debug)]
pub enum CellWorkspace<'a> {
    /// The directory at that path.
    Directory(BorrowedFd<'a>),
    /// The overlay that is mounted there. It stays mounted as long as the cell lives.
    Overlay(&'a OverlayMount),
}

impl<'a> From<BorrowedFd<'a>> for CellWorkspace<'a> {
    fn from(directory: BorrowedFd<'a>) -> Self {
        Self::Directory(directory)
    }
}

impl<'a> From<&'a OverlayMount> for CellWorkspace<'a> {
    fn from(overlay: &'a OverlayMount) -> Self {
        Self::Overlay(overlay)
    }
}

impl Spawner {
    /// Makes a cell. `workspace` and `scratch` are the directories that the plan names; `companion` is
    /// another cell of the same workspace whose network namespace it shares, which
    /// has to be of network `loopback`.
    ///
    /// An overlay is given if and only if the plan shows one; other pairs are refused.
    pub async fn cell(
        &self,
        plan: Plan,
        workspace: impl Into<CellWorkspace<'_>>,
        scratch: BorrowedFd<'_>,
        companion: Option<&Cell>,
    ) -> Result<Cell, CellError> {
        let (control, far_control) = InitConnection::open().map_err(SpawnError::Resources)?;
        let spawner = Some(Arc::clone(&self.link));
        let (link, far_requests) =
            SpawnerConnection::open(spawner).map_err(SpawnError::Resources)?;
        let number = self.link.number();
        let companion = companion.map(Cell::shared_network).transpose()?;
        let (workspace, overlay) = match workspace.into() {
            CellWorkspace::Directory(directory) => (directory, None),
            CellWorkspace::Overlay(overlay) => (overlay.root(), Some(overlay.for_cell())),
        };
        let making = async {
            let descriptors = CellDescriptors {
                control: far_control.as_fd(),
                requests: far_requests.as_fd(),
                workspace,
                scratch,
                companion,
                overlay,
            };
            let shares_network = descriptors.companion.is_some();
            let shows_overlay = descriptors.overlay.is_some();
            let plan = plan.without_standard_filter();
            let request =
                Request::Cell(Box::new(MakeCell { number, plan, shares_network, shows_overlay }));
            self.link.send(request, descriptors.in_order()).await?;
            drop((far_control, far_requests));
            ready(&control).await
        };
        let network =
            timeout(START_LIMIT, making).await.map_err(|_| SpawnError::Unresponsive)??;
        let program = Arc::clone(&self.program);
        let spawner = Spawner { link: Arc::new(link), program, gone: watch_exit(control) };
        Ok(Cell { spawner, network: network.map(Arc::new) })
    }
}

impl Cell {
    /// Returns the network that another cell is to share.
    fn shared_network(&self) -> Result<NetworkNamespace<BorrowedFd<'_>>, CellError> {
        let Some(network) = &self.network else {
            return Err(CellError::Refused(SetupError::no_network_to_share()));
        };
        Ok(NetworkNamespace { users: network.users.as_fd(), network: network.network.as_fd() })
    }
}

impl std::ops::Deref for Cell {
    type Target = Spawner;

    fn deref(&self) -> &Spawner {
        &self.spawner
    }
}

/// Waits for the cell. Returns its network, if other cells can share it.
async fn ready(control: &InitConnection) -> Result<Option<NetworkNamespace>, CellError> {
    let gone = || CellError::from(SpawnError::SpawnerGone);
    let (report, descriptors) = control.report_with_descriptors().await.ok_or_else(gone)?;
    match report {
        Report::CellReady => {
            let shared = <[OwnedFd; 2]>::try_from(descriptors).ok();
            Ok(shared.map(|[users, network]| NetworkNamespace { users, network }))
        }
        Report::CellFailed(failure) => Err(CellError::Refused(failure)),
        Report::Started { .. }
        | Report::Failed { .. }
        | Report::Ended { .. }
        | Report::OverlayMounted
        | Report::OverlayFailed(_) => Err(gone()),
    }
}

/// Returns a flag that turns true when the cell closes its end of the control socket.
fn watch_exit(control: InitConnection) -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    crate::tasks::spawn_task(async move {
        // A cell reports nothing after it is ready.
        let _ = control.report().await;
        sender.send_replace(true);
    });
    receiver
}
