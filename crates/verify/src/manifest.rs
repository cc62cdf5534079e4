//! Readers for the formats of project files: JSON with comments, TOML with line numbers, YAML
//! lists, and the wildcards of workspace members.

mod glob;
mod json;
mod toml;
mod yaml;

pub(crate) use glob::matches;
pub(crate) use json::{parse_json, parse_jsonc};
pub(crate) use toml::{Toml, Value as TomlValue, texts};
pub(crate) use yaml::{keys, string_list};
