//! The tool `snapshot_list`.

use carrel_domain::ToolGroup;
use carrel_wire::SnapshotList;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::facts;
use crate::blocking::blocking;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// Characters of a tree's hash in the list.
const SHORT_HASH: usize = 12;

pub(super) struct List;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// Also list those that Carrel took by itself.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    automatic: bool,
}

impl Tool for List {
    type Input = Input;
    type Facts = SnapshotList;

    const ABOUT: About = About {
        name: "snapshot_list",
        title: "List snapshots",
        group: ToolGroup::Snapshot,
        in_default_set: false,
        description: "Snapshots, newest first: name, hash, time, description.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<SnapshotList> {
        let own = context.clone();
        blocking(move || {
            let store = own.toolbox.snapshots.of(own.workspace())?;
            let (all, damaged) = (store.list()?, store.damaged()?);
            let mut text = String::new();
            let mut snapshots = Vec::new();
            for snapshot in all.iter().filter(|one| input.automatic || one.name.is_some()) {
                let facts = facts::snapshot(snapshot);
                let hash = snapshot.top.to_string();
                let hash = &hash[..SHORT_HASH.min(hash.len())];
                let (label, created) = (facts::label(&facts), &facts.created);
                let subject = match (&*facts.description, &*facts.reason) {
                    ("", "asked") => format!("snapshot: {label}"),
                    ("", reason) => reason.replace('_', " "),
                    (description, _) => description.lines().next().unwrap_or_default().to_owned(),
                };
                line(&mut text, &format!("{label}\t{hash}\t{created}\t{subject}"));
                snapshots.push(facts);
            }
            let automatic = (all.len() - snapshots.len()) as u64;
            if snapshots.is_empty() {
                line(&mut text, "no snapshots");
            }
            if automatic > 0 {
                line(&mut text, &format!("[{automatic} automatic ones are not listed]"));
            }
            for file in &damaged {
                let number = file.trim_start_matches(|one: char| !one.is_ascii_digit());
                let number = number.trim_start_matches('0');
                let text_of = format!(
                    "[{file} of the store is damaged: all content is kept for it; snapshot_delete @{number} gives \
                     that snapshot up]"
                );
                line(&mut text, &text_of);
            }
            let facts = SnapshotList { snapshots, automatic, damaged };
            Ok(Reply::text(text, facts).with_data(own.options.interface, |facts| json!(facts)))
        })
        .await
    }
}
