//! The package manager of a Python project and its virtual environment.

use crate::manifest::{Toml, matches};
use crate::paths;
use crate::profile::PackageManager;
use crate::project_reader::ProjectReader;

use super::{DetectedManager, ENVIRONMENTS, PYPROJECT};
use crate::ecosystems::manager_by_lock;

const LOCKS: [(&str, PackageManager); 5] = [
    ("uv.lock", PackageManager::Uv),
    ("poetry.lock", PackageManager::Poetry),
    ("pdm.lock", PackageManager::Pdm),
    ("Pipfile.lock", PackageManager::Pipenv),
    ("Pipfile", PackageManager::Pipenv),
];

/// Tables of pyproject.toml that belong to one manager.
const TABLES: [(&str, PackageManager); 3] = [
    ("tool.uv", PackageManager::Uv),
    ("tool.poetry", PackageManager::Poetry),
    ("tool.pdm", PackageManager::Pdm),
];

pub(super) fn detect(
    reader: &ProjectReader<'_>,
    directory: &str,
    settings: Option<&Toml<'_>>,
    marker: &str,
) -> DetectedManager {
    let in_settings = || {
        let (_, kind) = TABLES.iter().find(|(table, _)| settings.is_some_and(|s| s.has(table)))?;
        Some(DetectedManager { kind: *kind, file: paths::join(directory, PYPROJECT) })
    };
    manager_by_lock(reader, directory, &LOCKS)
        .or_else(in_settings)
        .or_else(|| manager_by_lock(reader, &owner(reader, directory)?, &LOCKS))
        .unwrap_or_else(|| DetectedManager { kind: PackageManager::Pip, file: marker.to_owned() })
}

/// Returns the directory of the uv workspace that lists a package as its member.
pub(super) fn owner(reader: &ProjectReader<'_>, directory: &str) -> Option<String> {
    paths::upwards(directory).skip(1).find_map(|above| {
        let file = paths::join(above, PYPROJECT);
        let text = reader.text(&file)?;
        let toml = Toml::parse(&file, &text).ok()?;
        let below = paths::relative(above, directory);
        let named = |key: &str| toml.strings(key).iter().any(|pattern| matches(pattern, &below));
        let member = named("tool.uv.workspace.members") && !named("tool.uv.workspace.exclude");
        member.then(|| above.to_owned())
    })
}

pub(super) fn environment(reader: &ProjectReader<'_>, directory: &str) -> Option<String> {
    paths::upwards(directory).find_map(|above| {
        let candidates = ENVIRONMENTS.iter().map(|name| paths::join(above, name));
        candidates.into_iter().find(|path| reader.has_program(&paths::join(path, "bin/python")))
    })
}
