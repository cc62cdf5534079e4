//! The only door to workspace files.
//!
//! A [`Root`] holds an open directory. Every path given to it is resolved by the
//! kernel *beneath* that directory (`openat2` with `RESOLVE_BENEATH` and
//! `RESOLVE_NO_MAGICLINKS`), and what was opened is what is used: no path is
//! checked first and opened again later, so no other process can swap a
//! component in between. There is no fallback for kernels without `openat2`.
//!
//! What the kernel's rules mean for a caller:
//!
//! - Links are followed as long as they stay beneath the root. An absolute link
//!   is refused even when it points inside, because the kernel resolves it from `/`.
//! - `..` works while it stays beneath. A rename anywhere near may make the kernel
//!   answer `EAGAIN`; the call is repeated a bounded number of times.
//! - Only regular files are read and written. A FIFO, socket or device is an error
//!   at once.
//! - A file with several hard links is one file to the reader. A write replaces the
//!   name, so the other names keep the old contents.
#![forbid(unsafe_code)]

mod browse;
mod change;
mod directory;
mod error;
mod file;
mod metadata;
mod owner;
mod remove;
mod resolve;
mod root;
mod sensitive;
mod step;
mod usage;
mod walk;
mod write;

pub use browse::Browser;
pub use change::Collision;
pub use directory::Entry;
pub use error::{Error, Escape, Problem};
pub use file::{FileRange, MAX_READ_BYTES, OpenedFile};
pub use metadata::{FileKind, Metadata};
pub use root::{Capacity, Identity, Root, Space};
pub use sensitive::is_sensitive;
pub use step::Directory;
pub use usage::{Usage, UsageLimit};
pub use walk::{WalkControl, WalkEntry};
pub use write::{AtomicFile, Durability, WriteOptions, unfinished_write_pid};
