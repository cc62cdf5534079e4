//! The specification of a try, as its caller gave it.

use std::time::Duration;

use carrel_domain::{Code, Coded, MAX_FORKS, Network};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most candidates of a try: as many as a base can have forks.
pub const MAX_CANDIDATES: u8 = MAX_FORKS;

/// Bounds each line for the shell, of which the record keeps one for each candidate.
pub const MAX_LINE_BYTES: usize = 4 * 1024;

/// Bounds a prompt or a patch, which are kept in files beside the record.
pub const MAX_PATCH_BYTES: usize = 8 << 20;

/// A try: what each candidate runs, how it is judged, and what becomes of the best.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TrialSpec")]
pub struct Spec {
    /// The command, patch or agent of each candidate, in the order of their numbers.
    pub runs: Vec<Run>,
    /// The line for bash that verifies a candidate; the tests that the project's files name if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<String>,
    /// A line for bash whose last line of output is a number; larger is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<String>,
    /// The limits of each candidate.
    #[serde(default)]
    pub budget: Budget,
    /// The treatment of the best candidate.
    #[serde(default)]
    pub promote: Promote,
    /// The network of all commands; the default of the workspace if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The most that the caller's token allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_cap: Option<Network>,
    /// The rules by which the text of its lines is judged.
    #[serde(default)]
    pub rules: CommandRules,
    /// The number of candidates that run at the same time; that of processors if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u8>,
}

/// The work of a candidate in its fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[schemars(rename = "TrialRun")]
pub enum Run {
    /// A line for bash, with `CARREL_CANDIDATE` in its environment.
    Command {
        /// The line.
        line: String,
    },
    /// A patch, kept beside the record.
    Patch {
        /// The name of the file that it came from.
        name: String,
    },
    /// A turn of an agent: a line for bash that reads the prompt, kept beside the record, from its standard input.
    Agent {
        /// The line that starts the agent.
        line: String,
    },
}

impl Run {
    /// Returns a short text for tables.
    pub fn title(&self) -> &str {
        match self {
            Self::Command { line } | Self::Agent { line } => line,
            Self::Patch { name } => name,
        }
    }
}

/// The treatment of the best candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TrialPromote")]
pub enum Promote {
    /// Nothing: a person chooses among the forks, which stay.
    #[default]
    None,
    /// The base becomes what it is, and all forks end.
    Best,
}

/// The rules by which the text of a command is judged, as the interface has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TrialCommandRules")]
pub enum CommandRules {
    /// The sandbox alone bounds it.
    Open,
    /// Commands for privilege, devices and power are refused.
    #[default]
    Denylist,
    /// Only listed commands are accepted.
    Allowlist,
}

/// The limits of each candidate. One that exceeds them is disqualified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "TrialBudget")]
pub struct Budget {
    /// Seconds for the run, the verification and the score of one candidate.
    pub candidate_seconds: u64,
    /// Seconds for the whole try.
    pub total_seconds: u64,
    /// Files, links and directories that it may change.
    pub max_files: u64,
    /// Lines that it may add and remove, together.
    pub max_lines: u64,
    /// Bytes of its diff; of a binary file its new content.
    pub max_bytes: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            candidate_seconds: 10 * 60,
            total_seconds: 60 * 60,
            max_files: 1_000,
            max_lines: 20_000,
            max_bytes: 4 << 20,
        }
    }
}

/// The longest time of a try.
const MAX_SECONDS: u64 = 24 * 60 * 60;

impl Budget {
    /// Returns the time for one candidate.
    pub fn of_candidate(&self) -> Duration {
        Duration::from_secs(self.candidate_seconds)
    }

    /// Returns the time for the try.
    pub fn total(&self) -> Duration {
        Duration::from_secs(self.total_seconds)
    }
}

/// The refusal of a specification. Nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSpec {
    /// There are none, or too many candidates.
    #[error("a try has 1 to {MAX_CANDIDATES} candidates, not {0}")]
    Candidates(usize),
    /// A line is empty.
    #[error("the {0} of a try is empty; give a line for bash")]
    EmptyLine(&'static str),
    /// A line is too long.
    #[error(
        "the {0} of a try has more than {MAX_LINE_BYTES} bytes; put it into a script of the workspace"
    )]
    LongLine(&'static str),
    /// A limit has a value that makes no sense.
    #[error("{name} of a try is a number from 1 to {most}, not {given}")]
    Limit {
        /// The limit.
        name: &'static str,
        /// Its value.
        given: u64,
        /// The most that it may be.
        most: u64,
    },
}

impl Coded for InvalidSpec {
    fn code(&self) -> Code {
        Code::InvalidArguments
    }
}

impl Spec {
    /// Makes a specification with the defaults.
    pub fn new(runs: Vec<Run>) -> Self {
        Self {
            runs,
            verify: None,
            score: None,
            budget: Budget::default(),
            promote: Promote::default(),
            network: None,
            network_cap: None,
            rules: CommandRules::default(),
            parallel: None,
        }
    }

    /// Checks numbers, lines and limits.
    pub fn check(&self) -> Result<(), InvalidSpec> {
        if !(1..=usize::from(MAX_CANDIDATES)).contains(&self.runs.len()) {
            return Err(InvalidSpec::Candidates(self.runs.len()));
        }
        for run in &self.runs {
            match run {
                Run::Command { line } => check_line("run", line)?,
                Run::Agent { line } => check_line("agent", line)?,
                Run::Patch { .. } => {}
            }
        }
        self.verify.as_deref().map_or(Ok(()), |line| check_line("verify", line))?;
        self.score.as_deref().map_or(Ok(()), |line| check_line("score", line))?;
        let Budget { candidate_seconds, total_seconds, max_files, max_lines, max_bytes } =
            self.budget;
        let limits = [
            ("the time of a candidate", candidate_seconds, MAX_SECONDS),
            ("the total time", total_seconds, MAX_SECONDS),
            ("the largest number of changed files", max_files, u64::MAX),
            ("the largest number of changed lines", max_lines, u64::MAX),
            ("the largest number of changed bytes", max_bytes, u64::MAX),
            ("the number of candidates at the same time", self.parallel.map_or(1, u64::from), 100),
        ];
        let wrong = limits.into_iter().find(|(_, given, most)| !(1..=*most).contains(given));
        wrong.map_or(Ok(()), |(name, given, most)| Err(InvalidSpec::Limit { name, given, most }))
    }
}

fn check_line(name: &'static str, line: &str) -> Result<(), InvalidSpec> {
    match line {
        _ if line.trim().is_empty() => Err(InvalidSpec::EmptyLine(name)),
        _ if line.len() > MAX_LINE_BYTES => Err(InvalidSpec::LongLine(name)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Spec {
        Spec::new(vec![Run::Command { line: "true".into() }; count])
    }

    #[test]
    fn a_specification_without_candidates_lines_or_time_is_refused() {
        assert_eq!(lines(3).check(), Ok(()));
        assert_eq!(lines(0).check(), Err(InvalidSpec::Candidates(0)));
        assert_eq!(lines(101).check(), Err(InvalidSpec::Candidates(101)));
        let empty = Spec { verify: Some("  ".into()), ..lines(1) };
        assert_eq!(empty.check(), Err(InvalidSpec::EmptyLine("verify")));
        let long = Spec { score: Some("x".repeat(MAX_LINE_BYTES + 1)), ..lines(1) };
        assert_eq!(long.check(), Err(InvalidSpec::LongLine("score")));
        let budget = Budget { candidate_seconds: 0, ..Budget::default() };
        let refused = Spec { budget, ..lines(1) }.check().unwrap_err().to_string();
        assert_eq!(refused, "the time of a candidate of a try is a number from 1 to 86400, not 0");
    }
}
