//! `tracker`: the tracker whose issues are worked on, and the access to it.
//!
//! Secrets are best written as `$NAME` and may be left out if the tracker's usual variable is set. A secret of another
//! kind of tracker that stands in the file by mistake is treated as a secret too.

use std::collections::BTreeMap;

use carrel_domain::{Code, Secret};
use serde_json::Value;

use super::choice::choices;
use super::tracker_profile::{self, ProviderField, StateRule, TrackerProfile};
use crate::diagnostic::Diagnostic;
use crate::environment::{self, Environment};
use crate::schema::{Setting, SettingReader, Syntax, ValueKind};
use crate::secrets;
use crate::value_tree::Node;
use crate::workflow_keys as keys;

choices! {
    TrackerKind {
        Linear = "linear",
        Github = "github",
        Gitlab = "gitlab",
        Jira = "jira",
        Asana = "asana",
        Local = "local",
    }
}

/// Fields that may also be written directly below `tracker`.
pub(crate) const FLAT_KEYS: &[Setting] = &[
    keys::TRACKER_ENDPOINT,
    keys::TRACKER_API_KEY,
    keys::TRACKER_PROJECT_SLUG,
    keys::TRACKER_ASSIGNEE,
];

/// The section `tracker`, with variables resolved and the defaults of the kind of tracker applied.
#[expect(missing_docs, reason = "the fields are keys of the reference page")]
#[derive(Clone, Debug, PartialEq)]
pub struct TrackerConfig {
    pub kind: TrackerKind,
    pub provider: Provider,
    /// Labels that an issue must have, all of them; trimmed, lower case, without duplicates.
    pub required_labels: Vec<String>,
    pub active_states: Vec<String>,
    pub terminal_states: Vec<String>,
}

/// The fields of one kind of tracker, secrets apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Provider {
    /// Fields that are not secret: known ones resolved, others as written.
    pub settings: BTreeMap<String, Value>,
    /// Secret fields, resolved from the variables that they refer to.
    pub secrets: BTreeMap<String, Secret>,
}

impl TrackerConfig {
    /// Reads the tracker; `None` if its kind is missing or unknown.
    pub(super) fn read(reader: &mut SettingReader<'_>) -> Option<Self> {
        let profile = tracker_profile::of(read_kind(reader)?);
        let (active_states, terminal_states) = read_states(reader, profile);
        Some(Self {
            kind: profile.kind,
            provider: read_provider(reader, profile),
            required_labels: normalised(&reader.texts(&keys::TRACKER_LABELS).unwrap_or_default()),
            active_states,
            terminal_states,
        })
    }
}

fn read_kind(reader: &mut SettingReader<'_>) -> Option<TrackerKind> {
    let key = &keys::TRACKER_KIND;
    let Some(node) = reader.written(key) else {
        let message = format!("{} is missing; set it to {}", key.path, key.kind.rule(Syntax::Yaml));
        reader.record(Code::TrackerMissing, Diagnostic::about(key.path, None, message));
        return None;
    };
    let kind = node.as_text().and_then(TrackerKind::parse);
    if kind.is_none() {
        let message =
            format!("{} {}{}", key.path, key.kind.complaint(node, Syntax::Yaml), kind_hint(node));
        let diagnostic = Diagnostic::about(key.path, Some(node.position), message);
        reader.record(Code::TrackerUnsupported, diagnostic);
    }
    kind
}

fn kind_hint(node: &Node) -> String {
    if node.as_text() == Some("memory") {
        return format!("; did you mean {}?", TrackerKind::Local.as_str());
    }
    String::new()
}

fn normalised(labels: &[String]) -> Vec<String> {
    let mut unique = Vec::new();
    for label in labels.iter().map(|label| label.trim().to_lowercase()) {
        if !unique.contains(&label) {
            unique.push(label);
        }
    }
    unique
}

fn read_states(
    reader: &mut SettingReader<'_>,
    profile: &TrackerProfile,
) -> (Vec<String>, Vec<String>) {
    let (active, terminal) = (&keys::TRACKER_ACTIVE, &keys::TRACKER_TERMINAL);
    match profile.states {
        StateRule::Free { active: usual, terminal: finished } => {
            (states_or(reader, active, usual), states_or(reader, terminal, finished))
        }
        StateRule::Named => {
            let hint = "list the states as the tracker spells them";
            (required_states(reader, active, hint), required_states(reader, terminal, hint))
        }
        StateRule::Fixed { active: open, terminal: closed } => {
            (fixed_states(reader, active, open), fixed_states(reader, terminal, closed))
        }
    }
}

fn states_or(reader: &mut SettingReader<'_>, key: &Setting, usual: &[&str]) -> Vec<String> {
    reader.texts(key).unwrap_or_else(|| usual.iter().map(ToString::to_string).collect())
}

/// Reads states that the file must list; `hint` says how.
fn required_states(reader: &mut SettingReader<'_>, key: &Setting, hint: &str) -> Vec<String> {
    if reader.written(key).is_none() {
        reader.problem(key, format!("is missing; {hint}"));
    }
    reader.texts(key).unwrap_or_default()
}

fn fixed_states(reader: &mut SettingReader<'_>, key: &Setting, only: &str) -> Vec<String> {
    let states = required_states(reader, key, &format!("for this tracker write [{only}]"));
    if let Some(other) = states.iter().find(|state| !state.trim().eq_ignore_ascii_case(only)) {
        let complaint = format!("lists {other:?}, but this tracker knows only [{only}]");
        reader.problem(key, complaint);
    }
    states
}

fn read_provider(reader: &mut SettingReader<'_>, profile: &TrackerProfile) -> Provider {
    let mut provider = Provider::default();
    if let Some(Value::Object(written)) = reader.json(&keys::TRACKER_PROVIDER) {
        provider.settings.extend(written);
    }
    for field in profile.fields {
        provider.settings.remove(field.name);
        let Some(value) = read_field(reader, profile, field) else { continue };
        if field.secret {
            provider.secrets.insert(field.name.to_owned(), Secret::new(value));
        } else {
            provider.settings.insert(field.name.to_owned(), Value::String(value));
        }
    }
    hide_misplaced_secrets(&mut provider);
    warn_about_flat_keys(reader, profile);
    provider
}

/// Returns the variables that secret fields refer to, sorted.
pub(super) fn secret_variables(reader: &SettingReader<'_>) -> Vec<String> {
    let references =
        secrets::written_in_file(reader.map).filter_map(|text| environment::reference(text.trim()));
    let mut variables: Vec<String> = references.map(str::to_owned).collect();
    variables.sort();
    variables.dedup();
    variables
}

fn warn_about_flat_keys(reader: &mut SettingReader<'_>, profile: &TrackerProfile) {
    if profile.flat {
        return;
    }
    for key in FLAT_KEYS {
        if reader.written(key).is_some() {
            let kind = profile.kind.as_str();
            let message = format!("{} is ignored by {kind}; use tracker.provider", key.path);
            reader.warn(key, message);
        }
    }
}

/// Moves fields that are secret for another kind of tracker out of the settings, which may be printed.
fn hide_misplaced_secrets(provider: &mut Provider) {
    for field in tracker_profile::secret_fields() {
        if let Some(Value::String(value)) = provider.settings.remove(field.name) {
            provider.secrets.insert(field.name.to_owned(), Secret::new(value));
        }
    }
}

fn read_field(
    reader: &mut SettingReader<'_>,
    profile: &TrackerProfile,
    field: &ProviderField,
) -> Option<String> {
    let path = format!("{}.{}", keys::TRACKER_PROVIDER.path, field.name);
    // Below `tracker.provider`, or directly below `tracker` where that is allowed.
    let flat = || reader.map.find(&format!("tracker.{}", field.name)).filter(|_| profile.flat);
    let node = reader.map.find(&path).or_else(flat);
    if let Some(node) = node.filter(|node| node.as_text().is_none()) {
        let kind = if field.secret { ValueKind::Secret } else { ValueKind::Text };
        let message = format!("{path} {}", kind.complaint(node, Syntax::Yaml));
        reader.record_invalid(Diagnostic::about(path, Some(node.position), message));
        return None;
    }
    let written = node.and_then(Node::as_text);
    let value = resolve(written, field, reader.environment);
    if value.is_none() && field.required {
        let diagnostic =
            Diagnostic::about(&path, node.map(|node| node.position), missing(&path, field));
        reader.record_invalid(diagnostic);
    }
    value
}

fn missing(path: &str, field: &ProviderField) -> String {
    match field.variable {
        Some(variable) => format!("{path} is missing; write it as $NAME, or set {variable}"),
        None => format!("{path} is missing"),
    }
}

/// Resolves a field: as written, from the variable that it names, from the tracker's own variable, or the
/// default. A variable that is set to nothing was emptied on purpose, so the default does not replace it.
fn resolve(
    written: Option<&str>,
    field: &ProviderField,
    environment: &Environment,
) -> Option<String> {
    let own = || field.variable.and_then(|name| environment.get_str(name)).or(field.default);
    let value = match written.map(|text| (text, environment::reference(text.trim()))) {
        None => own(),
        Some((_, Some(name))) => environment.get_str(name).or_else(own),
        Some((text, None)) => Some(text),
    };
    value.map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
}
