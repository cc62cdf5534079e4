//! The tools `secret` and `secrets_available`.

use carrel_domain::{TokenScope, ToolGroup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::info;

use crate::registry::Catalogue;
use crate::response::Reply;
use crate::text::or_words;
use crate::tool::{
    About, CallRules, Exposure, Masking, NoArguments, Tool, ToolResult, WorkspaceChoice,
};
use crate::tool_context::ToolContext;

/// Only callers that act for the operator may know the operator's secrets.
const SECRET_RULES: CallRules = CallRules {
    token_scope: TokenScope::Admin,
    exposure: Exposure::OperatorOnly,
    ..CallRules::READ
};

pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add::<ReadSecret>();
    catalogue.add::<ListSecrets>();
}

struct ReadSecret;

#[derive(Debug, Deserialize, JsonSchema)]
struct SecretInput {
    /// The name, as `secrets_available` lists it.
    #[schemars(extend("x-brief" = ""))]
    name: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SecretFacts {
    name: String,
    /// `env` or `file`.
    source: &'static str,
    length: usize,
}

impl Tool for ReadSecret {
    type Input = SecretInput;
    type Facts = SecretFacts;

    const ABOUT: About = About {
        name: "secret",
        title: "Read a secret",
        group: ToolGroup::Secrets,
        in_default_set: false,
        workspaces: WorkspaceChoice::Optional,
        rules: CallRules { masking: Masking::Exposed, ..SECRET_RULES },
        description: "Returns one of the operator's secrets. Every other tool masks it. Never \
            write it to a file.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: SecretInput) -> ToolResult<SecretFacts> {
        let workspace = context.optional_workspace().map(|workspace| workspace.operator_name());
        let name = input.name.trim();
        let (secret, source) = context.toolbox.secrets.find(workspace, name)?;
        // The secret may be newer than the redactor.
        context.toolbox.refresh_redactor();
        let length = secret.expose().len();
        info!(session = context.session.id(), name, length, source, "returned a secret");
        let facts = SecretFacts { name: name.to_owned(), source, length };
        let text = or_words(secret.expose().to_owned(), "the secret is empty");
        Ok(Reply::text(text, facts))
    }
}

struct ListSecrets;

#[derive(Debug, Serialize, JsonSchema)]
struct SecretNames {
    names: Vec<String>,
}

impl Tool for ListSecrets {
    type Input = NoArguments;
    type Facts = SecretNames;

    const ABOUT: About = About {
        name: "secrets_available",
        title: "List secrets",
        group: ToolGroup::Secrets,
        in_default_set: false,
        workspaces: WorkspaceChoice::Optional,
        rules: SECRET_RULES,
        description: "Lists the names of the operator's secrets, without their values.",
        ..About::READ
    };

    async fn call(context: &ToolContext, _: NoArguments) -> ToolResult<SecretNames> {
        let workspace = context.optional_workspace().map(|workspace| workspace.operator_name());
        let names = context.toolbox.secrets.names(workspace);
        let text = or_words(names.join("\n"), "there are no secrets");
        Ok(Reply::text(text, SecretNames { names }))
    }
}
