//! The effective settings: every setting with its value, secrets masked, and the origin of the value.
//!
//! They answer why a setting has the value that it has: the line of the file, the environment variable that a value
//! refers to or that replaces it, or the default. Fields of the tracker are listed below `tracker.provider`, also
//! if the file writes them directly below `tracker`.

use carrel_domain::Secret;
use serde::Serialize;
use serde_json::{Value, json};

use crate::environment::{self, Environment, WORKSPACE_DEFAULT_QUOTA_GB};
use crate::schema::{Setting, Syntax, ValueKind};
use crate::settings::tracker_profile::{self, ProviderField};
use crate::settings::{Config, FLAT_KEYS};
use crate::value_tree::{Map, Node};
use crate::workflow_keys as keys;
use crate::workspace_root::RootOrigin;

const MASK: &str = "***";

/// A setting with its value and the origin of that value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EffectiveSetting {
    /// The dotted path of the setting.
    pub key: String,
    /// The value with secrets masked; null if it is unset.
    pub value: Value,
    /// The file, variable or default that the value comes from.
    pub origin: Origin,
}

/// The origin of a setting's value.
#[expect(missing_docs, reason = "the names of the variants say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    File {
        /// The line of the value, from 1.
        line: usize,
    },
    Variable {
        name: String,
    },
    Default,
}

impl Origin {
    /// The origin of a value that is written in the file, or not at all.
    fn of(written: Option<&Node>) -> Self {
        written.map_or(Self::Default, |node| Self::File { line: node.position.line })
    }
}

/// Lists every setting in the order of the reference page.
pub(crate) fn list(
    map: &Map,
    config: &Config,
    environment: &Environment,
    secrets: &[Secret],
) -> Vec<EffectiveSetting> {
    let sources = SettingSources { map, config, environment };
    let mut listed = Vec::new();
    for key in keys::SCHEMA.settings() {
        match key.path {
            path if path == keys::TRACKER_PROVIDER.path => listed.extend(sources.provider()),
            _ if matches!(key.kind, ValueKind::NotSupported(_) | ValueKind::Secret) => {}
            // A field that may also be written below `tracker.provider` is listed there.
            path if FLAT_KEYS.iter().any(|flat| flat.path == path) && map.find(path).is_none() => {}
            _ => listed.push(sources.setting(key)),
        }
    }
    for setting in &mut listed {
        mask(&mut setting.value, secrets);
    }
    listed
}

struct SettingSources<'a> {
    map: &'a Map,
    config: &'a Config,
    environment: &'a Environment,
}

impl SettingSources<'_> {
    fn setting(&self, key: &Setting) -> EffectiveSetting {
        let written = self.map.find(key.path);
        let default = key.default_node(Syntax::Yaml);
        let plain = || written.or(default.as_ref()).map(Node::to_json).unwrap_or_default();
        let (value, origin) = self.computed(key).unwrap_or_else(|| (plain(), None));
        let origin = origin.unwrap_or_else(|| Origin::of(written));
        EffectiveSetting { key: key.path.to_owned(), value, origin }
    }

    /// Returns a value that differs from the written one, and its origin unless that is the file.
    fn computed(&self, key: &Setting) -> Option<(Value, Option<Origin>)> {
        let tracker = self.config.conductor.as_ref().map(|conductor| &conductor.tracker);
        let path = key.path;
        if path == keys::WORKSPACE_ROOT.path {
            let root = &self.config.workspace.root;
            let origin = match &root.origin {
                RootOrigin::Variable(name) => Some(Origin::Variable { name: name.clone() }),
                RootOrigin::Default | RootOrigin::File | RootOrigin::CommandLine => None,
            };
            Some((json!(root.path.to_string_lossy()), origin))
        } else if path == keys::WORKSPACE_QUOTA.path && self.map.find(path).is_none() {
            let name = WORKSPACE_DEFAULT_QUOTA_GB;
            let set = self.environment.get(name).is_some();
            let origin = set.then(|| Origin::Variable { name: name.to_owned() });
            Some((json!(self.config.workspace.quota.to_string()), origin))
        } else if path == keys::TRACKER_ACTIVE.path {
            Some((json!(tracker?.active_states), None))
        } else if path == keys::TRACKER_TERMINAL.path {
            Some((json!(tracker?.terminal_states), None))
        } else if path == keys::TRACKER_LABELS.path {
            Some((json!(tracker?.required_labels), None))
        } else {
            None
        }
    }

    fn provider(&self) -> Vec<EffectiveSetting> {
        let Some(conductor) = &self.config.conductor else { return Vec::new() };
        let (tracker, fields) =
            (&conductor.tracker, tracker_profile::of(conductor.tracker.kind).fields);
        let named = fields.iter().map(|field| {
            let provider = &tracker.provider;
            let known = provider.settings.get(field.name).cloned();
            let secret = provider.secrets.contains_key(field.name).then(|| json!(MASK));
            self.field(field, known.or(secret).unwrap_or_default())
        });
        let others = tracker.provider.settings.iter();
        let others = others.filter(|(name, _)| fields.iter().all(|field| field.name != *name));
        let others = others.map(|(name, value)| {
            let key = format!("{}.{name}", keys::TRACKER_PROVIDER.path);
            let origin = Origin::of(self.map.find(&key));
            EffectiveSetting { key, value: value.clone(), origin }
        });
        named.chain(others).collect()
    }

    fn field(&self, field: &ProviderField, value: Value) -> EffectiveSetting {
        let key = format!("{}.{}", keys::TRACKER_PROVIDER.path, field.name);
        let flat = format!("tracker.{}", field.name);
        let written = self.map.find(&key).or_else(|| self.map.find(&flat));
        let is_set = |name: &&str| self.environment.get(name).is_some();
        let named = written.and_then(Node::as_text).map(str::trim).map(environment::reference);
        let variable = match named {
            Some(Some(name)) => Some(name).filter(is_set).or(field.variable.filter(is_set)),
            None => field.variable.filter(is_set),
            Some(None) => None,
        };
        let named = variable.map(|name| Origin::Variable { name: name.to_owned() });
        EffectiveSetting { key, value, origin: named.unwrap_or_else(|| Origin::of(written)) }
    }
}

fn mask(value: &mut Value, secrets: &[Secret]) {
    match value {
        Value::String(text) => {
            *text = secrets.iter().fold(std::mem::take(text), |text, secret| secret.mask(&text));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, secrets)),
        Value::Object(fields) => fields.values_mut().for_each(|field| mask(field, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
