//! The tool `snapshot_restore`.

use carrel_domain::{Failure, ToolGroup};
use carrel_snapshot::{Change, ChangeKind, Node, RestoreOptions, RestorePlan, ScanOptions};
use carrel_wire::RestoredSnapshot;
use carrel_workspace::Amount;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::facts;
use super::{MAX_LISTED, inside, listed, policy, reference, retention, some_of, trust};
use crate::blocking::blocking;
use crate::named_workspace::NamedWorkspace;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

pub(super) struct SnapshotRestore;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The name, or a number such as `@12`.
    #[schemars(extend("x-brief" = ""))]
    name: String,
    /// Only these files and directories.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    paths: Vec<String>,
    /// Only list what would change.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    dry_run: bool,
}

impl Tool for SnapshotRestore {
    type Input = Input;
    type Facts = RestoredSnapshot;

    const ABOUT: About = About {
        name: "snapshot_restore",
        title: "Restore a snapshot",
        group: ToolGroup::Snapshot,
        in_default_set: false,
        description: "Makes all files, or those of `paths`, as they were in a snapshot. Snapshots the present \
            state first, so it can be undone; ignored files and .git are left alone.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<RestoredSnapshot> {
        let own = context.clone();
        let interface = own.options.interface;
        let reply = blocking(move || restore(&own, &input)).await?;
        Ok(reply.with_data(interface, |facts| json!(facts)))
    }
}

fn restore(context: &ToolContext, input: &Input) -> ToolResult<RestoredSnapshot> {
    let workspace = context.workspace();
    if !input.dry_run {
        workspace.handle().refuse_frozen()?;
    }
    let store = context.toolbox.snapshots.of(workspace)?;
    let reference = reference(&input.name)?;
    let paths: Result<Vec<_>, _> = input.paths.iter().map(|path| inside(workspace, path)).collect();
    let paths = paths?;
    let is_all = paths.iter().any(|path| path.as_os_str() == ".");
    let paths = if is_all { Vec::new() } else { paths };
    // A plan changes nothing.
    let handle = workspace.handle();
    let writing =
        if input.dry_run { handle.lock_past_freeze() } else { handle.lock_for_writing() }?;
    let scan = ScanOptions { trust: trust(context), ..ScanOptions::default() };
    let plan = store
        .plan_restore(&reference, RestoreOptions { paths, scan, ..RestoreOptions::default() })?;
    let left_alone = plan.left_alone.iter().map(|(path, _)| path).chain(&plan.kept);
    let (left_alone, left_alone_total) = listed(left_alone);
    let (blocked, blocked_total) = listed(plan.blocked.iter());
    let restored_facts = |changes: &[Change], before: Option<String>| RestoredSnapshot {
        snapshot: plan.snapshot.id.to_string(),
        before,
        changed: changes.len() as u64,
        changes: changes.iter().take(MAX_LISTED).map(facts::change).collect(),
        left_alone: left_alone.clone(),
        left_alone_total,
        blocked: blocked.clone(),
        blocked_total,
    };
    if input.dry_run || plan.changes.is_empty() {
        return Ok(reply(input, restored_facts(&plan.changes, None)));
    }
    check_room(workspace, &plan)?;
    let before = plan.clone();
    let restored = store.apply(before)?;
    drop(writing);
    retention::enforce_in_background(&store, policy(context));
    Ok(reply(input, restored_facts(&restored.changes, Some(restored.before.id.to_string()))))
}

/// Refuses a restore that exceeds the quota.
fn check_room(workspace: &NamedWorkspace, plan: &RestorePlan) -> Result<(), Failure> {
    let size = |node: &Option<Node>| match node {
        Some(Node::File { size, .. }) => *size,
        Some(Node::Directory { .. } | Node::Link { .. } | Node::LeftOut(_)) | None => 0,
    };
    let bytes = plan.changes.iter().map(|change| size(&change.new)).sum::<u64>();
    let freed = plan.changes.iter().map(|change| size(&change.old)).sum::<u64>();
    let added = plan.changes.iter().filter(|change| change.kind == ChangeKind::Added).count();
    let more = Amount { bytes: bytes.saturating_sub(freed), files: added as u64 };
    Ok(workspace.handle().check_room(more)?)
}

fn reply(input: &Input, restored: RestoredSnapshot) -> Reply<RestoredSnapshot> {
    let (name, count) = (&input.name, restored.changed);
    let mut text = match (count, input.dry_run) {
        (0, _) => format!("restored snapshot {name} (no files changed)"),
        (_, true) => format!("would restore snapshot {name} ({count} file(s) would change):"),
        (_, false) => format!("restored snapshot {name} ({count} file(s) changed):"),
    };
    for change in &restored.changes {
        line(&mut text, &facts::change_line(change));
    }
    let listed = restored.changes.len() as u64;
    if count > listed {
        line(&mut text, &format!("[{} more]", count - listed));
    }
    if !restored.left_alone.is_empty() {
        let shown = some_of(&restored.left_alone, restored.left_alone_total);
        line(&mut text, &format!("left as they are: {shown}"));
    }
    if !restored.blocked.is_empty() {
        let blocked = some_of(&restored.blocked, restored.blocked_total);
        line(
            &mut text,
            &format!("not restored, since a directory in their place stays: {blocked}"),
        );
    }
    if let Some(before) = &restored.before {
        line(&mut text, &format!("the state before is {before}"));
    }
    Reply::text(text, restored)
}
