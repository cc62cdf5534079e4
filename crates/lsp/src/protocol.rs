//! The shapes of the protocol that are read here.
//!
//! Replies are read leniently where that loses nothing: unknown members and values are ignored, a single location may
//! stand for a list, and of a list of locations the elements that are none are counted, so that the answer can say that
//! it is not complete. Edits are read strictly: a change that is not understood must not be applied in part.

use serde::Deserialize;
use serde_json::Value;

use crate::position::Range;

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Location {
    pub(crate) uri: String,
    pub(crate) range: Range,
}

/// The elements of a list that were understood, and the number of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lenient<T> {
    pub(crate) items: Vec<T>,
    pub(crate) malformed: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextEdit {
    pub(crate) range: Range,
    pub(crate) new_text: String,
}

/// The changes of one document, or an operation on a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DocumentChange {
    Edits { uri: String, edits: Vec<TextEdit> },
    Create { uri: String },
    Rename { old: String, new: String },
    Delete { uri: String },
}

/// A function in a hierarchy of calls.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallHierarchyItem {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) detail: Option<String>,
    pub(crate) uri: String,
    pub(crate) selection_range: Range,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Diagnostic {
    pub(crate) range: Range,
    #[serde(default)]
    pub(crate) severity: Option<u8>,
    #[serde(default)]
    pub(crate) code: Value,
    #[serde(default)]
    pub(crate) source: Option<String>,
    #[serde(default)]
    pub(crate) message: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LocationLink {
    target_uri: String,
    target_selection_range: Range,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawWorkspaceEdit {
    #[serde(default)]
    changes: Option<std::collections::BTreeMap<String, Vec<TextEdit>>>,
    #[serde(default)]
    document_changes: Option<Vec<Value>>,
    #[serde(default)]
    #[expect(dead_code, reason = "a known member without meaning for what is changed")]
    change_annotations: Option<Value>,
}

impl<T> Lenient<T> {
    /// Reads null, an element or a list of elements.
    pub(crate) fn read(value: Value, read: impl Fn(Value) -> Option<T>) -> Self {
        let values = match value {
            Value::Null => Vec::new(),
            Value::Array(values) => values,
            single => vec![single],
        };
        let total = values.len();
        let items: Vec<T> = values.into_iter().filter_map(read).collect();
        let malformed = total - items.len();
        Self { items, malformed }
    }
}

impl Location {
    /// Reads a location or the target of a link.
    pub(crate) fn read(value: Value) -> Option<Self> {
        if value.get("targetUri").is_some() {
            let link: LocationLink = serde_json::from_value(value).ok()?;
            return Some(Self { uri: link.target_uri, range: link.target_selection_range });
        }
        serde_json::from_value(value).ok()
    }
}

/// Reads a workspace edit in either of its forms. The error names what was not understood.
pub(crate) fn document_changes(value: Value) -> Result<Vec<DocumentChange>, String> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    if !value.is_object() {
        return Err("it is no object".to_owned());
    }
    let raw: RawWorkspaceEdit = serde_json::from_value(value).map_err(|error| error.to_string())?;
    match (raw.document_changes, raw.changes) {
        (Some(changes), _) => changes.iter().map(document_change).collect(),
        (None, changes) => {
            let changes = changes.unwrap_or_default().into_iter();
            Ok(changes.map(|(uri, edits)| DocumentChange::Edits { uri, edits }).collect())
        }
    }
}

fn document_change(value: &Value) -> Result<DocumentChange, String> {
    let text = |name: &str| {
        let text = value[name].as_str().map(str::to_owned);
        text.ok_or_else(|| format!("an operation on a file without {name}"))
    };
    match value["kind"].as_str() {
        Some("create") => Ok(DocumentChange::Create { uri: text("uri")? }),
        Some("rename") => Ok(DocumentChange::Rename { old: text("oldUri")?, new: text("newUri")? }),
        Some("delete") => Ok(DocumentChange::Delete { uri: text("uri")? }),
        Some(kind) => Err(format!("an operation on a file of kind {kind}")),
        None => {
            let uri = value["textDocument"]["uri"].as_str().map(str::to_owned);
            let uri = uri.ok_or_else(|| "edits without a document".to_owned())?;
            let edits = value["edits"].clone();
            let edits = serde_json::from_value(edits).map_err(|error| error.to_string())?;
            Ok(DocumentChange::Edits { uri, edits })
        }
    }
}

/// Returns the text of markup, of a marked string, or of a list of them.
pub(crate) fn markup_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(parts) => {
            let parts = parts.iter().map(markup_text).filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>().join("\n\n")
        }
        Value::Object(markup) => {
            let text = markup.get("value").and_then(Value::as_str).unwrap_or_default();
            text.trim().to_owned()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Position;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    fn range(line: u32) -> Range {
        let at = |character| Position { line, character };
        Range { start: at(1), end: at(2) }
    }

    fn raw_range(line: u32) -> Value {
        json!({ "start": { "line": line, "character": 1 }, "end": { "line": line, "character": 2 } })
    }

    #[test]
    fn locations_are_read_in_all_their_forms_and_others_counted() {
        let location = json!({ "uri": "file:///a", "range": raw_range(1) });
        let link = json!({
            "targetUri": "file:///b", "targetRange": raw_range(9), "targetSelectionRange": raw_range(2),
        });
        let a = Location { uri: "file:///a".into(), range: range(1) };
        let b = Location { uri: "file:///b".into(), range: range(2) };
        for (value, items, malformed) in [
            (Value::Null, vec![], 0),
            (location.clone(), vec![a.clone()], 0),
            (json!([location, link, { "uri": 1 }, "x"]), vec![a, b], 2),
        ] {
            assert_eq!(Lenient::read(value, Location::read), Lenient { items, malformed });
        }
    }

    #[test]
    fn edits_of_either_form_are_read_and_operations_on_files_with_them() {
        let edit = json!({ "range": raw_range(1), "newText": "x", "annotationId": "a" });
        let edits = vec![TextEdit { range: range(1), new_text: "x".into() }];
        let uri = "file:///a".to_owned();
        let read = document_changes(json!({ "changes": { "file:///a": [edit.clone()] } }));
        assert_eq!(
            read,
            Ok(vec![DocumentChange::Edits { uri: uri.clone(), edits: edits.clone() }])
        );
        let read = document_changes(json!({ "changes": null, "documentChanges": [
            { "textDocument": { "uri": "file:///a", "version": null }, "edits": [edit] },
            { "kind": "rename", "oldUri": "file:///a", "newUri": "file:///b" },
            { "kind": "create", "uri": "file:///c", "options": {} },
            { "kind": "delete", "uri": "file:///c" },
        ] }));
        let expected = vec![
            DocumentChange::Edits { uri: uri.clone(), edits },
            DocumentChange::Rename { old: uri, new: "file:///b".into() },
            DocumentChange::Create { uri: "file:///c".into() },
            DocumentChange::Delete { uri: "file:///c".into() },
        ];
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn an_edit_that_is_not_understood_is_an_error_as_a_whole() {
        for (value, named) in [
            (json!({ "documentChanges": [{ "kind": "move", "uri": "x" }] }), "of kind move"),
            (json!({ "documentChanges": [{ "kind": "create" }] }), "without uri"),
            (json!({ "documentChanges": [{ "edits": [] }] }), "without a document"),
            (json!({ "changes": { "file:///a": [{ "newText": "x" }] } }), "range"),
            (json!({ "snippets": [] }), "snippets"),
            (json!([]), "no object"),
        ] {
            let error = document_changes(value.clone()).unwrap_err();
            assert!(error.contains(named), "{value}: {error}");
        }
        assert_eq!(document_changes(Value::Null), Ok(Vec::new()));
    }

    #[test]
    fn markup_is_reduced_to_its_text() {
        for (value, text) in [
            (json!({ "kind": "markdown", "value": " fn a() \n" }), "fn a()"),
            (json!(["int", { "language": "c", "value": "x" }, ""]), "int\n\nx"),
            (json!(null), ""),
        ] {
            assert_eq!(markup_text(&value), text);
        }
    }
}
