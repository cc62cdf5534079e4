//! Which time stamps of a file system can be believed.

use carrel_fsroot::Root;
use rustix::fs::fstatfs;

/// Local file systems that stamp every change, also a write through a mapping.
const ALL: [u32; 5] = [EXT, XFS, BTRFS, F2FS, OVERLAY];
const EXT: u32 = 0xEF53;
const XFS: u32 = 0x5846_5342;
const BTRFS: u32 = 0x9123_683E;
const F2FS: u32 = 0xF2F5_2010;
const OVERLAY: u32 = 0x794C_7630;

/// On older kernels a memory file system does not stamp a write through a mapping.
const TMPFS: u32 = 0x0102_1994;

/// What an unchanged stamp proves. Elsewhere everything is read at every look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamping {
    /// That a file has the same contents.
    pub(super) files: bool,
    /// That a directory has the same names.
    pub(super) directories: bool,
}

impl Stamping {
    pub(super) fn of(root: &Root) -> Self {
        let kind = fstatfs(root).ok().and_then(|stat| u32::try_from(stat.f_type).ok());
        let files = kind.is_some_and(|kind| ALL.contains(&kind));
        Self { files, directories: files || kind == Some(TMPFS) }
    }
}
