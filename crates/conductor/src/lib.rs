//! The conductor: one workspace and one agent for each issue of a tracker.
//!
//! [`decide`] is the loop: a pure function from a [`State`] and an [`Event`] to the next state and the
//! [`Effect`]s that follow. Whoever runs it does the effects, never waits for one inside the loop, and
//! hands in what comes of them as further events.
//!
//! ```text
//! tracker ──► Polled, Read ──►┐                ┌──► Poll, Read ──► tracker
//! agents  ──► Heard, Ended ──►┤ State ► decide ├──► Start, NextTurn, Stop ──► agents
//! people  ──► Told         ──►┘                └──► Save, Clean, Say
//! ```
#![forbid(unsafe_code)]

mod backoff;
pub mod dashboard;
mod decide;
pub mod drive;
mod due;
mod entry;
mod event;
mod limits;
mod notice;
mod refusal;
mod rules;
pub mod snapshot;
mod spend;
mod state;
mod text;

pub use carrel_tracker::{Blocker, Fault, FaultKind, Issue, IssueId};
pub use decide::decide;
pub use entry::{
    BetweenTurns, Block, Entry, Reason, Retry, Run, RunId, Said, Stage, Then, Trace, Why,
};
pub use event::{Effect, End, Event, News, Order, Start};
pub use notice::{Notice, Outcome, Subject};
pub use refusal::Refused;
pub use rules::{Rules, Standing, order};
pub use spend::{Day, Spend};
pub use state::{Hold, Ledger, Mode, Poll, Question, State, Told};
