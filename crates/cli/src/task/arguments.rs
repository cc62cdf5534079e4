//! The command line of `carrel task` as types.

use std::path::PathBuf;

use carrel_domain::{Priority, TaskId, TaskStatus, WorkspaceId};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Queue a task and print its id
    #[command(
        after_help = "Examples:\n  carrel task submit -c 'echo hello; ls -la' --watch\n  carrel task submit -c 'make test' -c 'make lint' --priority high --timeout 600\n  carrel task submit --file steps.json\n\nThe file holds a list of steps, or the whole request: {\"steps\": […], …}."
    )]
    Submit(Box<SubmitArguments>),
    /// List the tasks of a workspace, the latest first
    #[command(after_help = "Examples:\n  carrel task ls\n  carrel task ls --status running --json")]
    Ls(ListArguments),
    /// Show a task, its steps and their results
    Show(SingleArguments),
    /// Cancel a task
    Cancel(SingleArguments),
    /// Follow a task from its first event to its last
    ///
    /// Connections that break are made again; no event is missed or shown twice. Ends with 0 when the
    /// task is completed, with 1 when it ends in another way, and with 130 when it is interrupted, which
    /// leaves the task running.
    #[command(
        after_help = "Examples:\n  carrel task watch 0198c0de-7a11-7000-8000-000000000001\n  carrel task watch 0198c0de-7a11-7000-8000-000000000001 --json | jq -r 'select(.event == \"log_line\").data.line'"
    )]
    Watch(WatchArguments),
}

/// The server and the token of a request.
#[derive(Args, Debug)]
pub(crate) struct ServerArguments {
    /// The server; `CARREL_SERVER` or `http://127.0.0.1:8080` if not given
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// A file with the token; `CARREL_TOKEN` if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Id of the workspace, if the token is for several
    #[arg(long = "id", value_name = "ID")]
    pub(crate) workspace: Option<WorkspaceId>,
}

#[derive(Args, Debug)]
pub(crate) struct SubmitArguments {
    #[command(flatten)]
    pub(crate) server: ServerArguments,
    /// A command line; may be given several times, they run one after the other
    #[arg(
        short = 'c',
        long = "command",
        value_name = "CMD",
        allow_hyphen_values = true,
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    pub(crate) commands: Vec<String>,
    /// A file of JSON with the steps, or `-` for stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Priority: critical, high, normal or low
    #[arg(long)]
    pub(crate) priority: Option<Priority>,
    /// Deadline of the whole task in seconds, from 10 to 3600
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// Idempotency key: a request that is sent again with it is carried out once
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Follow it to its end, as `carrel task watch` does
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(crate) server: ServerArguments,
    /// Only tasks with this status, such as running or failed
    #[arg(long)]
    pub(crate) status: Option<TaskStatus>,
    /// Only tasks of this kind
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) task_type: Option<String>,
    /// Number of tasks, from 1 to 100
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) limit: Option<u32>,
    /// Number of tasks to skip
    #[arg(long, value_name = "NUMBER")]
    pub(crate) offset: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct SingleArguments {
    /// The task
    pub(crate) id: TaskId,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Args, Debug)]
pub(crate) struct WatchArguments {
    /// The task
    pub(crate) id: TaskId,
    /// Begin behind the event with this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) after: u64,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}
