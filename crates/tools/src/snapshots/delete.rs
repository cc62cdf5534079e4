//! The tool `snapshot_delete`.

use carrel_domain::ToolGroup;
use carrel_wire::DeletedSnapshot;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::reference;
use crate::blocking::blocking;
use crate::response::Reply;
use crate::tool::{About, CallRules, QuotaRule, Tool, ToolResult};
use crate::tool_context::ToolContext;

pub(super) struct SnapshotDelete;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The name, or a number such as `@12`.
    #[schemars(extend("x-brief" = ""))]
    name: String,
}

impl Tool for SnapshotDelete {
    type Input = Input;
    type Facts = DeletedSnapshot;

    const ABOUT: About = About {
        name: "snapshot_delete",
        title: "Delete a snapshot",
        group: ToolGroup::Snapshot,
        in_default_set: false,
        rules: CallRules { quota: QuotaRule::FreesSpace, ..CallRules::WRITE },
        description: "Deletes a snapshot for good, by its name or number.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<DeletedSnapshot> {
        let own = context.clone();
        blocking(move || {
            let store = own.toolbox.snapshots.of(own.workspace())?;
            let snapshot = store.delete(&reference(&input.name)?)?;
            let facts = DeletedSnapshot {
                id: snapshot.id.to_string(),
                name: snapshot.name.as_ref().map(ToString::to_string),
            };
            let text = format!("deleted snapshot {}\n", input.name);
            Ok(Reply::text(text, facts).with_data(own.options.interface, |facts| json!(facts)))
        })
        .await
    }
}
