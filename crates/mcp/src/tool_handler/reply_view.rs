//! Which half of an answer a client lets its model see.

use carrel_tools::{Definition, ToolResponse};
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::encode;

/// How the names of clients begin that show their model `structuredContent` alone where an answer has
/// it: their model would see how long a file is, and not a line of it.
const HIDE_CONTENT: [&str; 4] = ["codex", "claude-code", "visual studio code", "cursor"];

/// Whether answers have facts for programs beside their text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Facts {
    /// Unless the client is known to show its model nothing else then.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What is told to one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// Text for the model, and facts for programs.
    Both,
    /// Text alone, which says everything that a model needs.
    TextAlone,
}

impl Audience {
    /// Decides what the client of a request is told.
    pub(super) fn of(facts: Facts, context: &RequestContext<RoleServer>) -> Self {
        match facts {
            Facts::Always => Self::Both,
            Facts::Never => Self::TextAlone,
            Facts::Auto => Self::recognised(context),
        }
    }

    fn recognised(context: &RequestContext<RoleServer>) -> Self {
        let said = context.meta.client_info().map(|info| info.name);
        let name = said.or_else(|| Some(context.peer.peer_info()?.client_info.name.clone()));
        name.map_or(Self::Both, |name| Self::named(&name))
    }

    fn named(name: &str) -> Self {
        let name = name.to_lowercase();
        let hides = HIDE_CONTENT.iter().any(|start| name.starts_with(start));
        if hides { Self::TextAlone } else { Self::Both }
    }

    /// Describes a tool. A schema would be a promise of facts.
    pub(super) fn tool(self, mut tool: Tool) -> Tool {
        if self == Self::TextAlone {
            tool.output_schema = None;
        }
        tool
    }

    /// Leaves out what would hide the rest. The code of an error is then part of its text.
    pub(super) fn result(self, mut result: CallToolResult) -> CallToolResult {
        if self == Self::TextAlone
            && let Some(facts) = result.structured_content.take()
            && let Some(code) = facts["error"]["code"].as_str()
        {
            result.content.push(ContentBlock::text(format!("[{code}]")));
        }
        result
    }
}

/// Describes a tool for an agent whose model sees text alone.
pub fn plain_tool(definition: &Definition) -> Value {
    json!(Audience::TextAlone.tool(encode::tool(definition)))
}

/// Puts an answer into words for the client of this name: the pieces of its content, and the facts if the
/// client would not show them alone.
pub fn content_for(client: Option<&str>, answer: ToolResponse) -> (Vec<Value>, Option<Value>) {
    let audience = client.map_or(Audience::Both, Audience::named);
    let result = audience.result(encode::result(answer));
    (result.content.iter().map(|piece| json!(piece)).collect(), result.structured_content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_that_would_hide_the_text_get_nothing_else() {
        for name in ["codex-mcp-client", "claude-code", "Visual Studio Code - Insiders"] {
            assert_eq!(Audience::named(name), Audience::TextAlone, "{name}");
        }
        for name in ["mcp", "inspector-client", "opencode", ""] {
            assert_eq!(Audience::named(name), Audience::Both, "{name}");
        }
    }
}
