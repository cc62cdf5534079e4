//! Files that would run later, outside the sandbox, whichever way they were written.
//!
//! The runner looks after them when a command is over. A tool that writes files itself is held to the
//! same: what it wrote there is put back, or reported, as the operator's policy says.

use carrel_config::Trust;
use carrel_domain::Code;
use carrel_runner::{TrustChange, TrustReport};
use serde_json::{Map, Value, json};

use super::erased::{Entry, guarded};
use crate::failure::Failure;
use crate::response::{ToolContent, ToolResponse};
use crate::text::line;
use crate::tool::TrustMode;
use crate::tool_context::ToolContext;

/// Runs a tool that writes files, and settles what it wrote that would run later.
pub(super) async fn kept(
    entry: &Entry,
    context: &ToolContext,
    arguments: Map<String, Value>,
) -> Result<ToolResponse, Failure> {
    let (runner, handle) = (&context.toolbox.runner, context.workspace().handle());
    runner.record_trust(handle).await?;
    let answered = guarded(entry, context, arguments).await;
    let refuses_itself = entry.definition.about.rules.trust == TrustMode::BeforeWrite;
    if refuses_itself && runner.policy().trust == Trust::Restore {
        return answered;
    }
    let settled = runner.check_trust(handle).await?;
    if settled.is_empty() {
        return answered;
    }
    let mut answer = answered?;
    check_restored(&settled)?;
    if let Some(ToolContent::Text(text)) = answer.content.last_mut() {
        settled.trust_changes.iter().for_each(|change| {
            line(text, &format!("carrel: {} and would run later, outside", shown(change)));
        });
    }
    Ok(answer)
}

/// Refuses what had to be put back.
pub(crate) fn check_restored(settled: &TrustReport) -> Result<(), Failure> {
    let restored = settled.trust_changes.iter().any(|change| change.restored);
    if restored { Err(refused(settled)) } else { Ok(()) }
}

fn refused(settled: &TrustReport) -> Failure {
    let changes: Vec<_> = settled.trust_changes.iter().map(shown).collect();
    let message = format!(
        "{}; that would run later, outside the sandbox. It was put back, and everything else was \
         written. The operator can write it, or allow it with `trust = \"report\"` in policy.toml",
        changes.join(", ")
    );
    Failure::new(Code::RunsLater, message).with("trust_changes", json!(settled.trust_changes))
}

fn shown(change: &TrustChange) -> String {
    format!("{} ({}) changed", change.path.to_string_lossy(), change.what)
}
