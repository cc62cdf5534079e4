//! Consumption of agents, and its comparison with budgets.
//!
//! A [`Spend`] is kept per turn, run, issue, day and conductor, and only grows. Turns and attempts are
//! counted when they begin, tokens as the agent reports them, and time when a run ends; the time of runs
//! in progress is added where a total is needed. So a budget of N turns allows exactly N to begin, while
//! tokens and minutes can be exceeded by what one report covers.

use std::ops::Add;
use std::time::Duration;

use carrel_config::Budget;
use carrel_domain::Timestamp;
use serde::{Deserialize, Serialize};

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// An amount of consumption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Spend {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// All tokens as the agent counts them, which need not be the sum of the other two.
    pub total_tokens: u64,
    pub turns: u64,
    pub attempts: u64,
    /// Running time of agents.
    pub time: Duration,
}

impl Add for Spend {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        self.zip(more, u64::saturating_add, Duration::saturating_add)
    }
}

impl Spend {
    pub(crate) fn tokens(self) -> Self {
        Self { time: Duration::ZERO, ..self.tokens_and_time() }
    }

    /// Returns the amount without turns and attempts. These are counted at their beginning, and reaching
    /// their limit must not stop the turn or run that reached it.
    pub(crate) fn tokens_and_time(self) -> Self {
        Self { turns: 0, attempts: 0, ..self }
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        self.zip(earlier, u64::saturating_sub, Duration::saturating_sub)
    }

    fn zip(
        self,
        other: Self,
        count: fn(u64, u64) -> u64,
        time: fn(Duration, Duration) -> Duration,
    ) -> Self {
        Self {
            input_tokens: count(self.input_tokens, other.input_tokens),
            output_tokens: count(self.output_tokens, other.output_tokens),
            total_tokens: count(self.total_tokens, other.total_tokens),
            turns: count(self.turns, other.turns),
            attempts: count(self.attempts, other.attempts),
            time: time(self.time, other.time),
        }
    }

    /// Returns the amount of one time alone.
    pub(crate) fn of_time(time: Duration) -> Self {
        Self { time, ..Self::default() }
    }

    /// Returns the description of the first limit of a budget that is reached.
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

/// Consumption on one day in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the struct says it")]
pub struct DailySpend {
    /// The number of the day since 1970-01-01.
    pub number: i64,
    pub spent: Spend,
}

impl DailySpend {
    /// Adds an amount to the day of `now`.
    pub(crate) fn add(&mut self, more: Spend, now: Timestamp) {
        self.turn_to(now);
        self.spent = self.spent + more;
    }

    /// Starts from zero if `now` is on a later day. A clock that goes back does not bring back a day,
    /// so that it cannot be spent twice.
    pub(crate) fn turn_to(&mut self, now: Timestamp) {
        let number = now.as_millis().div_euclid(DAY_MILLIS);
        if number > self.number {
            *self = Self { number, spent: Spend::default() };
        }
    }

    /// Returns the first millisecond of the day.
    pub(crate) fn begin(&self) -> Timestamp {
        Timestamp::from_millis(self.number.saturating_mul(DAY_MILLIS))
    }

    /// Returns the first millisecond of the day after `now`.
    pub(crate) fn next(now: Timestamp) -> Timestamp {
        Timestamp::from_millis((now.as_millis().div_euclid(DAY_MILLIS) + 1) * DAY_MILLIS)
    }
}
