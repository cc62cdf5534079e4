//! The definition of a tool: its types, its description, and the rules for calling it.
//!
//! A tool is a type that implements [`Tool`]. Everything that decides whether and how it may be called is
//! data in its [`About`]: interfaces and the registry read that data and never compare tool names, so a
//! tool that is renamed or added cannot slip past a check. An author begins with [`About::READ`],
//! [`About::WRITE`] or [`About::EXECUTE`], whose class, hints and rules belong together, and names only what
//! differs.

use carrel_domain::{Failure, TokenScope, ToolGroup, ToolSelection};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::response::Reply;
use crate::tool_context::ToolContext;

/// One operation that an agent can call.
pub trait Tool: Send + Sync + 'static {
    /// The arguments, beside `workspace`, which every tool takes. The registry refuses fields that are not
    /// in the schema of this type.
    type Input: DeserializeOwned + JsonSchema + Send + 'static;
    /// The structured part of the reply. Bulk, such as the text of a file, is in its content.
    type Facts: Serialize + JsonSchema + Send + 'static;

    /// The tool's description and rules.
    const ABOUT: About;

    /// Does the work. The registry has chosen the workspace and checked access; a panic becomes a failure
    /// of this call.
    fn call(
        context: &ToolContext,
        input: Self::Input,
    ) -> impl Future<Output = ToolResult<Self::Facts>> + Send;
}

// Not a doc comment, which would become the description of the schema: tools that only take `workspace`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct NoArguments {}

/// The reply of a tool, or the reason why there is none.
pub type ToolResult<F> = Result<Reply<F>, Failure>;

/// A tool's description and the rules for calling it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The name in calls.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The group by which an operator offers it.
    pub group: ToolGroup,
    /// It is offered if the operator chooses no groups.
    pub in_default_set: bool,
    /// The effect on the workspace. Tools that are not [`Class::Read`] are neither offered by read-only
    /// servers nor run in read-only workspaces.
    pub class: Class,
    /// Hints for clients that ask their user before a call.
    pub effect: Effect,
    /// The workspaces that one call can be about.
    pub workspaces: WorkspaceChoice,
    /// The servers whose list of tools has it. It can be called either way.
    pub listing: ListingRule,
    /// The checks that the registry and the interfaces make.
    pub rules: CallRules,
    /// Teaches a model when and how to use the tool.
    pub description: &'static str,
}

impl About {
    /// Tells whether an operator's choice includes the tool.
    pub const fn is_in(&self, selection: ToolSelection) -> bool {
        selection.includes(self.group, self.in_default_set)
    }

    /// Tools that change nothing, in one workspace.
    pub const READ: Self = Self {
        name: "",
        title: "",
        group: ToolGroup::Files,
        in_default_set: true,
        class: Class::Read,
        effect: Effect::NONE,
        workspaces: WorkspaceChoice::One,
        listing: ListingRule::Always,
        rules: CallRules::READ,
        description: "",
    };

    /// Tools that write files of one workspace themselves.
    pub const WRITE: Self = Self {
        class: Class::Write,
        effect: Effect::REPLACES,
        rules: CallRules::WRITE,
        ..Self::READ
    };

    /// Tools that run programs in one workspace.
    pub const EXECUTE: Self = Self {
        class: Class::Execute,
        effect: Effect::RUNS,
        rules: CallRules::EXECUTE,
        ..Self::READ
    };
}

/// The effect of a tool on its workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Changes nothing.
    Read,
    /// Changes files.
    Write,
    /// Runs programs, which may change files.
    Execute,
}

/// Hints for clients that ask their user before a call, as MCP's annotations define them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// It may overwrite or remove data.
    pub destructive: bool,
    /// A second call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// It may interact with systems outside the workspace, such as a network.
    pub open_world: bool,
}

impl Effect {
    /// Nothing changes.
    pub const NONE: Self = Self { destructive: false, idempotent: true, open_world: false };
    /// Data may be replaced or removed.
    pub const REPLACES: Self = Self { destructive: true, idempotent: false, open_world: false };
    /// Programs run, which may do anything that the sandbox allows.
    pub const RUNS: Self = Self { destructive: true, idempotent: false, open_world: true };
}

/// The workspaces that one call can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspaceChoice {
    /// Exactly one; with several, the call has to name it.
    One,
    /// One, or with `all` each of them in turn.
    OneOrAll,
    /// One, or none in particular.
    Optional,
}

/// The servers whose list of tools has a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListingRule {
    /// All that offer it.
    Always,
    /// Those where a call may name one of several workspaces.
    SeveralWorkspaces,
}

/// The checks that the registry and the interfaces make for calls of a tool.
///
/// Most tools use one of the constants, or change one field of it:
///
/// ```
/// # use carrel_tools::{CallRules, QuotaRule};
/// const DELETE: CallRules = CallRules { quota: QuotaRule::FreesSpace, ..CallRules::WRITE };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRules {
    /// The scope that a caller's token must carry, over REST and over MCP of the service.
    pub token_scope: TokenScope,
    /// The interfaces that offer the tool.
    pub exposure: Exposure,
    /// The handling of files that would run later outside the sandbox, such as git hooks.
    pub trust: TrustMode,
    /// The handling of known secrets in the reply.
    pub masking: Masking,
    /// The handling of a workspace that has used up its quota.
    pub quota: QuotaRule,
}

impl CallRules {
    /// Tools that change nothing.
    pub const READ: Self = Self {
        token_scope: TokenScope::Read,
        exposure: Exposure::Everywhere,
        trust: TrustMode::Unchecked,
        masking: Masking::Masked,
        quota: QuotaRule::Ignored,
    };

    /// Tools that write files themselves.
    pub const WRITE: Self = Self {
        token_scope: TokenScope::Write,
        trust: TrustMode::AfterCall,
        quota: QuotaRule::Checked,
        ..Self::READ
    };

    /// Tools that run programs. The runner makes the trust check when a command ends.
    pub const EXECUTE: Self =
        Self { token_scope: TokenScope::Exec, trust: TrustMode::Unchecked, ..Self::WRITE };
}

/// The interfaces that offer a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// All of them.
    Everywhere,
    /// `carrel mcp` and `carrel tool`, where the caller acts for the operator. The service and the
    /// conductor's agents do not get the tool, even with the scope `admin`.
    OperatorOnly,
}

/// The handling of files that would run later outside the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustMode {
    /// The tool writes no files itself.
    Unchecked,
    /// The registry compares such files before and after the call, and restores or reports changes.
    AfterCall,
    /// The tool refuses such a write itself, so that nothing has to be restored. The registry compares
    /// only if the operator's policy reports changes instead of restoring them.
    BeforeWrite,
}

/// The handling of known secrets in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masking {
    /// They are replaced by their names.
    Masked,
    /// They stay, because returning one is the purpose of the tool. Failures are masked all the same.
    Exposed,
}

/// The handling of a workspace that has used up its quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaRule {
    /// The tool uses no space.
    Ignored,
    /// Calls are refused while the workspace is over its quota, and its usage is counted again later.
    Checked,
    /// Calls are allowed, because they free space; the usage is counted again later.
    FreesSpace,
}
