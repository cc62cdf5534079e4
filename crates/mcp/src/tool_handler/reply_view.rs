//! The part of a tool's reply that a client receives.
//!
//! A reply has two parts: content, which is text for a model, and facts (`structuredContent`), which
//! are values for a program. The protocol lets a server send both. Some clients then show their model
//! the facts alone, so that it learns the length of a file and not a line of it. For those clients the
//! facts are left out, and so is the output schema of a full definition, which would promise them.

use carrel_tools::{Definition, ToolResponse, WorkspaceCount};
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::definition_view::DefinitionDetail;
use super::encode;

/// Prefixes of the names of clients that hide a reply's content when it has facts.
const HIDE_CONTENT: [&str; 4] = ["codex", "claude-code", "visual studio code", "cursor"];

/// The operator's choice whether replies carry facts beside their text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FactsMode {
    /// Unless the client is known to hide the text then.
    #[default]
    Auto,
    /// For every client.
    Always,
    /// For no client.
    Never,
}

/// The parts of a reply that one client receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyView {
    ContentAndFacts,
    /// The content says everything that a model needs.
    ContentOnly,
}

impl ReplyView {
    /// Chooses the view for the client of a request. Its name is in `_meta` in the revision without
    /// sessions, and in the handshake otherwise.
    pub(super) fn for_request(facts: FactsMode, context: &RequestContext<RoleServer>) -> Self {
        match facts {
            FactsMode::Always => Self::ContentAndFacts,
            FactsMode::Never => Self::ContentOnly,
            FactsMode::Auto => {
                let name = context.meta.client_info().map(|info| info.name);
                let name =
                    name.or_else(|| Some(context.peer.peer_info()?.client_info.name.clone()));
                name.map_or(Self::ContentAndFacts, |name| Self::for_client(&name))
            }
        }
    }

    fn for_client(name: &str) -> Self {
        let name = name.to_lowercase();
        let hides_content = HIDE_CONTENT.iter().any(|prefix| name.starts_with(prefix));
        if hides_content { Self::ContentOnly } else { Self::ContentAndFacts }
    }

    pub(super) fn tool(self, mut tool: Tool) -> Tool {
        if self == Self::ContentOnly {
            tool.output_schema = None;
        }
        tool
    }

    /// Applies the view to a reply. An error's code, which is a fact, is then appended to its text.
    pub(super) fn result(self, mut result: CallToolResult) -> CallToolResult {
        if self == Self::ContentOnly
            && let Some(facts) = result.structured_content.take()
            && let Some(code) = facts["error"]["code"].as_str()
        {
            result.content.push(ContentBlock::text(format!("[{code}]")));
        }
        result
    }
}

/// Returns the definition of a tool as JSON, for a client with one workspace.
pub fn tool_for_one_workspace(definition: &Definition) -> Value {
    json!(DefinitionDetail::Brief.tool(definition, WorkspaceCount::One))
}

/// Returns the content blocks of a reply, and its facts unless the client of this name would show its
/// model nothing else.
pub fn reply_for_client(client: Option<&str>, reply: ToolResponse) -> (Vec<Value>, Option<Value>) {
    let view = client.map_or(ReplyView::ContentAndFacts, ReplyView::for_client);
    let result = view.result(encode::result(reply));
    (result.content.iter().map(|block| json!(block)).collect(), result.structured_content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_would_hide_the_text_get_nothing_else() {
        for name in ["codex-mcp-client", "claude-code", "Visual Studio Code - Insiders"] {
            assert_eq!(ReplyView::for_client(name), ReplyView::ContentOnly, "{name}");
        }
        for name in ["mcp", "inspector-client", "opencode", ""] {
            assert_eq!(ReplyView::for_client(name), ReplyView::ContentAndFacts, "{name}");
        }
    }
}
