//! Commented settings files, generated from a schema.
//!
//! Every setting is a line with its default and a `#` in the first column, below its meaning. Removing that
//! `#` gives a file with the same effect, so a reader changes one line at a time.

use super::{DefaultValue, Schema, Section, Setting, Syntax, ValueKind};

/// The width at which comments wrap, for editors beside a terminal.
const COMMENT_COLUMNS: usize = 100;

/// Returns a file with all settings of a schema. Those in `set` have a value, the others are commented out.
pub(crate) fn commented_settings(schema: &Schema, set: &[(&str, &str)]) -> String {
    let sections: Vec<String> =
        schema.sections.iter().filter_map(|section| section_text(section, schema, set)).collect();
    sections.join("\n")
}

fn section_text(section: &Section, schema: &Schema, set: &[(&str, &str)]) -> Option<String> {
    let supported: Vec<&Setting> = section
        .settings
        .iter()
        .filter(|setting| !matches!(setting.kind, ValueKind::NotSupported(_)))
        .collect();
    if supported.is_empty() {
        return None;
    }
    let header = match (section.header, schema.syntax) {
        (None, _) => String::new(),
        (Some(header), Syntax::Toml) => format!("[{header}]\n"),
        (Some(header), Syntax::Yaml) => {
            let is_set = supported.iter().any(|setting| value_in(set, setting).is_some());
            format!("{}{header}:\n", mark(is_set))
        }
    };
    let mut text = comment(0, section.about) + &header;
    let mut group = "";
    for setting in supported {
        text += &setting_text(setting, section, schema.syntax, set, &mut group);
    }
    Some(text)
}

fn setting_text(
    setting: &Setting,
    section: &Section,
    syntax: Syntax,
    set: &[(&str, &str)],
    group: &mut &'static str,
) -> String {
    let below = section.header.and_then(|header| setting.path.strip_prefix(header));
    let path = below.map_or(setting.path, |below| below.trim_start_matches('.'));
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let begins_group = parent != *group && !parent.is_empty();
    let mut text = if begins_group { format!("#  {parent}:\n") } else { String::new() };
    *group = parent;
    let depth = match syntax {
        Syntax::Toml => 0,
        Syntax::Yaml => 2 + 2 * usize::from(!parent.is_empty()),
    };
    text += &comment(depth, &meaning(setting));
    let indent = " ".repeat(depth);
    let given = value_in(set, setting);
    let value = given.unwrap_or(match setting.default {
        DefaultValue::Literal(value) => value,
        DefaultValue::Unset | DefaultValue::Computed(_) => "",
    });
    let mark = mark(given.is_some());
    text += match (syntax, name) {
        // The table itself is the setting: its keys are the reader's.
        (Syntax::Toml, "") => "#NAME = \"value\"\n".to_owned(),
        (Syntax::Toml, _) => format!("{mark}{name} = {value}\n"),
        (Syntax::Yaml, _) => format!("{mark}{indent}{name}: {value}"),
    }
    .trim_end();
    text.push('\n');
    text
}

fn meaning(setting: &Setting) -> String {
    // A link within the reference page leads nowhere here.
    let (about, _) = setting.about.split_once(" See [below]").unwrap_or((setting.about, ""));
    match setting.default {
        DefaultValue::Computed(default) => format!("{about} Default: {default}."),
        DefaultValue::Literal(_) | DefaultValue::Unset => about.to_owned(),
    }
}

fn value_in<'a>(set: &[(&str, &'a str)], setting: &Setting) -> Option<&'a str> {
    set.iter().find(|(path, _)| *path == setting.path).map(|(_, value)| *value)
}

fn mark(is_set: bool) -> &'static str {
    if is_set { "" } else { "#" }
}

/// Wraps text into comment lines.
fn comment(depth: usize, about: &str) -> String {
    let start = format!("{}#", " ".repeat(depth));
    let mut text = String::new();
    let mut line = start.clone();
    for word in about.split_whitespace() {
        if line.len() + 1 + word.len() > COMMENT_COLUMNS && line != start {
            text += &line;
            text.push('\n');
            line.clone_from(&start);
        }
        line.push(' ');
        line += word;
    }
    text + &line + "\n"
}
