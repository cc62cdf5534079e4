//! The command line of `carrel try` as types.

use std::path::PathBuf;

use carrel_domain::{ByteSize, Network, TrialId};
use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use carrel_trial::Promote;

use crate::arguments::{SandboxArguments, choice};
use crate::completion;
use crate::workspace::RootArguments;

#[derive(Args, Debug)]
#[command(subcommand_negates_reqs = true, subcommand_precedence_over_arg = true)]
pub(crate) struct TryArguments {
    #[command(subcommand)]
    pub(crate) command: Option<TryCommand>,
    /// Identifier of the workspace, such as ABC-123
    #[arg(
        value_name = "WORKSPACE",
        required_unless_present = "resume",
        allow_hyphen_values = true,
        add = ArgValueCompleter::new(completion::workspace_names)
    )]
    pub(crate) identifier: Option<String>,
    #[command(flatten)]
    pub(crate) root: RootArguments,
    /// Number of candidates; as many as there are runs if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) candidates: Option<u8>,
    /// A line for bash: one for all candidates, which `CARREL_CANDIDATE` tells apart, or one for each
    #[arg(long = "run", value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) runs: Vec<String>,
    /// A patch as a candidate; once for each
    #[arg(long = "patch", value_name = "FILE")]
    pub(crate) patches: Vec<PathBuf>,
    /// A task for an agent, which reads it from its standard input; once for each candidate, or one for all
    #[arg(long = "prompt", value_name = "TEXT", requires = "agent")]
    pub(crate) prompts: Vec<String>,
    /// The line for bash that starts the agent
    #[arg(long, value_name = "LINE", requires = "prompts")]
    pub(crate) agent: Option<String>,
    /// A line for bash that verifies a candidate; the project's tests if not given
    #[arg(long, value_name = "LINE")]
    pub(crate) verify: Option<String>,
    /// A line for bash whose last line of output is a number; larger is better
    #[arg(long, value_name = "LINE")]
    pub(crate) score: Option<String>,
    /// What becomes of the best candidate that passes
    #[arg(long, value_name = "WHICH", default_value = "none", value_parser = promote())]
    pub(crate) promote: Promote,
    /// Seconds for the run, the verification and the score of one candidate
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub(crate) timeout: u64,
    /// Seconds for the whole try
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub(crate) total_timeout: u64,
    /// Files that a candidate may change
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_files: u64,
    /// Lines that a candidate may add and remove
    #[arg(long, value_name = "NUMBER", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_lines: u64,
    /// Size of what a candidate may change, such as 512K
    #[arg(long, value_name = "SIZE", default_value = "4M")]
    pub(crate) max_size: ByteSize,
    /// Candidates that run at the same time; as many as there are processors if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) parallel: Option<u8>,
    /// Network access of all commands: none, loopback or full
    #[arg(long, value_name = "NETWORK")]
    pub(crate) network: Option<Network>,
    /// Take up a try whose process ended
    #[arg(long, value_name = "ID", conflicts_with_all = ["identifier", "runs", "patches", "prompts", "candidates"])]
    pub(crate) resume: Option<TrialId>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TryCommand {
    /// List the tries of a root, the newest first
    #[command(after_help = "Example:\n  carrel try ls --root ~/carrel")]
    Ls(RootArguments),
    /// Show the comparison of a try, or the diff of a candidate
    #[command(
        after_help = "Examples:\n  carrel try show 3f9a01bc --root ~/carrel\n  carrel try show 3f9a01bc --diff 2 --root ~/carrel"
    )]
    Show(ShowTryArguments),
    /// Remove a try with its forks; the work of candidates that ran becomes snapshots of the base
    #[command(after_help = "Example:\n  carrel try rm 3f9a01bc --root ~/carrel")]
    Rm(RemoveTryArguments),
}

#[derive(Args, Debug)]
pub(crate) struct ShowTryArguments {
    /// Id of the try
    pub(crate) id: TrialId,
    #[command(flatten)]
    pub(crate) root: RootArguments,
    /// Print what this candidate changed
    #[arg(long, value_name = "CANDIDATE")]
    pub(crate) diff: Option<u8>,
}

#[derive(Args, Debug)]
pub(crate) struct RemoveTryArguments {
    /// Id of the try
    pub(crate) id: TrialId,
    #[command(flatten)]
    pub(crate) root: RootArguments,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}

fn promote() -> impl TypedValueParser<Value = Promote> {
    choice([
        ("none", "Nothing: the forks stay, and a person chooses", Promote::None),
        ("best", "The workspace becomes what it is, and the forks end", Promote::Best),
    ])
}
