//! Replies and instructions in the types of the protocol.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use carrel_tools::{Registry, ToolContent, ToolResponse};
use rmcp::model::{CallToolResult, ContentBlock};

/// Characters of a session id that logs and audit events show: enough to tell sessions apart, too few
/// to take one over.
const SHOWN_ID_CHARS: usize = 8;

/// Encodes a reply: bulk text once, in the content, and the facts beside it.
pub(super) fn result(reply: ToolResponse) -> CallToolResult {
    let ToolResponse { content, structured, data: _, is_error } = reply;
    let blocks = content.into_iter().map(|content| match content {
        ToolContent::Text(text) => ContentBlock::text(text),
        ToolContent::Image { mime, bytes } => ContentBlock::image(STANDARD.encode(bytes), mime),
    });
    let blocks = blocks.collect();
    let mut result =
        if is_error { CallToolResult::error(blocks) } else { CallToolResult::success(blocks) };
    result.structured_content = Some(structured);
    result
}

/// Returns the text that a client shows its model before the first call: the workspaces and the rules.
pub(super) fn instructions(registry: &Registry) -> String {
    let workspaces = &registry.toolbox().workspaces;
    let mut text = String::from("Tools for work on code in these workspaces:\n");
    for workspace in workspaces.iter() {
        writeln!(text, "- {}: {}", workspace.name(), workspace.path().display())
            .expect("writing to a string cannot fail");
    }
    if workspaces.len() > 1 {
        text.push_str("Pass `workspace` with one of these names in every call; `all` works for Grep, Glob and the verify tools.\n");
    }
    text.push_str(
        "Paths and `cwd` are relative to the workspace; `max_bytes` bounds the text of a reply. A file has \
         to be shown before it is changed, and again after another program changed it. Commands run in \
         a kernel sandbox: the system is read-only, other directories do not exist, the network is off \
         unless the operator allows it. A denial names the rule; the operator decides about more.",
    );
    text
}

/// Cuts a session id, which is as good as a password, to the part that may be shown.
pub(super) fn shortened_id(id: &str) -> String {
    id.chars().take(SHOWN_ID_CHARS).collect()
}
