//! Definitions and answers in the words of the protocol.

use std::fmt::Write as _;

use carrel_tools::{Class, Definition, Effect, Registry, ToolContent, ToolResponse};
use rmcp::model::{CallToolResult, ContentBlock, Tool, ToolAnnotations};

/// How much of a session's name is shown: enough to tell sessions apart, too little to use one.
const SHOWN_OF_SESSION: usize = 8;

/// Describes a tool.
pub(super) fn tool(definition: &Definition) -> Tool {
    let Definition { about, input_schema, output_schema } = definition;
    let read_only = about.class == Class::Read || about.effect == Effect::NONE;
    let annotations = ToolAnnotations::with_title(about.title)
        .read_only(read_only)
        .destructive(about.effect.destructive)
        .idempotent(about.effect.idempotent)
        .open_world(about.effect.open_world);
    let mut tool = Tool::new(about.name, about.description, std::sync::Arc::clone(input_schema));
    tool.title = Some(about.title.to_owned());
    tool.output_schema = Some(std::sync::Arc::clone(output_schema));
    tool.annotations = Some(annotations);
    tool
}

/// Puts an answer into words of the protocol: bulk once in the content, facts beside it.
pub(super) fn result(answer: ToolResponse) -> CallToolResult {
    let ToolResponse { content, structured, data: _, is_error } = answer;
    let blocks = content.into_iter().map(|content| match content {
        ToolContent::Text(text) => ContentBlock::text(text),
        ToolContent::Image { mime, bytes } => ContentBlock::image(base64(&bytes), mime),
    });
    let blocks = blocks.collect();
    let mut result =
        if is_error { CallToolResult::error(blocks) } else { CallToolResult::success(blocks) };
    result.structured_content = Some(structured);
    result
}

/// Tells an agent what it has before it, and the rules.
pub(super) fn instructions(registry: &Registry) -> String {
    let workspaces = &registry.toolbox().workspaces;
    let mut text = String::from("Tools for work on code in these workspaces:\n");
    for place in workspaces.iter() {
        writeln!(text, "- {}: {}", place.name(), place.path().display())
            .expect("writing to a string cannot fail");
    }
    if workspaces.len() > 1 {
        text.push_str("Pass `workspace` with one of these names in every call; `all` works for Grep, Glob and the verify tools.\n");
    }
    text.push_str(
        "Paths are relative to the workspace. A file has to be read before it is changed, and again \
         after somebody else changed it. Commands run in a kernel sandbox: the system is read-only, \
         other directories do not exist, the network is off unless the operator allows it. A refusal \
         says which rule it was and what would be allowed.",
    );
    text
}

/// Shortens the name of a session, which is as good as a password.
pub(super) fn short(id: &str) -> String {
    id.chars().take(SHOWN_OF_SESSION).collect()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = u32::from(chunk[0]) << 16
            | u32::from(*chunk.get(1).unwrap_or(&0)) << 8
            | u32::from(*chunk.get(2).unwrap_or(&0));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 0x3f) as usize];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn bytes_are_written_in_base64() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
