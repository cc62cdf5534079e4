//! Starting a command as a job.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use carrel_domain::{
    ByteSize, Clock as _, Code, Network, SystemClock, Timestamp, WorkspaceAccess, sync,
};
use carrel_exec::{
    CaptureLimits, Captured, Cursor, Job, JobId, JobStatus, LogFile, Outcome, Output, Piece,
    Started,
};
use carrel_runner::{ArtifactRequest, CommandForm, Completed, LimitRequest, RunError, RunRequest};
use carrel_shell::Preset;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, interval_at};
use tokio_util::sync::CancellationToken;

use super::watched::Watched;
use crate::audit_log::AuditEvent;
use crate::failure::Failure;
use crate::tool_context::{CommandSettings, ToolContext};

/// How much output of one command is kept on disk.
const MAX_LOG: ByteSize = ByteSize::mib(64);

/// What a command whose report was read keeps of each end of a stream.
const SLIM_BYTES: usize = 50 * 1024;

/// How often a caller that waits hears that the command still runs.
const NEWS_EVERY: Duration = Duration::from_secs(1);

/// How a command ended, or why it did not run.
type Ended = Result<Completed, RunError>;

/// What is to be started.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) form: CommandForm,
    pub(crate) preset: Preset,
    /// Where it starts, relative to the workspace.
    pub(crate) directory: PathBuf,
    pub(crate) network: Option<Network>,
    /// How long it may take; none for one that nobody waits for.
    pub(crate) timeout: Option<Duration>,
    pub(crate) combined: bool,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) access: WorkspaceAccess,
    /// Files that it is to leave for the tool.
    pub(crate) artifacts: Option<ArtifactRequest>,
    /// How much of stdout, and of stderr, is kept.
    pub(crate) keep: (CaptureLimits, CaptureLimits),
    /// More descriptors for it.
    pub(crate) inherited: Vec<OwnedFd>,
    /// It gets no variables beyond its own.
    pub(crate) own_environment: bool,
    /// What is shown of the command.
    pub(crate) name: String,
}

/// A command that was started.
#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) job: Job,
    pub(crate) workspace: String,
    pub(crate) command: String,
    pub(crate) started: Timestamp,
    completed: Arc<OnceLock<Result<Completed, Failure>>>,
    /// How far the output was shown.
    pub(crate) shown: Mutex<Cursor>,
    /// What is watched for, if anything is.
    pub(crate) watched: Option<Arc<Watched>>,
}

impl Launch {
    /// Describes a command of a session.
    pub(crate) fn new(form: CommandForm, name: impl Into<String>) -> Self {
        Self {
            form,
            preset: Preset::Denylist,
            directory: PathBuf::new(),
            network: None,
            timeout: None,
            combined: false,
            environment: Vec::new(),
            access: WorkspaceAccess::ReadWrite,
            artifacts: None,
            keep: (CaptureLimits::STDOUT, CaptureLimits::STDERR),
            inherited: Vec::new(),
            own_environment: false,
            name: name.into(),
        }
    }

    /// Starts it.
    pub(crate) async fn start(self, context: &ToolContext) -> Result<Arc<Shell>, Failure> {
        self.start_with(context, None).await
    }

    /// Starts it and hands on what it prints.
    pub(crate) async fn start_with(
        self,
        context: &ToolContext,
        watched: Option<(Arc<Watched>, mpsc::Sender<Piece>)>,
    ) -> Result<Arc<Shell>, Failure> {
        let toolbox = Arc::clone(&context.toolbox);
        let owner = context.session.owner();
        let workspace = match self.timeout {
            None => toolbox.jobs.reserve(owner)?,
            Some(_) => toolbox.jobs.reserve_awaited(owner)?,
        };
        let (asked, started) = oneshot::channel();
        let lifetime = self.timeout.is_none().then(|| workspace.lifetime());
        let (name, access) = (self.name.clone(), self.access);
        let mut request = self.request(context, lifetime)?;
        request.access = access;
        request.started = Some(asked);
        let (watched, live) = watched.unzip();
        request.live = live.or_else(|| context.options.command_settings.output.clone());
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let (runner, handle) = (toolbox.runner.clone(), Arc::clone(context.workspace()));
        let running = async move { runner.run(handle.handle(), request, &stop).await };
        let (started, running) = started_of(running, started).await?;
        let completed = Arc::new(OnceLock::new());
        let waiting = remember(running, Arc::clone(&completed), violations(context));
        let job = workspace.adopt(&name, started, cancel, waiting)?;
        let shell = Arc::new(Shell {
            job,
            workspace: context.workspace().name().to_owned(),
            command: name,
            started: SystemClock.now(),
            completed,
            shown: Mutex::new(Cursor::START),
            watched,
        });
        keep(context, &shell);
        Ok(shell)
    }

    fn request(
        self,
        context: &ToolContext,
        lifetime: Option<Duration>,
    ) -> Result<RunRequest, Failure> {
        let Self { form, preset, directory, network, timeout, combined, environment, .. } = self;
        let (inherited, limits, command_settings) =
            (self.inherited, self.keep, &context.options.command_settings);
        let output = if combined {
            Output::Combined(limits.0)
        } else {
            Output::Separate { stdout: limits.0, stderr: limits.1 }
        };
        let mut environment: Vec<(OsString, OsString)> =
            environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        if !self.own_environment {
            let given =
                command_settings.environment.iter().map(|(name, value)| (name, value.expose()));
            environment.extend(given.map(|(name, value)| (name.into(), value.into())));
            let author = command_settings.author_variables();
            environment.extend(author.map(|(name, value)| (name.into(), value.into())));
        }
        let network = within(
            command_settings,
            network.or(command_settings.network).or(context.toolbox.network),
            context,
        )?;
        Ok(RunRequest {
            preset,
            directory,
            network,
            limits: LimitRequest {
                wall: command_settings.timeout.or(timeout),
                lifetime,
                ..LimitRequest::default()
            },
            environment,
            output,
            inherited,
            ssh_key: command_settings.ssh_key.clone().filter(|_| !self.own_environment),
            artifacts: self.artifacts,
            log: Some(LogFile { file: None, limit: MAX_LOG }),
            ..RunRequest::new(form)
        })
    }
}

/// Holds a network against what the door allows. A command that does not say gets what is allowed.
fn within(
    command_settings: &CommandSettings,
    asked: Option<Network>,
    context: &ToolContext,
) -> Result<Option<Network>, Failure> {
    let Some(limit) = command_settings.network_limit else { return Ok(asked) };
    match asked {
        None => Ok(Some(limit.min(context.toolbox.runner.policy().network))),
        Some(asked) if asked <= limit => Ok(Some(asked)),
        Some(asked) => {
            let message = format!(
                "network {asked} is more than commands get here; ask for {limit}, or have the \
                 operator allow it"
            );
            Err(Failure::new(Code::NetworkRefused, message))
        }
    }
}

/// Says that the walls kept a command from something.
fn violations(context: &ToolContext) -> impl Fn(&Completed) + Send + use<> {
    let (toolbox, session) = (Arc::clone(&context.toolbox), Arc::clone(&context.session));
    let (tool, interface) = (context.tool, context.options.interface);
    let workspace = context.optional_workspace().map(|workspace| workspace.name().to_owned());
    let redactor = context.options.command_settings.redactor();
    move |completed| {
        if completed.denials.is_empty() {
            return;
        }
        let mut detail = serde_json::json!({ "denials": completed.denials });
        redactor.redact_value(&mut detail);
        let event = AuditEvent::SandboxViolation {
            tool: tool.to_owned(),
            workspace: workspace.clone(),
            layer: "kernel",
            code: None,
            detail: toolbox.for_events(detail),
        };
        toolbox.events.add(session.id(), interface, event);
    }
}

/// Waits for a command, and keeps what there is to say about it.
async fn remember(
    running: impl Future<Output = Ended> + Send,
    completed: Arc<OnceLock<Result<Completed, Failure>>>,
    report: impl Fn(&Completed) + Send,
) -> Option<Outcome> {
    let ended = running.await;
    if let Ok(ended) = &ended {
        report(ended);
    }
    // What it printed is kept once, with the rest.
    let outcome = ended.as_ref().ok().map(|ended| Outcome {
        stdout: Captured::default(),
        stderr: Captured::default(),
        ..ended.outcome.clone()
    });
    // It is set once, here.
    let _ = completed.set(ended.map_err(Failure::from));
    outcome
}

/// Drives a command until it has started, and returns what waits for its end.
async fn started_of(
    running: impl Future<Output = Ended> + Send + 'static,
    mut started: oneshot::Receiver<Started>,
) -> Result<(Started, Pin<Box<dyn Future<Output = Ended> + Send>>), Failure> {
    let mut running: Pin<Box<dyn Future<Output = Ended> + Send>> = Box::pin(running);
    let told = tokio::select! {
        biased;
        told = &mut started => told.ok(),
        // A short command is over before anybody could be told that it has started.
        ended = &mut running => {
            running = Box::pin(std::future::ready(ended));
            started.try_recv().ok()
        }
    };
    match told {
        Some(started) => Ok((started, running)),
        None => Err(running.await.err().map_or_else(never_started, Failure::from)),
    }
}

fn never_started() -> Failure {
    Failure::new(Code::Internal, "a command ended without having started")
}

/// Remembers a command for its session, and forgets those whose jobs were forgotten.
fn keep(context: &ToolContext, shell: &Arc<Shell>) {
    let known: Vec<_> =
        context.toolbox.jobs.list_of(&context.session.owner()).iter().map(Job::id).collect();
    let mut state = context.session.state();
    state.shells.retain(|id, _| known.contains(id));
    state.shells.insert(shell.job.id(), Arc::clone(shell));
}

impl Shell {
    /// Finds a command of this session. One of another workspace is not found in this one.
    pub(crate) fn find(context: &ToolContext, text: &str) -> Result<Arc<Self>, Failure> {
        let unknown = || {
            let message = format!("unknown shell_id: {text}");
            Failure::new(Code::JobNotFound, message).with("shell_id", text)
        };
        let id: JobId = text.trim().parse().map_err(|_| unknown())?;
        let found = context.session.state().shells.get(&id).map(Arc::clone);
        let several = context.workspaces().len() > 1;
        let here = |shell: &Arc<Self>| {
            !several
                || context
                    .optional_workspace()
                    .is_none_or(|workspace| workspace.name() == shell.workspace)
        };
        found.filter(here).ok_or_else(unknown)
    }

    /// Waits until it is over; a caller that gives up ends it.
    pub(crate) async fn over(&self, context: &ToolContext) -> Result<&Completed, Failure> {
        let mut news = interval_at(Instant::now() + NEWS_EVERY, NEWS_EVERY);
        loop {
            tokio::select! {
                biased;
                status = self.job.ended() => return self.ended(&status),
                () = context.cancel().cancelled() => {
                    let status = self.job.kill().await;
                    return self.ended(&status);
                }
                _ = news.tick() => self.tell(context),
            }
        }
    }

    fn tell(&self, context: &ToolContext) {
        let seconds = self.job.elapsed().as_secs();
        let bytes = self.job.log_end();
        let message = format!("running for {seconds} s, {bytes} bytes of output");
        #[expect(clippy::cast_precision_loss, reason = "seconds since the start")]
        context.progress(seconds as f64, None, &message);
    }

    fn ended(&self, status: &JobStatus) -> Result<&Completed, Failure> {
        match (self.completed.get(), status) {
            (Some(Ok(completed)), _) => Ok(completed),
            (Some(Err(failure)), _) => Err(failure.clone()),
            (None, _) => {
                Err(Failure::new(Code::Cancelled, "the command was ended with the server"))
            }
        }
    }

    /// Returns what there is to say about it, if it is over.
    pub(crate) fn completed(&self) -> Option<&Completed> {
        self.completed.get().and_then(|ended| ended.as_ref().ok())
    }

    /// Keeps no more of its output in memory than of any other command; the log still has all of it.
    pub(crate) fn slim(&self, context: &ToolContext) {
        let Some(completed) = self.completed() else { return };
        let mut slim = completed.clone();
        slim.artifacts.files.clear();
        for stream in [&mut slim.outcome.stdout, &mut slim.outcome.stderr] {
            stream.head.truncate(SLIM_BYTES);
            let surplus = stream.tail.len().saturating_sub(SLIM_BYTES);
            stream.tail.drain(..surplus);
        }
        let shell = Self {
            job: self.job.clone(),
            workspace: self.workspace.clone(),
            command: self.command.clone(),
            started: self.started,
            completed: Arc::new(OnceLock::from(Ok(slim))),
            shown: Mutex::new(self.shown()),
            watched: None,
        };
        context.session.state().shells.insert(self.job.id(), Arc::new(shell));
    }

    /// Forgets it.
    pub(crate) fn forget(&self, context: &ToolContext) {
        context.session.state().shells.remove(&self.job.id());
    }

    /// Returns how far its output was shown.
    pub(crate) fn shown(&self) -> Cursor {
        *sync::lock(&self.shown)
    }

    /// Remembers how far its output was shown.
    pub(crate) fn show_to(&self, cursor: Cursor) {
        *sync::lock(&self.shown) = cursor;
    }

    /// Says what it is doing, in a word or two.
    pub(crate) fn status(&self) -> String {
        match self.job.status() {
            JobStatus::Running => "running".into(),
            JobStatus::Lost => "lost".into(),
            JobStatus::Ended(outcome) => match outcome.end {
                _ if outcome.timed_out() => "completed (timed out)".into(),
                carrel_exec::ExitStatus::Exited(code) => format!("completed (exit {code})"),
                carrel_exec::ExitStatus::Signaled(signal) => {
                    format!("completed (signal {signal})")
                }
                carrel_exec::ExitStatus::Lost => "lost".into(),
            },
        }
    }
}
