//! The conductor on real files, with agents that do as a test says.

/// Runs from their start to their end.
mod course;
/// What is remembered, and what a start makes of it.
mod journal;
/// Many issues and many agents.
mod load;
/// Agents, trackers and a place for them.
mod stage;
