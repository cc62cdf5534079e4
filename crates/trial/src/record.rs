//! The record of a try.

use carrel_domain::{Identifier, Timestamp, TrialId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::candidate::{Candidate, Step};
use crate::rank::{Ranked, rank};
use crate::spec::{Promote, Spec};

/// The version of the record.
pub const SCHEMA: u64 = 1;

/// A try, as its record has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// The version of the record.
    pub schema: u64,
    /// The id.
    pub id: TrialId,
    /// The workspace whose forks the candidates are.
    #[schemars(with = "String")]
    pub base: Identifier,
    /// It belongs to a server, which takes it up at its start; otherwise to the command line.
    #[serde(default)]
    pub of_server: bool,
    /// The time when it was begun.
    pub created_at: Timestamp,
    /// The specification.
    pub spec: Spec,
    /// The phase.
    pub phase: Phase,
    /// Milliseconds in which a process worked on it.
    #[serde(default)]
    pub spent_millis: u64,
    /// The candidates, in the order of their numbers.
    pub candidates: Vec<Candidate>,
    /// The candidates from the best to the worst, when all are judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranking: Vec<Ranked>,
    /// The snapshot of the base before the promotion, from the beginning of the promotion on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The result, when it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// The phase of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TrialPhase")]
pub enum Phase {
    /// Candidates run and are verified.
    Running,
    /// The best candidate is being promoted, and nothing else may be any more.
    Promoting,
    /// It is over.
    Finished,
}

/// The result of a try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[schemars(rename = "TrialOutcome")]
pub enum Outcome {
    /// The base is what the best candidate made.
    Promoted(Promotion),
    /// The best candidate waits for a person, as was asked for.
    Chosen {
        /// Its number.
        candidate: u8,
    },
    /// No candidate passed, and nothing was promoted.
    NonePassed,
    /// The best candidate was not promoted. The forks stay.
    NotPromoted {
        /// Its number.
        candidate: u8,
        /// The code of the refusal.
        code: String,
        /// The refusal.
        message: String,
    },
}

/// A promotion that was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TrialPromotion")]
pub struct Promotion {
    /// The number of the candidate.
    pub candidate: u8,
    /// The snapshot of the base as it was before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The other candidates that had a fork.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<EndedCandidate>,
}

/// A candidate whose fork ended with the promotion of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TrialEndedCandidate")]
pub struct EndedCandidate {
    /// Its number.
    pub candidate: u8,
    /// The snapshot of the base that has its work; none if it changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
}

/// A line of a list of tries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialSummary {
    /// The id.
    pub id: TrialId,
    /// The base.
    #[schemars(with = "String")]
    pub base: Identifier,
    /// The time when it was begun.
    pub created_at: Timestamp,
    /// The phase.
    pub phase: Phase,
    /// The number of candidates.
    pub candidates: u64,
    /// The number of those that are judged.
    pub judged: u64,
    /// The result, when it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// The tries of a workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialList {
    /// The tries, the newest first.
    pub tries: Vec<TrialSummary>,
}

/// A try as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialReply {
    /// The record.
    #[serde(flatten)]
    pub trial: Trial,
    /// The changes of the requested candidate: a list of them, an empty line, and a diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

impl Trial {
    /// Makes the record of a try that begins.
    pub fn new(id: TrialId, base: Identifier, spec: Spec, created_at: Timestamp) -> Self {
        let numbered = (1..).zip(&spec.runs);
        let candidates =
            numbered.map(|(number, run)| Candidate::new(number, run.clone())).collect();
        Self {
            schema: SCHEMA,
            id,
            base,
            of_server: false,
            created_at,
            spec,
            phase: Phase::Running,
            spent_millis: 0,
            candidates,
            ranking: Vec::new(),
            before: None,
            outcome: None,
        }
    }

    /// Returns a candidate by its number.
    pub fn candidate(&self, number: u8) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.number == number)
    }

    /// Returns a candidate by its number, to change it.
    pub fn candidate_mut(&mut self, number: u8) -> Option<&mut Candidate> {
        self.candidates.iter_mut().find(|candidate| candidate.number == number)
    }

    /// Returns the time that is left of the budget.
    pub fn time_left(&self) -> Duration {
        let spent = Duration::from_millis(self.spent_millis);
        self.spec.budget.total().saturating_sub(spent)
    }

    /// Returns whether all candidates are judged.
    pub fn is_judged(&self) -> bool {
        self.candidates.iter().all(|candidate| candidate.step == Step::Judged)
    }

    /// Ranks the candidates and decides what follows: a promotion, or the end.
    pub fn decide(&mut self) {
        self.ranking = rank(&self.candidates);
        let best = crate::rank::winner(&self.candidates).map(|candidate| candidate.number);
        match (best, self.spec.promote) {
            (None, _) => self.finish(Outcome::NonePassed),
            (Some(candidate), Promote::None) => self.finish(Outcome::Chosen { candidate }),
            (Some(_), Promote::Best) => self.phase = Phase::Promoting,
        }
    }

    /// Ends the try.
    pub fn finish(&mut self, outcome: Outcome) {
        self.phase = Phase::Finished;
        self.outcome = Some(outcome);
    }

    /// Returns the best candidate of a try that is ranked, if it may be promoted.
    pub fn winner(&self) -> Option<&Candidate> {
        crate::rank::winner(&self.candidates)
    }

    /// Returns the line of a list.
    pub fn summary(&self) -> TrialSummary {
        let judged = self.candidates.iter().filter(|one| one.step == Step::Judged).count();
        TrialSummary {
            id: self.id.clone(),
            base: self.base.clone(),
            created_at: self.created_at,
            phase: self.phase,
            candidates: self.candidates.len() as u64,
            judged: judged as u64,
            outcome: self.outcome.clone(),
        }
    }
}
