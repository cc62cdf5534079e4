//! Mounts: detached copies of directory trees, their attributes, and the switch to a new root.
//!
//! A root directory is assembled from detached mounts (`open_tree`, `fsmount`), which have no place in
//! any tree. A mount is limited while it is detached and only then attached (`move_mount`), so at no
//! moment is there a path through which a command could use it with more rights than the plan gives.
//! Copies of shared mounts are made private first; otherwise mounts made in them would appear on the
//! host too.
//!
//! The new mount API also makes the steps independent of paths: a mount is handled by its descriptor,
//! and a link that appears on the way changes nothing. Attaching to a mount that is itself detached needs
//! Linux 6.15; callers have a way around it on older kernels.

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

const RDONLY: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY;
const NOSUID: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID;
const NODEV: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NODEV;
const NOEXEC: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOEXEC;

/// The attributes of a mount, by the operations that it permits. Set-user-id bits never take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MountAccess {
    /// Reading and executing.
    Read,
    /// Reading, executing and changing.
    Change,
    /// Using a single device.
    Device,
    /// Reading a directory and using the devices in it.
    Nodes,
}

impl MountAccess {
    fn attributes(self) -> u64 {
        let more = match self {
            Self::Read => RDONLY | NODEV,
            Self::Change => NODEV,
            Self::Device => NOEXEC,
            Self::Nodes => RDONLY | NOEXEC,
        };
        (NOSUID | more).bits().into()
    }
}

/// A mount that is attached nowhere yet.
#[derive(Debug)]
pub(crate) struct DetachedMount(OwnedFd);

impl DetachedMount {
    /// Copies the tree at a path with all mounts below it, following a link at the end. The copy has to
    /// be [limited](Self::limit) before anything is attached to it.
    pub(crate) fn copy_of_path(path: &Path) -> io::Result<Self> {
        Self::copy_tree(CWD, path, OpenTreeFlags::empty())
    }

    /// Copies the tree that a descriptor refers to, with all mounts below it. Kernels before 6.15 cannot
    /// copy a detached mount.
    pub(crate) fn copy_of_descriptor(descriptor: BorrowedFd<'_>) -> io::Result<Self> {
        Self::copy_tree(descriptor, Path::new(""), OpenTreeFlags::AT_EMPTY_PATH)
    }

    fn copy_tree(at: BorrowedFd<'_>, path: &Path, more: OpenTreeFlags) -> io::Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | more;
        Ok(Self(open_tree(at, path, flags)?))
    }

    /// Creates a tmpfs for a root directory.
    pub(crate) fn tmpfs() -> io::Result<Self> {
        Self::new("tmpfs", &[("mode", "0755"), ("size", "4m")], MountAttrFlags::empty())
    }

    /// Creates a new devpts instance, whose terminals are invisible elsewhere.
    pub(crate) fn devpts() -> io::Result<Self> {
        let options = [("newinstance", ""), ("ptmxmode", "0666"), ("mode", "0620")];
        Self::new("devpts", &options, NOEXEC)
    }

    /// Creates an overlay of two layers. It keeps its marks in attributes that its user can write, and never
    /// syncs.
    pub(crate) fn overlay(lower: &str, upper: &str, work: &str) -> io::Result<Self> {
        let layers = [("lowerdir", lower), ("upperdir", upper), ("workdir", work)];
        let options = [&layers[..], &[("userxattr", ""), ("volatile", "")]].concat();
        Self::new("overlay", &options, NODEV)
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
        Ok(Self(fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, NOSUID | more)?))
    }

    /// Limits this mount and all mounts in it, and makes them private: a copy of a shared mount is
    /// shared too, and mounts made in it would appear on the host.
    pub(crate) fn limit(&self, to: MountAccess) -> io::Result<()> {
        let limited =
            MountChange { set: to.attributes(), propagation: libc::MS_PRIVATE, namespace: None };
        change(&self.0, c"", true, limited)
    }

    /// Limits this mount only. The mounts in it keep their own limits.
    pub(crate) fn limit_alone(&self, to: MountAccess) -> io::Result<()> {
        let limited = MountChange { set: to.attributes(), ..MountChange::default() };
        change(&self.0, c"", false, limited)
    }

    /// Makes the mount id-mapped: file owners are translated as the user namespace says.
    pub(crate) fn map_owner(&self, namespace: &OwnedFd) -> io::Result<()> {
        // Not recursive: a mount below may be of a file system that cannot be id-mapped.
        let set = MountAttrFlags::MOUNT_ATTR_IDMAP.bits().into();
        let mapped = MountChange { set, namespace: Some(namespace), ..MountChange::default() };
        change(&self.0, c"", false, mapped)
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub(crate) fn status(&self) -> io::Result<Stat> {
        Ok(fstat(&self.0)?)
    }

    pub(crate) fn kind(&self) -> io::Result<FileType> {
        Ok(FileType::from_raw_mode(self.status()?.st_mode))
    }

    /// Attaches the mount on top of an existing file or directory.
    pub(crate) fn attach(&self, path: &Path) -> io::Result<()> {
        self.attach_below(CWD, path)
    }

    /// Attaches the mount at a path below a descriptor. If that descriptor is itself in a detached
    /// mount, this fails on kernels before 6.15.
    pub(crate) fn attach_below(&self, top: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        Ok(move_mount(&self.0, "", top, path, flags)?)
    }

    /// Attaches the mount on top of the file or directory that a descriptor refers to.
    pub(crate) fn attach_to(&self, target: BorrowedFd<'_>) -> io::Result<()> {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        Ok(move_mount(&self.0, "", target, "", flags)?)
    }

    /// Attaches the mount on an existing directory and makes it the root directory. The old root is
    /// then stacked on top of `/` and must be detached: paths that do not climb from there cannot reach
    /// it, but `..` can.
    pub(crate) fn become_root(&self, on: &Path) -> io::Result<()> {
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private)?;
        self.attach(on)?;
        rustix::process::fchdir(&self.0)?;
        rustix::process::pivot_root(".", ".")?;
        Ok(rustix::process::chdir("/")?)
    }
}

impl From<DetachedMount> for OwnedFd {
    fn from(mount: DetachedMount) -> Self {
        mount.0
    }
}

/// Detaches the old root from the new one. No path leads to it afterwards.
pub(crate) fn detach_old_root() -> io::Result<()> {
    Ok(unmount("/", UnmountFlags::DETACH)?)
}

/// Makes the mount of the root directory read-only, and leaves the mounts in it as they are.
pub(crate) fn make_root_read_only() -> io::Result<()> {
    let sealed = MountChange { set: MountAccess::Read.attributes(), ..MountChange::default() };
    change(CWD, c"/", false, sealed)
}

/// Replaces the cell's `/proc` by one of the calling process's own process namespace.
pub(crate) fn replace_proc() -> io::Result<()> {
    let own = new_proc()?;
    unmount("/proc", UnmountFlags::DETACH)?;
    own.attach(Path::new("/proc"))
}

/// Mounts a `/proc` of the calling process's own process namespace where there is none, and starts to
/// detach the old root. The host is out of reach when the returned process has finished its task.
pub(crate) fn mount_proc_and_detach_old_root() -> io::Result<SetupProcess> {
    new_proc()?.attach(Path::new("/proc"))?;
    SetupProcess::start(SetupTask::DetachOldRoot)
}

/// Creates a read-only procfs of the calling process's own process namespace. In a user namespace the
/// kernel permits this only while another, fully visible procfs is mounted.
fn new_proc() -> io::Result<DetachedMount> {
    DetachedMount::new("proc", &[], RDONLY | NODEV | NOEXEC)
}

/// The arguments of `mount_setattr`.
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
