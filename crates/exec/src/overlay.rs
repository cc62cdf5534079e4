//! The server's handle to a mounted overlay, the tree of a fork.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use carrel_sandbox::{OverlayDirectories, OverlayNamespaces, OverlayPlan, SetupError, SetupStep};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, inotify, openat};
use rustix::io::Errno;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use crate::error::{OverlayError, SpawnError};
use crate::init_connection::InitConnection;
use crate::protocol::{CellOverlay, MountOverlay, OverlayDescriptors, Report, Request};
use crate::spawner::{START_LIMIT, Spawner};

/// A mounted overlay.
///
/// It consists of descriptors only: the root of the merged tree, the namespaces in which the overlay is mounted,
/// and the lock of its layers. No process stays for it, and it survives the spawner that mounted it. The
/// overlay is unmounted when this handle, every copy of its root and every cell that shows it are gone; if
/// the server dies, that is when the last cell has ended.
#[derive(Debug)]
pub struct OverlayMount {
    root: OwnedFd,
    namespaces: OverlayNamespaces,
    lock: OwnedFd,
}

impl Spawner {
    /// Mounts an overlay. `directories` are the ones that the plan names.
    ///
    /// The layers are locked (`flock` on their directory) until the handle and the last cell that shows the
    /// overlay are gone, because the kernel would let a second overlay use and damage them.
    pub async fn overlay(
        &self,
        plan: OverlayPlan,
        directories: OverlayDirectories<BorrowedFd<'_>>,
    ) -> Result<OverlayMount, OverlayError> {
        let lock = lock(directories.layers)?;
        let (control, far) = InitConnection::open().map_err(SpawnError::Resources)?;
        let number = self.link.number();
        let mounting = async {
            let descriptors = OverlayDescriptors { control: far.as_fd(), directories };
            let request = Request::Overlay(Box::new(MountOverlay { number, plan }));
            self.link.send(request, descriptors.in_order()).await?;
            drop(far);
            mounted(&control).await
        };
        let Ok(mounted) = timeout(START_LIMIT, mounting).await else {
            // It must not be mounted later, when the obstacle is gone.
            self.link.kill(number);
            return Err(SpawnError::Unresponsive.into());
        };
        let [root, users, mounts] = mounted?;
        Ok(OverlayMount { root, namespaces: OverlayNamespaces { users, mounts }, lock })
    }
}

/// Locks the layers. The lock belongs to the returned descriptor and its copies.
fn lock(layers: BorrowedFd<'_>) -> Result<OwnedFd, OverlayError> {
    let failed = |errno: Errno| SpawnError::Resources(errno.into());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let lock = openat(layers, ".", flags, Mode::empty()).map_err(failed)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(Errno::AGAIN) => Err(OverlayError::InUse),
        Err(errno) => Err(failed(errno).into()),
    }
}

async fn mounted(control: &InitConnection) -> Result<[OwnedFd; 3], OverlayError> {
    let gone = || OverlayError::from(SpawnError::SpawnerGone);
    let (report, descriptors) = control.report_with_descriptors().await.ok_or_else(gone)?;
    match report {
        Report::OverlayMounted => descriptors.try_into().map_err(|_| gone()),
        Report::OverlayFailed(SetupError { step: SetupStep::UsedLayers, .. }) => {
            Err(OverlayError::UsedBefore)
        }
        Report::OverlayFailed(failure) => Err(OverlayError::Refused(failure)),
        Report::Failed { errno, .. } => {
            Err(SpawnError::Resources(io::Error::from_raw_os_error(errno)).into())
        }
        Report::Started { .. }
        | Report::Ended { .. }
        | Report::CellReady
        | Report::CellFailed(_) => Err(gone()),
    }
}

impl OverlayMount {
    /// Returns the root of the merged tree, an `O_PATH` descriptor. While a copy of it is open, the overlay
    /// stays mounted.
    ///
    /// A server that runs as root may read through it, and creates files as
    /// [`OverlayPlan::writer`].
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Returns a future that ends when the overlay is unmounted: everything that kept it is gone and the layers
    /// can be used as plain directories. The future does not keep it mounted.
    pub fn unmounted(&self) -> io::Result<Unmounted> {
        Unmounted::watch(self.root.as_fd())
    }

    /// Drops the handle and waits until the overlay is unmounted. The caller has ended the fork's cells and
    /// closed every other copy of the root; otherwise this does not end.
    pub async fn end(self) -> io::Result<()> {
        let unmounted = self.unmounted()?;
        drop(self);
        unmounted.wait().await
    }

    pub(crate) fn for_cell(&self) -> CellOverlay<BorrowedFd<'_>> {
        let OverlayNamespaces { users, mounts } = &self.namespaces;
        CellOverlay {
            namespaces: OverlayNamespaces { users: users.as_fd(), mounts: mounts.as_fd() },
            lock: self.lock.as_fd(),
        }
    }
}

/// A watch for the end of a mounted file system.
#[derive(Debug)]
pub struct Unmounted(Receiver);

impl Unmounted {
    /// Watches the root of a file system. A watch keeps neither a file nor the file system in use, and the
    /// kernel reports the end of the latter to every watch.
    fn watch(root: BorrowedFd<'_>) -> io::Result<Self> {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let queue = inotify::init(flags)?;
        // The root cannot be deleted, so nothing else is reported.
        let path = format!("/proc/self/fd/{}", root.as_raw_fd());
        inotify::add_watch(&queue, path, inotify::WatchFlags::DELETE_SELF)?;
        // Used for readiness only, which works for any descriptor.
        Receiver::from_owned_fd_unchecked(queue).map(Self)
    }

    /// Waits until the file system is unmounted.
    pub async fn wait(self) -> io::Result<()> {
        self.0.readable().await
    }
}
