//! File systems whose time stamps prove that nothing changed.
//!
//! The trust check skips an entry whose ctime is the same. That is sound only where the kernel stamps
//! every change, writes through a memory mapping included. On other file systems everything is read at
//! every check.

use carrel_fsroot::Root;
use rustix::fs::fstatfs;

/// Local file systems that stamp every change, writes through a mapping included.
const ALL: [u32; 5] = [EXT, XFS, BTRFS, F2FS, OVERLAY];
const EXT: u32 = 0xEF53;
const XFS: u32 = 0x5846_5342;
const BTRFS: u32 = 0x9123_683E;
const F2FS: u32 = 0xF2F5_2010;
const OVERLAY: u32 = 0x794C_7630;

/// Older kernels do not stamp a write through a mapping on tmpfs. Directories cannot be mapped.
const TMPFS: u32 = 0x0102_1994;

/// The conclusions that an unchanged stamp allows on a file system.
#[derive(Clone, Copy, Debug)]
pub(super) struct StampReliability {
    /// A file with the same stamp has the same contents.
    pub(super) files: bool,
    /// A directory with the same stamp has the same names.
    pub(super) directories: bool,
}

impl StampReliability {
    pub(super) fn of(root: &Root) -> Self {
        let kind = fstatfs(root).ok().and_then(|stat| u32::try_from(stat.f_type).ok());
        let files = kind.is_some_and(|kind| ALL.contains(&kind));
        Self { files, directories: files || kind == Some(TMPFS) }
    }
}
