//! Tries: several candidates for one change, each made in a fork of its own, verified, ranked, and the best promoted.
//!
//! The types here are the record of a try, which is written before and after each step, and the rules that need no
//! file: what a specification may say ([`Spec::check`]), how far a candidate has come and what another process does
//! with one that was cut short ([`Candidate::continuation`]), and the order among candidates ([`rank`]). The crate
//! `tools` makes the forks and runs the commands.
//!
//! ```text
//! pending ──► forking ──► forked ──► running ──► ran ──► judged
//!    ▲           │                      │         ▲ │
//!    └───────────┴── a new fork ────────┘         └─┘ verified again
//! ```
//!
//! The word in code is *trial*, since `try` is a keyword.
#![forbid(unsafe_code)]

mod candidate;
mod rank;
mod record;
mod spec;

pub use candidate::{
    Candidate, Continuation, DiffSize, Disqualification, MAX_ATTEMPTS, Ran, Reason, Score, Step,
    TestCounts, Verdict, Verification,
};
pub use rank::{Ranked, rank, winner};
pub use record::{
    EndedCandidate, Outcome, Phase, Promotion, SCHEMA, Trial, TrialList, TrialReply, TrialSummary,
};
pub use spec::{
    Budget, CommandRules, InvalidSpec, MAX_CANDIDATES, MAX_LINE_BYTES, MAX_PATCH_BYTES, Promote,
    Run, Spec,
};
