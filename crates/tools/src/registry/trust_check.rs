//! The trust check of tools that write files themselves.
//!
//! A git hook or an editor setting that a tool writes would run later, outside the sandbox, with the
//! operator's rights. The runner makes this check when a command ends; here it is made around a call:
//! such files are recorded before and compared after it, and changes are restored or reported as the
//! operator's policy says. A restored change fails the call, so that the caller does not rely on it.

use carrel_config::Trust;
use carrel_domain::{Code, Failure};
use carrel_runner::{TrustChange, TrustReport};
use serde_json::json;

use crate::response::{ToolContent, ToolResponse};
use crate::text::line;
use crate::tool::TrustMode;
use crate::tool_context::ToolContext;

/// Runs a tool's work between the two halves of the check.
pub(super) async fn checked(
    context: &ToolContext,
    mode: TrustMode,
    work: impl Future<Output = Result<ToolResponse, Failure>>,
) -> Result<ToolResponse, Failure> {
    let runner = &context.toolbox.runner;
    let handle = context.workspace().handle();
    runner.record_trust(handle).await?;
    let called = work.await;
    if mode == TrustMode::BeforeWrite && runner.policy().trust == Trust::Restore {
        return called;
    }
    let report = runner.check_trust(handle).await?;
    if report.is_empty() {
        return called;
    }
    let mut response = called?;
    check_restored(&report)?;
    if let Some(ToolContent::Text(text)) = response.content.last_mut() {
        for change in &report.trust_changes {
            line(text, &format!("carrel: {} and would run later, outside", shown(change)));
        }
    }
    Ok(response)
}

pub(crate) fn check_restored(report: &TrustReport) -> Result<(), Failure> {
    let restored = report.trust_changes.iter().any(|change| change.restored);
    if restored { Err(restored_failure(report)) } else { Ok(()) }
}

fn restored_failure(report: &TrustReport) -> Failure {
    let changes: Vec<_> = report.trust_changes.iter().map(shown).collect();
    let message = format!(
        "{}; that would run later, outside the sandbox. It was put back, and everything else was \
         written. The operator can write it, or allow it with `trust = \"report\"` in policy.toml",
        changes.join(", ")
    );
    Failure::new(Code::RunsLater, message).with("trust_changes", json!(report.trust_changes))
}

fn shown(change: &TrustChange) -> String {
    format!("{} ({}) changed", change.path.to_string_lossy(), change.what)
}
