//! The reference page of workflow files, generated from the table of settings and the tracker profiles.

use crate::prompt;
use crate::schema::{commented_settings, settings_tables};
use crate::settings::MAX_SCRIPT_BYTES;
use crate::settings::tracker_profile::{PROFILES, ProviderField, StateRule, TrackerProfile};
use crate::workflow_file::MAX_FILE_BYTES;
use crate::workflow_keys;

const GUIDE: &str = include_str!("reference/guide.md");
const EXAMPLE: &str = include_str!("reference/example.md");

/// Returns the text of `docs/workflow.md`.
pub fn reference_markdown() -> String {
    GUIDE
        .replace("%EXAMPLE%", EXAMPLE)
        .replace("%MAX_FILE%", &MAX_FILE_BYTES.to_string())
        .replace("%MAX_SCRIPT%", &MAX_SCRIPT_BYTES.to_string())
        .replace("%MAX_PROMPT%", &prompt::MAX_BYTES.to_string())
        .replace("%MAX_TAGS%", &prompt::MAX_TAGS.to_string())
        .replace("%MAX_SPACES%", &prompt::MAX_SPACES.to_string())
        .replace("%SECTIONS%", &settings_tables(&workflow_keys::SCHEMA))
        .replace("%TRACKERS%", &trackers())
}

/// The settings of a new workflow file that have a value: with the embedded tracker it works at once.
const TEMPLATE_VALUES: [(&str, &str); 3] = [
    ("tracker.kind", "local"),
    ("tracker.active_states", "[Todo, In Progress]"),
    ("tracker.terminal_states", "[Done, Cancelled]"),
];

const TEMPLATE_HEAD: &str = "\
# A workflow for `carrel run`: the settings, and below them the prompt. Every setting is shown with its
# default; remove the # in the first column of a line, and of its section, to change it. `carrel check`
# reads the file back and prints what applies. Reference: docs/workflow.md.
";

/// Returns a workflow file that loads, with every setting in it as a comment.
pub fn workflow_template() -> String {
    let settings = commented_settings(&workflow_keys::SCHEMA, &TEMPLATE_VALUES);
    let (_, prompt) = EXAMPLE.rsplit_once("\n---\n").unwrap_or_default();
    format!("---\n{TEMPLATE_HEAD}\n{settings}---\n{prompt}")
}

fn trackers() -> String {
    let mut text =
        String::from("| kind | key | value | variable | default |\n|---|---|---|---|---|\n");
    for profile in PROFILES {
        text.extend(profile.fields.iter().map(|field| field_row(profile, field)));
    }
    text.push_str("\n| kind | `active_states` | `terminal_states` |\n|---|---|---|\n");
    text.extend(PROFILES.iter().map(state_row));
    text
}

fn field_row(profile: &TrackerProfile, field: &ProviderField) -> String {
    let value = match (field.secret, field.required) {
        (true, _) => "secret, required",
        (false, true) => "text, required",
        (false, false) => "text",
    };
    format!(
        "| `{}` | `{}` | {value} | {} | {} |\n",
        profile.kind.as_str(),
        field.name,
        quoted(field.variable),
        quoted(field.default)
    )
}

fn state_row(profile: &TrackerProfile) -> String {
    let (active, terminal) = match profile.states {
        StateRule::Free { active, terminal } => {
            (format!("default {}", listed(active)), format!("default {}", listed(terminal)))
        }
        StateRule::Named => ("required".to_owned(), "required".to_owned()),
        StateRule::Fixed { active, terminal } => (
            format!("required: {}", listed(&[active])),
            format!("required: {}", listed(&[terminal])),
        ),
    };
    format!("| `{}` | {active} | {terminal} |\n", profile.kind.as_str())
}

fn quoted(text: Option<&str>) -> String {
    text.map_or("–".to_owned(), |text| format!("`{text}`"))
}

fn listed(words: &[&str]) -> String {
    format!("`[{}]`", words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, ValidationScope, Workflow};
    use std::path::Path;

    #[test]
    fn the_checked_in_guide_is_up_to_date() {
        let checked_in = include_str!("../../../docs/workflow.md");
        assert!(
            checked_in == reference_markdown(),
            "docs/workflow.md is out of date; run \
             `cargo run -p carrel-config --example workflow_reference > docs/workflow.md`"
        );
    }

    #[test]
    fn no_marker_is_left_in_the_guide() {
        let guide = reference_markdown();
        for marker in ["%EXAMPLE", "%MAX", "%SECTIONS", "%TRACKERS"] {
            assert!(!guide.contains(marker), "{marker}");
        }
    }

    fn parsed(text: &str) -> Workflow {
        let environment = Environment::from_pairs([("HOME", "/home/a")]);
        let path = Path::new("/w/WORKFLOW.md");
        let scope = ValidationScope::Everything;
        Workflow::parse(text.as_bytes(), path, &environment, scope).unwrap()
    }

    #[test]
    fn the_template_loads_without_a_warning_and_names_every_supported_setting() {
        let template = workflow_template();
        assert_eq!(parsed(&template).warnings, []);
        for setting in workflow_keys::SCHEMA.settings().filter(|setting| setting.path != "worker") {
            let name = setting.path.rsplit('.').next().unwrap();
            assert!(template.contains(&format!(" {name}:")), "{}", setting.path);
        }
    }

    #[test]
    fn a_template_without_its_marks_means_the_same() {
        let template = workflow_template();
        let unmarked = |line: &str| match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') || setting.starts_with("  ") => {
                setting.to_owned()
            }
            _ => line.to_owned(),
        };
        let (head, prompt) = template.rsplit_once("\n---\n").unwrap();
        let head: Vec<String> = head.lines().map(unmarked).collect();
        let whole = parsed(&format!("{}\n---\n{prompt}", head.join("\n")));
        assert_eq!(whole.warnings, []);
        assert_eq!(format!("{:?}", whole.config), format!("{:?}", parsed(&template).config));
    }

    #[test]
    fn the_example_of_the_guide_loads_without_a_warning() {
        let environment = Environment::from_pairs([("HOME", "/home/a"), ("LINEAR_API_KEY", "key")]);
        let path = Path::new("/w/WORKFLOW.md");
        let workflow =
            Workflow::parse(EXAMPLE.as_bytes(), path, &environment, ValidationScope::Everything)
                .unwrap();
        assert_eq!(workflow.warnings, []);
    }
}
