//! Agents, as far as anybody outside can see them.

use std::path::PathBuf;

use carrel_conductor::{
    AgentUpdate, BlockReason, Event, IssueId, RunEnd, RunId, Spend, TurnEffects,
};
use serde_json::json;

use super::{Coming, SimulatedWorld, What};

#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) issue: IssueId,
    pub(crate) ending: bool,
    tokens: u64,
}

impl SimulatedWorld {
    /// Ends an agent, or one that is about to begin.
    pub(super) fn end(&mut self, run: RunId, end: RunEnd) {
        if let Some(agent) = self.agents.get_mut(&run) {
            if std::mem::replace(&mut agent.ending, true) {
                return;
            }
        } else {
            let begins = |coming: &Coming| matches!(coming.what, What::Begin(id, _) if id == run);
            let before = self.coming.len();
            self.coming.retain(|coming| !begins(coming));
            if self.coming.len() == before {
                return;
            }
        }
        self.soon(What::RunEnd(run, end));
    }

    pub(super) fn begin(&mut self, run: RunId, id: &IssueId) {
        assert!(!self.removing.contains(id), "an agent begins in what is being removed");
        self.workspaces.insert(id.clone());
        self.agents.insert(run, Agent { issue: id.clone(), ending: false, tokens: 0 });
        self.apply(Event::WorkspaceReady(run, PathBuf::from(format!("/root/{id}"))));
        let (session, thread) = (format!("{}-1", run.0), run.0.to_string());
        if self.agents.contains_key(&run) {
            self.apply(Event::AgentUpdated(run, AgentUpdate::SessionStarted { session, thread }));
            self.soon(What::Act(run));
        }
    }

    pub(super) fn next_turn(&mut self, run: RunId) {
        let agent = self.agents.get(&run).expect("it takes another turn");
        assert!(!agent.ending, "another turn of an agent that ends");
        let issue = agent.issue.clone();
        self.accounts.turn(&issue);
    }

    pub(super) fn act(&mut self, run: RunId) {
        let Some(agent) = self.agents.get_mut(&run).filter(|agent| !agent.ending) else { return };
        agent.tokens += 10;
        let (tokens, issue) = (agent.tokens, agent.issue.clone());
        let used = Spend { total_tokens: tokens, ..Spend::default() };
        self.accounts.use_tokens(&issue, 10);
        self.apply(Event::AgentUpdated(run, AgentUpdate::Usage(used)));
        if self.agents.get(&run).is_none_or(|agent| agent.ending) {
            return;
        }
        if self.goes_wrong() {
            return self.misbehave(run);
        }
        if self.rng.u8(..3) == 0 {
            let effects = TurnEffects { files: self.rng.u8(..4) > 0, ..TurnEffects::default() };
            self.apply(Event::AgentUpdated(run, AgentUpdate::TurnEnded(effects)));
        } else {
            self.soon(What::Act(run));
        }
    }

    fn misbehave(&mut self, run: RunId) {
        let end = match self.rng.u8(..7) {
            0 => RunEnd::Failed("it crashed".to_owned()),
            1 => RunEnd::RateLimited(None),
            2 => RunEnd::RateLimited(Some(std::time::Duration::from_secs(self.rng.u64(1..200)))),
            3 => RunEnd::Blocked(BlockReason::Input("which one?".to_owned())),
            4 => RunEnd::Completed,
            5 => {
                let seconds = self.rng.u32(1..200);
                let limits =
                    json!({ "primary": { "usedPercent": 100, "resetsInSeconds": seconds } });
                self.apply(Event::AgentUpdated(run, AgentUpdate::RateLimits(limits)));
                return self.soon(What::Act(run));
            }
            // It says nothing any more.
            _ => return,
        };
        self.end(run, end);
    }

    /// An agent ends by itself.
    pub(crate) fn kill(&mut self, run: RunId, end: RunEnd) {
        self.agents.remove(&run);
        let begins = |coming: &Coming| matches!(coming.what, What::Begin(id, _) if id == run);
        self.coming.retain(|coming| !begins(coming));
        self.apply(Event::RunEnded(run, end));
    }
}
