//! Access to workspace files, every path resolved beneath an open directory. No other crate opens them.
//!
//! A [`Root`] holds an open directory. The kernel resolves every path given to it *beneath* that directory
//! (`openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_MAGICLINKS`), and the operation uses the descriptor
//! that was opened: no path is checked first and opened again later, so no other process can swap a
//! component in between. There is no fallback for kernels without `openat2`.
//!
//! Consequences for a caller:
//!
//! - Links are followed as long as they stay beneath the root, absolute ones too if they begin with the
//!   root's own path.
//! - `..` works while it stays beneath. A rename on the way may make the kernel return `EAGAIN`; the call
//!   is repeated a bounded number of times.
//! - A root in another mount namespace, such as the tree of a fork, has a label in place of its path
//!   ([`Root::with_label`]), and is changed as its [`Writer`].
//! - Only regular files are read and written. A FIFO, socket or device is an error at once.
//! - A write replaces the name ([`AtomicFile`]), so other hard links of the file keep the old contents.
//!
//! All calls block. Callers on an async runtime move them to a blocking thread.
#![forbid(unsafe_code)]

mod attributes;
mod browse;
mod copy;
mod directory;
mod error;
mod exact;
mod metadata;
mod open_directory;
mod owner;
mod read;
mod remove;
mod rename;
mod resolve;
mod root;
mod sensitive;
mod traversal;
mod usage;
mod walk;
mod watch;
mod write;
mod writer;

pub use attributes::Attribute;
pub use browse::Browser;
pub use copy::CopyMethod;
pub use directory::Entry;
pub use error::{Error, Escape, Problem};
pub use metadata::{FileKind, Metadata};
pub use open_directory::Directory;
pub use read::{FileRange, MAX_READ_BYTES, OpenedFile};
pub use rename::Collision;
pub use root::{Capacity, Identity, Root, Space};
pub use sensitive::is_sensitive;
pub use usage::{Usage, UsageLimit};
pub use walk::{WalkControl, WalkEntry};
pub use watch::{WatchEvent, WatchId, Watcher, has_events};
pub use write::{AtomicFile, Durability, WriteOptions, unfinished_write_pid};
pub use writer::Writer;
