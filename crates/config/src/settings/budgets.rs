//! `budgets`: limits of turns, tokens, minutes and attempts.

use crate::reader::Reader;
use crate::schema::keys;

/// Budgets by the span that they apply to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    /// For one turn; only tokens and minutes can be limited.
    pub turn: Budget,
    /// For one run; attempts cannot be limited.
    pub run: Budget,
    /// For one issue.
    pub issue: Budget,
    /// For one day and all issues together.
    pub day: Budget,
}

/// The limits of one span. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Turns of an agent.
    pub turns: Option<u64>,
    /// Tokens that agents used.
    pub tokens: Option<u64>,
    /// Minutes that agents ran.
    pub minutes: Option<u64>,
    /// Attempts at an issue.
    pub attempts: Option<u64>,
}

impl Budgets {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            turn: Budget {
                turns: None,
                tokens: reader.count(&keys::TURN_TOKENS),
                minutes: reader.count(&keys::TURN_MINUTES),
                attempts: None,
            },
            run: Budget {
                turns: reader.count(&keys::RUN_TURNS),
                tokens: reader.count(&keys::RUN_TOKENS),
                minutes: reader.count(&keys::RUN_MINUTES),
                attempts: None,
            },
            issue: Budget {
                turns: reader.count(&keys::ISSUE_TURNS),
                tokens: reader.count(&keys::ISSUE_TOKENS),
                minutes: reader.count(&keys::ISSUE_MINUTES),
                attempts: reader.count(&keys::ISSUE_ATTEMPTS),
            },
            day: Budget {
                turns: reader.count(&keys::DAY_TURNS),
                tokens: reader.count(&keys::DAY_TOKENS),
                minutes: reader.count(&keys::DAY_MINUTES),
                attempts: reader.count(&keys::DAY_ATTEMPTS),
            },
        }
    }
}
