//! Provider settings of a tracker: `tracker.provider` of the workflow file, whose names differ per tracker.

use carrel_client::HttpClient;
use carrel_config::TrackerConfig;
use carrel_domain::Secret;
use serde_json::Value;

use crate::error::{Result, TrackerError, TrackerErrorKind};
use crate::issue::normal;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    pub(crate) config: &'a TrackerConfig,
    pub(crate) connections: &'a HttpClient,
}

impl<'a> Settings<'a> {
    pub(crate) fn find(self, name: &str) -> Option<&'a str> {
        let text = self.config.provider.settings.get(name).and_then(Value::as_str)?.trim();
        (!text.is_empty()).then_some(text)
    }

    pub(crate) fn text(self, name: &str) -> Result<&'a str> {
        self.find(name).ok_or_else(|| TrackerError::invalid_setting(name, "is missing"))
    }

    pub(crate) fn secret(self, name: &str) -> Result<&'a Secret> {
        let secret = self.config.provider.secrets.get(name);
        let message = format!("tracker.provider.{name} is missing; write it as $NAME");
        secret
            .filter(|secret| !secret.expose().is_empty())
            .ok_or_else(|| TrackerError::new(TrackerErrorKind::Secret, message))
    }

    /// Returns the terminal states in the form of [`normal`].
    pub(crate) fn terminal(self) -> Vec<String> {
        self.config.terminal_states.iter().map(|state| normal(state)).collect()
    }
}
