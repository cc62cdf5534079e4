//! The part of a workflow file that decides which issues are dispatched, how many at once and in which
//! order.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use carrel_config::{Budgets, ConductorConfig};
use carrel_domain::Timestamp;

use carrel_tracker::{Issue, normal};

/// Dispatch rules. Changed rules apply from the next decision on, also to runs in progress.
///
/// Names of states and labels are in the form of [`normal`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// States in which an issue is worked on.
    pub active: BTreeSet<String>,
    /// States in which an issue is finished and its workspace is removed.
    pub terminal: BTreeSet<String>,
    /// Labels that an issue must have, all of them (`tracker.required_labels`).
    pub required_labels: BTreeSet<String>,
    /// Agent slots in all (`agent.max_concurrent_agents`).
    pub max_agents: usize,
    /// Agent slots for issues in a state; states that are not listed share [`Self::max_agents`].
    pub max_agents_by_state: BTreeMap<String, usize>,
    /// Turns of one run (`agent.max_turns`). A run that reaches it finishes and is continued by another.
    pub max_turns: u64,
    /// Consecutive turns without an effect after which an issue is blocked (`agent.max_turns_without_progress`);
    /// `None` turns the check off.
    pub max_turns_without_progress: Option<u64>,
    /// The upper bound of the retry back-off (`agent.max_retry_backoff_ms`).
    pub max_backoff: Duration,
    /// The time without an agent event after which a run has stalled (`codex.stall_timeout_ms`); `None`
    /// turns the check off.
    pub stall_timeout: Option<Duration>,
    /// The time between the result of a poll and the next poll (`polling.interval_ms`).
    pub poll_interval: Duration,
    /// Limits on tokens, turns, minutes and attempts of a turn, a run, an issue and a day.
    pub budgets: Budgets,
}

/// The consequence of an issue's state, labels and assignment for its claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Finished: its run is stopped, and its workspace is removed when the run has ended.
    Terminal,
    /// To be worked on: in an active state, with all required labels, and dispatchable by the tracker's
    /// own rules.
    Active,
    /// Neither: its run is stopped, and its workspace is kept for the case that it becomes active again.
    Inactive,
}

impl Rules {
    /// Reads the rules from a workflow file's configuration.
    pub fn of(config: &ConductorConfig) -> Self {
        let words = |words: &[String]| words.iter().map(|word| normal(word)).collect();
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let agent = &config.agent;
        let by_state = agent.max_concurrent_agents_by_state.iter();
        Self {
            active: words(&config.tracker.active_states),
            terminal: words(&config.tracker.terminal_states),
            required_labels: words(&config.tracker.required_labels),
            max_agents: count(agent.max_concurrent_agents),
            max_agents_by_state: by_state
                .map(|(state, most)| (normal(state), count(*most)))
                .collect(),
            max_turns: agent.max_turns,
            max_turns_without_progress: agent.max_turns_without_progress,
            max_backoff: agent.max_retry_backoff,
            stall_timeout: config.codex.stall_timeout,
            poll_interval: config.poll_interval,
            budgets: config.budgets,
        }
    }

    /// Returns the disposition of an issue. A terminal state wins over missing labels.
    pub fn classify(&self, issue: &Issue) -> Disposition {
        let state = issue.normal_state();
        if self.terminal.contains(&state) {
            Disposition::Terminal
        } else if self.matches_filters(issue) && self.active.contains(&state) {
            Disposition::Active
        } else {
            Disposition::Inactive
        }
    }

    /// Returns true if an issue may be dispatched when a slot is free.
    pub fn is_eligible(&self, issue: &Issue) -> bool {
        issue.is_well_formed() && self.classify(issue) == Disposition::Active
    }

    fn matches_filters(&self, issue: &Issue) -> bool {
        let labels: BTreeSet<String> = issue.labels.iter().map(|label| normal(label)).collect();
        issue.dispatchable && self.required_labels.is_subset(&labels)
    }

    pub(crate) fn max_agents_in(&self, state: &str) -> usize {
        self.max_agents_by_state.get(state).copied().unwrap_or(self.max_agents)
    }
}

/// Compares two issues for dispatch: by priority, then the oldest first, then by identifier.
pub fn dispatch_order(one: &Issue, other: &Issue) -> Ordering {
    let age = |issue: &Issue| issue.created_at.map_or(i64::MAX, Timestamp::as_millis);
    let key = |issue: &Issue| (priority_rank(issue), age(issue));
    key(one).cmp(&key(other)).then_with(|| one.identifier.cmp(&other.identifier))
}

/// Returns the rank of an issue's priority, 1 for the most urgent to 4, and 5 for none or any other
/// number.
pub(crate) fn priority_rank(issue: &Issue) -> i64 {
    issue.priority.filter(|priority| (1..=4).contains(priority)).unwrap_or(5)
}
