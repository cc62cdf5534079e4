//! What somebody outside the loop counts, to compare it with what the loop counts.

use std::collections::BTreeMap;

use carrel_conductor::{Dispatch, Event, IssueId, Notice, OperatorCommand, RetryReason, State};

/// What is known of one issue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) attempts: u64,
    pub(crate) turns: u64,
    pub(crate) tokens: u64,
    /// Nobody may begin before that.
    pub(crate) not_before: Option<i64>,
    /// The attempt that the next one has to be.
    pub(crate) attempt: Option<u32>,
    /// Somebody has to do something first.
    pub(crate) blocked: bool,
    /// How often it was begun, over all time.
    pub(crate) begun: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Accounts {
    pub(crate) by_issue: BTreeMap<IssueId, Account>,
    pub(crate) tokens: u64,
    pub(crate) turns: u64,
    pub(crate) attempts: u64,
}

impl Accounts {
    pub(crate) fn account(&mut self, id: &IssueId) -> &mut Account {
        self.by_issue.entry(id.clone()).or_default()
    }

    pub(crate) fn start(&mut self, start: &Dispatch) {
        self.attempts += 1;
        self.turns += 1;
        let account = self.account(&start.issue.id);
        account.attempts += 1;
        account.turns += 1;
        account.begun += 1;
        account.not_before = None;
    }

    pub(crate) fn turn(&mut self, id: &IssueId) {
        self.turns += 1;
        self.account(id).turns += 1;
    }

    pub(crate) fn use_tokens(&mut self, id: &IssueId, count: u64) {
        self.tokens += count;
        self.account(id).tokens += count;
    }

    /// The loop forgets what it spent on an issue when nothing of it is left.
    pub(crate) fn forget(&mut self, id: &IssueId) {
        let account = self.account(id);
        *account = Account { begun: account.begun, ..Account::default() };
    }

    pub(crate) fn apply(&mut self, event: &Event, state: &State) {
        if let Event::Command(command) = event
            && state.reject(command).is_none()
            && let OperatorCommand::RetryNow(id)
            | OperatorCommand::Unblock(id)
            | OperatorCommand::Answer(id, _) = command
        {
            let account = self.account(id);
            account.blocked = false;
            account.not_before = None;
        }
    }

    pub(crate) fn note(&mut self, notice: &Notice, now: i64) {
        match notice {
            Notice::WillRetry { issue, attempt, why, delay_ms, .. } => {
                let account = self.account(&issue.id);
                account.attempt = Some(*attempt);
                // Somebody lifted it, maybe in the same moment in which it was found to be blocked.
                account.blocked &= *why != RetryReason::Operator;
                if *why != RetryReason::Interrupted {
                    account.not_before = Some(now + i64::try_from(*delay_ms).unwrap());
                }
            }
            Notice::Blocked { issue, .. } => self.account(&issue.id).blocked = true,
            Notice::Released { issue } => {
                let account = self.account(&issue.id);
                account.blocked = false;
                account.not_before = None;
                account.attempt = None;
            }
            _ => {}
        }
    }
}
