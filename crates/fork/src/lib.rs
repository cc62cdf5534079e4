//! Forks of a workspace on disk.
//!
//! A fork is an overlay over a base that is frozen while forks live. This crate makes and removes the
//! [`Layers`], tells their [`changes`], and moves them into the base ([`promote`]) by renames, journalled. Hosts
//! without overlays get a [`copy`] instead, with the same comparison and promotion. Mounting is done elsewhere.
//!
//! All calls block; callers on an async runtime move them to a blocking thread. A caller holds the lock of the base, and
//! sees to it that nothing is mounted on the layers or running in them, before it promotes.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use carrel_fork::{Drift, Layers, Limits, PromoteOptions, Recovery, Server, Source};
//! # fn forks(base: &carrel_fsroot::Root, forks: &carrel_fsroot::Root, server: Server<'_>)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! let layers = Layers::create(forks, Path::new("attempt-1"), base)?;
//! // ... mount, work, unmount ...
//! let upper = layers.upper()?;
//! for change in carrel_fork::changes(base, &upper, Limits::default())? {
//!     println!("{} {}", change.kind.as_str(), change.path.display());
//! }
//! // ... scan the base again, and take a snapshot of it: what is replaced is lost ...
//! let options = PromoteOptions { drift: Drift::default(), ..PromoteOptions::default() };
//! carrel_fork::promote(base, Source::Upper(&upper), server, &options)?;
//! Layers::remove(forks, Path::new("attempt-1"))?;
//!
//! // When the server starts, for each base:
//! if let Recovery::Damaged = carrel_fork::recover(base, &upper, server)? {
//!     // ... restore the snapshot ...
//!     carrel_fork::abandon(server.journal)?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! How it is built, from below: `tree` opens entries, `overlay` knows the marks of overlays, `compare` walks both trees,
//! `difference` compares two entries, `planner` makes the `plan` with the list of changes, `journal` keeps it, `steps` takes it, and `promote` has the order.
#![forbid(unsafe_code)]

// The tests of this crate share their worlds with the integration tests.
#[cfg(test)]
extern crate self as carrel_fork;

mod change;
mod codes;
mod compare;
mod contents;
mod copy;
#[cfg(test)]
mod crash_tests;
mod difference;
mod journal;
mod layers;
mod limits;
mod overlay;
mod plan;
mod planner;
mod promote;
mod steps;
mod sync;
mod tree;

pub use change::{Change, ChangeKind, Node};
pub use compare::{Source, changes, changes_of_copy};
pub use contents::are_equal as have_equal_content;
pub use copy::{Copied, CopyError, CopyOptions, copy};
pub use layers::{Layers, LayersError, Readiness};
pub use limits::{ChangesError, Limits};
pub use promote::{
    Drift, DriftPolicy, PromoteError, PromoteOptions, Promoted, Recovery, Server, abandon,
    is_unfinished, promote, recover,
};
