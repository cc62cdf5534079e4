//! The loop as a whole: in a made-up world with faults, and in single steps.

mod simulation;
mod steps;
mod world;
