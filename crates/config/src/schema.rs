//! The engine behind both settings files: one table type, one reader, one reference generator.
//!
//! `WORKFLOW.md` (YAML) and `policy.toml` (TOML) are parsed into the same [value tree](crate::value_tree).
//! Each file has a [`Schema`], a table in which every setting is described once: path, kind of value,
//! default and meaning. From the table come
//!
//! - the [reader](setting_reader), which applies defaults and records a value that breaks its rule,
//! - the [check](unknown_keys) for misspelt keys, with suggestions,
//! - the tables of the generated reference pages ([`settings_table`]),
//! - the commented files that `carrel init` writes ([`template`]).
//!
//! So the rules by which a setting is read are the rules that its page documents. The two files differ in
//! their [`Syntax`], which decides the words of messages (map or table, with or without quotes), and in one
//! rule: an unknown key is a warning in a workflow file and an error in a policy, where a misspelt
//! restriction would be no restriction.

mod setting_reader;
mod settings_table;
mod template;
mod unknown_keys;
mod value_kind;

pub(crate) use setting_reader::SettingReader;
pub(crate) use settings_table::settings_tables;
pub(crate) use template::commented_settings;
pub(crate) use unknown_keys::check_keys;
pub(crate) use value_kind::{ValueKind, integer};

use carrel_domain::Code;

use crate::diagnostic::Position;
use crate::value_tree::Node;
use crate::{toml_tree, yaml};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    Yaml,
    Toml,
}

/// The table of one settings file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schema {
    pub(crate) syntax: Syntax,
    /// The code of a value that breaks its rule.
    pub(crate) invalid: Code,
    pub(crate) sections: &'static [Section],
}

/// A top-level key and the settings below it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    /// `None` for settings above the first `[table]` of a TOML file.
    pub(crate) header: Option<&'static str>,
    pub(crate) about: &'static str,
    pub(crate) settings: &'static [Setting],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The dotted path from the top of the file.
    pub(crate) path: &'static str,
    pub(crate) kind: ValueKind,
    pub(crate) default: DefaultValue,
    /// The moment from which a changed value is used; `None` if the file is not reloaded.
    pub(crate) applies: Option<&'static str>,
    /// The meaning, in sentences for the reference page.
    pub(crate) about: &'static str,
}

/// The value of a setting that is not written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DefaultValue {
    Unset,
    /// A value in the syntax of the file.
    Literal(&'static str),
    /// A value found at run time, described for the reference page.
    Computed(&'static str),
}

impl Schema {
    pub(crate) fn settings(&self) -> impl Iterator<Item = &'static Setting> + use<> {
        self.sections.iter().flat_map(|section| section.settings)
    }
}

impl Setting {
    /// Returns the default as a node of the tree, if it is a literal.
    pub(crate) fn default_node(&self, syntax: Syntax) -> Option<Node> {
        match (self.default, syntax) {
            (DefaultValue::Literal(text), Syntax::Yaml) => yaml::parse(text, Position::START).ok(),
            (DefaultValue::Literal(text), Syntax::Toml) => toml_tree::parse_literal(text),
            (DefaultValue::Unset | DefaultValue::Computed(_), _) => None,
        }
    }
}

/// Defines a constant for each setting and the table of all of them, as `SCHEMA`.
macro_rules! settings {
    ($syntax:expr, $invalid:expr; $($header:expr, $purpose:literal {
        $($name:ident = $path:literal, $kind:expr, $default:expr, $applies:expr, $about:literal;)+
    })+) => {
        $($(pub(crate) const $name: $crate::schema::Setting = $crate::schema::Setting {
            path: $path, kind: $kind, default: $default, applies: $applies, about: $about,
        };)+)+

        pub(crate) const SCHEMA: $crate::schema::Schema = $crate::schema::Schema {
            syntax: $syntax,
            invalid: $invalid,
            sections: &[$($crate::schema::Section {
                header: $header, about: $purpose, settings: &[$($name),+],
            }),+],
        };
    };
}

pub(crate) use settings;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{policy, workflow_keys};
    use std::collections::HashSet;

    #[test]
    fn every_setting_is_described_once_and_below_its_section() {
        for schema in [workflow_keys::SCHEMA, policy::SCHEMA] {
            let mut paths = HashSet::new();
            for section in schema.sections {
                for setting in section.settings {
                    assert!(paths.insert(setting.path), "{}", setting.path);
                    assert!(setting.about.ends_with('.'), "{}", setting.path);
                    let first = setting.path.split('.').next();
                    assert!(section.header.is_none_or(|header| first == Some(header)));
                }
            }
        }
    }

    #[test]
    fn every_literal_default_is_valid_by_its_own_rule() {
        for schema in [workflow_keys::SCHEMA, policy::SCHEMA] {
            for setting in schema.settings() {
                if let DefaultValue::Literal(text) = setting.default {
                    let node = setting.default_node(schema.syntax).expect(text);
                    assert!(setting.kind.accepts(&node), "{}: {text}", setting.path);
                }
            }
        }
    }
}
