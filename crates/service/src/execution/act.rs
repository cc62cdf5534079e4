//! Doing what a step says, through the tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use carrel_domain::{Code, Coded as _, Secret, TaskId, message_of};
use carrel_store::EventKind;
use carrel_tools::{CallOptions, CommandSettings, Interface, Session, ToolResponse};
use carrel_wire::{StepResult, StepStatus};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::outcome;
use super::{Execution, Interruption};
use crate::credentials::StepCredentials;
use crate::error::ServiceError;
use crate::event_writer::EventWriter;
use crate::hosted_workspaces::OpenWorkspace;
use crate::output_lines::OutputLines;
use crate::repository::{self, Address};
use crate::step::{Action, Step};

/// Where repositories are kept.
const REPOSITORIES: &str = "repos";

/// Repositories that a result names.
const MAX_REPOSITORIES: usize = 200;

/// Pieces of output that wait to be told. More make the command wait.
const WAITING_PIECES: usize = 16;

/// The mode of directories that a step makes, before the umask.
const DIRECTORY_MODE: u32 = 0o777;

/// Returns the directory that is a task's own.
pub(super) fn task_directory(task: TaskId) -> PathBuf {
    Path::new("tasks").join(format!("task_{task}"))
}

/// Returns the names of the repositories in a workspace.
pub(super) async fn repositories(space: &OpenWorkspace) -> Vec<String> {
    let place = Arc::clone(space.named_workspace());
    let list = move || place.files().browse().list(Path::new(REPOSITORIES)).unwrap_or_default();
    let entries = tokio::task::spawn_blocking(list).await.unwrap_or_default();
    let names = entries.into_iter().map(|entry| entry.name.to_string_lossy().into_owned());
    names.take(MAX_REPOSITORIES).collect()
}

/// Does one step.
pub(super) struct Actor<'a> {
    pub(super) execution: &'a Execution,
    pub(super) space: &'a Arc<OpenWorkspace>,
    pub(super) session: &'a Arc<Session>,
    pub(super) journal: &'a EventWriter,
    pub(super) step: &'a Step,
    pub(super) number: usize,
    pub(super) timeout: Duration,
    /// The credentials that it names, or why it gets none.
    pub(super) given: Result<StepCredentials, ServiceError>,
    /// What is told of nothing, with the names that stand for it.
    pub(super) masked: &'a [(String, Secret)],
    /// How many lines of output the task may still tell.
    pub(super) lines_left: &'a AtomicUsize,
}

/// A tool and what it is called with.
struct Called {
    tool: String,
    arguments: Map<String, Value>,
}

impl Actor<'_> {
    /// Does the step, and ends it early if there is a reason to.
    pub(super) async fn act(
        &self,
        interrupted: impl Future<Output = Interruption>,
    ) -> (StepResult, Option<Interruption>) {
        let (begun, started_at) = (Instant::now(), self.execution.now());
        let cancel = CancellationToken::new();
        let doing = self.do_it(&cancel);
        tokio::pin!(doing, interrupted);
        let (done, why) = tokio::select! {
            done = &mut doing => (done, None),
            why = &mut interrupted => {
                cancel.cancel();
                (doing.await, Some(why))
            }
        };
        let mut report = StepResult {
            started_at: Some(started_at),
            duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..done
        };
        if why == Some(Interruption::Cancelled) {
            report.status = StepStatus::Cancelled;
            report.error = Some("cancelled".to_owned());
        }
        (report, why)
    }

    async fn do_it(&self, cancel: &CancellationToken) -> StepResult {
        if self.timeout.is_zero() {
            return self.report(
                StepStatus::TimedOut,
                Some("no time is left".to_owned()),
                Value::Null,
            );
        }
        if let Err(error) = &self.given {
            let report = self.report(StepStatus::Failed, Some(message_of(error)), Value::Null);
            return StepResult { code: Some(error.code()), ..report };
        }
        match &self.step.action {
            Action::CreateDirectory { path } => self.make_directory(path).await,
            Action::GitClone { repo, branch, shallow } => {
                self.clone_repository(repo, branch.as_deref(), *shallow, cancel).await
            }
            _ => match self.called() {
                Some(called) => {
                    let answer = self.call(called, cancel).await;
                    self.judge(answer)
                }
                None => self.report(StepStatus::Failed, Some("unknown".to_owned()), Value::Null),
            },
        }
    }

    /// Returns the tool that does the step.
    fn called(&self) -> Option<Called> {
        let (tool, arguments) = match &self.step.action {
            Action::Command { command } => {
                ("workspace_exec", json!({ "command": command, "cwd": self.step.cwd }))
            }
            Action::ReadFile { path } => ("workspace_read_file", json!({ "path": path })),
            Action::WriteFile { path, content } => {
                ("workspace_write_file", json!({ "path": path, "content": content }))
            }
            Action::ListDirectory { path } => ("workspace_list_dir", json!({ "path": path })),
            Action::GitPull { repo_name, branch } => {
                let words: Vec<_> = match branch {
                    Some(branch) => vec!["origin", branch],
                    None => Vec::new(),
                };
                let cwd = format!("{REPOSITORIES}/{repo_name}");
                ("workspace_git", json!({ "operation": "pull", "args": words, "cwd": cwd }))
            }
            Action::Tool { name, arguments } => {
                return Some(Called { tool: name.clone(), arguments: arguments.clone() });
            }
            Action::CreateDirectory { .. } | Action::GitClone { .. } => return None,
        };
        Some(called(tool, arguments))
    }

    async fn call(&self, called: Called, cancel: &CancellationToken) -> ToolResponse {
        let (output, pieces) = mpsc::channel(WAITING_PIECES);
        let telling = self.tell_output(pieces);
        let mut command_settings = CommandSettings {
            network: self.step.network,
            timeout: Some(self.timeout),
            output: Some(output),
            masked: self.masked.to_vec(),
            ..CommandSettings::default()
        };
        if let Ok(given) = &self.given {
            given.fill(&mut command_settings);
        }
        let cancel = cancel.clone();
        let options = CallOptions { cancel, command_settings, ..CallOptions::new(Interface::Task) };
        let calling = async {
            let calling = self.space.call(self.session, &called.tool, called.arguments, options);
            // Tools without commands have no limit of their own.
            tokio::time::timeout(self.timeout + LATE, calling).await
        };
        let (answer, ()) = tokio::join!(calling, telling);
        answer.unwrap_or_else(|_| late(self.timeout))
    }

    /// Tells what commands print, line by line.
    async fn tell_output(&self, mut pieces: mpsc::Receiver<carrel_exec::Piece>) {
        let secrets = self.masked.iter().map(|(_, secret)| secret.clone()).collect();
        let mut lines = OutputLines::new(secrets, self.lines_left.load(Ordering::Relaxed));
        while let Some(piece) = pieces.recv().await {
            for line in lines.push(&piece) {
                self.tell_line(line.stream, &line.text).await;
            }
        }
        for line in lines.finish() {
            self.tell_line(line.stream, &line.text).await;
        }
        self.lines_left.store(lines.left(), Ordering::Relaxed);
    }

    async fn tell_line(&self, stream: &str, text: &str) {
        let data = json!({ "step": self.number, "stream": stream, "line": text });
        self.journal.tell(self.execution.event(EventKind::LogLine, data)).await;
    }

    /// Says how a call ended. A command that ends with an error is a failed step.
    fn judge(&self, answer: ToolResponse) -> StepResult {
        if answer.is_error {
            let error = &answer.structured["error"];
            let message = error["message"].as_str().unwrap_or("the tool failed").to_owned();
            let code = error["code"].as_str().and_then(code_of);
            let status = match code {
                Some(Code::Timeout) => StepStatus::TimedOut,
                Some(Code::Cancelled) => StepStatus::Cancelled,
                _ => StepStatus::Failed,
            };
            let report = self.report(status, Some(message), json!({ "error": error }));
            return StepResult { code, ..report };
        }
        let result = match answer.data {
            Some(data) => data,
            None => json!({ "text": answer.text(), "facts": answer.structured }),
        };
        let facts = if result["facts"].is_object() { &result["facts"] } else { &result };
        let exit_code = facts["exit_code"].as_i64();
        let (status, error) = match exit_code {
            _ if facts["timed_out"] == true => {
                let seconds = self.timeout.as_secs();
                (StepStatus::TimedOut, Some(format!("Command timed out after {seconds}s")))
            }
            _ if facts["limit"].is_string() => {
                let limit = facts["limit"].as_str().unwrap_or_default();
                (StepStatus::Failed, Some(format!("ended by its limit: {limit}")))
            }
            Some(0) | None => (StepStatus::Completed, None),
            Some(code) => (StepStatus::Failed, Some(format!("exit status {code}"))),
        };
        StepResult { exit_code, ..self.report(status, error, result) }
    }

    fn report(&self, status: StepStatus, error: Option<String>, result: Value) -> StepResult {
        let action = self.step.word.clone();
        StepResult { action, status, error, result, ..outcome::skipped(self.number, self.step) }
    }

    async fn make_directory(&self, path: &str) -> StepResult {
        let (place, relative) =
            (Arc::clone(self.space.named_workspace()), self.space.named_workspace().relative(path));
        let make = move || {
            // Making a directory is held to what writing a file is.
            if let Err(error) = place.files().browse().metadata(&relative)
                && error.code() == Code::SensitivePath
            {
                return Err(error.into());
            }
            place.files().create_directories(&relative, DIRECTORY_MODE)?;
            Ok::<_, carrel_tools::Failure>(())
        };
        match tokio::task::spawn_blocking(make).await {
            Ok(Ok(())) => {
                let result = json!({ "created": true, "path": path });
                self.report(StepStatus::Completed, None, result)
            }
            Ok(Err(failure)) => {
                let report =
                    self.report(StepStatus::Failed, Some(failure.message.clone()), Value::Null);
                StepResult { code: Some(failure.code), ..report }
            }
            Err(_) => {
                self.report(StepStatus::Failed, Some("a defect in Carrel".to_owned()), Value::Null)
            }
        }
    }

    /// Brings a repository into the workspace, or up to date if it is there.
    async fn clone_repository(
        &self,
        repo: &str,
        branch: Option<&str>,
        shallow: bool,
        cancel: &CancellationToken,
    ) -> StepResult {
        let found = match self.find_repository(repo).await {
            Ok(found) => found,
            Err(error) => return self.report(StepStatus::Failed, Some(error), Value::Null),
        };
        let path = format!("{REPOSITORIES}/{}", found.directory);
        let called = if found.cached {
            let words = branch.map_or(Vec::new(), |branch| vec!["origin", branch]);
            called("workspace_git", json!({ "operation": "pull", "args": words, "cwd": path }))
        } else {
            let mut words = if shallow { vec!["--depth", "1"] } else { Vec::new() };
            words.extend(branch.into_iter().flat_map(|branch| ["--branch", branch]));
            words.extend(["--", &found.url, &found.directory]);
            let arguments = json!({ "operation": "clone", "args": words, "cwd": REPOSITORIES });
            called("workspace_git", arguments)
        };
        let mut report = self.judge(self.call(called, cancel).await);
        if let Value::Object(fields) = &mut report.result {
            fields.insert("repo_path".to_owned(), path.into());
            fields.insert("cached".to_owned(), found.cached.into());
        }
        report
    }

    /// Looks where a repository is, or is to be: one of another origin has the name already, or not.
    async fn find_repository(&self, repo: &str) -> Result<FoundRepository, String> {
        let address =
            Address::parse(repo, &self.execution.hosts).map_err(|error| error.to_string())?;
        let place = Arc::clone(self.space.named_workspace());
        let look = move || {
            let files = place.files();
            files
                .create_directories(Path::new(REPOSITORIES), DIRECTORY_MODE)
                .map_err(|error| error.to_string())?;
            for directory in address.directories() {
                let path = Path::new(REPOSITORIES).join(&directory);
                if files.link_metadata(&path).is_err_and(|error| error.is_not_found()) {
                    return Ok(FoundRepository { directory, url: address.url(), cached: false });
                }
                let configuration = files.read(&path.join(".git/config"), MAX_CONFIGURATION);
                let configuration = configuration.unwrap_or_default();
                let origin = repository::origin(&String::from_utf8_lossy(&configuration));
                if origin.is_some_and(|origin| address.is(&origin)) {
                    return Ok(FoundRepository { directory, url: address.url(), cached: true });
                }
            }
            let [first, second] = address.directories();
            Err(format!(
                "{REPOSITORIES}/{first} and {REPOSITORIES}/{second} hold something else; remove one of them"
            ))
        };
        tokio::task::spawn_blocking(look).await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

/// Where a repository is, or is to be.
struct FoundRepository {
    /// Its directory below [`REPOSITORIES`].
    directory: String,
    url: String,
    cached: bool,
}

/// What is read of the configuration of a repository.
const MAX_CONFIGURATION: u64 = 1 << 20;

/// How much longer than its commands a call may take.
const LATE: Duration = Duration::from_secs(5);

fn late(timeout: Duration) -> ToolResponse {
    let message = format!("the step took longer than {} s", timeout.as_secs());
    let envelope = carrel_domain::ErrorEnvelope::new(Code::Timeout, message, json!({}));
    ToolResponse { content: Vec::new(), structured: json!(envelope), data: None, is_error: true }
}

fn called(tool: &str, arguments: Value) -> Called {
    let Value::Object(mut arguments) = arguments else { unreachable!("arguments are an object") };
    arguments.retain(|_, value| !value.is_null());
    Called { tool: tool.to_owned(), arguments }
}

fn code_of(name: &str) -> Option<Code> {
    Code::ALL.iter().copied().find(|code| code.name() == name)
}
