//! The tools `git` and `git_inspect`.
//!
//! The crate `git` checks arguments, finds the repository and prepares settings and credentials; this module
//! runs the result in the sandbox and writes the reply.

mod execution;
mod reply;

use std::sync::Arc;

use carrel_config::Environment;
use carrel_domain::{TokenScope, ToolGroup, WorkspaceAccess};
use carrel_git::{
    ArgumentList, CredentialSource, EnvironmentCredentials, GitOperation, ReadOnlyOperation,
};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use execution::{GitRequest, run};
pub use reply::GitFacts;

use crate::registry::Catalogue;
use crate::reply_limit::MaxBytes;
use crate::tool::{About, CallRules, Effect, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// The hosts that git may reach, and the credentials for them.
#[derive(Clone, Debug, Default)]
pub struct GitOptions {
    /// Allowed hosts with their subdomains, such as `github.com`. An empty list allows every host that the
    /// policy's network allows.
    pub hosts: Vec<String>,
    /// The operator's credentials; without a source git has none.
    pub credentials: Option<Arc<dyn CredentialSource>>,
    /// Certificate authorities as PEM; those of the system if none.
    pub authorities: Option<Arc<[u8]>>,
}

impl GitOptions {
    /// Takes credentials from the environment, and allows every host.
    pub fn new(environment: &Environment) -> Self {
        let credentials = EnvironmentCredentials::new(environment);
        Self { credentials: Some(Arc::new(credentials)), ..Self::default() }
    }
}

pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add::<Git>();
    catalogue.add::<GitInspect>();
}

struct Git;

#[derive(Debug, Deserialize, JsonSchema)]
struct GitInput {
    /// The git subcommand.
    #[schemars(extend("x-brief" = ""))]
    operation: GitOperation,
    /// Arguments: one string, split like a shell command line without expansion, or a list of strings.
    #[schemars(extend("x-brief" = "git's own arguments"))]
    args: Option<ArgumentList>,
    /// A directory of the repository, relative to the workspace.
    #[schemars(extend("x-brief" = ""))]
    cwd: Option<String>,
    /// Timeout in seconds; 120 by default, at most 600.
    #[schemars(extend("x-brief" = ""))]
    timeout: Option<u64>,
    /// Author and committer of new commits; by default those of the repository or the operator.
    #[schemars(extend("x-brief" = ""))]
    author_name: Option<String>,
    /// Their mail address.
    #[schemars(extend("x-brief" = ""))]
    author_email: Option<String>,
    max_bytes: Option<MaxBytes>,
}

impl Tool for Git {
    type Input = GitInput;
    type Facts = GitFacts;

    const ABOUT: About = About {
        name: "git",
        title: "Git",
        group: ToolGroup::Git,
        effect: Effect::RUNS,
        rules: CallRules { token_scope: TokenScope::Exec, ..CallRules::WRITE },
        description: "Runs one git operation. `args` are git's own (`-m \"fix the parser\"`, `-b \
            feature/x`, `-u origin main`); no shell expands them. Remotes use the operator's \
            credentials; never put one into an address. Prefer it to git in Bash, which has no \
            credentials and usually no network. Hooks and filters of the repository do not run.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: GitInput) -> ToolResult<GitFacts> {
        let request = GitRequest {
            directory: input.cwd,
            timeout: input.timeout,
            author_name: input.author_name,
            author_email: input.author_email,
            max_bytes: input.max_bytes,
            ..GitRequest::new(input.operation, input.args)?
        };
        run(context, request).await
    }
}

struct GitInspect;

#[derive(Debug, Deserialize, JsonSchema)]
struct InspectInput {
    /// The git subcommand. `branch` lists; `stash` takes `list` or `show` as its first argument.
    #[schemars(extend("x-brief" = ""))]
    operation: ReadOnlyOperation,
    /// Arguments: one string, split like a shell command line without expansion, or a list of strings.
    #[schemars(extend("x-brief" = "such as `--oneline -5`"))]
    args: Option<ArgumentList>,
    /// A directory of the repository, relative to the workspace.
    #[schemars(extend("x-brief" = ""))]
    cwd: Option<String>,
    max_bytes: Option<MaxBytes>,
}

impl Tool for GitInspect {
    type Input = InspectInput;
    type Facts = GitFacts;

    const ABOUT: About = About {
        name: "git_inspect",
        title: "Inspect a repository",
        group: ToolGroup::Git,
        description: "Reads a git repository without changing it, also in a read-only workspace. \
            `branch` lists; `stash` takes `list` or `show`.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: InspectInput) -> ToolResult<GitFacts> {
        let request = GitRequest {
            directory: input.cwd,
            access: WorkspaceAccess::ReadOnly,
            max_bytes: input.max_bytes,
            ..GitRequest::new(input.operation.into(), input.args)?
        };
        run(context, request).await
    }
}
