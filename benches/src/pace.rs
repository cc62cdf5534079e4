//! How much is measured.

/// How often each kind of work is done, and how large the trees are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Work of microseconds.
    pub(crate) fast: usize,
    /// Work that waits for the disk, or starts a process.
    pub(crate) slow: usize,
    /// A call over stdio or HTTP; of each client, where several call at once.
    pub(crate) calls: usize,
    /// Starting a server.
    pub(crate) starts: usize,
    /// Searching a whole tree.
    pub(crate) searches: usize,
    /// Calls to a server whose memory is looked at, after as many others.
    pub(crate) remembered: usize,
    /// Moving a tree away and back.
    pub(crate) moves: usize,
    /// Deleting or counting a whole tree.
    pub(crate) trees: usize,
    /// The files of a tree that is deleted.
    pub(crate) deleted_files: usize,
    /// The files of a tree that is counted.
    pub(crate) counted_files: usize,
    /// The files of a tree that is searched.
    pub(crate) searched_files: usize,
    /// The sources whose symbols are indexed, in megabytes.
    pub(crate) indexed_megabytes: &'static [u64],
    /// The trees of which snapshots and forks are made.
    pub(crate) recorded_trees: &'static [RecordedTree],
}

/// The measures of a tree of which snapshots and forks are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedTree {
    pub(crate) files: usize,
    pub(crate) average_bytes: usize,
}

/// A project of the usual size: 89 MB.
const USUAL_TREE: RecordedTree = RecordedTree { files: 6500, average_bytes: 13_650 };

/// A large one: 480 MB.
const LARGE_TREE: RecordedTree = RecordedTree { files: 105_000, average_bytes: 4550 };

impl Pace {
    /// Indexes that take minutes.
    pub(crate) const LARGE_INDEXES: &'static [u64] = &[7, 113, 1000];

    /// Snapshots that take minutes.
    pub(crate) const LARGE_TREES: &'static [RecordedTree] = &[USUAL_TREE, LARGE_TREE];

    /// About two minutes on a machine at rest, up to five soon after an earlier run.
    pub(crate) const FULL: Self = Self {
        fast: 5000,
        slow: 300,
        calls: 2000,
        starts: 50,
        searches: 31,
        remembered: 10_000,
        moves: 200,
        trees: 5,
        deleted_files: 50_000,
        counted_files: 200_000,
        searched_files: crate::haystack::FILES,
        indexed_megabytes: &[7, 113],
        recorded_trees: &[USUAL_TREE],
    };

    /// A few seconds; the figures mean little.
    pub(crate) const QUICK: Self = Self {
        fast: 200,
        slow: 30,
        calls: 200,
        starts: 5,
        searches: 5,
        remembered: 1000,
        moves: 10,
        trees: 2,
        deleted_files: 2000,
        counted_files: 5000,
        searched_files: 650,
        indexed_megabytes: &[1],
        recorded_trees: &[RecordedTree { files: 400, ..USUAL_TREE }],
    };
}
