//! Tests of the client.
//!
//! - `replies`: replies, errors and what is neither
//! - `events`: events across broken connections
//! - `script`: a scripted server
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod events;
mod replies;
mod script;
