//! Looks for keys that mean nothing, and for values where a section belongs.

use crate::diagnostic::Diagnostic;
use crate::schema::{Key, Kind, all_keys};
use crate::suggest;
use crate::yaml::{Map, MapEntry, Value};

/// What a walk over the front matter found.
#[derive(Debug, Default)]
pub(crate) struct Inspection {
    /// Keys that no setting has.
    pub(crate) unknown: Vec<Diagnostic>,
    /// Settings that Carrel refuses, and values where a section belongs.
    pub(crate) refused: Vec<Diagnostic>,
}

/// Compares the keys of the front matter with the table of settings.
pub(crate) fn inspect(map: &Map) -> Inspection {
    let mut inspection = Inspection::default();
    inspection.walk(map, "");
    inspection
}

impl Inspection {
    fn walk(&mut self, map: &Map, parent: &str) {
        for entry in &map.0 {
            let path = join(parent, &entry.key);
            match all_keys().find(|key| key.path == path) {
                Some(key) => self.refuse(key, entry),
                None if all_keys().any(|key| below(key.path, &path).is_some()) => {
                    self.descend(entry, path);
                }
                None => self.unknown.push(unknown(entry, parent, path)),
            }
        }
    }

    fn refuse(&mut self, key: &Key, entry: &MapEntry) {
        let empty = match &entry.value.value {
            Value::Null => true,
            Value::Map(map) => map.0.is_empty(),
            _ => false,
        };
        if matches!(key.kind, Kind::Refused(_)) && !empty {
            let message = format!("{} {}", key.path, key.kind.complaint(&entry.value));
            self.refused.push(Diagnostic::about(key.path, Some(entry.position), message));
        }
    }

    fn descend(&mut self, entry: &MapEntry, path: String) {
        match &entry.value.value {
            Value::Map(map) => self.walk(map, &path),
            Value::Null => {}
            _ => {
                let message = format!("{path} {}", Kind::Map.complaint(&entry.value));
                self.refused.push(Diagnostic::about(path, Some(entry.value.position), message));
            }
        }
    }
}

fn unknown(entry: &MapEntry, parent: &str, path: String) -> Diagnostic {
    let mut message = format!("{path} is not a setting and is ignored");
    if let Some(meant) = suggestion(&entry.key, parent) {
        message = format!("{message}; did you mean {meant}?");
    }
    Diagnostic::about(path, Some(entry.position), message)
}

/// Returns the path that was meant: a similar name beside this one, or the same name elsewhere.
fn suggestion(name: &str, parent: &str) -> Option<String> {
    let beside = all_keys().filter_map(|key| below(key.path, parent)?.split('.').next());
    if let Some(near) = suggest::nearest(name, beside) {
        return Some(join(parent, near));
    }
    let elsewhere = all_keys().find(|key| key.path.rsplit('.').next() == Some(name));
    elsewhere.map(|key| key.path.to_owned())
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

/// Returns what follows `parent` in a path; everything follows the empty parent.
fn below<'a>(path: &'a str, parent: &str) -> Option<&'a str> {
    if parent.is_empty() { Some(path) } else { path.strip_prefix(parent)?.strip_prefix('.') }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Position;
    use pretty_assertions::assert_eq;

    fn messages(text: &str) -> (Vec<String>, Vec<String>) {
        let node = crate::yaml::parse(text, Position::START).unwrap();
        let Value::Map(map) = node.value else { panic!("a map was written") };
        let Inspection { unknown, refused } = inspect(&map);
        let texts =
            |diagnostics: Vec<Diagnostic>| diagnostics.into_iter().map(|f| f.message).collect();
        (texts(unknown), texts(refused))
    }

    #[test]
    fn unknown_keys_are_named_with_a_suggestion() {
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
            assert_eq!(messages(text), (vec![message.to_owned()], vec![]), "{text}");
        }
    }

    #[test]
    fn maps_that_are_handed_on_may_hold_anything() {
        let text = "tracker: {provider: {own: 1}}\ncodex: {turn_sandbox_policy: {own: {}}}\n\
                    agent: {max_concurrent_agents_by_state: {todo: 1}}";
        assert_eq!(messages(text), (vec![], vec![]));
    }

    #[test]
    fn item_130_worker_settings_are_refused_unless_they_say_nothing() {
        let (unknown, refused) = messages("worker: {ssh_hosts: [a]}");
        assert_eq!((unknown.len(), refused.len()), (0, 1));
        assert!(refused[0].starts_with("worker is not supported: "), "{refused:?}");
        assert_eq!(messages("worker: {}"), (vec![], vec![]));
        assert_eq!(messages("worker:"), (vec![], vec![]));
    }

    #[test]
    fn a_section_must_be_a_map() {
        let (_, refused) = messages("hooks: later\npolling:\n");
        assert_eq!(refused, ["hooks must be a map, found text"]);
    }
}
