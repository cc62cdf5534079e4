//! Which project a file belongs to.

use std::path::Path;

use carrel_verify::{
    Ecosystem, EditLimits, Granularity, ProfileField, detect, detect_all, detect_for_file,
};

use crate::fixture::{lay_out, load};

fn nearest(fixture: &str, from: &str) -> Vec<(Ecosystem, String)> {
    let workspace = load(fixture);
    let found = detect(&workspace.root, Path::new(from));
    found.profiles.into_iter().map(|profile| (profile.ecosystem, profile.root)).collect()
}

#[test]
fn a_file_belongs_to_the_nearest_project_upwards() {
    let cases = [
        ("cargo_workspace", "crates/core/src/lib.rs", "crates/core"),
        ("cargo_workspace", "crates/core/src/not/yet/there.rs", "crates/core"),
        ("cargo_workspace", "README.md", "."),
        ("pnpm_monorepo", "packages/ui/src/esm/index.js", "packages/ui"),
        ("pnpm_monorepo", "packages", "."),
        ("java_kotlin", "maven-app/a/src/A.java", "maven-app/a"),
    ];
    for (fixture, from, expected) in cases {
        let found = nearest(fixture, from);
        assert!(
            found.iter().all(|(_, root)| root == expected) && !found.is_empty(),
            "{from}: {found:?}"
        );
    }
}

#[test]
fn a_directory_with_several_markers_holds_several_projects() {
    let kinds: Vec<Ecosystem> =
        nearest("polyglot", "src/lib.rs").into_iter().map(|(e, _)| e).collect();
    assert_eq!(kinds, [Ecosystem::Rust, Ecosystem::Node, Ecosystem::Python]);
}

#[test]
fn a_path_that_leaves_the_workspace_belongs_to_nothing() {
    for from in ["..", "../other", "/etc/passwd", "a/../../b"] {
        assert_eq!(nearest("cargo_workspace", from), [], "{from}");
    }
}

#[test]
fn nothing_above_the_workspace_is_seen() {
    let outer = lay_out("-- Cargo.toml --\n[package]\nname = \"outer\"\n-- inner/README.md --\n");
    let inner = outer.root.open_root(Path::new("inner")).unwrap();
    assert_eq!(detect(&inner, Path::new("README.md")).profiles, []);
    assert_eq!(detect_all(&inner).profiles, []);
}

#[test]
fn a_file_is_given_to_the_project_that_knows_its_kind() {
    let workspace = load("polyglot");
    let owner = |file: &str| {
        detect_for_file(&workspace.root, Path::new(file))
            .profile
            .map(|profile| (profile.ecosystem, profile.root))
    };
    let at = |ecosystem, root: &str| Some((ecosystem, root.to_owned()));
    assert_eq!(owner("web/scripts/build.py"), at(Ecosystem::Python, "."));
    assert_eq!(owner("web/src/a.ts"), at(Ecosystem::Node, "web"));
    assert_eq!(owner("web/native.rs"), at(Ecosystem::Rust, "."));
    assert_eq!(owner("README.md"), None);
    let prettier = load("pnpm_monorepo");
    let markdown = detect_for_file(&prettier.root, Path::new("packages/api/README.md"));
    assert_eq!(markdown.profile.unwrap().root, "packages/api");
}

#[test]
fn the_nearest_project_limits_edits_also_of_files_that_it_does_not_know() {
    let strict = "\n[edit]\nlimits = \"strict\"\n";
    let workspace = lay_out(&format!(
        "-- Cargo.toml --\n[package]\nname = \"outer\"\n-- src/a.rs --\n-- notes.txt --\n\
         -- web/package.json --\n{{ \"name\": \"web\" }}\n-- web/carrel.toml --{strict}\
         -- web/notes.txt --\n-- web/native.rs --\n-- web/a.ts --\n"
    ));
    let limits = |file: &str| detect_for_file(&workspace.root, Path::new(file)).edit_limits;
    assert_eq!(limits("notes.txt"), EditLimits::Standard);
    assert_eq!(limits("web/a.ts"), EditLimits::Strict);
    assert_eq!(limits("web/notes.txt"), EditLimits::Strict, "no project knows it");
    assert_eq!(limits("web/native.rs"), EditLimits::Standard, "its own project is above");
}

#[test]
fn directories_of_dependencies_and_builds_hold_no_projects() {
    let workspace = load("node_jest_installed");
    assert_eq!(detect_all(&workspace.root).profiles.len(), 1);
    let workspace = load("cargo_workspace");
    assert!(detect_all(&workspace.root).profiles.iter().all(|p| !p.root.starts_with("target")));
}

#[test]
fn a_named_file_is_found_even_in_an_ignored_directory() {
    let found = nearest("nested_only", "generated/index.js");
    assert_eq!(found, [(Ecosystem::Node, "generated".to_owned())]);
}

#[test]
fn commands_know_the_smallest_thing_they_can_be_pointed_at() {
    let workspace = load("polyglot");
    let rust = &detect(&workspace.root, Path::new(".")).profiles[0];
    let scope = |field: ProfileField| rust.commands[&field].scope;
    assert_eq!(scope(ProfileField::Lint), Granularity::Package);
    assert_eq!(scope(ProfileField::Format), Granularity::Files);
    assert_eq!(scope(ProfileField::Install), Granularity::Project);
}

#[test]
fn a_deep_tree_is_cut_and_says_so() {
    let text = "-- a/b/c/d/e/f/g/package.json --\n{\"name\": \"deep\"}\n-- a/package.json --\n{\"name\": \"a\"}\n";
    let survey = detect_all(&lay_out(text).root);
    assert_eq!((survey.profiles.len(), survey.truncated), (1, true));
}
