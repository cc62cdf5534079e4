//! `budgets`: limits of turns, tokens, minutes and attempts.
//!
//! The limits of an issue have defaults, since an issue that stays active is worked on again and again. Each
//! leaves room for work on a large issue and ends within a night:
//!
//! | limit | default | reason |
//! |---|---|---|
//! | turns | 100 | five runs of the default `agent.max_turns` |
//! | attempts | 20 | failures with the default back-off take about an hour and a quarter, longer than most outages |
//! | minutes | 480 | eight hours of an agent at work |
//! | tokens | 10,000,000 | a few hours of a model that reads its conversation again with each request |
//!
//! An operator who unblocks the issue grants the same amount once more.

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
                turns: reader.limit(&keys::ISSUE_TURNS),
                tokens: reader.limit(&keys::ISSUE_TOKENS),
                minutes: reader.limit(&keys::ISSUE_MINUTES),
                attempts: reader.limit(&keys::ISSUE_ATTEMPTS),
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
