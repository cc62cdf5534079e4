//! Runs git in a workspace.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::{ByteSize, Code, Network, WorkspaceAccess};
use carrel_exec::{CaptureLimits, ExitStatus, Output};
use carrel_runner::{CommandForm, LimitRequest, RunRequest};
use carrel_shell::Preset;

use super::address::Address;
use super::check::{Checked, Peer, Shape, check};
use super::operand::{Ground, has_control};
use super::operation::Operation;
use super::peer::{self, Contact, Copy, Identity};
use super::repository::{self, Repository};
use super::settings::{Found, Settings, unreadable};
use super::show::{self, Facts, Ran};
use crate::blocking::blocking;
use crate::failure::Failure;
use crate::named_workspace::NamedWorkspace;
use crate::response::Reply;
use crate::shell::{Launch, command_data, scrubbed};
use crate::tool_context::ToolContext;

const DEFAULT_TIMEOUT: u64 = 120;

/// A longer one is lowered to this.
const MAX_TIMEOUT: u64 = 600;

/// How long git may take to say what is configured.
const LOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// How much it may have to say.
const LOOK: CaptureLimits = CaptureLimits { head: ByteSize::mib(1), tail: ByteSize::kib(1) };

/// What is asked of git.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) operation: Operation,
    pub(crate) words: Vec<String>,
    /// Where git starts, as the caller wrote it.
    pub(crate) directory: Option<String>,
    /// Seconds.
    pub(crate) timeout: Option<u64>,
    pub(crate) author: Author,
    /// What may be done with files.
    pub(crate) access: WorkspaceAccess,
}

/// Who makes a commit, as far as the caller says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Author {
    pub(crate) name: Option<String>,
    pub(crate) email: Option<String>,
}

impl Request {
    /// Asks for an operation on the usual terms.
    pub(crate) fn new(operation: Operation, words: Vec<String>) -> Self {
        Self {
            operation,
            words,
            directory: None,
            timeout: None,
            author: Author::default(),
            access: WorkspaceAccess::ReadWrite,
        }
    }
}

/// Runs git: every word is checked, nothing that the repository configures runs, and what git prints
/// is in the answer. That git fails is data.
pub(crate) async fn run(context: &ToolContext, request: Request) -> Result<Reply<Facts>, Failure> {
    let site = Site::at(context, request.directory.as_deref()).await?;
    let checked = site.on_ground(|ground| check(request.operation, &request.words, ground))?;
    if request.access == WorkspaceAccess::ReadOnly && checked.access != WorkspaceAccess::ReadOnly {
        return Err(changes(context, &request));
    }
    let mut settings = Settings::new();
    request.author.or(&context.options.command_settings.author).tell(&mut settings)?;
    if checked.shape == Shape::Commit {
        // The whole name of the new commit.
        settings.setting("core.abbrev", "no");
    }
    if checked.access == WorkspaceAccess::ReadOnly {
        settings.variable("GIT_OPTIONAL_LOCKS", "0");
    }
    let prepared = match &checked.peer {
        Peer::Clone { source, directory, bare } => {
            site.copy(source, directory.as_deref(), *bare, &checked, settings).await?
        }
        Peer::None | Peer::Default | Peer::All | Peer::Named(_) => {
            site.work(&checked, settings).await?
        }
    };
    let seconds = seconds(request.timeout);
    let name = ["git", request.operation.as_str()]
        .into_iter()
        .chain(request.words.iter().map(String::as_str));
    let name = name.collect::<Vec<_>>().join(" ");
    let Prepared { argv, settings, contact, repository, destination, not_run } = prepared;
    let launch = Launch {
        preset: Preset::Open,
        directory: site.directory.clone(),
        network: Some(contact.network),
        timeout: Some(Duration::from_secs(seconds)),
        environment: settings.into_environment(),
        access: checked.access,
        own_environment: true,
        inherited: contact.handovers.into_iter().map(|handover| handover.descriptor).collect(),
        ..Launch::new(CommandForm::Argv(argv.into_iter().map(Into::into).collect()), name)
    };
    let shell = launch.start(context).await.map_err(|failure| match failure.code {
        Code::NetworkRefused => {
            failure.during(&format!("git {} needs the network", request.operation.as_str()))
        }
        _ => failure,
    })?;
    let completed = shell.over(context).await?;
    let ran = Ran {
        checked: &checked,
        completed,
        seconds,
        shell_id: shell.job.id().to_string(),
        can_read_on: context.toolbox.access == WorkspaceAccess::ReadWrite,
        repository,
        destination,
        not_run,
        hints: contact.hints,
    };
    let (mut text, facts) = show::reply(&ran);
    for secret in &contact.secrets {
        text = secret.mask(&text);
    }
    let data = |facts: &Facts| command_data(completed, facts);
    Ok(Reply::text(text, facts).with_data(context.options.interface, data))
}

/// Says that a tool that only looks was asked for more.
fn changes(context: &ToolContext, request: &Request) -> Failure {
    let operation = request.operation.as_str();
    let message = format!(
        "{} only looks: this form of git {operation} changes something. Use `branch` to list, `stash list` \
         or `stash show`, or the tool `git`",
        context.tool
    );
    Failure::new(Code::GitRefused, message).with("operation", operation)
}

fn seconds(timeout: Option<u64>) -> u64 {
    match timeout {
        None | Some(0) => DEFAULT_TIMEOUT,
        Some(seconds) => seconds.min(MAX_TIMEOUT),
    }
}

impl Author {
    /// Takes what the door says where the caller says nothing.
    fn or(&self, (name, email): &(Option<String>, Option<String>)) -> Self {
        let (name, email) = (name.clone(), email.clone());
        Self { name: self.name.clone().or(name), email: self.email.clone().or(email) }
    }

    /// Tells git who makes commits.
    fn tell(&self, settings: &mut Settings) -> Result<(), Failure> {
        for (field, value, part) in
            [("author_name", &self.name, "NAME"), ("author_email", &self.email, "EMAIL")]
        {
            let Some(value) = value else { continue };
            if value.trim().is_empty() || has_control(value) || value.contains(['<', '>']) {
                let message = format!("{field}: expected one plain line without `<` and `>`");
                return Err(Failure::argument(field, message));
            }
            for who in ["AUTHOR", "COMMITTER"] {
                settings.variable(&format!("GIT_{who}_{part}"), value.trim());
            }
        }
        Ok(())
    }
}

/// Everything that is needed to start git.
struct Prepared {
    argv: Vec<String>,
    settings: Settings,
    contact: Contact,
    repository: Option<PathBuf>,
    destination: Option<PathBuf>,
    not_run: Vec<String>,
}

/// Where a call is made.
struct Site<'a> {
    context: &'a ToolContext,
    workspace: Arc<NamedWorkspace>,
    /// Where git starts, relative to the workspace, without links.
    directory: PathBuf,
}

impl<'a> Site<'a> {
    async fn at(context: &'a ToolContext, directory: Option<&str>) -> Result<Self, Failure> {
        let workspace = Arc::clone(context.workspace());
        let given =
            directory.map_or_else(|| PathBuf::from("."), |directory| workspace.relative(directory));
        let directory = workspace.clone();
        let directory = blocking(move || {
            directory.files().open_root(&given)?;
            Ok(directory.files().locate(&given)?)
        });
        Ok(Self { context, workspace, directory: directory.await? })
    }

    /// Knows what machines are to be told: the door's own comes first.
    fn identity(&self) -> Identity<'_> {
        let of_call = self.context.options.command_settings.credentials.as_deref();
        let of_toolbox = self.context.toolbox.git.credentials.as_deref();
        let sources = of_call.into_iter().chain(of_toolbox).collect();
        let authorities = self.context.toolbox.git.authorities.as_deref();
        Identity { workspace: self.workspace.name(), sources, authorities }
    }

    fn on_ground<T>(&self, work: impl FnOnce(&Ground<'_>) -> T) -> T {
        let relative = |path: &str| self.workspace.relative(path);
        work(&Ground {
            workspace: self.workspace.path(),
            directory: &self.directory,
            relative: &relative,
        })
    }

    /// Prepares work in the repository that the directory lies in.
    async fn work(&self, checked: &Checked, mut settings: Settings) -> Result<Prepared, Failure> {
        let (workspace, directory) = (Arc::clone(&self.workspace), self.directory.clone());
        let repository = blocking(move || repository::find(workspace.files(), &directory)).await?;
        settings.repository(&self.workspace.path().join(&repository.top));
        let mut checked = checked.clone();
        let mut contact = Contact::default();
        let mut not_run = Vec::new();
        if !repository.plain || checked.peer != Peer::None {
            let found = self.look(&settings).await?;
            not_run = found.neutralize(&mut settings);
            if checked.peer != Peer::None {
                contact = self.meet(&mut checked, &found, &repository, &mut settings).await?;
            }
        }
        if checked.access == WorkspaceAccess::ReadWrite && !repository.modules.is_empty() {
            let found = self.look_at_modules(&settings, &repository).await?;
            not_run.extend(found.neutralize(&mut settings));
            not_run.sort_unstable();
            not_run.dedup();
        }
        let mut argv = vec!["git".to_owned(), checked.operation.as_str().to_owned()];
        argv.append(&mut checked.flags);
        // In front of what ends the flags.
        argv.append(&mut contact.flags);
        argv.append(&mut checked.operands);
        let repository = Some(repository.top);
        Ok(Prepared { argv, settings, contact, repository, destination: None, not_run })
    }

    /// Prepares to deal with a remote.
    async fn meet(
        &self,
        checked: &mut Checked,
        found: &Found,
        repository: &Repository,
        settings: &mut Settings,
    ) -> Result<Contact, Failure> {
        found.check_transport()?;
        let (operation, options) = (checked.operation, &self.context.toolbox.git);
        let words = match &checked.peer {
            Peer::None | Peer::Clone { .. } => Vec::new(),
            Peer::All => found.remotes().into_iter().map(str::to_owned).collect(),
            Peer::Named(word) => vec![word.clone()],
            Peer::Default => {
                let branch =
                    self.ask(settings, &["git", "symbolic-ref", "-q", "--short", "HEAD"]).await?;
                let branch = branch.ok().and_then(|name| String::from_utf8(name).ok());
                vec![peer::default_remote(found, branch.as_deref().map(str::trim), operation)]
            }
        };
        let mut all = Vec::new();
        for word in &words {
            let read = self.on_ground(|ground| {
                peer::addresses(word, operation, found, ground, &repository.top, &options.hosts)
            });
            let (addresses, text) = read?;
            self.check_there(&addresses).await.map_err(|()| peer::unknown_remote(word, found))?;
            if let Peer::Named(_) = checked.peer {
                // Behind `--`.
                checked.operands[1] = text;
            }
            all.extend(addresses);
        }
        Contact::with(&all, operation, &self.identity(), settings)
    }

    /// Prepares to make a copy.
    async fn copy(
        &self,
        source: &str,
        directory: Option<&str>,
        bare: bool,
        checked: &Checked,
        mut settings: Settings,
    ) -> Result<Prepared, Failure> {
        let options = &self.context.toolbox.git;
        let copy =
            self.on_ground(|ground| Copy::read(source, directory, bare, ground, &options.hosts))?;
        let (workspace, destination) = (Arc::clone(&self.workspace), copy.destination.clone());
        blocking(move || repository::check_free(workspace.files(), &destination)).await?;
        let addresses = [copy.source];
        self.check_there(&addresses)
            .await
            .map_err(|()| peer::unknown_remote(source, &Found::default()))?;
        let contact = Contact::with(&addresses, Operation::Clone, &self.identity(), &mut settings)?;
        let mut argv = vec!["git".to_owned(), "clone".to_owned()];
        argv.extend(checked.flags.iter().chain(&contact.flags).cloned());
        // Git tells where it clones to: as seen from where it starts, if it lies below.
        let below = copy.destination.strip_prefix(&self.directory).map(Path::to_owned);
        let destination = below.unwrap_or_else(|_| self.workspace.path().join(&copy.destination));
        let destination = destination.to_string_lossy().into_owned();
        argv.extend(["--".to_owned(), addresses[0].text(self.workspace.path()), destination]);
        let destination = Some(copy.destination);
        Ok(Prepared { argv, settings, contact, repository: None, destination, not_run: Vec::new() })
    }

    /// Checks that directories are there. Others are git's business.
    async fn check_there(&self, addresses: &[Address]) -> Result<(), ()> {
        let inside = addresses.iter().filter_map(|address| match address {
            Address::Inside(path) => Some(path.clone()),
            _ => None,
        });
        let (workspace, paths) = (Arc::clone(&self.workspace), inside.collect::<Vec<_>>());
        let there = blocking(move || {
            Ok(paths.iter().all(|path: &PathBuf| repository::is_directory(workspace.files(), path)))
        });
        if there.await.unwrap_or(false) { Ok(()) } else { Err(()) }
    }

    /// Asks git what the repository configures. Git runs nothing to say so.
    async fn look(&self, settings: &Settings) -> Result<Found, Failure> {
        let words = ["git", "config", "--list", "--show-scope", "--includes", "-z"];
        match self.ask(settings, &words).await? {
            Ok(output) => Found::read(&output),
            Err(reason) => Err(unreadable(&reason)),
        }
    }

    /// Asks git what submodules configure: git looks for changes in them, and obeys them there.
    async fn look_at_modules(
        &self,
        settings: &Settings,
        repository: &Repository,
    ) -> Result<Found, Failure> {
        const SCRIPT: &str = "for file; do git config --file \"$file\" --includes --list --name-only -z || exit; done";
        let files = repository.modules.iter().map(|file| self.workspace.path().join(file));
        let files: Vec<_> = files.map(|file| file.to_string_lossy().into_owned()).collect();
        let words =
            ["bash", "-c", SCRIPT, "bash"].into_iter().chain(files.iter().map(String::as_str));
        match self.ask(settings, &words.collect::<Vec<_>>()).await? {
            Ok(output) => Found::names(&output),
            Err(reason) => Err(unreadable(&reason)),
        }
    }

    /// Asks git something, and returns what it says or why it does not.
    async fn ask(
        &self,
        settings: &Settings,
        words: &[&str],
    ) -> Result<Result<Vec<u8>, String>, Failure> {
        let environment = settings.clone().into_environment();
        let request = RunRequest {
            directory: self.directory.clone(),
            network: Some(Network::None),
            access: WorkspaceAccess::ReadOnly,
            environment: environment
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            limits: LimitRequest { wall: Some(LOOK_TIMEOUT), ..LimitRequest::default() },
            output: Output::Separate { stdout: LOOK, stderr: CaptureLimits::STDERR },
            ..RunRequest::new(CommandForm::Argv(words.iter().map(Into::into).collect()))
        };
        let handle = self.workspace.handle();
        let completed =
            self.context.toolbox.runner.run(handle, request, self.context.cancel()).await?;
        let outcome = completed.outcome;
        Ok(match outcome.end {
            ExitStatus::Exited(0) if outcome.stdout.truncated() => {
                Err("it is too large".to_owned())
            }
            ExitStatus::Exited(0) => Ok([outcome.stdout.head, outcome.stdout.tail].concat()),
            ExitStatus::Exited(_) | ExitStatus::Signaled(_) | ExitStatus::Lost => {
                Err(scrubbed(&outcome.stderr.to_text(1024)).trim().to_owned())
            }
        })
    }
}

/// Shows a path relative to the workspace.
pub(super) fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() }
}
