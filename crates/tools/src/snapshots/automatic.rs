//! Snapshots that Carrel takes by itself, before something that may change much.

use std::sync::Arc;

use carrel_config::SnapshotPolicy;
use carrel_domain::{Code, Failure};
use carrel_snapshot::{CreateRequest, Reason, Trust};
use tracing::{debug, warn};

use super::stores::SnapshotStores;
use super::{policy, retention, trust_in};
use crate::blocking::blocking;
use crate::named_workspace::NamedWorkspace;
use crate::tool_context::ToolContext;

/// A snapshot that is taken before something, without anybody asking for it.
#[derive(Clone, Debug)]
pub struct AutomaticSnapshot {
    occasion: String,
    description: String,
    author: String,
    /// Processes that no handle of the workspace knows of may have files mapped.
    has_strangers: bool,
}

impl AutomaticSnapshot {
    /// Returns the snapshot before a task of the queue.
    pub fn before_task(task: &str) -> Self {
        Self {
            occasion: "task".to_owned(),
            description: format!("before task {task}"),
            author: format!("task-{task}"),
            has_strangers: false,
        }
    }

    /// Returns the snapshot before a turn of an agent, whose processes live meanwhile.
    pub fn before_turn(issue: &str, turn: u64) -> Self {
        Self {
            occasion: "turn".to_owned(),
            description: format!("before turn {turn} of the agent of {issue}"),
            author: format!("agent-{issue}"),
            has_strangers: true,
        }
    }

    fn before_call(context: &ToolContext, description: String) -> Self {
        Self {
            occasion: context.tool.to_owned(),
            description,
            author: context.session.id().to_owned(),
            has_strangers: false,
        }
    }
}

impl SnapshotStores {
    /// Takes a snapshot of a workspace, and returns its number. One of a tree that has not changed since the newest
    /// snapshot is that snapshot. `None` for a workspace that is frozen for its forks, since nothing changes it.
    pub async fn take(
        self: &Arc<Self>,
        workspace: &Arc<NamedWorkspace>,
        snapshot: AutomaticSnapshot,
        policy: SnapshotPolicy,
    ) -> Result<Option<String>, Failure> {
        let (stores, workspace) = (Arc::clone(self), Arc::clone(workspace));
        let taken = blocking(move || {
            let store = stores.of(&workspace)?;
            let AutomaticSnapshot { occasion, description, author, has_strangers } = snapshot;
            let mut request = CreateRequest::unnamed(Reason::Automatic(occasion));
            (request.description, request.author) = (description, author);
            request.options.trust =
                if has_strangers { Trust::Nothing } else { trust_in(&workspace) };
            let writing = workspace.handle().lock_for_writing()?;
            let created = store.create(&request)?;
            drop(writing);
            if !created.is_unchanged {
                retention::enforce_in_background(&store, policy);
            }
            Ok(created.snapshot.id.to_string())
        });
        match taken.await {
            Err(failure) if failure.code == Code::WorkspaceFrozen => Ok(None),
            taken => taken.map(Some),
        }
    }
}

/// Takes a snapshot before a call changes several files. A failure costs the snapshot and not the call.
pub(crate) async fn before(context: &ToolContext, doing: &str) {
    let snapshot = AutomaticSnapshot::before_call(context, doing.to_owned());
    if let Err(failure) = take(context, snapshot).await {
        warn!(tool = context.tool, failure.message, "no snapshot was taken before the call");
    }
}

/// Takes a snapshot before a command, if the call or the operator's policy asks for one, and returns its number. One
/// that the call asks for has to succeed.
pub(crate) async fn before_command(
    context: &ToolContext,
    is_asked: bool,
) -> Result<Option<String>, Failure> {
    if !is_asked && !policy(context).commands {
        return Ok(None);
    }
    // Not the command itself, which may hold secrets.
    let snapshot = AutomaticSnapshot::before_call(context, "before a command".to_owned());
    match take(context, snapshot).await {
        Err(failure) if !is_asked => {
            debug!(failure.message, "no snapshot was taken before the command");
            Ok(None)
        }
        taken => taken,
    }
}

async fn take(
    context: &ToolContext,
    snapshot: AutomaticSnapshot,
) -> Result<Option<String>, Failure> {
    context.toolbox.snapshots.take(context.workspace(), snapshot, policy(context)).await
}
