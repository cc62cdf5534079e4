//! Execution of git in a workspace.
//!
//! The order matters. Arguments are checked before anything runs. Git then runs once, read-only and
//! without network, to list the settings of the repository (unless the file is a default one and no
//! remote is involved), and once more for the operation itself, with the settings overridden that would
//! run programs. Both runs are commands in the sandbox of the workspace.

use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::{ByteSize, Code, Failure, Network, NetworkRequest, WorkspaceAccess};
use carrel_exec::{CaptureLimits, ExitStatus, Output};
use carrel_git::{
    ArgumentList, CloneTarget, CredentialLookup, GitCommandLine, GitEnvironment, GitOperation,
    OutputShape, PathResolver, RemoteAccess, RemoteSelector, RemoteUrl, RepositoryConfig, WorkTree,
    check_clone_destination, default_remote, has_control, is_directory, remote_urls,
    unknown_remote, unreadable_config,
};
use carrel_runner::{CommandForm, LimitRequest, RunRequest};
use carrel_shell::Preset;
use futures_util::future::BoxFuture;
use serde_json::json;

use super::reply::{Execution, GitFacts, reply};
use crate::blocking::blocking;
use crate::named_workspace::NamedWorkspace;
use crate::reply_limit::MaxBytes;
use crate::response::Reply;
use crate::shell::{Launch, strip_control, timeout_seconds};
use crate::shown_lines;
use crate::tool::ToolResult;
use crate::tool_context::ToolContext;

const DEFAULT_TIMEOUT: u64 = 120;

/// A longer timeout is lowered to this many seconds.
const MAX_TIMEOUT: u64 = 600;

const CONFIG_TIMEOUT: Duration = Duration::from_secs(30);

/// The settings of a repository; a longer list is refused.
const CONFIG_CAPTURE: CaptureLimits =
    CaptureLimits { head: ByteSize::mib(1), tail: ByteSize::kib(1) };

#[derive(Debug)]
pub(crate) struct GitRequest {
    pub(crate) operation: GitOperation,
    pub(crate) arguments: Vec<String>,
    /// The working directory, as the caller wrote it.
    pub(crate) directory: Option<String>,
    pub(crate) timeout: Option<u64>,
    /// Author and committer of new commits; by default those of the interface or the repository.
    pub(crate) author_name: Option<String>,
    pub(crate) author_email: Option<String>,
    /// With read-only access, operations that change something are refused.
    pub(crate) access: WorkspaceAccess,
    pub(crate) max_bytes: Option<MaxBytes>,
}

impl GitRequest {
    pub(crate) fn new(
        operation: GitOperation,
        arguments: Option<ArgumentList>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            operation,
            arguments: arguments.map_or(Ok(Vec::new()), ArgumentList::into_words)?,
            directory: None,
            timeout: None,
            author_name: None,
            author_email: None,
            access: WorkspaceAccess::ReadWrite,
            max_bytes: None,
        })
    }

    fn name(&self) -> String {
        let arguments = self.arguments.iter().map(String::as_str);
        let words = ["git", self.operation.as_str()].into_iter().chain(arguments);
        words.collect::<Vec<_>>().join(" ")
    }

    fn environment(
        &self,
        context: &ToolContext,
        line: &GitCommandLine,
    ) -> Result<GitEnvironment, Failure> {
        let mut environment = GitEnvironment::new();
        self.set_author(&context.options.command_settings.author, &mut environment)?;
        if line.output == OutputShape::Commit {
            // Makes git print the full name of the new commit.
            environment.set_config("core.abbrev", "no");
        }
        if line.access == WorkspaceAccess::ReadOnly {
            environment.set_variable("GIT_OPTIONAL_LOCKS", "0");
        }
        Ok(environment)
    }

    /// Names the author and committer; missing parts come from the settings of the call's interface.
    fn set_author(
        &self,
        (name, email): &(Option<String>, Option<String>),
        environment: &mut GitEnvironment,
    ) -> Result<(), Failure> {
        let name = self.author_name.as_ref().or(name.as_ref());
        let email = self.author_email.as_ref().or(email.as_ref());
        for (field, value, part) in
            [("author_name", name, "NAME"), ("author_email", email, "EMAIL")]
        {
            let Some(value) = value else { continue };
            if value.trim().is_empty() || has_control(value) || value.contains(['<', '>']) {
                let message = format!("{field}: expected one plain line without `<` and `>`");
                return Err(Failure::argument(field, message));
            }
            for role in ["AUTHOR", "COMMITTER"] {
                environment.set_variable(&format!("GIT_{role}_{part}"), value.trim());
            }
        }
        Ok(())
    }
}

/// Runs a git operation. A non-zero exit status is part of the reply, not a failure.
pub(crate) fn run(
    context: &ToolContext,
    request: GitRequest,
) -> BoxFuture<'_, ToolResult<GitFacts>> {
    Box::pin(run_checked(context, request))
}

async fn run_checked(context: &ToolContext, request: GitRequest) -> ToolResult<GitFacts> {
    let preparation = Preparation::new(context, request.directory.as_deref()).await?;
    let paths = preparation.paths();
    let line =
        GitCommandLine::check(request.operation, &request.arguments, request.access, &paths)?;
    if line.access == WorkspaceAccess::ReadWrite {
        context.refuse_frozen().await?;
    }
    let environment = request.environment(context, &line)?;
    let mut prepared = preparation.prepare(&line, environment).await?;
    let seconds = timeout_seconds(request.timeout, DEFAULT_TIMEOUT, MAX_TIMEOUT);
    let mut launch = prepared.launch(request.name());
    launch.request.directory.clone_from(&preparation.directory);
    launch.request.limits.wall = Some(Duration::from_secs(seconds));
    launch.request.access = line.access;
    let shell = launch.start(context).await.map_err(|failure| match failure.code {
        Code::NetworkRefused => {
            failure.during(&format!("git {} needs the network", request.operation.as_str()))
        }
        _ => failure,
    })?;
    let completed = shell.wait(context).await?;
    let execution = Execution {
        line: &line,
        prepared: &prepared,
        completed,
        seconds,
        shell_id: shell.job.id().to_string(),
        // An interface that sends the output as data has limits of its own.
        limit: if context.options.interface.wants_data() {
            usize::MAX
        } else {
            context.reply_limit(request.max_bytes)
        },
        guard: context.cut_guard(),
        has_bash_output: context.toolbox.access == WorkspaceAccess::ReadWrite,
    };
    let (mut text, facts) = reply(&execution);
    if let Some(repository) = &prepared.repository {
        shown_lines::record(context, shown_lines::of_diff(&text, repository)).await;
    }
    for secret in &prepared.remote.secrets {
        text = secret.mask(&text);
    }
    let data = |facts: &GitFacts| json!(facts.reply(&completed.outcome));
    Ok(Reply::text(text, facts).with_data(context.options.interface, data))
}

/// A command line with everything that git needs to run it.
pub(super) struct Prepared {
    argv: Vec<String>,
    environment: GitEnvironment,
    pub(super) remote: RemoteAccess,
    pub(super) repository: Option<PathBuf>,
    pub(super) destination: Option<PathBuf>,
    pub(super) neutralized: Vec<String>,
}

impl Prepared {
    fn launch(&mut self, name: String) -> Launch {
        let argv = mem::take(&mut self.argv).into_iter().map(Into::into).collect();
        let mut launch = Launch::new(CommandForm::Argv(argv), name);
        launch.own_environment = true;
        launch.request.preset = Preset::Open;
        launch.request.network = NetworkRequest::of_git_transfer(self.remote.network);
        launch.request.environment = mem::take(&mut self.environment).into_variables();
        let inherited = mem::take(&mut self.remote.inherited).into_iter();
        launch.request.inherited = inherited.map(|file| file.descriptor).collect();
        launch
    }
}

/// The preparation of an operation in one directory of a workspace.
struct Preparation<'a> {
    context: &'a ToolContext,
    workspace: Arc<NamedWorkspace>,
    /// The working directory of git, relative to the workspace, without links.
    directory: PathBuf,
}

impl<'a> Preparation<'a> {
    async fn new(context: &'a ToolContext, directory: Option<&str>) -> Result<Self, Failure> {
        let workspace = Arc::clone(context.workspace());
        let given =
            directory.map_or_else(|| PathBuf::from("."), |directory| workspace.relative(directory));
        let root = Arc::clone(&workspace);
        let directory = blocking(move || {
            root.files().open_root(&given)?;
            Ok(root.files().locate(&given)?)
        });
        Ok(Self { context, workspace, directory: directory.await? })
    }

    /// Returns the sources of credentials: those of the interface before those of the server.
    fn credentials(&self) -> CredentialLookup<'_> {
        let of_call = self.context.options.command_settings.credentials.as_deref();
        let of_server = self.context.toolbox.git.credentials.as_deref();
        CredentialLookup {
            workspace: self.workspace.operator_name(),
            sources: of_call.into_iter().chain(of_server).collect(),
            certificates: self.context.toolbox.git.authorities.as_deref(),
        }
    }

    fn paths(&self) -> PathResolver<'_> {
        PathResolver {
            workspace: self.workspace.path(),
            directory: &self.directory,
            alias: self.workspace.given(),
        }
    }

    async fn prepare(
        &self,
        line: &GitCommandLine,
        environment: GitEnvironment,
    ) -> Result<Prepared, Failure> {
        match &line.remote {
            RemoteSelector::Clone { source, directory, bare } => {
                self.prepare_clone(source, directory.as_deref(), *bare, line, environment).await
            }
            RemoteSelector::None
            | RemoteSelector::Default
            | RemoteSelector::All
            | RemoteSelector::Named(_) => self.prepare_in_work_tree(line, environment).await,
        }
    }

    async fn prepare_in_work_tree(
        &self,
        line: &GitCommandLine,
        mut environment: GitEnvironment,
    ) -> Result<Prepared, Failure> {
        let workspace = Arc::clone(&self.workspace);
        let directory = self.directory.clone();
        let tree = blocking(move || WorkTree::find(workspace.files(), &directory)).await?;
        environment.set_repository(&self.workspace.path().join(&tree.top));
        let mut line = line.clone();
        let mut remote = RemoteAccess::default();
        let mut neutralized = Vec::new();
        if !tree.has_default_config || line.remote != RemoteSelector::None {
            let config = self.list_config(&environment).await?;
            neutralized = config.neutralize(&mut environment);
            if line.remote != RemoteSelector::None {
                remote = self.prepare_remote(&mut line, &config, &tree, &mut environment).await?;
            }
        }
        if line.access == WorkspaceAccess::ReadWrite && !tree.submodule_configs.is_empty() {
            let config = self.list_submodule_configs(&environment, &tree).await?;
            neutralized.extend(config.neutralize(&mut environment));
            neutralized.sort_unstable();
            neutralized.dedup();
        }
        let mut argv = vec!["git".to_owned(), line.operation.as_str().to_owned()];
        argv.append(&mut line.flags);
        // Before the operands, which may begin with `--`.
        argv.append(&mut remote.flags);
        argv.append(&mut line.operands);
        let repository = Some(tree.top);
        Ok(Prepared { argv, environment, remote, repository, destination: None, neutralized })
    }

    /// Looks up the addresses of the remotes and prepares access to them. A remote that the caller named
    /// is replaced on the command line by the text that was checked.
    async fn prepare_remote(
        &self,
        line: &mut GitCommandLine,
        config: &RepositoryConfig,
        tree: &WorkTree,
        environment: &mut GitEnvironment,
    ) -> Result<RemoteAccess, Failure> {
        config.check_transport()?;
        let operation = line.operation;
        let hosts = &self.context.toolbox.git.hosts;
        let names = match &line.remote {
            RemoteSelector::None | RemoteSelector::Clone { .. } => Vec::new(),
            RemoteSelector::All => config.remotes().into_iter().map(str::to_owned).collect(),
            RemoteSelector::Named(name) => vec![name.clone()],
            RemoteSelector::Default => {
                let branch = self.current_branch(environment).await?;
                vec![default_remote(config, branch.as_deref().map(str::trim), operation)]
            }
        };
        let mut all = Vec::new();
        for name in &names {
            let (urls, argument) =
                remote_urls(name, operation, config, &self.paths(), &tree.top, hosts)?;
            self.check_directories(&urls).await.map_err(|()| unknown_remote(name, config))?;
            if let RemoteSelector::Named(_) = line.remote {
                // The first operand is `--`.
                line.operands[1] = argument;
            }
            all.extend(urls);
        }
        RemoteAccess::prepare(&all, operation, &self.credentials(), environment)
    }

    async fn prepare_clone(
        &self,
        source: &str,
        directory: Option<&str>,
        bare: bool,
        line: &GitCommandLine,
        mut environment: GitEnvironment,
    ) -> Result<Prepared, Failure> {
        let hosts = &self.context.toolbox.git.hosts;
        let target = CloneTarget::parse(source, directory, bare, &self.paths(), hosts)?;
        let workspace = Arc::clone(&self.workspace);
        let destination = target.destination.clone();
        blocking(move || check_clone_destination(workspace.files(), &destination)).await?;
        let urls = [target.source];
        self.check_directories(&urls)
            .await
            .map_err(|()| unknown_remote(source, &RepositoryConfig::default()))?;
        let remote = RemoteAccess::prepare(
            &urls,
            GitOperation::Clone,
            &self.credentials(),
            &mut environment,
        )?;
        let mut argv = vec!["git".to_owned(), "clone".to_owned()];
        argv.extend(line.flags.iter().chain(&remote.flags).cloned());
        // Git repeats the destination in its output; a path below the working directory reads better.
        let below = target.destination.strip_prefix(&self.directory).map(Path::to_owned);
        let destination = below.unwrap_or_else(|_| self.workspace.path().join(&target.destination));
        let destination = destination.to_string_lossy().into_owned();
        argv.extend(["--".to_owned(), urls[0].text(self.workspace.path()), destination]);
        Ok(Prepared {
            argv,
            environment,
            remote,
            repository: None,
            destination: Some(target.destination),
            neutralized: Vec::new(),
        })
    }

    /// Checks that remotes which are directories of the workspace exist. Git reports on all others.
    async fn check_directories(&self, urls: &[RemoteUrl]) -> Result<(), ()> {
        let directories = urls.iter().filter_map(|url| match url {
            RemoteUrl::Directory(path) => Some(path.clone()),
            RemoteUrl::Server { .. } => None,
        });
        let workspace = Arc::clone(&self.workspace);
        let paths = directories.collect::<Vec<_>>();
        let all_exist = blocking(move || {
            Ok(paths.iter().all(|path: &PathBuf| is_directory(workspace.files(), path)))
        });
        if all_exist.await.unwrap_or(false) { Ok(()) } else { Err(()) }
    }

    async fn current_branch(
        &self,
        environment: &GitEnvironment,
    ) -> Result<Option<String>, Failure> {
        let argv = ["git", "symbolic-ref", "-q", "--short", "HEAD"];
        let output = self.query(environment, &argv).await?;
        Ok(output.ok().and_then(|name| String::from_utf8(name).ok()))
    }

    /// Lists the settings of the repository. Git runs no configured program for this.
    async fn list_config(&self, environment: &GitEnvironment) -> Result<RepositoryConfig, Failure> {
        let argv = ["git", "config", "--list", "--show-scope", "--includes", "-z"];
        let listed = self.query(environment, &argv).await?;
        RepositoryConfig::parse(&listed.map_err(|reason| unreadable_config(&reason))?)
    }

    /// Lists the settings of submodules: git obeys them where it looks for changes there.
    async fn list_submodule_configs(
        &self,
        environment: &GitEnvironment,
        tree: &WorkTree,
    ) -> Result<RepositoryConfig, Failure> {
        const SCRIPT: &str = "for file; do git config --file \"$file\" --includes --list --name-only -z || exit; done";
        let files = tree.submodule_configs.iter().map(|file| self.workspace.path().join(file));
        let files: Vec<_> = files.map(|file| file.to_string_lossy().into_owned()).collect();
        let argv =
            ["bash", "-c", SCRIPT, "bash"].into_iter().chain(files.iter().map(String::as_str));
        let listed = self.query(environment, &argv.collect::<Vec<_>>()).await?;
        RepositoryConfig::parse_names(&listed.map_err(|reason| unreadable_config(&reason))?)
    }

    /// Runs a command in the sandbox, read-only and without network, and returns its standard output, or
    /// its standard error if it fails.
    async fn query(
        &self,
        environment: &GitEnvironment,
        argv: &[&str],
    ) -> Result<Result<Vec<u8>, String>, Failure> {
        let request = RunRequest {
            directory: self.directory.clone(),
            network: NetworkRequest::of(Network::None),
            audited_call: Some(self.context.audited_call()),
            access: WorkspaceAccess::ReadOnly,
            environment: environment.clone().into_variables(),
            limits: LimitRequest { wall: Some(CONFIG_TIMEOUT), ..LimitRequest::default() },
            output: Output::Separate { stdout: CONFIG_CAPTURE, stderr: CaptureLimits::STDERR },
            ..RunRequest::new(CommandForm::Argv(argv.iter().map(Into::into).collect()))
        };
        let handle = self.workspace.handle();
        let runner = &self.context.toolbox.runner;
        let outcome = runner.run(handle, request, self.context.cancel()).await?.outcome;
        Ok(match outcome.end {
            ExitStatus::Exited(0) if outcome.stdout.truncated() => {
                Err("it is too large".to_owned())
            }
            ExitStatus::Exited(0) => Ok([outcome.stdout.head, outcome.stdout.tail].concat()),
            ExitStatus::Exited(_) | ExitStatus::Signaled(_) | ExitStatus::Lost => {
                Err(strip_control(&outcome.stderr.to_text(1024)).trim().to_owned())
            }
        })
    }
}
