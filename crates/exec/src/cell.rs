//! The server's handle to a sandbox cell.
//!
//! A cell is asked for over the spawner's connection and answers on two sockets of its own: one for
//! requests, used like the spawner's, and one that it keeps open until it ends, by which the server
//! notices its death.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use carrel_sandbox::Plan;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::error::{CellError, SpawnError};
use crate::init_connection::InitConnection;
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
    number: u64,
}

impl Spawner {
    /// Makes a cell. `workspace` and `scratch` are the directories that the plan names; `companion` is
    /// another cell of the same workspace whose network namespace it shares.
    pub async fn cell(
        &self,
        plan: Plan,
        workspace: BorrowedFd<'_>,
        scratch: BorrowedFd<'_>,
        companion: Option<&Cell>,
    ) -> Result<Cell, CellError> {
        let (control, far_control) = InitConnection::open().map_err(SpawnError::Resources)?;
        let spawner = Some(Arc::clone(&self.link));
        let (link, far_requests) =
            SpawnerConnection::open(spawner).map_err(SpawnError::Resources)?;
        let number = self.link.number();
        let companion = companion.map(|cell| cell.number);
        let making = async {
            let descriptors = CellDescriptors {
                control: far_control.as_fd(),
                requests: far_requests.as_fd(),
                workspace,
                scratch,
            };
            let plan = plan.without_standard_filter();
            let request = Request::Cell(Box::new(MakeCell { number, plan, companion }));
            self.link.send(request, descriptors.in_order()).await?;
            drop((far_control, far_requests));
            ready(&control).await
        };
        timeout(START_LIMIT, making).await.map_err(|_| SpawnError::Unresponsive)??;
        let program = Arc::clone(&self.program);
        let spawner = Spawner { link: Arc::new(link), program, gone: watch_exit(control) };
        Ok(Cell { spawner, number })
    }
}

impl std::ops::Deref for Cell {
    type Target = Spawner;

    fn deref(&self) -> &Spawner {
        &self.spawner
    }
}

async fn ready(control: &InitConnection) -> Result<(), CellError> {
    match control.report().await {
        Some(Report::CellReady) => Ok(()),
        Some(Report::CellFailed(failure)) => Err(CellError::Refused(failure)),
        Some(Report::Started { .. } | Report::Failed { .. } | Report::Ended { .. }) | None => {
            Err(SpawnError::SpawnerGone.into())
        }
    }
}

/// Returns a flag that turns true when the cell closes its end of the control socket.
fn watch_exit(control: InitConnection) -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        // A cell reports nothing after it is ready.
        let _ = control.report().await;
        sender.send_replace(true);
    });
    receiver
}
