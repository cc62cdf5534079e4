//! How much is measured.

/// How often each kind of work is done, and how large the trees are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Work of microseconds.
    pub(crate) fast: usize,
    /// Work that waits for the disk, or starts a process.
    pub(crate) slow: usize,
    /// Moving a tree away and back.
    pub(crate) moves: usize,
    /// Deleting or counting a whole tree.
    pub(crate) trees: usize,
    /// The files of a tree that is deleted.
    pub(crate) deleted_files: usize,
    /// The files of a tree that is counted.
    pub(crate) counted_files: usize,
}

impl Pace {
    /// Half a minute on a disk at rest, up to three minutes soon after an earlier run.
    pub(crate) const FULL: Self = Self {
        fast: 5000,
        slow: 300,
        moves: 200,
        trees: 5,
        deleted_files: 50_000,
        counted_files: 200_000,
    };

    /// A few seconds; the figures mean little.
    pub(crate) const QUICK: Self =
        Self { fast: 200, slow: 30, moves: 10, trees: 2, deleted_files: 2000, counted_files: 5000 };
}
