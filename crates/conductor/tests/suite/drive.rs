//! The conductor on real files, with agents that do as a test says.

/// Agents, trackers and a place for them.
mod harness;
/// What is remembered, and what a start makes of it.
mod journal;
/// Many issues and many agents.
mod load;
/// Turns that have effects, and turns that have none.
mod progress;
/// Runs from their start to their end.
mod runs;
