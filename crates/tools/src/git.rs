//! Git, as operations with lists of flags instead of command lines.
//!
//! A call names an operation and gives words. Each word is held against the operation's list
//! (`tables`, `check`), addresses are read by one reader (`address`), and git runs in the sandbox like
//! any command, with settings that take back every program a repository can configure (`settings`).
//! Credentials reach git through a descriptor (`credentials`).
//!
//! ```text
//! words ──► flags, operands, addresses ──► settings ──► sandbox ──► facts and text
//! ```

mod address;
mod check;
mod credentials;
mod flags;
mod operand;
mod operation;
mod peer;
mod repository;
mod run;
mod settings;
mod show;
mod status;
mod tables;
#[cfg(test)]
mod tests;
mod words;

use std::sync::Arc;

use carrel_config::Environment;
use carrel_domain::WorkspaceAccess;
use schemars::JsonSchema;
use serde::Deserialize;

pub use credentials::{Credential, CredentialSource, EnvironmentCredentials};
pub(crate) use operation::Operation;
pub(crate) use run::{Author, Request, run};
pub(crate) use show::Facts;
pub(crate) use words::Arguments;

use crate::failure::Failure;
use crate::registry::Catalogue;
use crate::response::Reply;
use crate::tool::{About, Class, Effect, Tool, WorkspaceChoice};
use crate::tool_context::ToolContext;
use operation::Inspection;

/// Which machines git may reach, and what they are told.
#[derive(Clone, Debug, Default)]
pub struct GitOptions {
    /// Machines that git may reach, with all below them: `github.com`. If there are none, all that the
    /// policy's network allows.
    pub hosts: Vec<String>,
    /// Knows what they are to be told; nothing if there is none.
    pub credentials: Option<Arc<dyn CredentialSource>>,
    /// The certificates of authorities that are trusted, as PEM; those of the system if none.
    pub authorities: Option<Arc<[u8]>>,
}

impl GitOptions {
    /// Takes credentials from the environment.
    pub fn new(environment: &Environment) -> Self {
        let credentials = EnvironmentCredentials::new(environment);
        Self { credentials: Some(Arc::new(credentials)), ..Self::default() }
    }
}

/// Adds the tools of this module.
pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add(Git);
    catalogue.add(GitInspect);
}

/// Works with a repository.
struct Git;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GitInput {
    /// What git is to do.
    operation: Operation,
    /// Arguments: one text, which is split as a shell would without expanding anything, or a list of
    /// words.
    args: Option<Arguments>,
    /// A directory of the repository, relative to the workspace.
    cwd: Option<String>,
    /// Seconds until git is ended: 120 if not given, at most 600.
    timeout: Option<u64>,
    /// Who commits, if not the one that the repository or the operator names.
    author_name: Option<String>,
    /// The mail address of who commits.
    author_email: Option<String>,
}

impl Tool for Git {
    type Input = GitInput;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "git",
        title: "Git",
        class: Class::Write,
        effect: Effect { destructive: true, idempotent: false, open_world: true },
        workspaces: WorkspaceChoice::One,
        description: "Runs one git operation in a repository of the workspace: status, diff, log, show, \
            add, commit, branch, checkout, stash, blame, fetch, pull, push, clone. `args` are git's own \
            arguments (`-m \"fix the parser\"`, `HEAD~1 -- src`, `-b feature/x`, `-u origin main`); no \
            shell sees them, and a flag that is not allowed is refused with those that are. Hooks, \
            filters, signing and other programs that the repository configures do not run. Remotes are \
            reached over https with the operator's credentials; never put one into an address. Prefer \
            it to git in Bash, which has no credentials and usually no network. A non-zero exit is data, \
            not an error.",
    };

    async fn call(&self, context: &ToolContext, input: GitInput) -> Result<Reply<Facts>, Failure> {
        let words = input.args.map_or(Ok(Vec::new()), Arguments::words)?;
        let request = Request {
            directory: input.cwd,
            timeout: input.timeout,
            author: Author { name: input.author_name, email: input.author_email },
            ..Request::new(input.operation, words)
        };
        run(context, request).await
    }
}

/// Looks at a repository.
struct GitInspect;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InspectInput {
    /// What to look at. `branch` only lists; `stash` takes `list` or `show` as its first argument.
    operation: Inspection,
    /// Arguments: one text, which is split as a shell would without expanding anything, or a list of
    /// words.
    args: Option<Arguments>,
    /// A directory of the repository, relative to the workspace.
    cwd: Option<String>,
}

impl Tool for GitInspect {
    type Input = InspectInput;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "git_inspect",
        title: "Look at a repository",
        class: Class::Read,
        effect: Effect::NONE,
        workspaces: WorkspaceChoice::One,
        description: "Looks at a git repository of the workspace without changing anything: status, \
            diff, log, show, blame, branch (lists), stash (list, show). `args` are git's own arguments: \
            `log --oneline -5`, `diff --stat HEAD~1`, `blame -L 10,20 src/lib.rs`. Works where nothing \
            may be changed. A non-zero exit is data, not an error.",
    };

    async fn call(
        &self,
        context: &ToolContext,
        input: InspectInput,
    ) -> Result<Reply<Facts>, Failure> {
        let words = input.args.map_or(Ok(Vec::new()), Arguments::words)?;
        let request = Request {
            directory: input.cwd,
            access: WorkspaceAccess::ReadOnly,
            ..Request::new(input.operation.into(), words)
        };
        run(context, request).await
    }
}
