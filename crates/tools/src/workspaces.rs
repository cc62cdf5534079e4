//! The tool `workspaces`.

use std::sync::Arc;

use carrel_domain::WorkspaceAccess;
use schemars::JsonSchema;
use serde::Serialize;

use crate::registry::Catalogue;
use crate::response::Reply;
use crate::tool::{About, ListingRule, NoArguments, Tool, ToolResult, WorkspaceChoice};
use crate::tool_context::ToolContext;

pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add::<ListWorkspaces>();
}

struct ListWorkspaces;

#[derive(Debug, Serialize, JsonSchema)]
struct WorkspaceFacts {
    workspaces: Vec<WorkspaceFact>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct WorkspaceFact {
    name: String,
    /// The directory; absolute paths below it are accepted by every tool.
    path: String,
    read_only: bool,
}

impl Tool for ListWorkspaces {
    type Input = NoArguments;
    type Facts = WorkspaceFacts;

    const ABOUT: About = About {
        name: "workspaces",
        title: "List workspaces",
        workspaces: WorkspaceChoice::Optional,
        listing: ListingRule::SeveralWorkspaces,
        description: "Lists the workspaces of this server: their names, directories, and which \
            are read-only.",
        ..About::READ
    };

    async fn call(context: &ToolContext, _: NoArguments) -> ToolResult<WorkspaceFacts> {
        let read_only =
            |access| [context.toolbox.access, access].contains(&WorkspaceAccess::ReadOnly);
        let chosen = context.optional_workspace().filter(|_| context.workspaces().len() > 1);
        let all = context.workspaces();
        let shown = all.iter().map(Arc::clone).chain(all.forks());
        let shown =
            shown.filter(|workspace| chosen.is_none_or(|one| one.name() == workspace.name()));
        let mut workspaces: Vec<_> = shown
            .map(|workspace| WorkspaceFact {
                name: workspace.name().to_owned(),
                path: workspace.path().display().to_string(),
                read_only: read_only(workspace.access()),
            })
            .collect();
        workspaces.sort_by(|one, other| one.name.cmp(&other.name));
        let line = |fact: &WorkspaceFact| {
            let suffix = if fact.read_only { " (read-only)" } else { "" };
            format!("{}\t{}{suffix}\n", fact.name, fact.path)
        };
        Ok(Reply::text(
            workspaces.iter().map(line).collect::<String>(),
            WorkspaceFacts { workspaces },
        ))
    }
}
