//! What a workflow file says about which issues are worked on, how many at once and for how long.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use carrel_config::{Budgets, ConductorConfig};
use carrel_domain::Timestamp;

use carrel_tracker::{Issue, normal};

/// The rules of the loop, in force from the moment that it hears of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// States in which an issue is worked on.
    pub active: BTreeSet<String>,
    /// States in which an issue is finished.
    pub terminal: BTreeSet<String>,
    /// Labels that an issue must all have.
    pub required_labels: BTreeSet<String>,
    /// How many agents run at once.
    pub agents: usize,
    /// How many agents run at once for issues in a state.
    pub agents_by_state: BTreeMap<String, usize>,
    /// How many turns one run may take.
    pub turns: u64,
    /// The longest wait between two attempts.
    pub longest_wait: Duration,
    /// How long an agent may show no sign of life.
    pub stall: Option<Duration>,
    /// The time between two looks at the tracker.
    pub interval: Duration,
    /// What may be spent.
    pub budgets: Budgets,
}

/// What becomes of an issue that somebody works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is finished.
    Terminal,
    /// It is to be worked on.
    Active,
    /// It is neither, or not for us.
    Elsewhere,
}

impl Rules {
    /// Takes them from a workflow file.
    pub fn of(config: &ConductorConfig) -> Self {
        let words = |words: &[String]| words.iter().map(|word| normal(word)).collect();
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let agent = &config.agent;
        let by_state = agent.max_concurrent_agents_by_state.iter();
        Self {
            active: words(&config.tracker.active_states),
            terminal: words(&config.tracker.terminal_states),
            required_labels: words(&config.tracker.required_labels),
            agents: count(agent.max_concurrent_agents),
            agents_by_state: by_state.map(|(state, most)| (normal(state), count(*most))).collect(),
            turns: agent.max_turns,
            longest_wait: agent.max_retry_backoff,
            stall: config.codex.stall_timeout,
            interval: config.poll_interval,
            budgets: config.budgets,
        }
    }

    /// Says what becomes of an issue that somebody works on.
    pub fn standing(&self, issue: &Issue) -> Standing {
        let state = issue.normal_state();
        if self.terminal.contains(&state) {
            Standing::Terminal
        } else if self.is_ours(issue) && self.active.contains(&state) {
            Standing::Active
        } else {
            Standing::Elsewhere
        }
    }

    /// Tells whether somebody may begin to work on an issue, if there is room.
    pub fn is_eligible(&self, issue: &Issue) -> bool {
        issue.is_well_formed() && self.standing(issue) == Standing::Active
    }

    fn is_ours(&self, issue: &Issue) -> bool {
        let labels: BTreeSet<String> = issue.labels.iter().map(|label| normal(label)).collect();
        issue.dispatchable && self.required_labels.is_subset(&labels)
    }

    /// Returns how many agents may run for issues in a state.
    pub(crate) fn agents_in(&self, state: &str) -> usize {
        self.agents_by_state.get(state).copied().unwrap_or(self.agents)
    }
}

/// Orders issues: the most urgent, then the oldest, then by name.
pub fn order(one: &Issue, other: &Issue) -> Ordering {
    let age = |issue: &Issue| issue.created_at.map_or(i64::MAX, Timestamp::as_millis);
    let key = |issue: &Issue| (urgency(issue), age(issue));
    key(one).cmp(&key(other)).then_with(|| one.identifier.cmp(&other.identifier))
}

/// Returns how urgent an issue is; the smallest number comes first.
pub(crate) fn urgency(issue: &Issue) -> i64 {
    issue.priority.filter(|priority| (1..=4).contains(priority)).unwrap_or(5)
}
