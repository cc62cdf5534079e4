//! Whom new files and directories belong to.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Gid, Mode, OFlags, Stat, Uid, fchown, fstat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::resolve::ResolvedParent;

/// Gives something new to whom the directory that it is in belongs to. Otherwise what root writes for
/// somebody else could not be changed by them.
pub(crate) fn give(new: impl AsFd, place: &ResolvedParent<'_>) -> Result<(), Errno> {
    match somebody_else(place)? {
        Some(owner) => {
            let (user, group) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
            fchown(new, Some(user), Some(group))
        }
        None => Ok(()),
    }
}

/// Does the same with a directory that was just made.
pub(crate) fn give_directory(place: &ResolvedParent<'_>) -> Result<(), Errno> {
    if somebody_else(place)?.is_none() {
        return Ok(());
    }
    // Its owner-to-be may have put something else there. A directory has no second name elsewhere.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made: OwnedFd = openat(&place.parent, place.name, flags, Mode::empty())?;
    if fstat(&made)?.st_uid != geteuid().as_raw() {
        return Ok(());
    }
    give(made, place)
}

/// Returns the owner of a directory if that is somebody else than root, for whom root acts.
fn somebody_else(place: &ResolvedParent<'_>) -> Result<Option<Stat>, Errno> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let owner = fstat(&place.parent)?;
    Ok(Some(owner).filter(|owner| owner.st_uid != 0))
}
