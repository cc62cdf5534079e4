//! The conductor on real files, with agents that do as a test says.

/// Runs from their start to their end.
mod course;
/// Many issues and many agents.
mod load;
/// What is remembered, and what a start makes of it.
mod memory;
/// Agents, trackers and a place for them.
mod stage;
