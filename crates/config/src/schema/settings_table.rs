//! The Markdown tables of a reference page, one for each section of a schema.

use super::{DefaultValue, Schema, Section, Setting, Syntax};

/// Returns the sections of a schema with their tables, for insertion into a page.
pub(crate) fn settings_tables(schema: &Schema) -> String {
    let sections: String = schema.sections.iter().map(|section| table(section, schema)).collect();
    sections.trim_end().to_owned()
}

fn table(section: &Section, schema: &Schema) -> String {
    let title = match (section.header, schema.syntax) {
        (None, _) => "The top".to_owned(),
        (Some(header), Syntax::Yaml) => format!("`{header}`"),
        (Some(header), Syntax::Toml) => format!("`[{header}]`"),
    };
    let head = match schema.syntax {
        Syntax::Yaml => "| key | value | default | meaning | applies |\n|---|---|---|---|---|\n",
        Syntax::Toml => "| key | value | default | meaning |\n|---|---|---|---|\n",
    };
    let rows: String = section.settings.iter().map(|setting| row(setting, schema.syntax)).collect();
    format!("### {title}\n\n{}\n\n{head}{rows}\n", section.about)
}

fn row(setting: &Setting, syntax: Syntax) -> String {
    let default = match setting.default {
        DefaultValue::Unset => "–".to_owned(),
        DefaultValue::Literal(value) => format!("`{value}`"),
        DefaultValue::Computed(description) => description.to_owned(),
    };
    let Setting { path, kind, about, .. } = setting;
    let applies = setting.applies.map(|applies| format!(" {applies} |")).unwrap_or_default();
    format!("| `{path}` | {} | {default} | {about} |{applies}\n", kind.rule(syntax))
}
