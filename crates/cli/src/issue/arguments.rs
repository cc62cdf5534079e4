//! The command line of `carrel issue` as types.

use std::path::PathBuf;

use carrel_config::Environment;
use carrel_config::environment::CARREL_DATA;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum IssueCommand {
    /// Add an issue and print its identifier
    #[command(
        after_help = "Examples:\n  carrel issue new --title 'Greet the reader'\n  carrel issue new --title 'Fix the build' --priority 1 --label bug --description - < report.md"
    )]
    New(NewArguments),
    /// List issues in the order in which they were made
    #[command(
        after_help = "Examples:\n  carrel issue ls\n  carrel issue ls --state Todo --state 'In Progress' --json"
    )]
    Ls(ListArguments),
    /// Show an issue with its comments
    Show(SingleArguments),
    /// Move an issue to another state
    #[command(after_help = "Example:\n  carrel issue move CAR-1 Done")]
    Move(MoveArguments),
    /// Put labels on an issue, or take them off
    #[command(
        after_help = "Examples:\n  carrel issue label CAR-1 bug urgent\n  carrel issue label CAR-1 --remove urgent"
    )]
    Label(LabelArguments),
    /// Add a comment to an issue
    #[command(
        after_help = "Examples:\n  carrel issue comment CAR-1 'Try again with the new key'\n  carrel issue comment CAR-1 - < notes.md"
    )]
    Comment(CommentArguments),
}

/// The data directory that holds the issues.
#[derive(Args, Debug)]
pub(crate) struct DataArguments {
    /// The data directory, the same as that of `carrel run`; `CARREL_DATA` or `data` if not given
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl DataArguments {
    pub(super) fn directory(&self, environment: &Environment) -> PathBuf {
        let set = environment.get(CARREL_DATA).filter(|path| !path.is_empty());
        let usual = || set.map_or_else(|| PathBuf::from("data"), PathBuf::from);
        self.data.clone().unwrap_or_else(usual)
    }
}

#[derive(Args, Debug)]
pub(crate) struct NewArguments {
    /// Title, one line
    #[arg(long)]
    pub(crate) title: String,
    /// Description; `-` reads it from stdin
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
    /// State of the issue
    #[arg(long, default_value = "Todo")]
    pub(crate) state: String,
    /// Priority: 1 most urgent, 4 least
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) priority: Option<i64>,
    /// A label; may be given several times
    #[arg(long = "label", value_name = "LABEL")]
    pub(crate) labels: Vec<String>,
    /// An issue that has to be done first; may be given several times
    #[arg(long, value_name = "ISSUE")]
    pub(crate) blocked_by: Vec<String>,
    #[command(flatten)]
    pub(crate) data: DataArguments,
}

#[derive(Args, Debug)]
pub(crate) struct ListArguments {
    /// Only issues in this state; may be given several times
    #[arg(long = "state", value_name = "STATE")]
    pub(crate) states: Vec<String>,
    #[command(flatten)]
    pub(crate) data: DataArguments,
}

#[derive(Args, Debug)]
pub(crate) struct SingleArguments {
    /// The issue, such as CAR-1
    pub(crate) issue: String,
    #[command(flatten)]
    pub(crate) data: DataArguments,
}

#[derive(Args, Debug)]
pub(crate) struct MoveArguments {
    #[command(flatten)]
    pub(crate) single: SingleArguments,
    /// The state, such as Done
    pub(crate) state: String,
}

#[derive(Args, Debug)]
pub(crate) struct LabelArguments {
    /// The issue, such as CAR-1
    pub(crate) issue: String,
    /// Labels that it gets
    #[arg(value_name = "LABEL", required_unless_present = "remove")]
    pub(crate) add: Vec<String>,
    /// A label that it loses; may be given several times
    #[arg(long, value_name = "LABEL")]
    pub(crate) remove: Vec<String>,
    #[command(flatten)]
    pub(crate) data: DataArguments,
}

#[derive(Args, Debug)]
pub(crate) struct CommentArguments {
    /// The issue, such as CAR-1
    pub(crate) issue: String,
    /// Text; `-` reads it from stdin
    #[arg(allow_hyphen_values = true)]
    pub(crate) text: String,
    /// Author; the user's name if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) author: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArguments,
}
