//! The events that were asked for.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use carrel_domain::{Age, Clock as _, SystemClock, Timestamp};
use serde_json::Value;

const VIOLATION: &str = "lifecycle.sandbox.violation";
const FIRST_USE: &str = "lifecycle.workspace.sandbox";

pub(super) struct EventFilter {
    directory: Option<PathBuf>,
    violations: bool,
    since: Option<Timestamp>,
    /// The directory behind each name of a session.
    names: HashMap<(String, String), PathBuf>,
}

impl EventFilter {
    pub(super) fn new(directory: Option<PathBuf>, violations: bool, since: Option<Age>) -> Self {
        let now = SystemClock.now().as_millis();
        let since = since.map(|Age(age)| {
            let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
            Timestamp::from_millis(now.saturating_sub(age))
        });
        Self { directory, violations, since, names: HashMap::new() }
    }

    /// Returns whether an event is asked for. Events are passed in the order of the log.
    pub(super) fn accepts(&mut self, event: &Value) -> bool {
        self.learn(event);
        let is_wanted = !self.violations || event["event"] == VIOLATION;
        let is_recent = self.since.is_none_or(|since| {
            serde_json::from_value::<Timestamp>(event["at"].clone()).is_ok_and(|at| at >= since)
        });
        is_wanted
            && is_recent
            && self.directory.as_deref().is_none_or(|path| self.is_of(event, path))
    }

    fn learn(&mut self, event: &Value) {
        if self.directory.is_some()
            && event["event"] == FIRST_USE
            && let (Some(key), Some(root)) = (name_of(event), event["sandbox_root"].as_str())
        {
            self.names.insert(key, PathBuf::from(root));
        }
    }

    /// Commands name the directory itself, sessions a name for it, and servers the id, which is the name of
    /// the directory. The first call of a session may be in a file that is gone; then its name has to do.
    fn is_of(&self, event: &Value, directory: &Path) -> bool {
        let Some(key) = name_of(event) else { return false };
        if let Some(known) = self.names.get(&key) {
            return known == directory;
        }
        let name = Path::new(&key.1);
        name == directory || directory.file_name() == Some(name.as_os_str())
    }
}

fn name_of(event: &Value) -> Option<(String, String)> {
    let session = event["session"].as_str().unwrap_or_default();
    Some((session.to_owned(), event["workspace"].as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn a_name_means_the_directory_that_its_session_began_with() {
        let call = |session: &str, workspace: &str| json!({ "event": "tool.call", "session": session, "workspace": workspace });
        let first = |session: &str, root: &str| json!({ "event": FIRST_USE, "session": session, "workspace": "app", "sandbox_root": root });
        let events = [
            (first("one", "/srv/app"), true),
            (first("two", "/home/app"), false),
            (call("one", "app"), true),
            (call("two", "app"), false),
            // Neither session began in this log.
            (call("three", "app"), true),
            (call("three", "other"), false),
            (call("cli", "/srv/app"), true),
            (json!({ "event": "tool.call", "session": "one", "workspace": null }), false),
        ];
        let mut filter = EventFilter::new(Some("/srv/app".into()), false, None);
        for (event, expected) in events {
            assert_eq!(filter.accepts(&event), expected, "{event}");
        }
    }

    #[test]
    fn old_events_and_events_without_a_time_are_not_recent() {
        let mut filter = EventFilter::new(None, false, Some("1h".parse().unwrap()));
        assert!(filter.accepts(&json!({ "at": SystemClock.now() })));
        assert!(!filter.accepts(&json!({ "at": "2001-01-01T00:00:00.000Z" })));
        assert!(!filter.accepts(&json!({})));
    }
}
