//! Conversion of the Atlassian Document Format to plain text.

use serde_json::Value;

use crate::tool::is_listed;

/// Nodes that begin a new line.
const BLOCKS: &str = "paragraph, heading, codeBlock, listItem, taskItem, blockquote, panel, rule, \
    tableRow, mediaSingle, expand, decisionItem";

/// Returns the text of a document: one line per block, with a dash before list items. A plain string is
/// returned as it is.
pub(super) fn plain(document: &Value) -> String {
    if let Some(text) = document.as_str() {
        return text.trim().to_owned();
    }
    let mut lines = String::new();
    write(document, &mut lines);
    lines.trim().to_owned()
}

fn write(node: &Value, out: &mut String) {
    let kind = node["type"].as_str().unwrap_or_default();
    if is_listed(kind, BLOCKS) {
        begin_line(out);
    }
    match kind {
        "text" => out.push_str(node["text"].as_str().unwrap_or_default()),
        "hardBreak" => out.push('\n'),
        "listItem" | "taskItem" | "decisionItem" => out.push_str("- "),
        "tableCell" | "tableHeader" if !out.ends_with('\n') && !out.is_empty() => {
            out.push_str(" | ");
        }
        "rule" => out.push_str("---"),
        _ => out.push_str(attribute(node)),
    }
    for child in node["content"].as_array().into_iter().flatten() {
        write(child, out);
    }
}

/// Begins a new line, unless the text is at the beginning of one.
fn begin_line(out: &mut String) {
    if !(out.is_empty() || out.ends_with('\n') || out.ends_with("- ") || out.ends_with(" | ")) {
        out.push('\n');
    }
}

fn attribute(node: &Value) -> &str {
    let named = |name: &str| node["attrs"][name].as_str();
    ["text", "shortName", "url"].into_iter().find_map(named).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    fn words(text: &str) -> Value {
        json!({ "type": "text", "text": text })
    }

    fn block(kind: &str, content: &[Value]) -> Value {
        json!({ "type": kind, "content": content })
    }

    #[test]
    fn a_document_becomes_lines() {
        let item = |text: &str| block("listItem", &[block("paragraph", &[words(text)])]);
        let document = block(
            "doc",
            &[
                block("heading", &[words("Why")]),
                block(
                    "paragraph",
                    &[
                        words("It is "),
                        json!({ "type": "mention", "attrs": { "id": "1", "text": "@ana" } }),
                        json!({ "type": "hardBreak" }),
                        words("who asked."),
                    ],
                ),
                block("bulletList", &[item("one"), item("two")]),
                block("codeBlock", &[words("let x = 1;\nlet y = 2;")]),
            ],
        );
        let expected = "Why\nIt is @ana\nwho asked.\n- one\n- two\nlet x = 1;\nlet y = 2;";
        assert_eq!(plain(&document), expected);
    }

    #[test]
    fn what_is_no_document_is_nothing() {
        for json in [json!(null), json!(7), json!([]), json!({ "content": 3 })] {
            assert_eq!(plain(&json), "");
        }
        assert_eq!(plain(&json!(" plain ")), "plain");
    }
}
