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
mod decide;
pub mod drive;
mod due;
mod event;
mod rules;
mod spend;
mod state;

pub use carrel_tracker::{Blocker, Fault, FaultKind, Issue, IssueId};
pub use decide::decide;
pub use event::{Effect, End, Event, News, Notice, Order, Start};
pub use rules::{Rules, Standing, order};
pub use spend::{Day, Spend};
pub use state::{
    BetweenTurns, Block, Entry, Mode, Poll, Question, Reason, Retry, Run, RunId, Stage, State,
    Then, Trace, Why,
};
