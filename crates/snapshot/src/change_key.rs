//! Change keys: what tells that a file is as it was, without reading it.
//!
//! A key is the inode, the length and the times of the last change of content and of the inode. The kernel changes the
//! last one with every change, but only as finely as its clock ticks: a file that is changed again within the
//! tick in which it was read keeps its key. So a key that is younger than [`RACY`] when the content is read is
//! not trusted the next time, and the content is read again. Linux 6.13 and later have finer times where a
//! time was looked at, and do not need the rule; it costs nothing there either, since few files are that young.
//!
//! A store through a mapping (`MAP_SHARED`) to a page that is already dirty changes no time at all.
//! [`crate::Trust`] is for that.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carrel_domain::encoding::{Reader, put_number};
use carrel_fsroot::Metadata;

/// More than the coarsest tick of a kernel, which is 10 ms.
const RACY: Duration = Duration::from_millis(40);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangeKey {
    inode: u64,
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified: u64,
    changed: u64,
}

impl ChangeKey {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.identity.inode,
            size: metadata.size,
            modified: nanoseconds(metadata.modified),
            changed: nanoseconds(metadata.changed),
        }
    }

    /// Returns the key of an open file.
    pub(crate) fn of_open(metadata: &std::fs::Metadata) -> Self {
        let time = |seconds: i64, nanoseconds: i64| {
            let seconds = u64::try_from(seconds).unwrap_or(0);
            seconds.saturating_mul(NANOSECONDS) + u64::try_from(nanoseconds).unwrap_or(0)
        };
        Self {
            inode: metadata.ino(),
            size: metadata.len(),
            modified: time(metadata.mtime(), metadata.mtime_nsec()),
            changed: time(metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Returns whether a change after a time is certain to change the key. What was read before that time is not told
    /// about.
    pub(crate) fn is_settled(&self, time: SystemTime) -> bool {
        let racy = RACY.as_nanos().try_into().unwrap_or(u64::MAX);
        self.changed.saturating_add(racy) < nanoseconds(time)
    }

    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        for value in [self.inode, self.size, self.modified, self.changed] {
            put_number(bytes, value);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            inode: reader.number()?,
            size: reader.number()?,
            modified: reader.number()?,
            changed: reader.number()?,
        })
    }
}

const NANOSECONDS: u64 = 1_000_000_000;

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs().saturating_mul(NANOSECONDS) + u64::from(since.subsec_nanos())
}
