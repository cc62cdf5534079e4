//! Ownership of new files and directories.
//!
//! A server that runs as root writes into workspaces of other users. New entries get the owner of their
//! parent directory; otherwise the commands of that user could not change them.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Gid, Mode, OFlags, Stat, Uid, fchown, fstat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::resolve::ResolvedParent;

/// Gives a new file the owner of its parent directory, if the process is root and the owner is not.
pub(crate) fn inherit_owner(new: impl AsFd, target: &ResolvedParent<'_>) -> Result<(), Errno> {
    match foreign_owner(target)? {
        Some(owner) => {
            let user = Uid::from_raw(owner.st_uid);
            let group = Gid::from_raw(owner.st_gid);
            fchown(new, Some(user), Some(group))
        }
        None => Ok(()),
    }
}

/// Gives a new directory the owner of its parent directory.
pub(crate) fn inherit_directory_owner(target: &ResolvedParent<'_>) -> Result<(), Errno> {
    if foreign_owner(target)?.is_none() {
        return Ok(());
    }
    // The owner of the parent may have replaced the directory meanwhile. A directory that belongs to this
    // process is the new one or another one of its own, because directories have no second hard link.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made: OwnedFd = openat(&target.parent, &*target.name, flags, Mode::empty())?;
    if fstat(&made)?.st_uid != geteuid().as_raw() {
        return Ok(());
    }
    inherit_owner(made, target)
}

/// Returns the owner of the parent directory if this process is root and the owner is not.
fn foreign_owner(target: &ResolvedParent<'_>) -> Result<Option<Stat>, Errno> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let owner = fstat(&target.parent)?;
    Ok(Some(owner).filter(|owner| owner.st_uid != 0))
}
