//! Servers that an operator adds, and built-in ones that an operator changes.
//!
//! Rows live for as long as the process, as those of the table do. A row is made once for each different entry, so that
//! reading the same policy again makes none.

use std::sync::Mutex;

use carrel_code::Language;
use carrel_config::{ServerEntry, ServerReadiness};
use carrel_domain::{ByteSize, sync};
use tracing::warn;

use super::table::{BY_RESTART, DEFINITIONS, QUIET, SETTLING, UNCERTAIN};
use super::{Completeness, Readiness, RootRule, ServerDefinition, ServerSettings};
use crate::position::LineBreaks;

/// The rows of all entries so far.
static OPERATORS: Mutex<Vec<(ServerEntry, &'static ServerDefinition)>> = Mutex::new(Vec::new());

/// Returns all servers in the order in which they are tried: the operator's, then the built-in ones, of
/// which some may be changed.
pub(crate) fn definitions(entries: &[ServerEntry]) -> Vec<&'static ServerDefinition> {
    let of_name = |name: &str| entries.iter().find(|entry| entry.name == name);
    let is_added =
        |entry: &&ServerEntry| !DEFINITIONS.iter().any(|built_in| built_in.name == entry.name);
    let added = entries.iter().filter(is_added).filter_map(|entry| row(entry, None));
    let built_in = DEFINITIONS.iter().map(|built_in| match of_name(built_in.name) {
        Some(entry) => row(entry, Some(built_in)).unwrap_or(built_in),
        None => built_in,
    });
    added.chain(built_in).collect()
}

/// Returns whether any server is known for a language, one that an operator has added included.
pub(crate) fn is_known(language: Language) -> bool {
    let knows = |row: &ServerDefinition| row.languages.contains(&language);
    DEFINITIONS.iter().any(knows) || sync::lock(&OPERATORS).iter().any(|(_, row)| knows(row))
}

fn row(
    entry: &ServerEntry,
    built_in: Option<&ServerDefinition>,
) -> Option<&'static ServerDefinition> {
    let mut rows = sync::lock(&OPERATORS);
    if let Some((_, row)) = rows.iter().find(|(known, _)| known == entry) {
        return Some(row);
    }
    let Some(start) = built_in.cloned().or_else(|| added(entry)) else {
        warn!(server = entry.name, "a language server without languages or command is left out");
        return None;
    };
    let row: &'static ServerDefinition = Box::leak(Box::new(changed(start, entry)));
    rows.push((entry.clone(), row));
    Some(row)
}

/// Returns the row of a server that is not built in, before its entry is applied.
fn added(entry: &ServerEntry) -> Option<ServerDefinition> {
    entry.languages.as_ref().filter(|languages| !languages.is_empty())?;
    entry.command.as_ref()?;
    Some(ServerDefinition {
        name: text(&entry.name),
        languages: &[],
        programs: &[],
        is_of_project: false,
        expected_memory: ByteSize::gib(1),
        arguments: &[],
        environment: &[],
        options: ServerSettings::Given(serde_json::Value::Null),
        settings: ServerSettings::Given(serde_json::Value::Null),
        root: RootRule::Workspace,
        project_files: &[],
        readiness: Readiness::Settled(SETTLING),
        changes: BY_RESTART,
        diagnostics: QUIET,
        unchecked: None,
        defines_by_index: false,
        misses_uses: false,
        line_breaks: LineBreaks::Newline,
        completeness: Some(UNCERTAIN),
        installation: "policy.toml names its command",
    })
}

fn changed(mut row: ServerDefinition, entry: &ServerEntry) -> ServerDefinition {
    if let Some(names) = &entry.languages {
        let languages = names.iter().filter_map(|name| Language::of_name(name));
        row.languages = Vec::leak(languages.collect());
    }
    if let Some([program, arguments @ ..]) = entry.command.as_deref() {
        row.programs = Vec::leak(vec![text(program)]);
        row.arguments = texts(arguments);
        row.is_of_project = false;
    }
    if let Some(variables) = &entry.environment {
        let given = variables.iter().map(|(name, value)| (text(name), text(value)));
        row.environment = Vec::leak(row.environment.iter().copied().chain(given).collect());
    }
    if let Some(options) = &entry.options {
        row.options = ServerSettings::Given(options.clone());
    }
    if let Some(settings) = &entry.settings {
        row.settings = ServerSettings::Given(settings.clone());
    }
    if let Some(roots) = &entry.roots {
        let roots = texts(roots);
        row.root = RootRule::Nearest(roots);
        row.project_files = roots;
    }
    if let Some(readiness) = &entry.readiness {
        (row.readiness, row.completeness) = of_readiness(readiness, row.completeness);
    }
    row
}

/// Returns the sign of complete answers, and their condition: certainty is the operator's word.
fn of_readiness(
    readiness: &ServerReadiness,
    condition: Option<Completeness>,
) -> (Readiness, Option<Completeness>) {
    let condition = condition.filter(|condition| !condition.files.is_empty());
    match readiness {
        ServerReadiness::Requests => (Readiness::Requests, condition),
        ServerReadiness::Progress => (Readiness::WorkReported, condition),
        ServerReadiness::Logged(part) => (Readiness::Logged(text(part)), condition),
        ServerReadiness::Unknown => (Readiness::Settled(SETTLING), Some(UNCERTAIN)),
    }
}

fn text(text: &str) -> &'static str {
    Box::leak(text.into())
}

fn texts(all: &[String]) -> &'static [&'static str] {
    Vec::leak(all.iter().map(|one| text(one)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn names(rows: &[&'static ServerDefinition], language: Language) -> Vec<&'static str> {
        let known = rows.iter().filter(|row| row.languages.contains(&language));
        known.map(|row| row.name).collect()
    }

    #[test]
    fn an_added_server_is_tried_first_and_needs_languages_and_a_command() {
        let pyrefly = ServerEntry {
            name: "pyrefly".into(),
            languages: Some(vec!["python".into(), "css".into()]),
            command: Some(vec!["pyrefly".into(), "lsp".into()]),
            ..ServerEntry::default()
        };
        let useless = ServerEntry { name: "useless".into(), ..ServerEntry::default() };
        assert!(!is_known(Language::Css));
        let rows = definitions(&[pyrefly.clone(), useless]);
        assert_eq!(names(&rows, Language::Python), ["pyrefly", "ty", "basedpyright"]);
        assert!(is_known(Language::Css));
        let added = rows[0];
        assert_eq!((added.programs, added.arguments), (&["pyrefly"][..], &["lsp"][..]));
        assert!(added.completeness.is_some() && !added.is_of_project);
        assert!(std::ptr::eq(definitions(&[pyrefly])[0], added), "the same entry is the same row");
    }

    #[test]
    fn a_built_in_server_keeps_its_place_and_what_is_not_changed() {
        let entry = ServerEntry {
            name: "gopls".into(),
            command: Some(vec!["/opt/gopls".into()]),
            settings: Some(serde_json::json!({ "gopls": { "staticcheck": true } })),
            ..ServerEntry::default()
        };
        let rows = definitions(&[entry]);
        assert_eq!(rows.len(), DEFINITIONS.len());
        let gopls = rows.iter().find(|row| row.name == "gopls").unwrap();
        let built_in = DEFINITIONS.iter().find(|row| row.name == "gopls").unwrap();
        assert_eq!((gopls.programs, gopls.arguments.len()), (&["/opt/gopls"][..], 0));
        assert_eq!(gopls.settings.value()["gopls"]["staticcheck"], true);
        assert_eq!((gopls.readiness, gopls.root), (built_in.readiness, built_in.root));
        assert!(!gopls.is_of_project && built_in.is_of_project);
    }

    #[test]
    fn names_in_the_policy_are_those_of_languages_and_servers() {
        let languages = Language::ALL.map(Language::as_str);
        let mut sorted = languages.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, carrel_config::SERVER_LANGUAGES);
        let servers: Vec<_> = DEFINITIONS.iter().map(|row| row.name).collect();
        assert_eq!(servers, carrel_config::BUILT_IN_SERVERS);
    }
}
