//! What holds after every step, whatever happened.

use carrel_conductor::{Dispatch, Issue, Mode, Stage};

use super::{SimulatedWorld, What};

impl SimulatedWorld {
    /// An agent may start.
    pub(super) fn check_start(&self, start: &Dispatch) {
        let id = &start.issue.id;
        let begins = |what: &What| matches!(what, What::Begin(_, issue) if issue == id);
        let coming = self.coming.iter().any(|coming| begins(&coming.what));
        let there = self.agents.values().any(|agent| agent.issue == *id);
        assert!(!coming && !there, "two agents work on {id}");
        assert!(!self.removing.contains(id), "{id} is begun while its workspace is removed");
        assert_eq!(self.state.ledger.mode, Mode::Working, "{id} is begun all the same");
        assert_eq!(
            self.state.ledger.rate_limited.until(self.time()),
            None,
            "{id} is begun all the same"
        );
        assert_eq!(self.state.workflow_error, None, "{id} is begun all the same");
        assert!(self.state.agents() <= self.state.rules.max_agents, "more agents than may run");
        let Some(account) = self.accounts.by_issue.get(id) else { return };
        assert!(!account.blocked, "{id} is blocked");
        if let Some(due) = account.not_before {
            assert!(due <= self.now, "{id} is begun {} ms too early", due - self.now);
        }
        if let Some(attempt) = account.attempt {
            assert_eq!(start.attempt.unwrap_or(0), attempt, "{id} is another attempt");
        }
    }

    /// A workspace may go.
    pub(super) fn check_clean(&self, issue: &Issue) {
        let id = &issue.id;
        let begins = |what: &What| matches!(what, What::Begin(_, issue) if issue == id);
        assert!(!self.coming.iter().any(|coming| begins(&coming.what)), "{id} is about to begin");
        assert!(!self.agents.values().any(|agent| agent.issue == *id), "{id} is worked on");
        let state = issue.normal_state();
        assert!(self.state.rules.terminal.contains(&state), "{id} is not finished, but {state}");
    }

    pub(super) fn check(&self) {
        for (run, agent) in &self.agents {
            let known = self.state.issues.get(&agent.issue).and_then(|claimed| claimed.stage.run());
            assert_eq!(known.map(|run| run.id), Some(*run), "nobody knows of an agent");
        }
        for id in self.state.waiting.keys() {
            let stage = self.state.issues.get(id).map(|claimed| &claimed.stage);
            assert!(stage.is_none_or(|stage| *stage == Stage::Resting), "{id} is ours: {stage:?}");
        }
        for (id, claimed) in &self.state.issues {
            let idle = claimed.turns_without_progress;
            assert!(idle <= 3, "{id} took {idle} turns without an effect");
        }
        self.check_memory();
        self.check_accounts();
    }

    /// Whatever a restart needs has been remembered.
    fn check_memory(&self) {
        assert!(self.saved.keys().eq(self.state.issues.keys()), "some are not remembered");
        assert_eq!(self.ledger, self.state.ledger);
        for (id, claimed) in &self.state.issues {
            let saved = &self.saved[id];
            let same =
                std::mem::discriminant(&saved.stage) == std::mem::discriminant(&claimed.stage);
            assert!(same, "{id} is remembered as {:?} and is {:?}", saved.stage, claimed.stage);
            let memory = |claimed: &carrel_conductor::ClaimedIssue| {
                (
                    claimed.attempt,
                    claimed.rate_limited_runs,
                    claimed.spent,
                    claimed.spent_at_unblock,
                )
            };
            assert_eq!(memory(saved), memory(claimed), "{id}");
            assert_eq!(saved.thread, claimed.thread, "{id}");
            assert_eq!(saved.answer, claimed.answer, "{id}");
            assert_eq!(saved.workspace, claimed.workspace, "{id}");
            if let (Stage::Retrying(saved), Stage::Retrying(retry)) = (&saved.stage, &claimed.stage)
            {
                assert_eq!(saved, retry, "{id}");
            }
        }
    }

    /// Nothing that was spent is lost, and nothing is counted twice.
    fn check_accounts(&self) {
        let ledger = self.state.ledger.spent;
        let accounts = &self.accounts;
        assert_eq!(
            (ledger.attempts, ledger.turns, ledger.total_tokens),
            (accounts.attempts, accounts.turns, accounts.tokens)
        );
        for (id, claimed) in &self.state.issues {
            let Some(account) = accounts.by_issue.get(id) else { continue };
            let spent = (claimed.spent.attempts, claimed.spent.turns, claimed.spent.total_tokens);
            assert_eq!(spent, (account.attempts, account.turns, account.tokens), "{id}");
        }
    }
}
