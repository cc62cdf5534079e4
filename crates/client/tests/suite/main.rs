//! What holds of the client.
//!
//! - `answers`: what becomes of answers, refusals and things that are neither
//! - `events`: events across broken connections
//! - `script`: a server that says what it is told to
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod events;
mod script;
