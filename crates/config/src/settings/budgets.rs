//! `budgets`: limits of turns, tokens, minutes and attempts.

use crate::schema::SettingReader;
use crate::workflow_keys as keys;

/// The section `budgets`: a limit for each span of work. A turn can be limited in tokens and minutes only, a run
/// not in attempts; the other limits of those spans are always `None`.
#[expect(missing_docs, reason = "the fields are keys of the reference page")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    pub turn: Budget,
    pub run: Budget,
    pub issue: Budget,
    pub day: Budget,
}

/// The limits of one span: turns of agents, tokens and minutes that they used, attempts at an issue. `None` is no
/// limit, and a limit is at least 1.
#[expect(missing_docs, reason = "the fields are keys of the reference page")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    pub turns: Option<u64>,
    pub tokens: Option<u64>,
    pub minutes: Option<u64>,
    pub attempts: Option<u64>,
}

impl Budgets {
    pub(super) fn read(reader: &mut SettingReader<'_>) -> Self {
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
