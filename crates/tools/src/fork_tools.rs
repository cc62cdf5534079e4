//! The tools `fork`, `fork_diff`, `fork_promote` and `fork_end`, and forks as workspaces of a session.
//!
//! A call reaches a fork by its key in the argument `workspace`. The fork is opened then, in the toolbox of its base, and
//! stays open until it ends: one process at a time has its tree mounted. A service opens forks as workspaces of their
//! own instead, and makes and ends them through a [`ForkHost`].

mod host;
mod table;

use carrel_domain::{Failure, MAX_FORKS, ToolGroup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use host::ForkHost;
use host::Host;
pub(crate) use table::{ForkTable, open_named};

use crate::forks::OtherForks;
use crate::registry::Catalogue;
use crate::reply_limit::MaxBytes;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, CallRules, Effect, QuotaRule, Tool, ToolResult, TrustMode};
use crate::tool_context::ToolContext;

/// The changes that a reply lists.
const MAX_LISTED: usize = 200;

/// Forks take no space of the base, and the trust check of each has been made when its commands ended.
const RULES: CallRules =
    CallRules { trust: TrustMode::Unchecked, quota: QuotaRule::Ignored, ..CallRules::WRITE };

pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add::<ForkTool>();
    catalogue.add::<ForkDiff>();
    catalogue.add::<ForkPromote>();
    catalogue.add::<ForkEnd>();
}

struct ForkTool;

#[derive(Debug, Deserialize, JsonSchema)]
struct ForkInput {
    /// The number of forks.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MAX_FORKS), extend("x-brief" = ""))]
    count: u8,
}

fn one() -> u8 {
    1
}

#[derive(Debug, Serialize, JsonSchema)]
struct ForkFacts {
    /// The names of the new forks, for the argument `workspace` of other tools.
    forks: Vec<String>,
}

impl Tool for ForkTool {
    type Input = ForkInput;
    type Facts = ForkFacts;

    const ABOUT: About = About {
        name: "fork",
        title: "Fork the workspace",
        group: ToolGroup::Snapshot,
        in_default_set: false,
        // It replaces nothing; but the workspace is frozen afterwards.
        effect: Effect { destructive: false, idempotent: false, open_world: false },
        rules: RULES,
        description: "Makes forks: instant copies to try things in, each used by passing its name as `workspace`. This \
            workspace is read-only until they end.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: ForkInput) -> ToolResult<ForkFacts> {
        if !(1..=MAX_FORKS).contains(&input.count) {
            return Err(Failure::argument("count", format!("is a number from 1 to {MAX_FORKS}")));
        }
        let forks = Host::of(context)?.make(input.count).await?;
        let mut text = forks.join("\n");
        line(&mut text, "[pass one of them as workspace:]");
        Ok(Reply::text(text, ForkFacts { forks }))
    }
}

struct ForkDiff;

#[derive(Debug, Deserialize, JsonSchema)]
struct DiffInput {
    /// Its name.
    #[schemars(extend("x-brief" = ""))]
    fork: String,
    /// Another fork, in place of the base.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    against: Option<String>,
    /// Most bytes of the reply.
    max_bytes: Option<MaxBytes>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DiffFacts {
    /// The number of changes.
    changed: usize,
    /// The first of them.
    changes: Vec<ChangeFact>,
    /// The number of changes that are not in the text.
    not_shown: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ChangeFact {
    path: String,
    change: &'static str,
}

impl Tool for ForkDiff {
    type Input = DiffInput;
    type Facts = DiffFacts;

    const ABOUT: About = About {
        name: "fork_diff",
        title: "Compare a fork",
        group: ToolGroup::Snapshot,
        in_default_set: false,
        description: "Diff from this workspace to a fork of it.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: DiffInput) -> ToolResult<DiffFacts> {
        let limit = context.reply_limit(input.max_bytes);
        let host = Host::of(context)?;
        let (changes, patch) = host.patch(&input.fork, input.against.as_deref(), limit).await?;
        let mut text = patch.text;
        if changes.is_empty() {
            line(&mut text, "no differences");
        }
        if patch.in_repositories > 0 {
            line(&mut text, &format!("[and {} in .git]", counted(patch.in_repositories)));
        }
        let not_shown = patch.not_shown.len();
        if not_shown > 0 {
            line(&mut text, &format!("[{not_shown} more]"));
            for path in patch.not_shown.iter().take(MAX_LISTED) {
                line(&mut text, &path.display().to_string());
            }
        }
        let listed = changes.iter().take(MAX_LISTED).map(|change| ChangeFact {
            path: change.path.display().to_string(),
            change: change.kind.as_str(),
        });
        let changes_listed = listed.collect();
        let facts = DiffFacts { changed: changes.len(), changes: changes_listed, not_shown };
        Ok(Reply::text(text, facts))
    }
}

struct ForkPromote;

#[derive(Debug, Deserialize, JsonSchema)]
struct PromoteInput {
    /// Its name.
    #[schemars(extend("x-brief" = ""))]
    fork: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PromoteFacts {
    /// The number of changes of the workspace.
    changed: usize,
    /// The snapshot of the workspace as it was; none if nothing changed.
    before: Option<String>,
    /// The other forks, each with the snapshot of its work.
    ended: Vec<EndedFact>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct EndedFact {
    fork: String,
    snapshot: Option<String>,
}

impl Tool for ForkPromote {
    type Input = PromoteInput;
    type Facts = PromoteFacts;

    const ABOUT: About = About {
        name: "fork_promote",
        title: "Promote a fork",
        group: ToolGroup::Snapshot,
        in_default_set: false,
        rules: RULES,
        description: "Makes this workspace what a fork is and ends all forks; what it was and the others' work become \
            snapshots.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: PromoteInput) -> ToolResult<PromoteFacts> {
        let promoted = Host::of(context)?.promote(&input.fork, OtherForks::Record).await?;
        let changed = promoted.changes.len();
        let mut text = format!("promoted {}: {}", input.fork, counted(changed));
        let before = promoted.before.map(|id| id.to_string());
        if let Some(before) = &before {
            line(&mut text, &format!("before it: snapshot {before}"));
        }
        let mut ended = Vec::new();
        for (key, snapshot) in promoted.ended {
            let (fork, snapshot) = (key.to_string(), snapshot.map(|name| name.to_string()));
            let work = snapshot.as_deref().map_or_else(
                || {
                    if promoted.only_ignored.contains(&key) { ", only ignored files" } else { "" }
                        .to_owned()
                },
                |name| format!(": snapshot {name}"),
            );
            line(&mut text, &format!("ended {fork}{work}"));
            ended.push(EndedFact { fork, snapshot });
        }
        Ok(Reply::text(text, PromoteFacts { changed, before, ended }))
    }
}

fn counted(changes: usize) -> String {
    if changes == 1 { "1 change".to_owned() } else { format!("{changes} changes") }
}

struct ForkEnd;

#[derive(Debug, Deserialize, JsonSchema)]
struct EndInput {
    /// Its name.
    #[schemars(extend("x-brief" = ""))]
    fork: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct EndFacts {
    /// The forks that are left.
    left: Vec<String>,
}

impl Tool for ForkEnd {
    type Input = EndInput;
    type Facts = EndFacts;

    const ABOUT: About = About {
        name: "fork_end",
        title: "Throw a fork away",
        group: ToolGroup::Snapshot,
        in_default_set: false,
        rules: RULES,
        description: "Throws a fork away with its work.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: EndInput) -> ToolResult<EndFacts> {
        let host = Host::of(context)?;
        host.end(&input.fork).await?;
        let left = host.list().await?;
        let mut text = format!("ended {}", input.fork);
        let forks = if left.is_empty() {
            "no forks are left; the workspace can be changed again".to_owned()
        } else {
            format!("left: {}", left.join(", "))
        };
        line(&mut text, &forks);
        Ok(Reply::text(text, EndFacts { left }))
    }
}
