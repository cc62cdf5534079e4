//! Jobs for interfaces that show them as something else than tools do: tasks and resources of MCP.
//!
//! The rules are those of `BashOutput`: a job is found by its id, by the owner of the session that asks and
//! by the workspaces that the session may use, and known secrets are masked.

use std::sync::Arc;

use carrel_domain::{Clock as _, Code, Failure, SystemClock, Timestamp};
use carrel_exec::{Cursor, JobStatus};

use super::bash;
use super::control_sequences::strip_control;
use super::job_records::{JobEnd, StoredJob};
use super::job_tools::read_whole_secrets;
use super::launch::Shell;
use super::shell_table::{FoundJob, find_job};
use crate::blocking::blocking;
use crate::registry::{Registry, encode};
use crate::response::{Reply, ToolResponse};
use crate::session::Session;

/// A command that was started, as a session of its owner sees it.
#[derive(Clone, Debug)]
pub struct JobView {
    /// The id, by which `BashOutput` finds it too.
    pub id: String,
    /// The first line of the command.
    pub command: String,
    /// The time of its start.
    pub started: Timestamp,
    /// The time of its end, or now.
    pub updated: Timestamp,
    /// Bytes of output so far.
    pub log_bytes: u64,
    /// Its state.
    pub phase: JobPhase,
}

/// The state of a job.
#[derive(Clone, Debug)]
pub enum JobPhase {
    /// It runs.
    Running,
    /// It ended by itself or at its deadline, with this reply.
    Ended(ToolResponse),
    /// A client ended it.
    Killed,
    /// It ended with the session that started it, or with its server; the name of the state.
    EndedWith(&'static str),
}

/// A part of a job's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLogPart {
    /// The text, without control sequences and with known secrets masked.
    pub text: String,
    /// The position of the next part.
    pub next: u64,
    /// The bytes of the whole log at this moment.
    pub log_bytes: u64,
}

impl Registry {
    /// Returns a job of the session's owner and workspaces. The reply of one that ended is that of `Bash`.
    pub async fn job(&self, session: &Arc<Session>, id: &str) -> Result<JobView, Failure> {
        let mut view = match self.find_job(session, id).await? {
            FoundJob::Here(shell) => self.view_of(&shell)?,
            FoundJob::Stored(stored) => stored_view(id, stored, self.toolbox().reply_bytes).await?,
        };
        let redactor = self.toolbox().redactor();
        redactor.redact_text(&mut view.command);
        if let JobPhase::Ended(reply) = &mut view.phase {
            redactor.redact_response(reply);
        }
        Ok(view)
    }

    /// Returns the jobs that the session itself started and that can still be read.
    pub async fn jobs_of(&self, session: &Arc<Session>) -> Vec<JobView> {
        let mut views = Vec::new();
        for id in session.started_jobs() {
            views.extend(self.job(session, &id.to_string()).await.ok());
        }
        views
    }

    /// Reads a part of a job's log.
    pub async fn job_log(
        &self,
        session: &Arc<Session>,
        id: &str,
        from: u64,
        at_most: usize,
    ) -> Result<JobLogPart, Failure> {
        let mut part = match self.find_job(session, id).await? {
            FoundJob::Here(shell) => {
                let guard = self.toolbox().cut_guard();
                let chunk = read_whole_secrets(&guard, &shell, Cursor(from), at_most).await?;
                let (text, next) = chunk.to_text();
                JobLogPart { text, next: next.0, log_bytes: shell.job.log_end().0 }
            }
            FoundJob::Stored(stored) => read_stored(stored, from, at_most).await?,
        };
        part.text = strip_control(&part.text);
        self.toolbox().redactor().redact_text(&mut part.text);
        Ok(part)
    }

    /// Ends a job with everything that it started, and keeps its log.
    pub async fn end_job(&self, session: &Arc<Session>, id: &str) -> Result<(), Failure> {
        if let FoundJob::Here(shell) = self.find_job(session, id).await? {
            shell.cause.set(JobEnd::Killed);
            shell.job.kill().await;
        }
        Ok(())
    }

    async fn find_job(&self, session: &Session, id: &str) -> Result<FoundJob, Failure> {
        let workspaces = self.toolbox().workspaces_of(session)?;
        find_job(self.toolbox(), session, workspaces.as_slice(), id).await
    }

    fn view_of(&self, shell: &Shell) -> Result<JobView, Failure> {
        let status = shell.job.status();
        let phase = match (&status, shell.end()) {
            (JobStatus::Running, _) => JobPhase::Running,
            (JobStatus::Lost, _) | (_, Some(JobEnd::EndedWithServer | JobEnd::Lost)) => {
                JobPhase::EndedWith("ended_with_server")
            }
            (_, Some(JobEnd::EndedWithSession)) => JobPhase::EndedWith("ended_with_session"),
            (_, Some(JobEnd::Killed)) => JobPhase::Killed,
            (JobStatus::Ended(_), _) => {
                let guard = self.toolbox().cut_guard();
                JobPhase::Ended(encode(bash::ended_reply(
                    &guard,
                    shell,
                    self.toolbox().reply_bytes,
                )?)?)
            }
        };
        let updated = match status {
            JobStatus::Running => SystemClock.now(),
            JobStatus::Ended(_) | JobStatus::Lost => shell.started.after(shell.job.elapsed()),
        };
        Ok(JobView {
            id: shell.job.id().to_string(),
            command: first_line(&shell.command),
            started: shell.started,
            updated,
            log_bytes: shell.job.log_end().0,
            phase,
        })
    }
}

fn first_line(command: &str) -> String {
    command.lines().next().unwrap_or_default().to_owned()
}

async fn stored_view(id: &str, stored: StoredJob, limit: usize) -> Result<JobView, Failure> {
    let StoredJob { ref record, end, log_bytes, .. } = stored;
    let (command, started) = (first_line(&record.command), record.started);
    let phase = match end {
        JobEnd::Killed => JobPhase::Killed,
        JobEnd::EndedWithSession => JobPhase::EndedWith("ended_with_session"),
        JobEnd::EndedWithServer | JobEnd::Lost => JobPhase::EndedWith("ended_with_server"),
        JobEnd::Exited(_) | JobEnd::Signaled(_) | JobEnd::TimedOut => {
            let status = end.status();
            let from = log_bytes.saturating_sub(limit as u64);
            let part = read_stored(stored, from, limit).await?;
            let text = format!("{}\nstatus: {status}\n", strip_control(&part.text).trim_end());
            let facts = serde_json::json!({ "shell_id": id, "running": false, "status": status });
            JobPhase::Ended(encode(Reply::text(text, facts))?)
        }
    };
    Ok(JobView { id: id.to_owned(), command, started, updated: started, log_bytes, phase })
}

/// Reads a part of the log of a job that another process ran.
pub(super) async fn read_stored(
    stored: StoredJob,
    from: u64,
    at_most: usize,
) -> Result<JobLogPart, Failure> {
    let log_bytes = stored.log_bytes;
    if from > log_bytes {
        let message = format!("cursor {from} is beyond the log, which has 0 to {log_bytes}");
        return Err(Failure::new(Code::InvalidCursor, message).with("cursor", from));
    }
    let read = move || {
        let failed = |error| Failure::new(Code::Io, format!("could not read the log: {error}"));
        stored.read(from, at_most).map_err(failed)
    };
    let bytes = blocking(read).await?;
    let next = from + bytes.len() as u64;
    Ok(JobLogPart { text: String::from_utf8_lossy(&bytes).into_owned(), next, log_bytes })
}
