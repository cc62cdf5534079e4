//! Looks for keys that mean nothing, and for values where a table belongs.

use toml::de::{DeTable, DeValue};

use super::document::{Document, Value, shown};
use super::keys;
use crate::diagnostic::Diagnostic;
use crate::suggest;

/// Compares the keys of a file with the table of settings.
pub(crate) fn inspect(document: &Document<'_>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (name, value) in &document.table {
        let (path, span) = (name.get_ref().as_ref(), name.span());
        if keys::all().any(|key| key.path == path) {
            continue;
        }
        let position = document.position(&span);
        match section(path, value) {
            Some(Ok(table)) => diagnostics.extend(walk(document, path, table)),
            Some(Err(message)) => {
                diagnostics.push(Diagnostic::about(path, Some(position), message))
            }
            None => diagnostics.push(Diagnostic::about(path, Some(position), unknown(path, ""))),
        }
    }
    diagnostics
}

/// Returns the table of a section, or what stands in its place; nothing if there is no such section.
fn section<'v, 'a>(name: &str, value: &'v Value<'a>) -> Option<Result<&'v DeTable<'a>, String>> {
    keys::SECTIONS.iter().find(|section| section.header == Some(name))?;
    Some(match value.get_ref() {
        DeValue::Table(table) => Ok(table),
        other => Err(format!(
            "{name} must be a table, found {}; write [{name}], and its settings below it",
            shown(other)
        )),
    })
}

fn walk(document: &Document<'_>, parent: &str, table: &DeTable<'_>) -> Vec<Diagnostic> {
    let unknown_in = |name: &str| {
        let path = format!("{parent}.{name}");
        (!keys::all().any(|key| key.path == path)).then(|| (unknown(name, parent), path))
    };
    let found = table.keys().filter_map(|name| {
        let (message, path) = unknown_in(name.get_ref())?;
        Some(Diagnostic::about(path, Some(document.position(&name.span())), message))
    });
    found.collect()
}

fn unknown(name: &str, parent: &str) -> String {
    let path = if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") };
    let way_out = match suggestion(name, parent) {
        // A key that follows a header belongs to it, however far below it is written.
        Some(meant) if !parent.is_empty() && !meant.contains('.') => {
            format!("did you mean {meant}? it stands above the first [table]")
        }
        Some(meant) => format!("did you mean {meant}?"),
        None => "take it out, or see docs/policy.md for every setting".to_owned(),
    };
    format!("{path} is not a setting; {way_out}")
}

/// Returns the path that was meant: a similar name beside this one, or the same name elsewhere.
fn suggestion(name: &str, parent: &str) -> Option<String> {
    let prefix = if parent.is_empty() { String::new() } else { format!("{parent}.") };
    let below = keys::all().filter_map(|key| key.path.strip_prefix(&prefix)?.split('.').next());
    if let Some(near) = suggest::nearest(name, below) {
        return Some(format!("{prefix}{near}"));
    }
    let last = |path: &'static str| path.rsplit('.').next();
    keys::all().find(|key| last(key.path) == Some(name)).map(|key| key.path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn unknown_keys_are_named_with_a_suggestion() {
        for (text, message) in [
            ("network_limt = 'none'", "network_limt is not a setting; did you mean network_limit?"),
            ("limit = {}", "limit is not a setting; did you mean limits?"),
            ("memory = '1GiB'", "memory is not a setting; did you mean limits.memory?"),
            (
                "limits.memroy = '1GiB'",
                "limits.memroy is not a setting; did you mean limits.memory?",
            ),
            (
                "[limits]\nnetwork = 'none'",
                "limits.network is not a setting; did you mean network? it stands above the first [table]",
            ),
            (
                "colour = 'red'",
                "colour is not a setting; take it out, or see docs/policy.md for every setting",
            ),
            ("uids = 7", "uids must be a table, found 7; write [uids], and its settings below it"),
        ] {
            let document = Document::parse(text).unwrap();
            let messages: Vec<_> = inspect(&document).into_iter().map(|f| f.message).collect();
            assert_eq!(messages, [message], "{text}");
        }
    }

    #[test]
    fn variables_may_have_any_name() {
        let document = Document::parse("[environment]\nOWN = '1'").unwrap();
        assert_eq!(inspect(&document), []);
    }
}
