//! The package manager of a package and the workspace it belongs to.

use crate::manifest::{matches, string_list};
use crate::paths;
use crate::profile::{PackageManager, ProfileProblem};
use crate::project_reader::ProjectReader;

use super::MANIFEST;
use super::package_json::PackageJson;

/// Lock files, in order of precedence within a directory.
const LOCKS: [(&str, PackageManager); 6] = [
    ("pnpm-lock.yaml", PackageManager::Pnpm),
    ("yarn.lock", PackageManager::Yarn),
    ("bun.lock", PackageManager::Bun),
    ("bun.lockb", PackageManager::Bun),
    ("package-lock.json", PackageManager::Npm),
    ("npm-shrinkwrap.json", PackageManager::Npm),
];

const PNPM_WORKSPACE: &str = "pnpm-workspace.yaml";

/// A package manager and the file that is the evidence for it.
#[derive(Debug)]
pub(super) struct DetectedManager {
    pub(super) kind: PackageManager,
    pub(super) file: String,
}

/// Returns the manager of the nearest `packageManager` field or lock file; in one directory the
/// field wins. The default is npm.
pub(super) fn detect(reader: &ProjectReader<'_>, directory: &str) -> DetectedManager {
    let nearest = paths::upwards(directory).find_map(|above| {
        let manifest = paths::join(above, MANIFEST);
        let field = PackageJson::read(reader, &manifest).ok().and_then(|package| package.manager);
        match field.as_deref().and_then(named) {
            Some(kind) => Some(DetectedManager { kind, file: manifest }),
            None => by_lock(reader, above),
        }
    });
    nearest.unwrap_or_else(|| DetectedManager {
        kind: PackageManager::Npm,
        file: paths::join(directory, MANIFEST),
    })
}

fn named(name: &str) -> Option<PackageManager> {
    match name {
        "npm" => Some(PackageManager::Npm),
        "pnpm" => Some(PackageManager::Pnpm),
        "yarn" => Some(PackageManager::Yarn),
        "bun" => Some(PackageManager::Bun),
        _ => None,
    }
}

fn by_lock(reader: &ProjectReader<'_>, directory: &str) -> Option<DetectedManager> {
    let workspace = (PNPM_WORKSPACE, PackageManager::Pnpm);
    LOCKS.iter().chain([&workspace]).find_map(|(name, kind)| {
        let file = paths::join(directory, name);
        reader.has(&file).then_some(DetectedManager { kind: *kind, file })
    })
}

/// Returns the workspace members that a directory lists; `None` if it lists none.
pub(super) fn members(
    reader: &ProjectReader<'_>,
    directory: &str,
) -> Result<Option<Vec<String>>, ProfileProblem> {
    let file = paths::join(directory, PNPM_WORKSPACE);
    if let Some(text) = reader.read(&file)? {
        let members = string_list(&file, &text, "packages")?;
        // pnpm 10 also keeps settings in this file, without members.
        return Ok((!members.is_empty()).then_some(members));
    }
    let manifest = paths::join(directory, MANIFEST);
    Ok(PackageJson::read(reader, &manifest).ok().and_then(|package| package.workspaces))
}

/// Returns the directory of the workspace that lists a package as its member.
pub(super) fn owner(reader: &ProjectReader<'_>, directory: &str) -> Option<String> {
    paths::upwards(directory).skip(1).find_map(|above| {
        let members = members(reader, above).ok().flatten()?;
        let below = paths::relative(above, directory);
        let (left_out, named): (Vec<_>, Vec<_>) =
            members.iter().partition(|member| member.starts_with('!'));
        let is_named = named.iter().any(|pattern| matches(pattern, &below));
        let is_left_out = left_out.iter().any(|pattern| matches(&pattern[1..], &below));
        (is_named && !is_left_out).then(|| above.to_owned())
    })
}
