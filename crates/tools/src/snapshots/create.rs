//! The tool `snapshot_create`.

use carrel_domain::{Failure, ToolGroup};
use carrel_snapshot::{CreateRequest, Created, Ignored, Omission, SameName, SnapshotName};
use carrel_wire::{CreatedSnapshot, LeftOutPath};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::facts;
use super::{CREATED_ID, MAX_LISTED, listed, policy, retention, some_of, trust};
use crate::blocking::blocking;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Effect, Tool, ToolResult};
use crate::tool_context::ToolContext;

pub(super) struct SnapshotCreate;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// Begins with a letter, digit or `_`, and goes on with those, `.` and `-`.
    #[schemars(extend("x-brief" = ""))]
    name: String,
    /// What it is for.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    description: String,
    /// Also take what ignore rules exclude, such as `node_modules`.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    ignored: bool,
    /// Replace an older snapshot of this name.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    replace: bool,
}

impl Tool for SnapshotCreate {
    type Input = Input;
    type Facts = CreatedSnapshot;

    const ABOUT: About = About {
        name: "snapshot_create",
        title: "Take a snapshot",
        group: ToolGroup::Snapshot,
        in_default_set: false,
        effect: Effect::NONE,
        description: "Records all files, so that snapshot_restore brings them back. Independent of git.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<CreatedSnapshot> {
        let own = context.clone();
        blocking(move || {
            let request = request(&own, &input)?;
            let workspace = own.workspace();
            let store = own.toolbox.snapshots.of(workspace)?;
            // It only reads the tree, which a freeze does not forbid.
            let writing = workspace.handle().lock_past_freeze()?;
            let created = store.create(&request)?;
            drop(writing);
            retention::enforce_in_background(&store, policy(&own));
            let interface = own.options.interface;
            Ok(reply(&created).with_data(interface, |facts| json!(facts)))
        })
        .await
    }
}

fn request(context: &ToolContext, input: &Input) -> Result<CreateRequest, Failure> {
    let name = SnapshotName::new(&*input.name)
        .map_err(|error| Failure::argument("name", error.to_string()))?;
    let mut request = CreateRequest::named(name);
    request.description.clone_from(&input.description);
    context.session.id().clone_into(&mut request.author);
    request.options.trust = trust(context);
    if input.ignored {
        request.options.ignored = Ignored::Taken;
    }
    if input.replace {
        request.same_name = SameName::Replaced;
    }
    Ok(request)
}

fn reply(created: &Created) -> Reply<CreatedSnapshot> {
    let snapshot = facts::snapshot(&created.snapshot);
    let is_ignored = |omission: Omission| omission == Omission::Ignored;
    let (ignored, others): (Vec<_>, Vec<_>) =
        created.left_out.iter().partition(|(_, why)| is_ignored(*why));
    let (ignored, ignored_total) = listed(ignored.into_iter().map(|(path, _)| path));
    let left_out_total = others.len() as u64;
    let left_out: Vec<_> = others
        .into_iter()
        .take(MAX_LISTED)
        .map(|(path, why)| LeftOutPath {
            path: path.display().to_string(),
            reason: why.as_str().to_owned(),
        })
        .collect();
    let top = created.snapshot.top.to_string();
    let name = created.snapshot.name.as_ref().map_or(String::new(), ToString::to_string);
    let mut text = format!("snapshot {name} created: {}", &top[..CREATED_ID.min(top.len())]);
    let unchanged = if created.is_unchanged { ", the same as the one before" } else { "" };
    line(&mut text, &format!("{}: {}{unchanged}", snapshot.id, facts::size(&snapshot)));
    if let Some(replaced) = created.replaced {
        line(&mut text, &format!("it replaces {replaced}"));
    }
    if !ignored.is_empty() {
        let names = some_of(&ignored, ignored_total);
        line(&mut text, &format!("not in it, since ignore rules exclude it: {names}"));
    }
    if !left_out.is_empty() {
        let shown: Vec<_> =
            left_out.iter().map(|one| format!("{} ({})", one.path, one.reason)).collect();
        line(&mut text, &format!("not in it: {}", some_of(&shown, left_out_total)));
    }
    let unchanged = created.is_unchanged;
    let facts =
        CreatedSnapshot { snapshot, unchanged, ignored, ignored_total, left_out, left_out_total };
    Reply::text(text, facts)
}
