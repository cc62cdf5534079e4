//! The guarantees of the crate, tested with real overlays.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests lay out their own trees, mount overlays and fail by panicking"
)]

/// Copies of a base.
mod copying;
/// Promotions that are killed.
mod killing;
/// The layers of a fork on disk.
mod layers;
/// Promotion into the base, and its refusals.
mod promoting;
/// Trees and changes picked at random.
mod random_trees;
/// A base and its forks.
mod world;
