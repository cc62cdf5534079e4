//! The tools `undo`, `undo_list` and `undo_restore`.
//!
//! Each call that writes files leaves a checkpoint, which its owner can take back: all of the files or none. What a
//! command writes is not in one; a snapshot before the command is.

use std::collections::HashSet;
use std::path::PathBuf;

use carrel_domain::{Code, Failure, ToolGroup};
use carrel_snapshot::{Checkpoint, CheckpointId, MAX_CHECKPOINTS, Store, Undone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::call_changes::{Change, NotedChanges};
use super::{inside, policy, retention};
use crate::blocking::blocking;
use crate::response::Reply;
use crate::session::SessionLifetime;
use crate::text::line;
use crate::tool::{About, NoArguments, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// Checkpoints that are listed unless the call says otherwise.
const DEFAULT_LISTED: u64 = 20;

/// The paths of a checkpoint that a list shows.
const MAX_PATHS: usize = 5;

/// The label of the checkpoint that takes another one back begins with this.
const UNDO: &str = "undo";

/// The checkpoints after which the store is looked at for garbage.
const COLLECT_EVERY: u64 = 64;

/// Keeps what a call changed, so that it can be undone. A failure costs the undo and not the call.
pub(crate) async fn keep(context: &ToolContext) {
    let NotedChanges { changes, left } = context.changes.take();
    let Some(owner) = owner(context).filter(|_| !changes.is_empty()) else { return };
    let own = context.clone();
    let kept = blocking(move || {
        let store = own.toolbox.snapshots.of(own.workspace())?;
        let mut pending = store.begin_checkpoint(owner, own.tool);
        let mut written = HashSet::new();
        for change in changes {
            match change {
                Change::Replaced { path, bytes, mode } => {
                    pending.was_file(&path, mode, bytes)?;
                    written.insert(path);
                }
                Change::Made { path } => {
                    pending.was_missing(&path)?;
                    written.insert(path);
                }
                // Moving it back would not bring its old content back.
                Change::Moved { from, to } if written.contains(&from) => {
                    pending.was_missing(&to)?;
                }
                Change::Moved { from, to } => pending.moved(&from, &to)?,
                Change::Deleted { path } => pending.was_lost(&path)?,
            }
        }
        for (path, image) in left {
            pending.left(&path, image)?;
        }
        if pending.commit()?.is_some_and(|id| id.number().is_multiple_of(COLLECT_EVERY)) {
            retention::enforce_in_background(&store, policy(&own));
        }
        Ok(())
    });
    if let Err(failure) = kept.await
        && failure.code != Code::ClientRoots
    {
        warn!(tool = context.tool, failure.message, "the call cannot be undone");
    }
}

/// Returns the owner of checkpoints: the session, or the caller of the REST API. A request over MCP that belongs to
/// no session has none: the call before it may be that of another client with the same token.
fn owner(context: &ToolContext) -> Option<String> {
    let is_alone = context.session.lifetime() == SessionLifetime::OneRequest;
    let is_mcp = !context.options.interface.wants_data();
    (!is_alone || !is_mcp).then(|| context.session.undo_owner())
}

/// Returns the owner of the checkpoints that a call may take back.
fn known_owner(context: &ToolContext) -> Result<String, Failure> {
    owner(context).ok_or_else(|| {
        let message = "nothing can be undone: this request belongs to no session, so the last change may be that of \
                       another client; a client names a session in `_meta[\"dev.carrel/session\"]`";
        Failure::new(Code::CheckpointNotFound, message)
    })
}

pub(super) struct Undo;

/// The outcome of an undo.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UndoFacts {
    /// The checkpoint that was taken back.
    checkpoint_id: String,
    /// The tool of the call.
    tool: String,
    restored: Vec<String>,
    conflicts: Vec<ConflictFacts>,
    /// The checkpoint by which this is taken back.
    redo: Option<String>,
}

/// A path that could not be restored.
#[derive(Debug, Serialize, JsonSchema)]
struct ConflictFacts {
    path: String,
    /// `changed`, `missing_before_snapshot` or `unverifiable`.
    reason: &'static str,
}

impl Tool for Undo {
    type Input = NoArguments;
    type Facts = UndoFacts;

    const ABOUT: About = About {
        name: "undo",
        title: "Undo the last change",
        group: ToolGroup::Snapshot,
        description: "Takes back your last call that changed files; again for the one before. Not commands.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, _: NoArguments) -> ToolResult<UndoFacts> {
        let own = context.clone();
        blocking(move || {
            own.workspace().handle().refuse_frozen()?;
            let store = own.toolbox.snapshots.of(own.workspace())?;
            let checkpoints = store.checkpoints(&known_owner(&own)?)?;
            let last = last_call(&checkpoints).ok_or_else(|| {
                let message = "no call that changed files is left to undo; commands are not undone, snapshots \
                               bring back what they changed";
                Failure::new(Code::CheckpointNotFound, message)
            })?;
            take_back(&own, &store, last, &[])
        })
        .await
    }
}

/// Returns the newest call that was not taken back. An undo and the call that it took back cancel each other.
fn last_call(newest_first: &[Checkpoint]) -> Option<&Checkpoint> {
    let mut taken_back = Vec::new();
    newest_first.iter().find(|checkpoint| {
        let id = checkpoint.id.to_string();
        match checkpoint.label.strip_prefix(UNDO).map(str::trim_start) {
            Some(undone) if undone.starts_with('u') => {
                // One that was taken back itself took nothing back.
                if !taken_back.contains(&id) {
                    taken_back.push(undone.to_owned());
                }
                false
            }
            _ => !taken_back.contains(&id),
        }
    })
}

fn take_back(
    context: &ToolContext,
    store: &Store,
    checkpoint: &Checkpoint,
    paths: &[PathBuf],
) -> ToolResult<UndoFacts> {
    let writing = context.workspace().handle().lock_for_writing()?;
    let undone = store.undo(&checkpoint.owner, checkpoint.id, paths)?;
    drop(writing);
    if !undone.conflicts.is_empty() {
        return Err(conflict(checkpoint, &undone));
    }
    let restored: Vec<_> = undone.restored.iter().map(|path| path.display().to_string()).collect();
    let mut text = format!("took back {} ({})", checkpoint.label, checkpoint.id);
    if restored.is_empty() {
        line(&mut text, "the files were as before already");
    }
    for path in &restored {
        line(&mut text, path);
    }
    let redo = undone.checkpoint.map(|id| id.to_string());
    if let Some(redo) = &redo {
        line(&mut text, &format!("[undo_restore {redo} takes this back]"));
    }
    let facts = UndoFacts {
        checkpoint_id: checkpoint.id.to_string(),
        tool: checkpoint.label.clone(),
        restored,
        conflicts: Vec::new(),
        redo,
    };
    Ok(Reply::text(text, facts))
}

fn conflict(checkpoint: &Checkpoint, undone: &Undone) -> Failure {
    let conflicts: Vec<_> = undone
        .conflicts
        .iter()
        .map(|(path, why)| ConflictFacts { path: path.display().to_string(), reason: why.as_str() })
        .collect();
    let named: Vec<_> =
        conflicts.iter().map(|one| format!("{} ({})", one.path, one.reason)).collect();
    let message = format!(
        "{} ({}) was not taken back, since this differs from what it left: {}; nothing was written",
        checkpoint.label,
        checkpoint.id,
        named.join(", ")
    );
    let conflicts = serde_json::to_value(&conflicts).unwrap_or_default();
    Failure::new(Code::UndoConflict, message)
        .with("checkpointId", checkpoint.id.to_string())
        .with("conflicts", conflicts)
}

pub(super) struct UndoList;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListInput {
    /// The most entries.
    #[schemars(range(min = 1, max = 50))]
    #[serde(default = "default_listed")]
    #[schemars(extend("x-brief" = ""))]
    limit: u64,
}

fn default_listed() -> u64 {
    DEFAULT_LISTED
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListFacts {
    session_id: String,
    /// The newest first.
    entries: Vec<Entry>,
}

/// A call that can be undone.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Entry {
    checkpoint_id: String,
    tool: String,
    created: String,
    paths: Vec<String>,
}

impl Tool for UndoList {
    type Input = ListInput;
    type Facts = ListFacts;

    const ABOUT: About = About {
        name: "undo_list",
        title: "List what can be undone",
        group: ToolGroup::Snapshot,
        in_default_set: false,
        description: "Your last calls that changed files, newest first.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: ListInput) -> ToolResult<ListFacts> {
        let own = context.clone();
        blocking(move || {
            let store = own.toolbox.snapshots.of(own.workspace())?;
            let limit = usize::try_from(input.limit).unwrap_or(MAX_CHECKPOINTS);
            let mut text = String::new();
            let mut entries = Vec::new();
            for checkpoint in
                store.checkpoints(&known_owner(&own)?)?.iter().take(limit.clamp(1, MAX_CHECKPOINTS))
            {
                let paths: Vec<_> =
                    checkpoint.paths.iter().map(|path| path.display().to_string()).collect();
                let entry = Entry {
                    checkpoint_id: checkpoint.id.to_string(),
                    tool: checkpoint.label.clone(),
                    created: checkpoint.created.to_string(),
                    paths,
                };
                let shown = entry.paths.iter().take(MAX_PATHS).map(String::as_str);
                let shown = shown.collect::<Vec<_>>().join(", ");
                let more = entry.paths.len().saturating_sub(MAX_PATHS);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let (id, tool, created) = (&entry.checkpoint_id, &entry.tool, &entry.created);
                line(&mut text, &format!("{id}\t{created}\t{tool}\t{shown}{more}"));
                entries.push(entry);
            }
            if entries.is_empty() {
                line(&mut text, "nothing to undo");
            }
            let session_id = own.session.id().to_owned();
            Ok(Reply::text(text, ListFacts { session_id, entries }))
        })
        .await
    }
}

pub(super) struct UndoRestore;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RestoreInput {
    /// Of `undo_list`, such as `u12`.
    #[schemars(extend("x-brief" = ""))]
    checkpoint_id: String,
    /// Only these files; all of the call if there are none.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    paths: Vec<String>,
}

impl Tool for UndoRestore {
    type Input = RestoreInput;
    type Facts = UndoFacts;

    const ABOUT: About = About {
        name: "undo_restore",
        title: "Undo an earlier change",
        group: ToolGroup::Snapshot,
        in_default_set: false,
        description: "Takes back one call of undo_list: all of its files, or none and the conflicts.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: RestoreInput) -> ToolResult<UndoFacts> {
        let own = context.clone();
        blocking(move || {
            own.workspace().handle().refuse_frozen()?;
            let Some(id) = CheckpointId::parse(&input.checkpoint_id) else {
                let message = format!(
                    "checkpointId is not one of undo_list: {:?}; they are written u12",
                    input.checkpoint_id
                );
                return Err(Failure::argument("checkpointId", message));
            };
            let store = own.toolbox.snapshots.of(own.workspace())?;
            let paths: Result<Vec<_>, _> =
                input.paths.iter().map(|path| inside(own.workspace(), path)).collect();
            let paths = paths?;
            let owner = known_owner(&own)?;
            let known = store.checkpoints(&owner)?;
            match known.iter().find(|checkpoint| checkpoint.id == id) {
                Some(checkpoint) => take_back(&own, &store, checkpoint, &paths),
                // Says what there is.
                None => Err(store.undo(&owner, id, &[]).map_or_else(Failure::from, |_| {
                    Failure::new(Code::CheckpointNotFound, format!("checkpoint {id} not found"))
                })),
            }
        })
        .await
    }
}
