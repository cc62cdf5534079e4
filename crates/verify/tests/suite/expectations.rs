//! What the reference systems promise, row by row, and where ours differs on purpose.
//!
//! Differences: a tool is started as it is installed or through a starter that downloads
//! nothing (`npx --no-install --offline`, not `npx`); Rust is linted and tested by package
//! and not by file; `ruff.toml` alone names nothing to install; several ecosystems in one
//! directory are several projects.

use std::path::Path;

use carrel_verify::ProfileField::{Format, Install, Lint, Test, Typecheck};
use carrel_verify::{PackageManager, Profile, detect};

use crate::fixture::lay_out;

fn profile(files: &[(&str, &str)]) -> Profile {
    let text: String = files
        .iter()
        .map(|(path, text)| format!("-- {path} --\n{text}\n"))
        .collect::<Vec<_>>()
        .concat();
    let workspace = lay_out(&text);
    detect(&workspace.root, Path::new(".")).profiles.remove(0)
}

/// One row: files, and the words of lint, format, test and install; `-` for none.
type Row<'a> = (&'a [(&'a str, &'a str)], [&'a str; 4]);

const NPX: &str = "npx --no-install --offline";

#[test]
fn the_detectors_agree_with_the_table() {
    let package = ("package.json", "{}");
    let rows: [Row<'_>; 17] = [
        (
            &[package, ("biome.json", "{}")],
            ["$NPX biome check .", "$NPX biome format --write .", "-", "npm install"],
        ),
        (
            &[package, ("biome.json", "{}"), ("yarn.lock", "")],
            ["yarn run biome check .", "yarn run biome format --write .", "-", "yarn install"],
        ),
        (
            &[package, ("biome.json", "{}"), ("bun.lock", "")],
            [
                "bunx --no-install biome check .",
                "bunx --no-install biome format --write .",
                "bun test",
                "bun install",
            ],
        ),
        (
            &[package, ("biome.jsonc", "{ // comment\n}")],
            ["$NPX biome check .", "$NPX biome format --write .", "-", "npm install"],
        ),
        (
            &[package, ("biome.jsonc", "{ \"$schema\": \"https://x/y\", }")],
            ["$NPX biome check .", "$NPX biome format --write .", "-", "npm install"],
        ),
        (&[package, ("eslint.config.js", "")], ["$NPX eslint .", "-", "-", "npm install"]),
        (&[package, ("oxlintrc.json", "{}")], ["$NPX oxlint .", "-", "-", "npm install"]),
        (
            &[("package.json", r#"{"scripts": {"test": "jest"}}"#)],
            ["-", "-", "$NPX jest", "npm install"],
        ),
        (
            &[("package.json", r#"{"scripts": {"test": "vitest"}}"#)],
            ["-", "-", "$NPX vitest run", "npm install"],
        ),
        (
            &[("package.json", r#"{"scripts": {"start": "node ."}}"#)],
            ["-", "-", "-", "npm install"],
        ),
        (
            &[("package.json", r#"{"packageManager": "pnpm@9.1.0"}"#)],
            ["-", "-", "-", "pnpm install"],
        ),
        (&[("ruff.toml", "")], ["ruff check .", "ruff format .", "pytest", "-"]),
        (
            &[("pyproject.toml", "[tool.ruff]"), ("uv.lock", "")],
            ["ruff check .", "ruff format .", "pytest", "uv sync"],
        ),
        (
            &[("pyproject.toml", "[tool.black]"), (".flake8", ""), ("poetry.lock", "")],
            ["poetry run flake8 .", "poetry run black .", "poetry run pytest", "poetry install"],
        ),
        (
            &[("go.mod", "module x")],
            ["go vet ./...", "gofmt -w .", "go test ./...", "go mod download"],
        ),
        (
            &[("go.mod", "module x"), (".golangci.yml", "")],
            ["golangci-lint run ./...", "gofmt -w .", "go test ./...", "go mod download"],
        ),
        (
            &[("Cargo.toml", "[package]\nname = \"x\"")],
            ["cargo clippy --all-targets -p x", "cargo fmt", "cargo test -p x", "cargo fetch"],
        ),
    ];
    for (files, expected) in rows {
        let profile = profile(files);
        let fields = [Lint, Format, Test, Install];
        let words =
            fields.map(|field| profile.command(field).map_or("-".to_owned(), |c| c.argv.join(" ")));
        assert_eq!(words, expected.map(|words| words.replace("$NPX", NPX)), "{files:?}");
    }
}

#[test]
fn a_directory_without_markers_has_no_project() {
    let workspace = lay_out("-- README.md --\n");
    let found = detect(&workspace.root, Path::new("."));
    assert_eq!((found.directory, found.profiles), (None, vec![]));
}

#[test]
fn the_package_manager_is_named_by_its_field_and_then_by_lock_files() {
    let manager = |files: &[(&str, &str)]| profile(files).package_manager.unwrap();
    let plain = ("package.json", "{}");
    let cases: [(&[(&str, &str)], PackageManager); 11] = [
        (&[plain], PackageManager::Npm),
        (&[plain, ("package-lock.json", "")], PackageManager::Npm),
        (&[plain, ("npm-shrinkwrap.json", "")], PackageManager::Npm),
        (&[plain, ("pnpm-lock.yaml", "")], PackageManager::Pnpm),
        (&[plain, ("yarn.lock", "")], PackageManager::Yarn),
        (&[plain, ("bun.lockb", "")], PackageManager::Bun),
        (&[plain, ("bun.lock", "")], PackageManager::Bun),
        (&[plain, ("pnpm-lock.yaml", ""), ("package-lock.json", "")], PackageManager::Pnpm),
        (
            &[plain, ("yarn.lock", ""), ("bun.lockb", ""), ("package-lock.json", "")],
            PackageManager::Yarn,
        ),
        (
            &[("package.json", r#"{"packageManager": "npm@10"}"#), ("yarn.lock", "")],
            PackageManager::Npm,
        ),
        (&[("package.json", "broken"), ("yarn.lock", "")], PackageManager::Yarn),
    ];
    for (files, expected) in cases {
        assert_eq!(manager(files), expected, "{files:?}");
    }
}

#[test]
fn scripts_that_are_null_or_broken_leave_the_rest_of_the_profile() {
    let null = profile(&[("package.json", r#"{"name": "a", "scripts": null}"#), ("yarn.lock", "")]);
    assert_eq!((null.commands.get(&Test), null.scripts, null.problems), (None, vec![], vec![]));
    let broken = profile(&[("package.json", "{ broken"), ("eslint.config.js", "")]);
    assert!(broken.command(Lint).is_some());
    assert_eq!(broken.problems.len(), 1);
}

#[test]
fn yarn_runs_a_script_without_the_word_run() {
    let yarn = profile(&[("package.json", r#"{"scripts": {"build": "tsc"}}"#), ("yarn.lock", "")]);
    assert_eq!(yarn.scripts[0].argv, ["yarn", "build"]);
}

#[test]
fn a_tool_that_nothing_names_is_only_assumed() {
    let bare = profile(&[("pyproject.toml", "[project]\nname = \"x\"\n")]);
    assert!(
        bare.commands[&Lint].assumed
            && bare.commands[&Typecheck].assumed
            && bare.commands[&Test].assumed
    );
    let named =
        profile(&[("pyproject.toml", "[tool.ruff]\n[tool.mypy]\n[tool.pytest.ini_options]\n")]);
    assert!(
        !named.commands[&Lint].assumed
            && !named.commands[&Typecheck].assumed
            && !named.commands[&Test].assumed
    );
}

#[test]
fn an_environment_is_used_without_being_activated() {
    let python = profile(&[
        ("pyproject.toml", "[project]\nname = \"x\"\n"),
        (".venv/bin/python", ""),
        (".venv/bin/ruff", ""),
        (".venv/bin/pip", ""),
    ]);
    assert_eq!(python.commands[&Lint].argv, [".venv/bin/ruff", "check", "."]);
    assert_eq!(python.commands[&Install].argv, [".venv/bin/pip", "install", "-e", "."]);
    assert_eq!(python.commands[&Test].argv, ["pytest"]);
}
