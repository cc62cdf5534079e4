//! Projects of no known language in the workspace's own root: Bazel, make, just and Task.
//!
//! They are looked for only there and only if nothing else was found: a Makefile below is usually a
//! part of another project.

use crate::manifest::keys;
use crate::profile::{
    Ecosystem, PackageManager, Profile, ProfileField, ProjectCommand, args, words,
};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

use super::makefile;

const BAZEL: &str = "MODULE.bazel WORKSPACE.bazel WORKSPACE";

pub(super) const JUST: &str = "justfile Justfile .justfile";

pub(super) const TASK: &str =
    "Taskfile.yml taskfile.yml Taskfile.yaml taskfile.yaml Taskfile.dist.yml Taskfile.dist.yaml";

/// Names of recipes and tasks that are commands of a profile, in order of precedence.
const RECIPES: [(ProfileField, &str); 5] = [
    (ProfileField::Test, "test tests check"),
    (ProfileField::Lint, "lint"),
    (ProfileField::Typecheck, "typecheck type-check"),
    (ProfileField::Format, "format fmt"),
    (ProfileField::FormatCheck, "format-check fmt-check check-format check-fmt"),
];

pub(super) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    bazel(reader, directory)
        .or_else(|| make(reader, directory))
        .or_else(|| runner(reader, directory))
}

fn bazel(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let marker = reader.first(directory, BAZEL)?;
    let mut profile = Profile::new(Ecosystem::Custom, directory, &marker);
    profile.set_manager(PackageManager::Bazel, &marker);
    profile.set_install(directory, "bazel fetch //...", &marker);
    let mut set = |field, argv| {
        let command = ProjectCommand::new(ProjectTool::Bazel, directory, words(argv));
        profile.set(field, command, &marker);
    };
    set(ProfileField::Test, "bazel test //...");
    set(ProfileField::Typecheck, "bazel build //...");
    Some(profile)
}

fn make(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let build = makefile::Build::find(reader, directory).filter(makefile::Build::has_commands)?;
    let mut profile = Profile::new(Ecosystem::Custom, directory, &build.file);
    build.describe(&mut profile);
    Some(profile)
}

/// Detects a justfile or Taskfile with a conventional recipe.
fn runner(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let (tool, manager, marker, recipes) = recipes(reader, directory)?;
    let mut profile = Profile::new(Ecosystem::Custom, directory, &marker);
    profile.set_manager(manager, &marker);
    let has = |name: &&str| recipes.iter().any(|recipe| recipe == name);
    for (field, names) in RECIPES {
        if let Some(name) = names.split(' ').find(has) {
            let argv = args(&[manager.as_str(), name]);
            profile.set(field, ProjectCommand::new(tool, directory, argv), &marker);
        }
    }
    (!profile.commands.is_empty()).then_some(profile)
}

type Recipes = (ProjectTool, PackageManager, String, Vec<String>);

fn recipes(reader: &ProjectReader<'_>, directory: &str) -> Option<Recipes> {
    if let Some(file) = reader.first(directory, JUST) {
        let names = just_recipes(&reader.text(&file)?);
        return Some((ProjectTool::Just, PackageManager::Just, file, names));
    }
    let file = reader.first(directory, TASK)?;
    let names = keys(&file, &reader.text(&file)?, "tasks").ok()?;
    Some((ProjectTool::Task, PackageManager::Task, file, names))
}

/// Adds the recipes of a justfile and the tasks of a Taskfile as scripts; a script of the same name
/// takes precedence.
pub(super) fn add_recipes(reader: &ProjectReader<'_>, directory: &str, profiles: &mut [Profile]) {
    let Some((_, manager, file, names)) = recipes(reader, directory) else { return };
    for name in names {
        for profile in profiles.iter_mut() {
            if profile.scripts.iter().all(|known| known.name != name) {
                profile.add_script(&name, "", &file, args(&[manager.as_str(), &name]));
            }
        }
    }
}

/// Returns the names of recipes that need no arguments and are not private.
fn just_recipes(text: &str) -> Vec<String> {
    let name_of = |line: &str| {
        let (head, rest) = line.split_once(':')?;
        let head = head.trim_start_matches('@');
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        // `name := value` is an assignment.
        let is_recipe = !rest.starts_with('=') && !head.is_empty() && head.chars().all(plain);
        (is_recipe && !head.starts_with('_')).then(|| head.to_owned())
    };
    text.lines().filter_map(name_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_listed_without_assignments_and_parameters() {
        let text = "set shell := ['bash']\nv := '1'\n# x: y\ntest: build\n  cargo test\n@lint:\n  a: b\n_private:\nbuild target:\n";
        assert_eq!(just_recipes(text), ["test", "lint"]);
    }
}
