//! Pieces of a directory tree, detached and attached.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Stat, fstat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
    mount_change, move_mount, open_tree, unmount,
};

use crate::setup_process::{SetupProcess, SetupTask};

const ATTR_RDONLY: u64 = 0x1;
const ATTR_NOSUID: u64 = 0x2;
const ATTR_NODEV: u64 = 0x4;
const ATTR_NOEXEC: u64 = 0x8;
const ATTR_IDMAP: u64 = 0x10_0000;

/// What can be done through a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MountAccess {
    /// Reading and executing.
    Read,
    /// Reading, executing and changing.
    Change,
    /// Devices.
    Device,
    /// Reading, with devices among what is there.
    Nodes,
}

impl MountAccess {
    fn attributes(self) -> u64 {
        ATTR_NOSUID
            | match self {
                Self::Read => ATTR_RDONLY | ATTR_NODEV,
                Self::Change => ATTR_NODEV,
                Self::Device => ATTR_NOEXEC,
                Self::Nodes => ATTR_RDONLY | ATTR_NOEXEC,
            }
    }
}

/// A piece of a tree that is mounted nowhere yet.
#[derive(Debug)]
pub(crate) struct DetachedMount(OwnedFd);

impl DetachedMount {
    /// Copies what is at a path, with everything mounted below it. A link at the end is followed. The
    /// copy has to be limited before anything is mounted in it.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        Self::copy(CWD, path, OpenTreeFlags::empty())
    }

    /// Copies what a descriptor stands for.
    pub(crate) fn of_descriptor(descriptor: BorrowedFd<'_>) -> io::Result<Self> {
        Self::copy(descriptor, Path::new(""), OpenTreeFlags::AT_EMPTY_PATH)
    }

    fn copy(at: BorrowedFd<'_>, path: &Path, more: OpenTreeFlags) -> io::Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | more;
        Ok(Self(open_tree(at, path, flags)?))
    }

    /// Copies the piece with everything mounted in it. Kernels before 6.15 cannot do that.
    pub(crate) fn again(&self) -> io::Result<Self> {
        Self::of_descriptor(self.as_fd())
    }

    /// Makes a file system in memory for the root directory.
    pub(crate) fn memory() -> io::Result<Self> {
        Self::new("tmpfs", &[("mode", "0755"), ("size", "4m")], MountAttrFlags::empty())
    }

    /// Makes pseudo-terminals of their own.
    pub(crate) fn terminals() -> io::Result<Self> {
        let options = [("newinstance", ""), ("ptmxmode", "0666"), ("mode", "0620")];
        Self::new("devpts", &options, MountAttrFlags::MOUNT_ATTR_NOEXEC)
    }

    fn new(kind: &str, options: &[(&str, &str)], more: MountAttrFlags) -> io::Result<Self> {
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (name, value) in options {
            if value.is_empty() {
                rustix::mount::fsconfig_set_flag(&context, *name)?;
            } else {
                fsconfig_set_string(&context, *name, *value)?;
            }
        }
        fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | more;
        Ok(Self(fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?))
    }

    /// Limits what can be done through the piece and all that is mounted in it, and makes them private:
    /// a copy of a shared mount shares, and what is mounted in it would be mounted on the host too.
    pub(crate) fn limit(&self, to: MountAccess) -> io::Result<()> {
        let limited =
            MountChange { set: to.attributes(), propagation: libc::MS_PRIVATE, namespace: None };
        change(&self.0, c"", true, limited)
    }

    /// Limits what can be done through the piece, and not what is mounted in it, which has limits of its
    /// own.
    pub(crate) fn limit_alone(&self, to: MountAccess) -> io::Result<()> {
        let limited = MountChange { set: to.attributes(), ..MountChange::default() };
        change(&self.0, c"", false, limited)
    }

    /// Makes files of one owner appear as those of another, as a user namespace says.
    pub(crate) fn map_owner(&self, namespace: &OwnedFd) -> io::Result<()> {
        // Not what is mounted below: it may be of a kind that cannot be mapped.
        let mapped =
            MountChange { set: ATTR_IDMAP, namespace: Some(namespace), ..MountChange::default() };
        change(&self.0, c"", false, mapped)
    }

    /// Returns the piece as a directory or a file.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Returns what is known about the piece.
    pub(crate) fn status(&self) -> io::Result<Stat> {
        Ok(fstat(&self.0)?)
    }

    /// Returns whether the piece is a directory, a file or something else.
    pub(crate) fn kind(&self) -> io::Result<FileType> {
        Ok(FileType::from_raw_mode(self.status()?.st_mode))
    }

    /// Mounts the piece on something that is there.
    pub(crate) fn attach(&self, path: &Path) -> io::Result<()> {
        self.attach_below(CWD, path)
    }

    /// Mounts the piece on something below a descriptor. Where that is mounted nowhere itself, kernels before
    /// 6.15 cannot do that.
    pub(crate) fn attach_below(&self, top: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        Ok(move_mount(&self.0, "", top, path, flags)?)
    }

    /// Mounts the piece on what a descriptor stands for.
    pub(crate) fn attach_to(&self, place: BorrowedFd<'_>) -> io::Result<()> {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        Ok(move_mount(&self.0, "", place, "", flags)?)
    }

    /// Mounts the piece on something that is there and makes it the root directory. The old one is on
    /// top of it, out of reach of any path that does not go up from there, and has to be taken off.
    pub(crate) fn become_root(&self, on: &Path) -> io::Result<()> {
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private)?;
        self.attach(on)?;
        rustix::process::fchdir(&self.0)?;
        rustix::process::pivot_root(".", ".")?;
        Ok(rustix::process::chdir("/")?)
    }
}

/// Takes the old root directory off the new one. Nothing of it stays within reach.
pub(crate) fn leave_old_root() -> io::Result<()> {
    Ok(unmount("/", UnmountFlags::DETACH)?)
}

/// Makes the root directory itself read-only, not what is mounted in it.
pub(crate) fn seal_root() -> io::Result<()> {
    let sealed = MountChange { set: MountAccess::Read.attributes(), ..MountChange::default() };
    change(CWD, c"/", false, sealed)
}

/// Shows the processes of the calling process's own namespace instead of those of the cell's.
pub(crate) fn show_processes() -> io::Result<()> {
    let own = processes()?;
    unmount("/proc", UnmountFlags::DETACH)?;
    own.attach(Path::new("/proc"))
}

/// Shows the processes of the calling process's own namespace where there are none, and begins to take
/// the old root directory off. What is returned is done when that is.
pub(crate) fn show_processes_and_leave_old_root() -> io::Result<SetupProcess> {
    processes()?.attach(Path::new("/proc"))?;
    SetupProcess::start(SetupTask::OldRoot)
}

/// Makes a view of the processes of the calling process's own namespace, none of whose settings can be
/// written. The kernel makes one only while another, in whatever place, can be seen.
fn processes() -> io::Result<DetachedMount> {
    let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(DetachedMount(fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?))
}

/// What is changed about a mount.
#[derive(Clone, Copy, Default)]
struct MountChange<'a> {
    set: u64,
    propagation: u64,
    namespace: Option<&'a OwnedFd>,
}

fn change(
    at: impl AsFd,
    path: &std::ffi::CStr,
    recursive: bool,
    to: MountChange<'_>,
) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: to.set,
        attr_clr: 0,
        propagation: to.propagation,
        userns_fd: to.namespace.map_or(0, |fd| u64::from(fd.as_raw_fd().unsigned_abs())),
    };
    let recurse = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path ends in a zero, the structure is valid for reading its own size, and the
    // descriptors are open during the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at.as_fd().as_raw_fd(),
            path.as_ptr(),
            libc::AT_EMPTY_PATH | recurse,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
