//! The reference page of policy files, generated from the tables of settings and toolchains.

use super::language_servers::{BUILT_IN_SERVERS, SERVER_LANGUAGES};
use super::policy_file::MAX_POLICY_BYTES;
use super::policy_keys::SCHEMA;
use super::toolchain::{InstallLocation, TOOLCHAINS};
use crate::schema::{commented_settings, settings_tables};

const GUIDE: &str = include_str!("reference/guide.md");
const EXAMPLE: &str = include_str!("../../../../examples/policy.toml");

/// Returns the text of `docs/policy.md`.
pub fn policy_reference_markdown() -> String {
    GUIDE
        .replace("%EXAMPLE%", EXAMPLE)
        .replace("%MAX_FILE%", &MAX_POLICY_BYTES.to_string())
        .replace("%SECTIONS%", &settings_tables(&SCHEMA))
        .replace("%LANGUAGES%", &listed(SERVER_LANGUAGES.iter().map(|name| format!("`{name}`"))))
        .replace("%BUILT_IN%", &listed(BUILT_IN_SERVERS.iter().map(|name| format!("`{name}`"))))
        .replace("%TOOLCHAINS%", toolchains().trim_end())
}

const TEMPLATE_HEAD: &str = "\
# The policy of this machine's operator for sandboxed commands. Every setting is shown with its default;
# remove the # in the first column of a line to change it. `carrel doctor` reads the file back and prints
# what holds. Reference: docs/policy.md.
";

/// Returns a policy file that loads as the defaults, with every setting in it as a comment.
pub fn policy_template() -> String {
    format!("{TEMPLATE_HEAD}\n{}", commented_settings(&SCHEMA, &[]))
}

fn toolchains() -> String {
    let mut text = String::from(
        "| name | below | readable | in front of `PATH` | variables | never shared |\n|---|---|---|---|---|---|\n",
    );
    for toolchain in TOOLCHAINS.iter() {
        text.extend(
            toolchain.locations.iter().map(|location| location_row(&toolchain.name, location)),
        );
    }
    text
}

fn location_row(name: &str, location: &InstallLocation) -> String {
    let home = if location.directory.starts_with('/') { "" } else { "~/" };
    let below = match &location.moved_by {
        Some(variable) => format!("`${variable}`, else `{home}{}`", location.directory),
        None => format!("`{home}{}`", location.directory),
    };
    let variables = location.variables.iter().map(|variable| {
        let value = variable.value.replace("{}", "…");
        let note = if variable.offline { " (offline)" } else { "" };
        format!("`{}={value}`{note}", variable.name)
    });
    let [readable, programs, withheld] =
        [&location.readable, &location.programs, &location.withheld]
            .map(|paths| listed(paths.iter().map(|path| format!("`{path}`"))));
    format!(
        "| `{name}` | {below} | {readable} | {programs} | {} | {withheld} |\n",
        listed(variables)
    )
}

fn listed(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    if words.is_empty() { "–".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::policy::OperatorPolicy;
    use crate::schema::{DefaultValue, Setting};
    use pretty_assertions::assert_eq;
    use std::path::Path;

    #[test]
    fn the_checked_in_guide_is_up_to_date() {
        let checked_in = include_str!("../../../../docs/policy.md");
        assert!(
            checked_in == policy_reference_markdown(),
            "docs/policy.md is out of date; run \
             `cargo run -p carrel-config --example policy_reference > docs/policy.md`"
        );
    }

    #[test]
    fn no_marker_is_left_in_the_guide() {
        let guide = policy_reference_markdown();
        for marker in ["%EXAMPLE", "%MAX", "%SECTIONS", "%TOOLCHAINS", "%LANGUAGES", "%BUILT_IN"] {
            assert!(!guide.contains(marker), "{marker}");
        }
    }

    #[test]
    fn the_example_shows_every_setting_and_doubts_only_missing_paths() {
        let environment = Environment::from_pairs([("HOME", "/home/anna")]);
        let file = Path::new("/etc/carrel/policy.toml");
        let (_, warnings) = OperatorPolicy::parse(EXAMPLE.as_bytes(), file, &environment).unwrap();
        for warning in warnings {
            assert!(warning.message.contains(" cannot be used and is skipped: "), "{warning:?}");
        }
        for key in SCHEMA.settings() {
            let name = key.path.rsplit('.').next().unwrap();
            assert!(EXAMPLE.contains(&format!("{name} =")) || name == "environment", "{name}");
        }
    }

    #[test]
    fn the_template_means_the_defaults_with_and_without_its_marks() {
        let parsed = |text: &str| {
            let file = Path::new("/etc/carrel/policy.toml");
            OperatorPolicy::parse(text.as_bytes(), file, &Environment::default()).unwrap()
        };
        let template = policy_template();
        assert_eq!(parsed(&template), (OperatorPolicy::default(), vec![]));
        let unmarked = |line: &str| match line.strip_prefix('#') {
            // A value that is found at run time is not written.
            Some(setting) if setting.starts_with(|first: char| first.is_ascii_lowercase()) => {
                let written = !setting.ends_with('=');
                if written { setting.to_owned() } else { String::new() }
            }
            _ => line.to_owned(),
        };
        let whole: Vec<String> = template.lines().map(unmarked).collect();
        assert_eq!(parsed(&whole.join("\n")), (OperatorPolicy::default(), vec![]));
        for setting in SCHEMA.settings().filter(|setting| setting.path != "environment") {
            let name = setting.path.rsplit('.').next().unwrap();
            assert!(template.contains(&format!("\n#{name} =")), "{}", setting.path);
        }
    }

    fn line(setting: &Setting) -> Option<String> {
        match setting.default {
            DefaultValue::Literal(text) => Some(format!("{} = {text}", setting.path)),
            DefaultValue::Computed(_) => None,
            DefaultValue::Unset => panic!("{}", setting.path),
        }
    }

    #[test]
    fn the_defaults_of_the_table_are_those_of_the_policy() {
        let lines: Vec<_> = SCHEMA.settings().filter_map(line).collect();
        let text = lines.join("\n");
        let parsed = OperatorPolicy::parse(
            text.as_bytes(),
            Path::new("/etc/carrel/policy.toml"),
            &Environment::default(),
        );
        assert_eq!(parsed.unwrap(), (OperatorPolicy::default(), vec![]));
        let empty = OperatorPolicy::parse(b"", Path::new("p"), &Environment::default());
        assert_eq!(empty.unwrap(), (OperatorPolicy::default(), vec![]));
    }
}
