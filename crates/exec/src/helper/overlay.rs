//! The process that mounts an overlay, passes its descriptors to the server and ends.

use std::os::fd::{AsFd, OwnedFd};

use carrel_sandbox::{MountedOverlay, OverlayNamespaces, OverlayPlan};

use super::init;
use crate::protocol::{OverlayDescriptors, Report, to_json};
use crate::socket;

/// Mounts the overlay and reports the result. Without a receiver the overlay is unmounted with the end of
/// this process.
pub(super) fn mount(plan: &OverlayPlan, descriptors: OverlayDescriptors<OwnedFd>) {
    let OverlayDescriptors { control, directories } = descriptors;
    match MountedOverlay::mount(plan, &directories) {
        Ok(mounted) => {
            let OverlayNamespaces { users, mounts } = &mounted.namespaces;
            let carried = [&mounted.root, users, mounts].map(AsFd::as_fd);
            // A server that has ended needs no report.
            let _ = socket::send(&control, &to_json(&Report::OverlayMounted), &carried);
        }
        Err(failure) => init::report(&control, &Report::OverlayFailed(failure)),
    }
}
