//! When a profile is kept, and when it is not.

use std::path::Path;
use std::sync::Arc;

use carrel_verify::{CacheStatus, ProfileCache, ProfileField, ProjectTool};

use crate::fixture::{load, remove, write};

fn changed(file: &str) -> CacheStatus {
    CacheStatus::Changed { file: file.to_owned() }
}

#[test]
fn a_second_detection_is_a_cache_hit() {
    let workspace = load("node_biome");
    let cache = ProfileCache::new();
    let ask = |from: &str| cache.detect(&workspace.root, Path::new(from)).unwrap();
    let (first, freshness) = ask(".");
    assert_eq!(freshness, CacheStatus::Miss);
    let (second, freshness) = ask("package.json");
    assert_eq!(freshness, CacheStatus::Hit);
    assert!(Arc::ptr_eq(&first, &second));
}

#[test]
fn a_marker_that_changes_appears_or_vanishes_is_noticed_and_named() {
    let workspace = load("node_biome");
    let directory = workspace.directory.path();
    let cache = ProfileCache::new();
    let ask = || cache.detect(&workspace.root, Path::new("src/a.ts")).unwrap();
    ask();
    write(directory, "package.json", "{ \"name\": \"web\", \"scripts\": { \"test\": \"jest\" } }");
    let (detection, freshness) = ask();
    assert_eq!(freshness, changed("package.json"));
    assert_eq!(detection.profiles[0].commands[&ProfileField::Test].tool, ProjectTool::Jest);
    assert_eq!(ask().1, CacheStatus::Hit);
    write(directory, "carrel.toml", "[profile]\nformat_on_edit = true\n");
    let (detection, freshness) = ask();
    assert_eq!((detection.profiles[0].format_on_edit, freshness), (true, changed("carrel.toml")));
    remove(directory, "biome.jsonc");
    let (detection, freshness) = ask();
    assert_eq!(
        (detection.profiles[0].command(ProfileField::Lint), freshness),
        (None, changed("biome.jsonc"))
    );
    write(directory, "node_modules/.bin/jest", "");
    assert_eq!(ask().1, changed("node_modules/.bin/jest"));
}

#[test]
fn a_project_that_appears_nearer_is_noticed() {
    let workspace = load("polyglot");
    let cache = ProfileCache::new();
    let ask = || cache.detect(&workspace.root, Path::new("web/scripts")).unwrap();
    assert_eq!(ask().0.directory.as_deref(), Some("web"));
    write(workspace.directory.path(), "web/scripts/Cargo.toml", "[package]\nname = \"x\"\n");
    let (detection, freshness) = ask();
    assert_eq!(freshness, changed("web/scripts/Cargo.toml"));
    assert_eq!(detection.directory.as_deref(), Some("web/scripts"));
}

#[test]
fn a_new_project_anywhere_is_noticed_by_the_survey() {
    let workspace = load("nested_only");
    let cache = ProfileCache::new();
    let ask = || cache.detect_all(&workspace.root).unwrap();
    let before = ask().0.profiles.len();
    assert_eq!(ask().1, CacheStatus::Hit);
    write(workspace.directory.path(), "backend/web/package.json", "{ \"name\": \"web\" }");
    let (survey, freshness) = ask();
    assert_eq!((survey.profiles.len(), freshness), (before + 1, changed("backend")));
}

#[test]
fn two_workspaces_never_share_an_entry() {
    let (one, two) = (load("node_biome"), load("cargo_workspace"));
    let cache = ProfileCache::new();
    let here = Path::new(".");
    assert_eq!(cache.detect(&one.root, here).unwrap().1, CacheStatus::Miss);
    assert_eq!(cache.detect(&two.root, here).unwrap().1, CacheStatus::Miss);
    assert_eq!(cache.detect(&one.root, here).unwrap().1, CacheStatus::Hit);
}

#[test]
fn the_owner_of_a_file_is_kept_for_its_kind_and_directory() {
    let workspace = load("polyglot");
    let cache = ProfileCache::new();
    let ask = |file: &str| {
        let (owner, freshness) = cache.detect_for_file(&workspace.root, Path::new(file)).unwrap();
        (owner.profile.as_ref().map(|profile| profile.root.clone()), freshness)
    };
    assert_eq!(ask("web/a.ts"), (Some("web".to_owned()), CacheStatus::Miss));
    assert_eq!(ask("web/b.ts"), (Some("web".to_owned()), CacheStatus::Hit));
    assert_eq!(ask("web/b.py"), (Some(".".to_owned()), CacheStatus::Miss));
    write(workspace.directory.path(), "web/ruff.toml", "");
    assert_eq!(ask("web/b.py"), (Some("web".to_owned()), changed("web/ruff.toml")));
    assert_eq!(ask("../outside.py"), (None, CacheStatus::Miss));
}
