//! The command line as types.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use carrel_config::TierChoice;
use carrel_domain::{Age, ByteSize, Network, TokenScopes, WorkspaceId};
use carrel_mcp::{DefinitionDetail, FactsMode, ReplyFormat};
use carrel_runner::Feature;
use carrel_shell::Preset;
use carrel_tools::{DEFAULT_REPLY_BYTES, MAX_REPLY_BYTES, MIN_REPLY_BYTES, ToolSelection};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use crate::check::CheckArguments;
use crate::code::CodeCommand;
use crate::completion;
use crate::conductor::ConductorCommand;
use crate::events::EventsArguments;
use crate::init::InitArguments;
use crate::issue::IssueCommand;
use crate::logging::LogSettings;
use crate::output::Format;
use crate::run::RunArguments;
use crate::snapshot::SnapshotCommand;
use crate::task::TaskCommand;
use crate::tries::TryArguments;
use crate::workspace::WorkspaceCommand;

/// Workspaces for coding agents: isolated, persistent, inspectable.
#[derive(Debug, Parser)]
#[command(
    name = "carrel",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        carrel exec -- cargo test\n  \
        carrel workspace create ABC-123 --root ~/carrel\n  \
        carrel workspace ls --root ~/carrel\n  \
        carrel workspace rm ABC-123 --root ~/carrel"
)]
pub(crate) struct Arguments<C: Subcommand = Command> {
    #[command(subcommand)]
    pub(crate) command: C,

    /// Print JSON: data on stdout, log lines and the error on stderr
    #[arg(long, global = true)]
    json: bool,

    /// Log more: once for what happens, twice for every check
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Show no progress of long work
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

impl Arguments {
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { Format::Text }
    }

    /// Parses a valid command line of `carrel exec`. Building the parser of all other commands takes
    /// longer than `true` runs, so only this command is described; any other line gets the full parser.
    pub(crate) fn of_exec(arguments: &[OsString]) -> Option<Self> {
        let is_exec = arguments.get(1).is_some_and(|command| command == "exec");
        let parsed = is_exec.then(|| Arguments::<Only>::try_parse_from(arguments))?;
        let Arguments { command: Only::Exec(command), json, verbose, quiet } = parsed.ok()?;
        Some(Self { command: Command::Exec(command), json, verbose, quiet })
    }
}

/// The command whose start is a budget of milliseconds.
#[derive(Debug, Subcommand)]
enum Only {
    Exec(Box<ExecArguments>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create, inspect and remove workspaces
    #[command(subcommand)]
    Workspace(WorkspaceCommand),
    /// Run a command in a workspace, in a kernel sandbox
    ///
    /// The command sees its workspace and the system, which it cannot change; no other files, no
    /// other processes, no network unless asked for, and none of this environment. Its exit
    /// status is that of the command; 124 when its time is over, 125 when it did not run.
    #[command(
        after_help = "Examples:\n  carrel exec -- cargo test\n  carrel exec --network loopback -c 'python3 -m http.server 8000 & sleep 1; curl localhost:8000'\n  carrel exec --workspace ~/carrel/ABC-123 --timeout 60 --memory 512M --json -- pytest -q"
    )]
    Exec(Box<ExecArguments>),
    /// Print what this kernel enforces, and which guarantees hold
    #[command(
        after_help = "Examples:\n  carrel doctor\n  carrel doctor --json | jq '.guarantees[] | select(.holds | not)'"
    )]
    Doctor(SandboxArguments),
    /// Serve the tools to an agent over MCP: stdin and stdout, or HTTP
    ///
    /// Without --http it speaks on stdin and stdout until the client closes them. With --http it
    /// listens at `/mcp`, and clients must send a token: that of --token-file or `CARREL_MCP_TOKEN`,
    /// or else a new one, which it prints. An address that other machines can reach needs one of
    /// the first two.
    #[command(
        after_help = "Examples:\n  carrel mcp --workspace .\n  carrel mcp --workspaces primary=~/api,docs=~/docs:ro\n  carrel mcp --workspace . --read-only\n  carrel mcp --workspace . --http 127.0.0.1:8765\n  claude mcp add carrel -- carrel mcp --workspace ."
    )]
    Mcp(Box<McpArguments>),
    /// Call one of the tools that agents use, or list them
    ///
    /// The same tools that `carrel mcp` serves, with the same checks: a file has to be read before it
    /// is edited, for instance, by an earlier call of yours.
    #[command(
        after_help = "Examples:\n  carrel tool\n  carrel tool Read --schema\n  carrel tool Read file_path=src/main.rs limit=20\n  carrel tool Grep pattern=TODO glob='*.rs'\n  carrel tool Edit '{\"file_path\": \"a.txt\", \"old_string\": \"x\", \"new_string\": \"y\"}' --json"
    )]
    Tool(Box<ToolArguments>),
    /// Find your way in source code: symbols, definitions, references
    ///
    /// What agents ask with the tools of the group `code`. The index of a directory is built on first use,
    /// and kept.
    #[command(
        subcommand,
        after_help = "Examples:\n  carrel code outline src/main.rs\n  carrel code read Type::method\n  carrel code refs parse_header --in src\n  carrel code def src/main.rs:12:8\n  carrel code search where is the rate limit handled\n  carrel code rename parse_header read_header --dry-run\n  carrel code scan '$A.unwrap_or($B)' --language rust"
    )]
    Code(Box<CodeCommand>),
    /// Record the files of a directory, compare with what was recorded, and bring it back
    ///
    /// Independent of git, and outside of the directory. What ignore rules exclude is left alone. A restore can be
    /// undone: the state before it becomes a snapshot.
    #[command(
        subcommand,
        after_help = "Examples:\n  carrel snapshot create before-upgrade\n  carrel snapshot diff before-upgrade\n  carrel snapshot restore before-upgrade src\n  carrel snapshot ls --automatic"
    )]
    Snapshot(Box<SnapshotCommand>),
    /// Try several candidates for one change, each in a fork of a workspace, and promote the best
    ///
    /// Every candidate runs in a fork of its own, at the same time as the others, and is verified there. They are
    /// ranked by verdict, passed tests, score, size of the diff and time. A try survives the end of its process: --resume
    /// takes it up. Its exit status is 3 when no candidate passed and 4 when the best one was not promoted.
    #[command(
        after_help = "Examples:\n  carrel try ABC-123 --root ~/carrel --run './fix.sh $CARREL_CANDIDATE' --candidates 3 --verify 'make test' --promote best\n  carrel try ABC-123 --root ~/carrel --patch a.diff --patch b.diff --score ./bench.sh\n  carrel try --root ~/carrel --resume 3f9a01bc\n  carrel try ls --root ~/carrel"
    )]
    Try(Box<TryArguments>),
    /// Print the profile of a project: ecosystems, and the commands to test and lint
    #[command(after_help = "Examples:\n  carrel profile\n  carrel profile ~/api --json")]
    Profile(ProfileArguments),
    /// Serve workspaces and tasks over HTTP, and run the tasks
    ///
    /// Everything is kept in the data directory: the database, the workspaces, the key that signs
    /// tokens. With `DATABASE_URL` and `REDIS_URL` tasks are kept in PostgreSQL instead, for any number
    /// of servers and workers. On loopback a link to the console is printed; an address that other machines can reach
    /// needs a key first, from `carrel token new` or `CARREL_TOKEN_SECRET`. Traces go where
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` says, if it is set, as those of `worker`, `run` and `mcp` do.
    #[command(
        after_help = "Examples:\n  carrel serve\n  carrel serve --bind 127.0.0.1:9000 --data /var/lib/carrel"
    )]
    Serve(ServeArguments),
    /// Work off the issues of a tracker: a workspace and an agent for each
    ///
    /// Reads the issues that the workflow file names, gives each a workspace and a coding agent, and
    /// follows the tracker: an issue that is closed loses its workspace, one that is moved away keeps
    /// it. What fails is tried again. Everything is remembered in the data directory, so that a start
    /// after a crash goes on where the last one was. With --once it ends with 0 only if every agent
    /// that it started ended well.
    #[command(
        after_help = "Examples:\n  carrel run\n  carrel run examples/local/WORKFLOW.md --data data\n  carrel run --once --json"
    )]
    Run(Box<RunArguments>),
    /// Inspect and steer a running `carrel run --port`
    #[command(
        subcommand,
        after_help = "Examples:\n  carrel conductor state\n  carrel conductor answer CAR-4 'spaces'\n  carrel conductor transcript CAR-4\n  carrel conductor pause --server http://127.0.0.1:8080"
    )]
    Conductor(ConductorCommand),
    /// Check a workflow file, and print every setting with its origin
    #[command(after_help = "Examples:\n  carrel check\n  carrel check ops/WORKFLOW.md --json")]
    Check(CheckArguments),
    /// Write a commented workflow file or policy file to begin with
    ///
    /// Every setting is in it, as a comment with its meaning and its default. A file that exists is
    /// never overwritten. The workflow file works as it is, with the embedded tracker; the policy file
    /// changes nothing until a line is uncommented.
    #[command(
        after_help = "Examples:\n  carrel init\n  carrel init workflow ops/WORKFLOW.md\n  carrel init policy"
    )]
    Init(InitArguments),
    /// Print the audit log: tool calls, changes through the API, refusals
    ///
    /// Reads the log of your own commands and of `carrel mcp`, or with --data that of a server. Times
    /// are UTC. With --json each event is printed as it was written.
    #[command(
        after_help = "Examples:\n  carrel events\n  carrel events --violations --since 24h\n  carrel events --follow --workspace ~/api\n  carrel events --data /var/lib/carrel --json | jq .tool"
    )]
    Events(EventsArguments),
    /// Add, list and move issues of the embedded tracker
    #[command(subcommand)]
    Issue(IssueCommand),
    /// Bring the schema of the database up to date
    ///
    /// The database is the PostgreSQL server that `DATABASE_URL` names, or else the file in the data
    /// directory. Prints what was applied; nothing if there was nothing to do.
    #[command(
        after_help = "Examples:\n  carrel migrate --data data\n  DATABASE_URL=postgresql://carrel@db/carrel carrel migrate --json"
    )]
    Migrate(MigrateArguments),
    /// Submit, watch and end tasks of a `carrel serve`
    #[command(subcommand)]
    Task(TaskCommand),
    /// Run tasks of servers that share a database and Redis with it
    ///
    /// Needs `DATABASE_URL` and `REDIS_URL`. Its workspaces are in `WORKSPACE_VOLUME_PATH`; workers that
    /// open the same directory share them. With `WORKER_INTERNAL_TOKEN` it lets servers reach them.
    #[command(
        after_help = "Example:\n  DATABASE_URL=postgres://carrel@db/carrel REDIS_URL=redis://cache WORKSPACE_VOLUME_PATH=/workspaces carrel worker"
    )]
    Worker(WorkerArguments),
    /// Make tokens for the API of `carrel serve`
    #[command(subcommand)]
    Token(TokenCommand),
    /// Check a command line against a preset
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Print a completion script for a shell
    ///
    /// The script asks the program for each word, and so completes the names of tools and workspaces too.
    #[command(
        after_help = "Example:\n  carrel completions bash > ~/.local/share/bash-completion/completions/carrel"
    )]
    Completions {
        /// The shell to complete in
        shell: clap_complete::Shell,
    },
    /// Write a manual page for each command into a directory, for packages
    #[command(hide = true)]
    Man {
        /// The directory, such as share/man/man1
        directory: PathBuf,
    },
}

impl Command {
    /// Returns the name of the command in audit events. Commands that ask a server or only answer a question
    /// refuse nothing themselves and have none.
    pub(crate) fn audited_name(&self) -> Option<&'static str> {
        match self {
            Self::Workspace(_) => Some("workspace"),
            Self::Exec(_) => Some(crate::exec::NAME),
            Self::Doctor(_) => Some("doctor"),
            Self::Mcp(_) => Some("mcp"),
            Self::Tool(_) => Some("tool"),
            Self::Code(_) => Some("code"),
            Self::Snapshot(_) => Some("snapshot"),
            Self::Try(_) => Some("try"),
            Self::Profile(_) => Some("profile"),
            Self::Serve(_) => Some("serve"),
            Self::Worker(_) => Some("worker"),
            Self::Run(_) => Some("run"),
            Self::Conductor(_)
            | Self::Check(_)
            | Self::Init(_)
            | Self::Events(_)
            | Self::Issue(_)
            | Self::Migrate(_)
            | Self::Task(_)
            | Self::Token(_)
            | Self::Policy(_)
            | Self::Completions { .. }
            | Self::Man { .. } => None,
        }
    }

    /// Returns the log settings of the command; `dashboard` says whether the terminal shows one.
    pub(crate) fn logs(&self, dashboard: bool) -> LogSettings<'_> {
        match self {
            // It runs unattended, so it logs what happens without being asked to.
            Self::Run(command) => {
                LogSettings { verbose: true, holds: false, root: command.log_directory(dashboard) }
            }
            Self::Workspace(_) | Self::Try(_) => {
                LogSettings { verbose: false, holds: true, root: None }
            }
            _ => LogSettings { verbose: false, holds: false, root: None },
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ExecArguments {
    /// The workspace: a directory; the current one if none is given
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Working directory of the command, relative to the workspace or an absolute path in it
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Network access: none, loopback or full
    #[arg(long, value_name = "NETWORK")]
    pub(crate) network: Option<Network>,
    /// Mount the workspace read-only
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Rules for the command line: open, allowlist or denylist
    #[arg(long, default_value = "open")]
    pub(crate) preset: Preset,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
    /// End it after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,
    /// Memory limit, such as 512M
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,
    /// Limit of processes and threads
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) processes: Option<u64>,
    /// A variable for the command
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) environment: Vec<(String, String)>,
    /// A line for bash, instead of a program and its arguments
    #[arg(
        short = 'c',
        long = "command",
        value_name = "LINE",
        conflicts_with = "argv",
        allow_hyphen_values = true
    )]
    pub(crate) line: Option<String>,
    /// The program and its arguments; options of Carrel come before it
    #[arg(trailing_var_arg = true, value_name = "CMD", required_unless_present = "line")]
    pub(crate) argv: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct ToolArguments {
    /// The tool; all are listed if none is given
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(completion::tool_names))]
    pub(crate) name: Option<String>,
    /// Its arguments: one JSON object, or key=value
    #[arg(value_name = "JSON | KEY=VALUE")]
    pub(crate) values: Vec<String>,
    /// Say what the tool is for and what it takes
    #[arg(long)]
    pub(crate) schema: bool,
    #[command(flatten)]
    pub(crate) toolbox: ToolboxArguments,
}

#[derive(Args, Debug)]
pub(crate) struct McpArguments {
    #[command(flatten)]
    pub(crate) toolbox: ToolboxArguments,
    /// Structured content beside the text of replies. Some clients show their model nothing else
    /// then; auto leaves it out for the clients that are known to
    #[arg(long, value_name = "WHEN", default_value = "auto", value_parser = facts())]
    pub(crate) facts: FactsMode,
    /// What definitions of tools say, which a client's model reads with every request
    #[arg(long, value_name = "DETAIL", default_value = "brief", value_parser = definitions())]
    pub(crate) definitions: DefinitionDetail,
    /// Listen for HTTP at this address instead, such as 127.0.0.1:8765; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<SocketAddr>,
    /// A file with the token that clients must send
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// Let every program and every user of this machine use the tools without a token
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    pub(crate) no_token: bool,
    /// Give clients the whole workspaces, whichever roots they have open
    #[arg(long)]
    pub(crate) ignore_roots: bool,
    /// One more name under which requests are accepted: host, or host:port
    #[arg(long, value_name = "HOST", requires = "http")]
    pub(crate) allow_host: Vec<String>,
    /// One more origin whose pages may send requests, such as `https://example.org`
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub(crate) allow_origin: Vec<String>,
    /// Add the tools, resources and prompts that the public conformance suite asks for by name, with
    /// replies that are plain JSON or streams
    #[arg(long, value_name = "REPLIES", requires = "http", hide = true, value_parser = replies())]
    pub(crate) conformance_fixtures: Option<ReplyFormat>,
}

#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    /// The address to listen at; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub(crate) bind: SocketAddr,
    /// The directory with everything that is kept; made if it is missing
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub(crate) data: PathBuf,
    /// Forget every stored credential first, because the key that they were sealed with is lost
    #[arg(long)]
    pub(crate) forget_credentials: bool,
    /// Run no tasks here; workers elsewhere do
    #[arg(long)]
    pub(crate) no_worker: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}

#[derive(Args, Debug)]
pub(crate) struct WorkerArguments {
    /// The directory for events of tools and the key of credentials; made if it is missing
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}

#[derive(Args, Debug)]
pub(crate) struct MigrateArguments {
    /// The data directory of the server, when there is no `DATABASE_URL`
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub(crate) data: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Print a new token
    #[command(
        after_help = "Examples:\n  carrel token new --data data --id 0198c0de-7a11-7000-8000-000000000001\n  carrel token new --data data --all --scope read,admin --ttl 15m"
    )]
    New(TokenNewArguments),
}

#[derive(Args, Debug)]
pub(crate) struct TokenNewArguments {
    /// The data directory of the server
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub(crate) data: PathBuf,
    /// Id of a workspace that the token is for; may be given several times
    #[arg(long = "id", value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) workspaces: Vec<WorkspaceId>,
    /// Every workspace
    #[arg(long)]
    pub(crate) all: bool,
    /// Scopes of the token: read, write, exec, net, admin
    #[arg(long, value_name = "SCOPES", default_value = "read,write,exec")]
    pub(crate) scope: TokenScopes,
    /// Lifetime of the token, such as 15m or 12h
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub(crate) ttl: Age,
    /// Name of the bearer in logs
    #[arg(long, value_name = "NAME")]
    pub(crate) subject: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ProfileArguments {
    /// The directory; the current one if none is given
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl ProfileArguments {
    /// Returns flags for the directory as a read-only workspace.
    pub(crate) fn toolbox(&self) -> ToolboxArguments {
        let workspace = self.directory.clone();
        ToolboxArguments { workspace, read_only: true, ..ToolboxArguments::default() }
    }
}

/// Flags of the commands that offer tools.
#[derive(Args, Debug, Default)]
pub(crate) struct ToolboxArguments {
    /// The workspace: a directory; the current one if none is given
    #[arg(long, value_name = "DIR", conflicts_with = "workspaces")]
    pub(crate) workspace: Option<PathBuf>,
    /// Several workspaces: `name=DIR,name=DIR:ro,…`
    #[arg(long, value_name = "NAME=DIR,…")]
    pub(crate) workspaces: Option<String>,
    /// Offer only tools that change nothing, and make the sandbox read-only
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Groups of tools to offer: files, shell, verify, git, code, snapshot, secrets, workspace (the six of the service), or
    /// default for the default set
    #[arg(long, value_name = "GROUP,…")]
    pub(crate) tools: Option<ToolSelection>,
    /// Network of commands, and the most that a call may ask for: none, loopback or full
    #[arg(long, value_name = "NETWORK")]
    pub(crate) network: Option<Network>,
    /// A directory with one file for each secret
    #[arg(long, value_name = "DIR")]
    pub(crate) secrets_dir: Option<PathBuf>,
    /// Bytes of text in a reply where the call sets no `max_bytes`: 1000 to 102400
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_REPLY_BYTES, value_parser = reply_bytes)]
    pub(crate) max_reply: usize,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}

fn reply_bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse().map_err(|error| format!("{error}"))?;
    if (MIN_REPLY_BYTES..=MAX_REPLY_BYTES).contains(&bytes) {
        return Ok(bytes);
    }
    Err(format!("not between {MIN_REPLY_BYTES} and {MAX_REPLY_BYTES}"))
}

/// Returns a parser of words, each with its help and the value that it stands for.
pub(crate) fn choice<T: Copy + Send + Sync + 'static, const N: usize>(
    words: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let named = words.map(|(word, help, _)| PossibleValue::new(word).help(help));
    PossibleValuesParser::new(named).map(move |given| {
        let chosen = words.iter().find(|(word, _, _)| *word == given);
        chosen.expect("the parser accepts no other word").2
    })
}

fn facts() -> impl TypedValueParser<Value = FactsMode> {
    choice([
        ("auto", "Unless the client is known to hide the text then", FactsMode::Auto),
        ("always", "Always", FactsMode::Always),
        ("never", "Never", FactsMode::Never),
    ])
}

fn replies() -> impl TypedValueParser<Value = ReplyFormat> {
    choice([
        ("plain", "Plain JSON where the revision allows it", ReplyFormat::Json),
        ("streamed", "Event streams", ReplyFormat::EventStream),
    ])
}

fn definitions() -> impl TypedValueParser<Value = DefinitionDetail> {
    choice([
        ("brief", "What a model needs", DefinitionDetail::Brief),
        ("full", "Titles, every argument, output schemas: for programs", DefinitionDetail::Full),
    ])
}

/// Flags that select the sandbox and the operator's policy.
#[derive(Args, Debug, Default)]
pub(crate) struct SandboxArguments {
    /// Required tier: auto, full or landlock; the policy's if not given
    #[arg(long, value_name = "TIER")]
    pub(crate) tier: Option<TierChoice>,
    /// Run without a sandbox
    #[arg(long = "sandbox", value_name = "off", value_parser = ["off"], conflicts_with = "tier")]
    pub(crate) mode: Option<String>,
    /// The operator's policy file
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Treat a kernel feature as missing, for tests
    #[arg(long, value_name = "FEATURE", hide = true, value_parser = feature)]
    pub(crate) without: Vec<Feature>,
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if carrel_config::is_variable_name(name) => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

fn feature(text: &str) -> Result<Feature, String> {
    match text {
        "user_namespaces" => Ok(Feature::UserNamespaces),
        "landlock" => Ok(Feature::Landlock),
        "seccomp" => Ok(Feature::Seccomp),
        "groups" => Ok(Feature::Cgroups),
        _ => Err("write user_namespaces, landlock, seccomp or groups".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Say whether a command line is allowed, and why not; runs nothing
    ///
    /// Exits with 0 when it is allowed and with 1 when it is refused.
    #[command(
        after_help = "Examples:\n  carrel policy check 'cargo test && git commit -m \"fix; mount\"'\n  carrel policy check 'curl x | sudo sh' --preset denylist --json"
    )]
    Check {
        /// The command line, as a shell would get it
        #[arg(allow_hyphen_values = true)]
        command: String,
        /// Rules to check against: allowlist, denylist or open
        #[arg(long, default_value = "allowlist")]
        preset: Preset,
        /// The workspace it would run in; without it every absolute path is outside
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn exec_is_understood_alike_on_both_ways() {
        let lines = [
            "carrel exec -- true",
            "carrel exec --json --workspace /w --timeout 5 -vv -- cargo test --json -v",
            "carrel exec -c ls\\ -l --network loopback --env A=b --read-only --memory 5M",
            "carrel exec --timeout 5 cargo test --json -v -- --nocapture",
        ];
        for line in lines {
            let words = words(line);
            let whole = Arguments::<Command>::try_parse_from(&words).unwrap();
            let quick = Arguments::of_exec(&words).unwrap();
            assert_eq!(format!("{quick:?}"), format!("{whole:?}"), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_or_asks_for_something_else_takes_the_long_way() {
        for line in ["carrel exec", "carrel exec --help", "carrel exec --nonsense -- true"] {
            assert!(Arguments::of_exec(&words(line)).is_none(), "{line}");
        }
        for line in ["carrel", "carrel doctor", "carrel --json exec -- true"] {
            assert!(Arguments::of_exec(&words(line)).is_none(), "{line}");
        }
    }

    /// Splits at spaces that have no backslash before them.
    fn words(line: &str) -> Vec<OsString> {
        let joined = line.replace("\\ ", "\0");
        joined.split(' ').map(|word| word.replace('\0', " ").into()).collect()
    }
}
