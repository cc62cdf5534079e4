//! The package manager of a package and the workspace it belongs to.

use crate::manifest::{matches, string_list};
use crate::paths;
use crate::profile::{PackageManager, ProfileProblem};
use crate::project_reader::ProjectReader;

use super::package_json::PackageJson;
use super::{DetectedManager, MANIFEST};
use crate::ecosystems::manager_by_lock;

/// Lock files and the workspace file of pnpm, in order of precedence within a directory.
const LOCKS: [(&str, PackageManager); 7] = [
    ("pnpm-lock.yaml", PackageManager::Pnpm),
    ("yarn.lock", PackageManager::Yarn),
    ("bun.lock", PackageManager::Bun),
    ("bun.lockb", PackageManager::Bun),
    ("package-lock.json", PackageManager::Npm),
    ("npm-shrinkwrap.json", PackageManager::Npm),
    (PNPM_WORKSPACE, PackageManager::Pnpm),
];

const PNPM_WORKSPACE: &str = "pnpm-workspace.yaml";

/// Returns the manager of the nearest `packageManager` field or lock file; in one directory the
/// field wins. The default is npm.
pub(super) fn detect(reader: &ProjectReader<'_>, directory: &str) -> DetectedManager {
    let managers =
        [PackageManager::Npm, PackageManager::Pnpm, PackageManager::Yarn, PackageManager::Bun];
    let nearest = paths::upwards(directory).find_map(|above| {
        let file = paths::join(above, MANIFEST);
        let field = PackageJson::read(reader, &file).ok().and_then(|package| package.manager);
        match managers.into_iter().find(|manager| field.as_deref() == Some(manager.as_str())) {
            Some(kind) => Some(DetectedManager { kind, file }),
            None => manager_by_lock(reader, above, &LOCKS),
        }
    });
    nearest.unwrap_or_else(|| DetectedManager {
        kind: PackageManager::Npm,
        file: paths::join(directory, MANIFEST),
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
