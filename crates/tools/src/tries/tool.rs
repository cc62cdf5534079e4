//! The tool `try`.

use std::sync::Arc;

use carrel_domain::{Failure, MAX_FORKS, Network, ToolGroup};
use carrel_trial::{Outcome, Promote, Run, Spec, Trial};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::comparison::comparison;
use super::host::TryHost;
use super::local_host::LocalHost;
use super::store::{NewTry, TryRunner};
use crate::registry::Catalogue;
use crate::reply_limit::{MaxBytes, shorten};
use crate::response::Reply;
use crate::shell::NetworkChoice;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add::<Try>();
}

pub(super) struct Try;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// Lines for bash, one for each candidate; or one for all, which `CARREL_CANDIDATE` tells apart.
    #[schemars(extend("x-brief" = "bash lines, one per candidate; or one for all ($CARREL_CANDIDATE)"))]
    runs: Vec<String>,
    /// The number of candidates; as many as there are lines by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_FORKS), extend("x-brief" = ""))]
    candidates: Option<u8>,
    /// A line for bash that verifies a candidate; the project's tests by default.
    #[serde(default)]
    #[schemars(extend("x-brief" = "bash line; the project's tests by default"))]
    verify: Option<String>,
    /// A line for bash whose last line is a number; larger is better.
    #[serde(default)]
    #[schemars(extend("x-brief" = "bash line printing a number"))]
    score: Option<String>,
    /// Promote the best candidate that passes; otherwise the forks stay.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    promote: bool,
    /// Seconds for each candidate; 600 by default.
    #[serde(default)]
    #[schemars(extend("x-brief" = "seconds for each; 600"))]
    timeout: Option<u64>,
    /// The network they get; at most what the operator allows.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    network: Option<NetworkChoice>,
    max_bytes: Option<MaxBytes>,
}

/// The facts about a try.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TryFacts {
    id: String,
    /// `promoted`, `chosen`, `none_passed` or `not_promoted`.
    outcome: &'static str,
    /// The number of the best candidate.
    best: Option<u8>,
    /// The candidates from the best to the worst.
    candidates: Vec<CandidateFact>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CandidateFact {
    candidate: u8,
    /// `passed`, `failed`, or why it cannot win.
    verdict: &'static str,
    tests_passed: u64,
    score: Option<f64>,
    files: u64,
    lines: u64,
    /// The fork, while it is there.
    fork: Option<String>,
}

impl Tool for Try {
    type Input = Input;
    type Facts = TryFacts;

    const ABOUT: About = About {
        name: "try",
        title: "Try several candidates",
        group: ToolGroup::Snapshot,
        in_default_set: false,
        description: "Runs candidates in forks, verifies and ranks them, and shows the comparison and the best diff. \
            `promote` keeps the best that passes.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<TryFacts> {
        let limit = context.reply_limit(input.max_bytes);
        let (local, base) = LocalHost::of(context)?;
        let host: Arc<dyn TryHost> = match context.toolbox.try_host() {
            Some(host) => Arc::clone(host),
            None => Arc::new(local),
        };
        let runner = TryRunner::new(host);
        let mut spec = input.spec()?;
        spec.network_cap = context.options.command_settings.network.token;
        let new = NewTry { base, inputs: vec![None; spec.runs.len()], spec };
        let session = runner.begin(new).await?;
        context.progress(0.0, None, &format!("try {}", session.id()));
        let trial = Box::pin(session.run(context.cancel())).await?;
        let mut text = comparison(&trial, |fork| format!("the fork {fork}"));
        if let Some(best) = trial.ranking.first().map(|best| best.candidate)
            && let Some(diff) = runner.diff(&trial.id, best).await?
        {
            line(&mut text, &format!("--- the diff of candidate {best} ---\n{diff}"));
        }
        let text =
            shorten(&context.cut_guard(), text, limit, "read the diff in the fork or its base");
        Ok(Reply::text(text, facts(&trial)))
    }
}

impl Input {
    fn spec(self) -> Result<Spec, Failure> {
        let lines = match (self.candidates, self.runs.as_slice()) {
            (None, _) => self.runs,
            (Some(count), [line]) => vec![line.clone(); usize::from(count)],
            (Some(count), lines) if lines.len() == usize::from(count) => self.runs,
            (Some(count), lines) => {
                let message = format!(
                    "{} lines for {count} candidates; give one for each, or one for all",
                    lines.len()
                );
                return Err(Failure::argument("runs", message));
            }
        };
        let runs = lines.into_iter().map(|line| Run::Command { line }).collect();
        let mut spec = Spec::new(runs);
        spec.verify = self.verify;
        spec.score = self.score;
        spec.promote = if self.promote { Promote::Best } else { Promote::None };
        spec.network = self.network.map(Network::from);
        if let Some(seconds) = self.timeout {
            spec.budget.candidate_seconds = seconds;
        }
        Ok(spec)
    }
}

fn facts(trial: &Trial) -> TryFacts {
    let (outcome, best) = match &trial.outcome {
        Some(Outcome::Promoted(promotion)) => ("promoted", Some(promotion.candidate)),
        Some(Outcome::Chosen { candidate }) => ("chosen", Some(*candidate)),
        Some(Outcome::NotPromoted { candidate, .. }) => ("not_promoted", Some(*candidate)),
        Some(Outcome::NonePassed) | None => ("none_passed", None),
    };
    let are_gone = matches!(trial.outcome, Some(Outcome::Promoted(_)));
    let ranked = trial.ranking.iter().filter_map(|ranked| trial.candidate(ranked.candidate));
    let fact = |one: &carrel_trial::Candidate| CandidateFact {
        candidate: one.number,
        verdict: one.verdict_word(),
        tests_passed: one.tests_passed(),
        score: one.score.as_ref().and_then(carrel_trial::Score::value),
        files: one.diff.unwrap_or_default().files,
        lines: one.diff.unwrap_or_default().lines(),
        fork: one.fork.as_ref().filter(|_| !are_gone).map(ToString::to_string),
    };
    TryFacts { id: trial.id.to_string(), outcome, best, candidates: ranked.map(fact).collect() }
}
