//! The parts of a package.json that detection uses.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::ecosystems::strings;
use crate::manifest::parse_json;
use crate::profile::{ProfileProblem, has_word};
use crate::project_reader::ProjectReader;

const DEPENDENCIES: [&str; 4] =
    ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"];

const SETTINGS: [&str; 6] = ["jest", "vitest", "mocha", "eslintConfig", "prettier", "ava"];

#[derive(Debug, Default)]
pub(super) struct PackageJson {
    pub(super) name: Option<String>,
    pub(super) manager: Option<String>,
    /// Names and command lines, in file order.
    pub(super) scripts: Vec<(String, String)>,
    pub(super) dependencies: BTreeSet<String>,
    pub(super) workspaces: Option<Vec<String>>,
    pub(super) settings: Vec<&'static str>,
}

impl PackageJson {
    pub(super) fn read(reader: &ProjectReader<'_>, file: &str) -> Result<Self, ProfileProblem> {
        let value = reader.document(file, parse_json)?;
        if !value.is_object() {
            let message = "must hold an object".to_owned();
            return Err(ProfileProblem { file: file.to_owned(), line: Some(1), message });
        }
        Ok(Self::from(&value))
    }

    /// Returns true if there is nothing to install, run or test.
    pub(super) fn is_bare(&self) -> bool {
        self.name.is_none()
            && self.scripts.is_empty()
            && self.dependencies.is_empty()
            && self.workspaces.is_none()
    }

    pub(super) fn script(&self, name: &str) -> Option<&str> {
        let found = self.scripts.iter().find(|(known, _)| known == name)?;
        Some(found.1.as_str())
    }

    /// Returns the first script of a list of names, separated by spaces, in which `lint:*` stands for
    /// any script with that prefix that neither watches nor writes.
    pub(super) fn first_script(&self, names: &str) -> Option<(&str, &str)> {
        let fits = |pattern: &str, name: &str| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix) && !changes_or_watches(name),
            None => name == pattern,
        };
        names.split_whitespace().find_map(|pattern| {
            let found = self.scripts.iter().find(|(name, _)| fits(pattern, name))?;
            Some((found.0.as_str(), found.1.as_str()))
        })
    }

    pub(super) fn needs(&self, name: &str) -> bool {
        self.dependencies.contains(name)
    }
}

/// Parts of script names of which the command writes files, never ends, or checks something else.
const UNUSUAL: &str = "fix write update watch dev debug inspect ui open coverage cov bench benchmark \
    browser e2e smoke docs clean staged format types type";

fn changes_or_watches(name: &str) -> bool {
    name.split([':', '-', '_']).any(|part| has_word(UNUSUAL, part))
}

impl From<&Value> for PackageJson {
    fn from(value: &Value) -> Self {
        let entries = |key: &str| value[key].as_object().into_iter().flatten();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let manager = text(&value["packageManager"])
            .or_else(|| text(&value["devEngines"]["packageManager"]["name"]));
        // A list, or the list under `packages` of an object.
        let workspaces = &value["workspaces"];
        let workspaces = workspaces.as_array().or_else(|| workspaces["packages"].as_array());
        Self {
            name: text(&value["name"]),
            manager: manager.and_then(|m| m.split('@').next().map(str::to_owned)),
            scripts: entries("scripts")
                .filter_map(|(name, script)| Some((name.clone(), text(script)?)))
                .collect(),
            dependencies: DEPENDENCIES
                .iter()
                .flat_map(|key| entries(key).map(|(name, _)| name.clone()))
                .collect(),
            workspaces: workspaces.map(|list| strings(list)),
            settings: SETTINGS.into_iter().filter(|key| !value[*key].is_null()).collect(),
        }
    }
}
