//! What agents use up, and what they may.

use std::ops::Add;
use std::time::Duration;

use carrel_config::Budget;
use carrel_domain::Timestamp;
use serde::{Deserialize, Serialize};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// What was used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spend {
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// All tokens, as the agent counts them.
    pub total_tokens: u64,
    /// Turns that were begun.
    pub turns: u64,
    /// Runs that were begun.
    pub attempts: u64,
    /// Time that agents ran.
    pub time: Duration,
}

impl Add for Spend {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(more.input_tokens),
            output_tokens: self.output_tokens.saturating_add(more.output_tokens),
            total_tokens: self.total_tokens.saturating_add(more.total_tokens),
            turns: self.turns.saturating_add(more.turns),
            attempts: self.attempts.saturating_add(more.attempts),
            time: self.time.saturating_add(more.time),
        }
    }
}

impl Spend {
    /// Leaves out everything but tokens.
    pub(crate) fn tokens(self) -> Self {
        Self { time: Duration::ZERO, ..self.tokens_and_time() }
    }

    /// Leaves out what is counted when it begins, so that what was begun may be ended.
    pub(crate) fn tokens_and_time(self) -> Self {
        Self { turns: 0, attempts: 0, ..self }
    }

    /// Returns what came on top of an earlier amount.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(earlier.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(earlier.output_tokens),
            total_tokens: self.total_tokens.saturating_sub(earlier.total_tokens),
            turns: self.turns.saturating_sub(earlier.turns),
            attempts: self.attempts.saturating_sub(earlier.attempts),
            time: self.time.saturating_sub(earlier.time),
        }
    }

    /// Says which limit is reached, if one is: nothing more may be begun.
    pub(crate) fn reached(&self, budget: &Budget) -> Option<String> {
        let minutes = self.time.as_secs() / 60;
        let limits = [
            ("tokens", self.total_tokens, budget.tokens),
            ("turns", self.turns, budget.turns),
            ("minutes", minutes, budget.minutes),
            ("attempts", self.attempts, budget.attempts),
        ];
        limits.into_iter().find_map(|(what, spent, limit)| {
            let limit = limit.filter(|limit| spent >= *limit)?;
            Some(format!("{spent} of {limit} {what} are used up"))
        })
    }
}

/// What was used up on one day, in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Day {
    /// The number of the day since 1970.
    pub number: i64,
    /// What was used up on it.
    pub spent: Spend,
}

impl Day {
    /// Adds to the day that it is now; an earlier one is over.
    pub(crate) fn add(&mut self, more: Spend, now: Timestamp) {
        self.turn_to(now);
        self.spent = self.spent + more;
    }

    /// Begins a new day if it is one. A clock that goes back does not bring an old one back.
    pub(crate) fn turn_to(&mut self, now: Timestamp) {
        let number = now.as_millis().div_euclid(DAY);
        if number > self.number {
            *self = Self { number, spent: Spend::default() };
        }
    }

    /// Returns when it began.
    pub(crate) fn begin(&self) -> Timestamp {
        Timestamp::from_millis(self.number.saturating_mul(DAY))
    }

    /// Returns when the next one begins.
    pub(crate) fn next(now: Timestamp) -> Timestamp {
        Timestamp::from_millis((now.as_millis().div_euclid(DAY) + 1) * DAY)
    }
}
