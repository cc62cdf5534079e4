//! Tools about the server itself: its workspaces and its secrets.

use carrel_domain::WorkspaceAccess;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::info;

use crate::failure::Failure;
use crate::registry::Catalogue;
use crate::response::Reply;
use crate::secrets::SecretSource;
use crate::tool::{About, Class, Effect, Tool, WorkspaceChoice};
use crate::tool_context::ToolContext;

/// The one tool whose answer is not masked.
pub(crate) const SECRET: &str = "secret";

/// The tools that hand out secrets of the operator's.
pub const SECRET_TOOLS: [&str; 2] = [SECRET, AVAILABLE];

const AVAILABLE: &str = "secrets_available";

/// Adds the tools of this module.
pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add(ListWorkspaces);
    catalogue.add(ReadSecret);
    catalogue.add(ListSecrets);
}

struct ListWorkspaces;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Debug, Serialize, JsonSchema)]
struct WorkspaceFacts {
    /// The workspaces, sorted by name.
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
    type Input = Nothing;
    type Facts = WorkspaceFacts;

    const ABOUT: About = About {
        name: "workspaces",
        title: "List workspaces",
        class: Class::Read,
        effect: Effect::NONE,
        workspaces: WorkspaceChoice::Optional,
        description: "Lists the workspaces of this server: the names that `workspace` takes in every \
            other tool, their directories, and whether they are read-only. Call it first when you do \
            not know what there is.",
    };

    async fn call(
        &self,
        context: &ToolContext,
        _: Nothing,
    ) -> Result<Reply<WorkspaceFacts>, Failure> {
        let read_only =
            |access| [context.toolbox.access, access].contains(&WorkspaceAccess::ReadOnly);
        let chosen = context.optional_workspace().filter(|_| context.workspaces().len() > 1);
        let all = context.workspaces();
        let shown = all.iter();
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

struct ReadSecret;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SecretInput {
    /// The name, as `secrets_available` lists it.
    name: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SecretFacts {
    name: String,
    /// `env` or `file`.
    source: &'static str,
    /// How many bytes the value has.
    length: usize,
}

impl Tool for ReadSecret {
    type Input = SecretInput;
    type Facts = SecretFacts;

    const ABOUT: About = About {
        name: SECRET,
        title: "Read a secret",
        class: Class::Read,
        effect: Effect::NONE,
        workspaces: WorkspaceChoice::Optional,
        description: "Returns the value of a secret that the operator configured, by name. Commands \
            do not have it in their environment, and it is masked in the output of every other tool. \
            Use it only for what needs it, and never write it to a file.",
    };

    async fn call(
        &self,
        context: &ToolContext,
        input: SecretInput,
    ) -> Result<Reply<SecretFacts>, Failure> {
        let workspace = context.optional_workspace().map(|workspace| workspace.name());
        let name = input.name.trim();
        let (secret, source) = context.toolbox.secrets.find(workspace, name)?;
        // It may have been put there since the server was started.
        context.toolbox.refresh_redactor();
        let source = match source {
            SecretSource::Env => "env",
            SecretSource::File => "file",
        };
        let length = secret.expose().len();
        info!(session = context.session.id(), name, length, source, "handed out a secret");
        let facts = SecretFacts { name: name.to_owned(), source, length };
        Ok(Reply::text(secret.expose(), facts))
    }
}

struct ListSecrets;

#[derive(Debug, Serialize, JsonSchema)]
struct SecretNames {
    /// The names, sorted.
    names: Vec<String>,
}

impl Tool for ListSecrets {
    type Input = Nothing;
    type Facts = SecretNames;

    const ABOUT: About = About {
        name: AVAILABLE,
        title: "List secrets",
        class: Class::Read,
        effect: Effect::NONE,
        workspaces: WorkspaceChoice::Optional,
        description: "Lists the names of the secrets that the operator configured, one per line, \
            without their values.",
    };

    async fn call(&self, context: &ToolContext, _: Nothing) -> Result<Reply<SecretNames>, Failure> {
        let names = context
            .toolbox
            .secrets
            .names(context.optional_workspace().map(|workspace| workspace.name()));
        Ok(Reply::text(names.join("\n"), SecretNames { names }))
    }
}
