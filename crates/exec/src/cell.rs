//! The server's side of cells.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use carrel_sandbox::Plan;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::control::Control;
use crate::error::{CellError, SpawnError};
use crate::link::Link;
use crate::protocol::{CellDescriptors, MakeCell, Report, Request};
use crate::spawner::{START_LIMIT, Spawner};

/// The commands of one workspace, behind the walls of a plan.
///
/// It is used like the [`Spawner`] that it was made from, which is kept alive as long as a cell is.
/// When the last handle and the last running command are dropped, everything in it is killed.
#[derive(Clone, Debug)]
pub struct Cell {
    spawner: Spawner,
    number: u64,
}

impl Spawner {
    /// Makes a cell. `workspace` and `scratch` are the directories that the plan names; a
    /// `companion` is another cell of the same workspace, whose network is shared.
    pub async fn cell(
        &self,
        plan: Plan,
        workspace: BorrowedFd<'_>,
        scratch: BorrowedFd<'_>,
        companion: Option<&Cell>,
    ) -> Result<Cell, CellError> {
        let (control, far_control) = Control::open().map_err(SpawnError::Resources)?;
        let spawner = Some(Arc::clone(&self.link));
        let (link, far_requests) = Link::open(spawner).map_err(SpawnError::Resources)?;
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
        let spawner = Spawner { link: Arc::new(link), program, gone: watch_over(control) };
        Ok(Cell { spawner, number })
    }
}

impl std::ops::Deref for Cell {
    type Target = Spawner;

    fn deref(&self) -> &Spawner {
        &self.spawner
    }
}

async fn ready(control: &Control) -> Result<(), CellError> {
    match control.report().await {
        Some(Report::CellReady) => Ok(()),
        Some(Report::CellFailed(failure)) => Err(CellError::Refused(failure)),
        Some(Report::Started { .. } | Report::Failed { .. } | Report::Ended { .. }) | None => {
            Err(SpawnError::SpawnerGone.into())
        }
    }
}

/// Watches the cell, which keeps its end of the control socket until it ends.
fn watch_over(control: Control) -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        // Nothing else is ever reported.
        let _ = control.report().await;
        sender.send_replace(true);
    });
    receiver
}
