//! Runs one step of a task through the tools.
//!
//! A step becomes one tool call; `git_clone` first looks whether the repository is in `repos/` already and
//! then clones or pulls. Output is written as log-line events while the command runs, masked and bounded;
//! a slow event writer makes the command wait, by the capacity of the channels between them. When
//! the step is interrupted its commands are killed and the step still ends with a report.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use carrel_domain::{Code, Coded as _, NetworkRequest, Secret, TaskId, message_of};
use carrel_git::{ArgumentList, GitOperation};
use carrel_store::EventKind;
use carrel_tools::workspace_tools::{
    CreateDirectory, CreateDirectoryInput, ExecCommand, ExecInput, ListDirectory,
    ListDirectoryInput, ReadFile, ReadFileInput, RunGit, RunGitInput, WriteFile, WriteFileInput,
};
use carrel_tools::{CallOptions, CommandSettings, Failure, Interface, Tool};
use carrel_wire::{StepResult, StepStatus};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::attempt::Attempt;
use super::step_output::{CommandEnd, StepOutput};
use super::{Interruption, step_result};
use crate::credentials::StepCredentials;
use crate::error::ServiceError;
use crate::open_workspace::OpenWorkspace;
use crate::output_lines::{OutputLines, PrintedLine};
use crate::repository::{self, RepositoryUrl};
use crate::step::{Action, Step};

/// The directory of a workspace that repositories are cloned into.
const REPOSITORIES: &str = "repos";

/// Bounds the names of repositories in a task's result.
const MAX_REPOSITORIES: usize = 200;

/// Chunks of output between the command and the event writer. A full channel makes the command wait.
const OUTPUT_CAPACITY: usize = 16;

/// The mode of directories that a step creates, before the umask.
const DIRECTORY_MODE: u32 = 0o777;

/// Returns the directory that exists while the task runs, relative to the workspace.
pub(super) fn task_directory(task: TaskId) -> PathBuf {
    Path::new("tasks").join(format!("task_{task}"))
}

/// Returns the names of the repositories in a workspace.
pub(super) async fn repositories(workspace: &OpenWorkspace) -> Vec<String> {
    let workspace = Arc::clone(workspace.named_workspace());
    let list = move || workspace.files().browse().list(Path::new(REPOSITORIES)).unwrap_or_default();
    let entries = carrel_exec::blocking(list).await.unwrap_or_default();
    let names = entries.into_iter().map(|entry| entry.name.to_string_lossy().into_owned());
    names.take(MAX_REPOSITORIES).collect()
}

pub(super) struct StepRunner<'a> {
    pub(super) attempt: &'a Attempt<'a>,
    pub(super) step: &'a Step,
    pub(super) number: usize,
    pub(super) timeout: Duration,
    /// An error fails the step before its tool is called.
    pub(super) credentials: Result<StepCredentials, ServiceError>,
    /// Secret values to mask in output, each with the name that replaces it.
    pub(super) masked: &'a [(String, Secret)],
    /// Cancels the tool call.
    pub(super) cancel: CancellationToken,
}

impl StepRunner<'_> {
    /// Runs the step to its end, or cancels its tool call when `interrupted` resolves. Returns the
    /// report in either case.
    pub(super) async fn run(
        &self,
        interrupted: impl Future<Output = Interruption>,
    ) -> (StepResult, Option<Interruption>) {
        let started = Instant::now();
        let started_at = self.attempt.execution.now();
        let execution = self.execute();
        tokio::pin!(execution, interrupted);
        let (report, interruption) = tokio::select! {
            report = &mut execution => (report, None),
            interruption = &mut interrupted => {
                self.cancel.cancel();
                (execution.await, Some(interruption))
            }
        };
        let mut report = StepResult {
            started_at: Some(started_at),
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..report
        };
        if interruption == Some(Interruption::Cancelled) {
            report.status = StepStatus::Cancelled;
            report.error = Some("cancelled".to_owned());
        }
        (report, interruption)
    }

    async fn execute(&self) -> StepResult {
        if self.timeout.is_zero() {
            let error = Some("no time is left".to_owned());
            return self.report(StepStatus::TimedOut, error, Value::Null);
        }
        if let Err(error) = &self.credentials {
            let report = self.report(StepStatus::Failed, Some(message_of(error)), Value::Null);
            return StepResult { code: Some(error.code()), ..report };
        }
        let output = match self.step.action.clone() {
            Action::GitClone { repo, branch, shallow } => {
                return self.clone_repository(&repo, branch.as_deref(), shallow).await;
            }
            Action::Command { command } => {
                let input =
                    ExecInput { command, cwd: self.step.cwd.clone(), ..ExecInput::default() };
                self.call::<ExecCommand>(input, |facts| Some((&facts.result).into())).await
            }
            Action::ReadFile { path } => {
                self.call::<ReadFile>(ReadFileInput { path }, |_| None).await
            }
            Action::WriteFile { path, content } => {
                self.call::<WriteFile>(WriteFileInput { path, content }, |_| None).await
            }
            Action::ListDirectory { path } => {
                self.call::<ListDirectory>(ListDirectoryInput { path }, |_| None).await
            }
            Action::CreateDirectory { path } => {
                self.call::<CreateDirectory>(CreateDirectoryInput { path }, |_| None).await
            }
            Action::GitPull { repo_name, branch } => {
                let directory = format!("{REPOSITORIES}/{repo_name}");
                self.pull(directory, branch.as_deref()).await
            }
            Action::Tool { name, arguments } => {
                self.calling(|options| async move {
                    let Attempt { workspace, session, .. } = self.attempt;
                    let response = workspace.call(session, &name, arguments, options).await;
                    StepOutput::of_response(response)
                })
                .await
            }
        };
        self.report_output(output)
    }

    /// Calls a tool of the service with its input type. The tools of the service combine content and facts
    /// for tasks; `end` reads the end of a command from the facts.
    async fn call<T: Tool>(
        &self,
        input: T::Input,
        end: impl Fn(&T::Facts) -> Option<CommandEnd> + Send,
    ) -> Result<StepOutput, Failure>
    where
        T::Input: Serialize,
        T::Facts: Clone,
    {
        self.calling(|options| async move {
            let Attempt { workspace, session, .. } = self.attempt;
            let called = workspace.tools.call_typed::<T>(session, input, options).await?;
            let (facts, response) = called;
            let command = end(&facts);
            Ok(StepOutput { result: response.data.unwrap_or_default(), command })
        })
        .await
    }

    async fn git(
        &self,
        operation: GitOperation,
        words: &[&str],
        directory: String,
    ) -> Result<StepOutput, Failure> {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let args = Some(ArgumentList::Words(words));
        let input = RunGitInput { operation, cwd: Some(directory), args };
        self.call::<RunGit>(input, |facts| Some((&facts.result).into())).await
    }

    /// Pulls in a directory of the workspace.
    async fn pull(&self, directory: String, branch: Option<&str>) -> Result<StepOutput, Failure> {
        let words = branch.map_or(Vec::new(), |branch| vec!["origin", branch]);
        self.git(GitOperation::Pull, &words, directory).await
    }

    /// Makes a tool call with the settings of the step, and writes the output of its commands meanwhile.
    async fn calling<F>(&self, call: impl FnOnce(CallOptions) -> F) -> Result<StepOutput, Failure>
    where
        F: Future<Output = Result<StepOutput, Failure>>,
    {
        let (output, pieces) = mpsc::channel(OUTPUT_CAPACITY);
        let streaming = self.stream_output(pieces);
        let mut command_settings = CommandSettings {
            network: NetworkRequest {
                token: self.attempt.network_cap,
                step: self.step.network,
                ..NetworkRequest::of(self.step.network)
            },
            timeout: Some(self.timeout),
            output: Some(output),
            masked: self.masked.to_vec(),
            ..CommandSettings::default()
        };
        if let Ok(credentials) = &self.credentials {
            credentials.fill(&mut command_settings);
        }
        let cancel = self.cancel.clone();
        let options = CallOptions { cancel, command_settings, ..CallOptions::new(Interface::Task) };
        // Tools that run no command have no timeout of their own.
        let calling = tokio::time::timeout(self.timeout + TOOL_GRACE, call(options));
        let (called, ()) = tokio::join!(calling, streaming);
        called.unwrap_or_else(|_| {
            let message = format!("the step took longer than {} s", self.timeout.as_secs());
            Err(Failure::new(Code::Timeout, message))
        })
    }

    /// Writes the output of commands as events, one for each complete line.
    async fn stream_output(&self, mut pieces: mpsc::Receiver<carrel_exec::Piece>) {
        let secrets = self.masked.iter().map(|(_, secret)| secret.clone()).collect();
        let mut lines = OutputLines::new(secrets, self.attempt.lines_left.load(Ordering::Relaxed));
        while let Some(piece) = pieces.recv().await {
            for line in lines.push(&piece) {
                self.write_line(line).await;
            }
        }
        for line in lines.finish() {
            self.write_line(line).await;
        }
        self.attempt.lines_left.store(lines.left(), Ordering::Relaxed);
    }

    async fn write_line(&self, PrintedLine { stream, text }: PrintedLine) {
        let data = json!({ "step": self.number, "stream": stream, "line": text });
        let event = self.attempt.execution.event(EventKind::LogLine, data);
        self.attempt.events.write(event).await;
    }

    /// Turns the output of a tool call into a report. A command with a non-zero exit status is a failed
    /// step, although the tool call succeeded.
    fn report_output(&self, called: Result<StepOutput, Failure>) -> StepResult {
        let StepOutput { result, command } = match called {
            Ok(output) => output,
            Err(failure) => return self.report_failure(&failure),
        };
        let exit_code = command.as_ref().and_then(|command| command.exit_code);
        let (status, error) = match command {
            Some(CommandEnd { timed_out: true, .. }) => {
                let seconds = self.timeout.as_secs();
                (StepStatus::TimedOut, Some(format!("Command timed out after {seconds}s")))
            }
            Some(CommandEnd { limit: Some(limit), .. }) => {
                (StepStatus::Failed, Some(format!("ended by its limit: {limit}")))
            }
            Some(CommandEnd { exit_code: Some(code), .. }) if code != 0 => {
                (StepStatus::Failed, Some(format!("exit status {code}")))
            }
            Some(_) | None => (StepStatus::Completed, None),
        };
        StepResult { exit_code, ..self.report(status, error, result) }
    }

    fn report_failure(&self, failure: &Failure) -> StepResult {
        let status = match failure.code {
            Code::Timeout => StepStatus::TimedOut,
            Code::Cancelled => StepStatus::Cancelled,
            _ => StepStatus::Failed,
        };
        let result = json!(failure.envelope());
        let report = self.report(status, Some(failure.message.clone()), result);
        StepResult { code: Some(failure.code), ..report }
    }

    fn report(&self, status: StepStatus, error: Option<String>, result: Value) -> StepResult {
        let action = self.step.action_name.clone();
        StepResult { action, status, error, result, ..step_result::skipped(self.number, self.step) }
    }

    /// Clones a repository into `repos/`, or pulls it if it is there.
    async fn clone_repository(
        &self,
        repo: &str,
        branch: Option<&str>,
        shallow: bool,
    ) -> StepResult {
        let checkout = match self.locate_repository(repo).await {
            Ok(checkout) => checkout,
            Err(error) => return self.report(StepStatus::Failed, Some(error), Value::Null),
        };
        let path = format!("{REPOSITORIES}/{}", checkout.directory);
        let output = if checkout.exists {
            self.pull(path.clone(), branch).await
        } else {
            let mut words = if shallow { vec!["--depth", "1"] } else { Vec::new() };
            words.extend(branch.into_iter().flat_map(|branch| ["--branch", branch]));
            words.extend(["--", &checkout.url, &checkout.directory]);
            self.git(GitOperation::Clone, &words, REPOSITORIES.to_owned()).await
        };
        let mut report = self.report_output(output);
        if let Value::Object(fields) = &mut report.result {
            fields.insert("repo_path".to_owned(), path.into());
            fields.insert("cached".to_owned(), checkout.exists.into());
        }
        report
    }

    /// Returns the directory of a repository: the one whose `origin` it is, or the first free one of its
    /// two candidates. Fails if repositories of other origins hold both.
    async fn locate_repository(&self, repo: &str) -> Result<Checkout, String> {
        let Attempt { execution, workspace, .. } = self.attempt;
        let url = RepositoryUrl::parse(repo, &execution.worker.options.hosts);
        let url = url.map_err(|error| error.to_string())?;
        let workspace = Arc::clone(workspace.named_workspace());
        let locate = move || {
            let files = workspace.files();
            files
                .create_directories(Path::new(REPOSITORIES), DIRECTORY_MODE)
                .map_err(|error| error.to_string())?;
            for directory in url.directories() {
                let path = Path::new(REPOSITORIES).join(&directory);
                if files.link_metadata(&path).is_err_and(|error| error.is_not_found()) {
                    return Ok(Checkout { directory, url: url.url(), exists: false });
                }
                let configuration = files.read(&path.join(".git/config"), MAX_CONFIGURATION);
                let configuration = configuration.unwrap_or_default();
                let origin = repository::origin(&String::from_utf8_lossy(&configuration));
                if origin.is_some_and(|origin| url.matches(&origin)) {
                    return Ok(Checkout { directory, url: url.url(), exists: true });
                }
            }
            let [first, second] = url.directories();
            Err(format!(
                "{REPOSITORIES}/{first} and {REPOSITORIES}/{second} hold something else; remove one of them"
            ))
        };
        carrel_exec::blocking(locate).await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

struct Checkout {
    /// A name in [`REPOSITORIES`].
    directory: String,
    url: String,
    exists: bool,
}

/// Bounds the part of `.git/config` that is searched for the origin.
const MAX_CONFIGURATION: u64 = 1 << 20;

/// Time for a tool to end after the timeout of its commands.
const TOOL_GRACE: Duration = Duration::from_secs(5);
