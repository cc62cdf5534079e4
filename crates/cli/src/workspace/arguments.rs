//! The command line of `carrel workspace` as types.

use std::path::PathBuf;

use carrel_domain::{Age, ByteSize, InvalidSize, Layout};
use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use crate::arguments::{SandboxArguments, choice};
use crate::completion;

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Print the directory name that belongs to an identifier
    #[command(
        after_help = "Examples:\n  carrel workspace key XYZ/456\n  carrel workspace key XYZ/456 --root ~/carrel   (consults the record of the root)"
    )]
    Key(IdentifierArguments),
    /// Create the workspace of an identifier, or find it as it was left
    #[command(
        after_help = "Examples:\n  carrel workspace create ABC-123 --root ~/carrel\n  carrel workspace create ABC-123 --config WORKFLOW.md   (runs its after_create hook)"
    )]
    Create(CreateArguments),
    /// List the workspaces of a root
    #[command(
        after_help = "Examples:\n  carrel workspace ls --root ~/carrel\n  carrel workspace ls --root ~/carrel --recount --json\n  carrel workspace ls --root ~/carrel --kept   (unsaved work of removed workspaces)"
    )]
    Ls(ListArguments),
    /// Show one workspace: its record, usage, hooks and git state
    #[command(after_help = "Example:\n  carrel workspace show ABC-123 --root ~/carrel")]
    Show(ShowArguments),
    /// Remove a workspace; returns at once and deletes in the background
    #[command(
        after_help = "Examples:\n  carrel workspace rm ABC-123 --root ~/carrel\n  carrel workspace rm ABC-123 --root ~/carrel --keep-if-dirty"
    )]
    Rm(RemoveArguments),
    /// Make forks of a workspace: attempts that begin as it is, in milliseconds whatever its size
    ///
    /// A fork is a workspace of its own whose files are those of its base until it changes them. The base is
    /// frozen meanwhile: nothing writes in it until its forks are promoted or removed.
    #[command(
        after_help = "Examples:\n  carrel workspace fork ABC-123 --root ~/carrel\n  carrel workspace fork ABC-123 --root ~/carrel --count 3\n  carrel exec --workspace ~/carrel/ABC-123.fork-1 -- make test"
    )]
    Fork(ForkArguments),
    /// Take over what changed in the base of a fork past Carrel
    ///
    /// Refused if the fork has changed the same files. Work of a fork that has ended is put onto its base by
    /// `carrel workspace fork --from` instead.
    #[command(after_help = "Example:\n  carrel workspace rebase ABC-123.fork-1 --root ~/carrel")]
    Rebase(RebaseArguments),
    /// List what a fork has changed against its base
    #[command(after_help = "Example:\n  carrel workspace diff ABC-123.fork-1 --root ~/carrel")]
    Diff(DiffArguments),
    /// Make the base what a fork is, and end its forks
    ///
    /// The base as it was becomes a snapshot first, and so does the work of the other forks.
    #[command(after_help = "Example:\n  carrel workspace promote ABC-123.fork-1 --root ~/carrel")]
    Promote(PromoteArguments),
    /// Bring unsaved work back that was kept when its workspace was removed
    #[command(
        after_help = "Examples:\n  carrel workspace restore ABC-123 --root ~/carrel\n  carrel workspace restore ABC-123.1794992400000.0badcafe --root ~/carrel --as ABC-123-again"
    )]
    Restore(RestoreArguments),
    /// Delete kept work before its time is over
    #[command(
        after_help = "Example:\n  carrel workspace drop ABC-123.1794992400000.0badcafe --root ~/carrel"
    )]
    Drop(DropArguments),
    /// Check a root and everything in it, and print a fix for each finding
    ///
    /// Exits with 1 when something stops work or endangers it.
    #[command(after_help = "Example:\n  carrel workspace verify --root ~/carrel")]
    Verify(RootArguments),
    /// Clean up: trash, half-made and abandoned workspaces, stale records and locks
    #[command(
        after_help = "Examples:\n  carrel workspace gc --root ~/carrel --dry-run\n  carrel workspace gc --root ~/carrel --older-than 30d --keep-if-dirty"
    )]
    Gc(GcArguments),
}

/// Flags that select the root.
#[derive(Args, Debug)]
pub(crate) struct RootArguments {
    /// The directory that holds the workspaces: a path, ~/path or $VAR
    ///
    /// Beats workspace.root of the workflow file. Without --root and --config the file is
    /// ./WORKFLOW.md if there is one, and otherwise the root is `carrel_workspaces` in the
    /// system's temporary directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,

    /// The workflow file whose `workspace` and `hooks` apply
    #[arg(long, value_name = "WORKFLOW.md")]
    pub(crate) config: Option<PathBuf>,
}

impl RootArguments {
    /// Returns these flags, and those of `outer` where they name nothing.
    pub(crate) fn or(self, outer: Self) -> Self {
        match (&self.root, &self.config) {
            (None, None) => outer,
            _ => self,
        }
    }
}

/// A workspace of a root.
#[derive(Args, Debug)]
pub(crate) struct IdentifierArguments {
    /// Identifier of the workspace, such as ABC-123
    #[arg(allow_hyphen_values = true, add = ArgValueCompleter::new(completion::workspace_names))]
    pub(crate) identifier: String,
    #[command(flatten)]
    pub(crate) root: RootArguments,
}

#[derive(Args, Debug)]
pub(crate) struct CreateArguments {
    #[command(flatten)]
    pub(crate) workspace: IdentifierArguments,
    /// The tracker's own id of the issue, for hooks and logs
    #[arg(long, value_name = "ID")]
    pub(crate) issue_id: Option<String>,
    /// Layout of a new workspace
    #[arg(long, default_value = "plain", value_parser = layout())]
    pub(crate) layout: Layout,
    /// Quota of a new workspace, such as 500M or 5G
    #[arg(long, value_name = "SIZE", value_parser = some_size)]
    pub(crate) quota: Option<ByteSize>,
}

/// Reads a size greater than zero.
fn some_size(text: &str) -> Result<ByteSize, String> {
    match text.parse() {
        Ok(size) if size == ByteSize::bytes(0) => Err("must be more than nothing".to_owned()),
        parsed => parsed.map_err(|error: InvalidSize| error.to_string()),
    }
}

fn layout() -> impl TypedValueParser<Value = Layout> {
    choice([
        ("plain", "The directory is the work tree", Layout::Plain),
        ("tenant", "The directory holds repos/, tasks/ and artifacts/", Layout::Tenant),
    ])
}

#[derive(Args, Debug)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(crate) root: RootArguments,
    /// Count again what is used, for instance after changes by hand
    #[arg(long)]
    pub(crate) recount: bool,
    /// List the unsaved work of removed workspaces instead
    #[arg(long, conflicts_with = "recount")]
    pub(crate) kept: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ForkArguments {
    #[command(flatten)]
    pub(crate) workspace: IdentifierArguments,
    /// Number of forks, named after the base
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100), conflicts_with = "names")]
    pub(crate) count: Option<u8>,
    /// Identifier of a fork; once for each
    #[arg(long = "as", value_name = "IDENTIFIER")]
    pub(crate) names: Vec<String>,
    /// Begin with the work of a fork that has ended, a snapshot of the base such as fork-ABC-123.fork-2, put onto the
    /// base as it is now
    #[arg(long, value_name = "SNAPSHOT", conflicts_with = "count")]
    pub(crate) from: Option<String>,
    /// Quota of what each fork changes, such as 500M; the base's if not given
    #[arg(long, value_name = "SIZE", value_parser = some_size)]
    pub(crate) quota: Option<ByteSize>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}

#[derive(Args, Debug)]
pub(crate) struct DiffArguments {
    #[command(flatten)]
    pub(crate) workspace: IdentifierArguments,
    /// Compare with another fork of the same base instead of the base
    #[arg(long, value_name = "FORK", add = ArgValueCompleter::new(completion::workspace_names))]
    pub(crate) against: Option<String>,
    /// Print the differences of files as a patch
    #[arg(long)]
    pub(crate) patch: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}

#[derive(Args, Debug)]
pub(crate) struct RebaseArguments {
    #[command(flatten)]
    pub(crate) workspace: IdentifierArguments,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}

#[derive(Args, Debug)]
pub(crate) struct PromoteArguments {
    #[command(flatten)]
    pub(crate) workspace: IdentifierArguments,
    /// End the other forks without a snapshot of their work
    #[arg(long)]
    pub(crate) discard_others: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}

#[derive(Args, Debug)]
pub(crate) struct RestoreArguments {
    /// Name of the kept work as `ls --kept` shows it, or the key or identifier of its workspace
    #[arg(allow_hyphen_values = true, add = ArgValueCompleter::new(completion::kept_names))]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) root: RootArguments,
    /// Identifier of the restored workspace; the former one if not given
    #[arg(long = "as", value_name = "IDENTIFIER")]
    pub(crate) identifier: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct DropArguments {
    /// Name of the kept work, as `ls --kept` shows it
    #[arg(allow_hyphen_values = true, add = ArgValueCompleter::new(completion::kept_names))]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) root: RootArguments,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    pub(crate) workspace: IdentifierArguments,
    /// Count again what is used, for instance after changes by hand
    #[arg(long)]
    pub(crate) recount: bool,
}

#[derive(Args, Debug)]
pub(crate) struct RemoveArguments {
    /// Identifier of the workspace, such as ABC-123
    #[arg(
        allow_hyphen_values = true,
        required_unless_present = "path",
        add = ArgValueCompleter::new(completion::workspace_names)
    )]
    pub(crate) identifier: Option<String>,
    #[command(flatten)]
    pub(crate) root: RootArguments,
    /// Remove the workspace at this path instead
    #[arg(long, value_name = "DIR", conflicts_with = "identifier")]
    pub(crate) path: Option<PathBuf>,
    /// Refuse when a git work tree in it has unsaved work
    #[arg(long)]
    pub(crate) keep_if_dirty: bool,
}

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line are independent")]
pub(crate) struct GcArguments {
    #[command(flatten)]
    pub(crate) root: RootArguments,
    /// Print what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also remove workspaces that were not used for this long, such as 36h or 30d
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<Age>,
    /// Leave workspaces alone whose git work tree has unsaved work; otherwise that is kept for `restore`
    #[arg(long, requires = "older_than")]
    pub(crate) keep_if_dirty: bool,
    /// Also remove directories that have no record
    #[arg(long)]
    pub(crate) orphans: bool,
    /// Also delete all kept work, even if its time is not over
    #[arg(long)]
    pub(crate) drop_kept: bool,
    /// Only empty the trash
    #[arg(long, conflicts_with_all = ["older_than", "orphans", "dry_run", "drop_kept"])]
    pub(crate) trash_only: bool,
}
