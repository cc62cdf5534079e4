//! The check of a file's keys against the table: unknown keys, values where a section belongs, and settings
//! that are not supported.

use super::{Schema, Setting, Syntax, ValueKind};
use crate::diagnostic::Diagnostic;
use crate::suggest;
use crate::value_tree::{Map, MapEntry, Value};

/// The result of checking all keys of a file.
#[derive(Debug, Default)]
pub(crate) struct KeyCheck {
    pub(crate) unknown: Vec<Diagnostic>,
    /// Settings that are not supported, and values where a section belongs.
    pub(crate) rejected: Vec<Diagnostic>,
}

/// Compares the keys of a file with the table of settings.
pub(crate) fn check_keys(schema: &Schema, map: &Map) -> KeyCheck {
    let mut walk = KeyWalk { schema, check: KeyCheck::default() };
    walk.map(map, "");
    walk.check
}

struct KeyWalk<'a> {
    schema: &'a Schema,
    check: KeyCheck,
}

impl KeyWalk<'_> {
    fn map(&mut self, map: &Map, parent: &str) {
        for entry in &map.0 {
            let path = join(parent, &entry.key);
            let mut settings = self.schema.settings();
            match self.schema.settings().find(|setting| setting.path == path) {
                Some(setting) => self.setting(setting, entry),
                None if settings.any(|setting| below(setting.path, &path).is_some()) => {
                    self.section(entry, path);
                }
                None => self.unknown(entry, parent, path),
            }
        }
    }

    fn setting(&mut self, setting: &Setting, entry: &MapEntry) {
        let empty = match &entry.value.value {
            Value::Null => true,
            Value::Map(map) => map.0.is_empty(),
            _ => false,
        };
        if matches!(setting.kind, ValueKind::NotSupported(_)) && !empty {
            let complaint = setting.kind.complaint(&entry.value, self.schema.syntax);
            let message = format!("{} {complaint}", setting.path);
            let diagnostic = Diagnostic::about(setting.path, Some(entry.position), message);
            self.check.rejected.push(diagnostic);
        }
    }

    fn section(&mut self, entry: &MapEntry, path: String) {
        let syntax = self.schema.syntax;
        match (&entry.value.value, syntax) {
            (Value::Map(map), _) => self.map(map, &path),
            (Value::Null, _) => {}
            (_, Syntax::Yaml) => {
                let message = format!("{path} {}", ValueKind::Map.complaint(&entry.value, syntax));
                let position = Some(entry.value.position);
                self.check.rejected.push(Diagnostic::about(path, position, message));
            }
            (_, Syntax::Toml) => {
                let message = format!(
                    "{path} must be a table, found {}; write [{path}], and its settings below it",
                    entry.value.shown(syntax)
                );
                self.check.rejected.push(Diagnostic::about(path, Some(entry.position), message));
            }
        }
    }

    fn unknown(&mut self, entry: &MapEntry, parent: &str, path: String) {
        let suggestion = self.suggestion(&entry.key, parent);
        let message = match self.schema.syntax {
            Syntax::Yaml => {
                let hint = suggestion.map(|meant| format!("; did you mean {meant}?"));
                format!("{path} is not a setting and is ignored{}", hint.unwrap_or_default())
            }
            Syntax::Toml => {
                let hint = match suggestion {
                    // A key that follows a header belongs to it, however far below it is written.
                    Some(meant) if !parent.is_empty() && !meant.contains('.') => {
                        format!("did you mean {meant}? it stands above the first [table]")
                    }
                    Some(meant) => format!("did you mean {meant}?"),
                    None => "take it out, or see docs/policy.md for every setting".to_owned(),
                };
                format!("{path} is not a setting; {hint}")
            }
        };
        self.check.unknown.push(Diagnostic::about(path, Some(entry.position), message));
    }

    /// Returns the path that was probably meant: a similar name beside this one, or the same name elsewhere.
    fn suggestion(&self, name: &str, parent: &str) -> Option<String> {
        let paths = || self.schema.settings().map(|setting| setting.path);
        let siblings = paths().filter_map(|path| below(path, parent)?.split('.').next());
        if let Some(near) = suggest::nearest(name, siblings) {
            return Some(join(parent, near));
        }
        paths().find(|path| path.rsplit('.').next() == Some(name)).map(str::to_owned)
    }
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

/// Returns the rest of a path after `parent`; all of it after the empty parent.
fn below<'a>(path: &'a str, parent: &str) -> Option<&'a str> {
    if parent.is_empty() { Some(path) } else { path.strip_prefix(parent)?.strip_prefix('.') }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Position;
    use crate::{policy, toml_tree, workflow_keys};
    use pretty_assertions::assert_eq;

    fn texts(diagnostics: Vec<Diagnostic>) -> Vec<String> {
        diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect()
    }

    fn workflow(text: &str) -> (Vec<String>, Vec<String>) {
        let node = crate::yaml::parse(text, Position::START).unwrap();
        let check = check_keys(&workflow_keys::SCHEMA, node.as_map().expect("a map was written"));
        (texts(check.unknown), texts(check.rejected))
    }

    fn policy(text: &str) -> Vec<String> {
        let KeyCheck { unknown, rejected } =
            check_keys(&policy::SCHEMA, &toml_tree::parse(text).unwrap());
        texts(unknown.into_iter().chain(rejected).collect())
    }

    #[test]
    fn unknown_keys_of_a_workflow_are_named_with_a_suggestion() {
        for (text, message) in [
            ("hook: {}", "hook is not a setting and is ignored; did you mean hooks?"),
            (
                "hooks: {timeout: 1}",
                "hooks.timeout is not a setting and is ignored; did you mean hooks.timeout_ms?",
            ),
            (
                "agent: {sandbox: {readible: []}}",
                "agent.sandbox.readible is not a setting and is ignored; did you mean agent.sandbox.readable?",
            ),
            (
                "max_turns: 3",
                "max_turns is not a setting and is ignored; did you mean agent.max_turns?",
            ),
            ("colour: red", "colour is not a setting and is ignored"),
        ] {
            assert_eq!(workflow(text), (vec![message.to_owned()], vec![]), "{text}");
        }
    }

    #[test]
    fn unknown_keys_of_a_policy_are_named_with_a_suggestion() {
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
            assert_eq!(policy(text), [message], "{text}");
        }
    }

    #[test]
    fn maps_that_are_passed_on_may_hold_any_key() {
        let text = "tracker: {provider: {own: 1}}\ncodex: {turn_sandbox_policy: {own: {}}}\n\
                    agent: {max_concurrent_agents_by_state: {todo: 1}}";
        assert_eq!(workflow(text), (vec![], vec![]));
        assert_eq!(policy("[environment]\nOWN = '1'"), Vec::<String>::new());
    }

    #[test]
    fn item_130_worker_settings_are_rejected_unless_they_are_empty() {
        let (unknown, rejected) = workflow("worker: {ssh_hosts: [a]}");
        assert_eq!((unknown.len(), rejected.len()), (0, 1));
        assert!(rejected[0].starts_with("worker is not supported: "), "{rejected:?}");
        assert_eq!(workflow("worker: {}"), (vec![], vec![]));
        assert_eq!(workflow("worker:"), (vec![], vec![]));
    }

    #[test]
    fn a_section_must_be_a_map() {
        let (_, rejected) = workflow("hooks: later\npolling:\n");
        assert_eq!(rejected, ["hooks must be a map, found text"]);
    }
}
