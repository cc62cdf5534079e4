//! Command lines for parts of projects.

use std::path::Path;

use carrel_verify::plan::{
    CACHE, CommandScope, Invocation, PlanError, ReportFormat, ScriptError, Target, TreeAccess,
    plan_check, plan_script, plan_tests,
};
use carrel_verify::{Profile, ProfileField, ProjectTool, detect, detect_for_file};
use pretty_assertions::assert_eq;

use crate::fixture::{lay_out, load};

fn profiles(fixture: &str, from: &str) -> Vec<Profile> {
    let workspace = load(fixture);
    detect(&workspace.root, Path::new(from)).profiles
}

fn line(invocation: &Invocation) -> String {
    invocation.argv.join(" ")
}

fn test_line(profile: &Profile, scope: CommandScope<'_>, name: Option<&str>) -> String {
    let target = Target { scope, name, rerun: &[] };
    let plan = plan_tests(profile, &target).unwrap();
    assert_eq!(plan.len(), 1);
    line(&plan[0])
}

#[test]
fn rust_tests_are_chosen_by_target_module_package_and_name() {
    let text = "-- Cargo.toml --\n[workspace]\nmembers = [\"a\"]\n-- a/Cargo.toml --\n[package]\nname = \"a\"\n-- a/src/lib.rs --\n";
    let workspace = lay_out(text);
    let at = |from: &str| detect(&workspace.root, Path::new(from)).profiles[0].clone();
    let (top, member) = (at("."), at("a"));
    let json = "--no-fail-fast --message-format=json";
    let cases = [
        (&top, CommandScope::Project, None, format!("cargo test --workspace {json}")),
        (&top, CommandScope::Package("a"), None, format!("cargo test -p a {json}")),
        (&member, CommandScope::Project, None, format!("cargo test -p a {json}")),
        (
            &member,
            CommandScope::File("a/tests/it.rs"),
            None,
            format!("cargo test -p a --test it {json}"),
        ),
        (
            &member,
            CommandScope::File("a/tests/suite/x.rs"),
            None,
            format!("cargo test -p a --test suite {json}"),
        ),
        (
            &member,
            CommandScope::File("a/src/lib.rs"),
            None,
            format!("cargo test -p a --lib {json}"),
        ),
        (
            &member,
            CommandScope::File("a/src/b/c.rs"),
            None,
            format!("cargo test -p a --lib --bins {json} -- b::c::"),
        ),
        (
            &member,
            CommandScope::File("a/src/b/mod.rs"),
            None,
            format!("cargo test -p a --lib --bins {json} -- b::"),
        ),
        (
            &member,
            CommandScope::File("a/src/bin/tool.rs"),
            None,
            format!("cargo test -p a --bin tool {json}"),
        ),
        (&member, CommandScope::Project, Some("adds"), format!("cargo test -p a {json} -- adds")),
        (
            &member,
            CommandScope::Directory("a/tests"),
            Some("adds"),
            format!("cargo test -p a --test * {json} -- adds"),
        ),
    ];
    for (profile, place, name, expected) in cases {
        assert_eq!(test_line(profile, place, name), expected, "{place:?} {name:?}");
    }
}

#[test]
fn words_behind_two_dashes_stay_there() {
    let rust = &profiles("carrel_toml", ".")[0];
    assert_eq!(
        test_line(rust, CommandScope::Project, Some("adds")),
        "cargo test --features all --no-fail-fast --message-format=json -- --test-threads=1 adds"
    );
}

#[test]
fn nextest_takes_the_name_itself() {
    let core = &profiles("cargo_workspace", "crates/core")[0];
    assert_eq!(
        test_line(core, CommandScope::File("crates/core/src/lib.rs"), Some("later")),
        "cargo nextest run -p acme-core --lib later --no-fail-fast --message-format libtest-json-plus"
    );
}

#[test]
fn javascript_tests_are_chosen_by_file_directory_and_name() {
    let node = &profiles("node_jest_installed", ".")[0];
    let report = "--ci --json --outputFile={artifacts}/jest.json --testLocationInResults";
    assert_eq!(
        test_line(node, CommandScope::Project, None),
        format!("node_modules/.bin/jest --coverage {report}")
    );
    assert_eq!(
        test_line(node, CommandScope::File("src/a.test.ts"), Some("adds (1+2)")),
        format!(
            "node_modules/.bin/jest --coverage -t adds \\(1\\+2\\) --runTestsByPath src/a.test.ts {report}"
        )
    );
    assert_eq!(
        test_line(node, CommandScope::Directory("src/a.b"), None),
        format!("node_modules/.bin/jest --coverage src\\/a\\.b/ {report}")
    );
    let plain = &profiles("npm_node_test", ".")[0];
    assert_eq!(
        test_line(plain, CommandScope::File("a.test.js"), Some("x")),
        "node --test --test-reporter=spec --test-reporter-destination=stdout --test-reporter=tap \
         --test-reporter-destination={artifacts}/node.tap --test-name-pattern=x a.test.js"
    );
}

#[test]
fn a_script_of_several_commands_is_given_options_for_the_last_one() {
    let api = &profiles("pnpm_monorepo", "packages/api")[0];
    assert_eq!(
        test_line(api, CommandScope::Project, None),
        "pnpm run test --reporter json --reporter-option output={artifacts}/mocha.json"
    );
    let text = "-- package.json --\n{\"name\": \"a\", \"scripts\": {\"test\": \"tsc && jest\", \"lint\": \"tsc && eslint .\"}}\n";
    let workspace = lay_out(text);
    let npm = &detect(&workspace.root, Path::new(".")).profiles[0];
    assert!(test_line(npm, CommandScope::Project, None).starts_with("npm run test -- --ci --json"));
    let lint = plan_check(npm, ProfileField::Lint, CommandScope::Project).unwrap();
    assert_eq!(line(&lint), "npm run lint -- --format json --output-file {artifacts}/eslint.json");
}

#[test]
fn nothing_waits_for_changes() {
    for (script, expected) in [
        ("vitest", "npx --no-install --offline vitest run"),
        ("vitest --watch", "npx --no-install --offline vitest run"),
        ("jest --watchAll", "npx --no-install --offline jest"),
        ("tsc && jest --watch", "npx --no-install --offline jest"),
        ("vitest dev --ui", "npx --no-install --offline vitest run"),
    ] {
        let text = format!(
            "-- package.json --\n{{\"name\": \"a\", \"scripts\": {{\"test\": \"{script}\"}}}}\n"
        );
        let workspace = lay_out(&text);
        let profile = detect(&workspace.root, Path::new(".")).profiles[0].clone();
        let command = profile.commands[&ProfileField::Test].clone();
        assert_eq!(command.argv.join(" "), expected, "{script}");
        assert!(command.environment.contains(&("CI".to_owned(), "1".to_owned())));
    }
}

#[test]
fn python_tests_are_chosen_by_path_node_and_keyword() {
    let python = &profiles("python_uv_workspace", "libs/core")[0];
    let report = "--color=no --rootdir=. -o junit_family=xunit1 --junitxml={artifacts}/pytest.xml";
    let cases = [
        (CommandScope::Project, None, String::new()),
        (
            CommandScope::File("libs/core/tests/test_core.py"),
            None,
            " tests/test_core.py".to_owned(),
        ),
        (CommandScope::Project, Some("core"), " -k core".to_owned()),
        (
            CommandScope::Project,
            Some("tests/test_core.py::test_core"),
            " tests/test_core.py::test_core".to_owned(),
        ),
        (
            CommandScope::File("libs/core/tests/test_core.py"),
            Some("test_core[a b]"),
            " tests/test_core.py::test_core[a b]".to_owned(),
        ),
    ];
    for (place, name, words) in cases {
        let expected = format!("../../.venv/bin/pytest{words} {report}");
        assert_eq!(test_line(python, place, name), expected, "{place:?} {name:?}");
    }
    let old = &profiles("python_unittest", ".")[0];
    assert_eq!(
        test_line(old, CommandScope::Project, Some("old")),
        "python3 -m unittest discover -v -s tests -k old"
    );
    assert_eq!(
        test_line(old, CommandScope::File("tests/test_old.py"), None),
        "python3 -m unittest -v tests/test_old.py"
    );
    assert_eq!(
        test_line(old, CommandScope::Directory("tests"), None),
        "python3 -m unittest discover -v -s tests"
    );
}

#[test]
fn go_is_always_pointed_at_packages() {
    let api = &profiles("go_workspace", "api")[0];
    assert_eq!(
        test_line(api, CommandScope::File("api/sub/a.go"), None),
        "go test -json -count=1 ./sub"
    );
    assert_eq!(
        test_line(api, CommandScope::Directory("api/sub"), Some("TestA/b c")),
        "go test -json -count=1 -run TestA/b c ./sub/..."
    );
    assert_eq!(
        test_line(api, CommandScope::Project, Some("TestA")),
        "go test -json -count=1 -run TestA ./..."
    );
    assert_eq!(
        line(&plan_check(api, ProfileField::Typecheck, CommandScope::File("api/main.go")).unwrap()),
        "go vet ."
    );
    let top = &profiles("go_workspace", ".")[0];
    assert_eq!(
        test_line(top, CommandScope::Project, None),
        "go test -json -count=1 ./api/... ./lib/..."
    );
}

#[test]
fn java_tests_are_chosen_by_class_and_method() {
    let maven = &profiles("java_kotlin", "maven-app")[0];
    let line = test_line(
        maven,
        CommandScope::File("maven-app/a/src/test/java/x/SumTest.java"),
        Some("adds"),
    );
    assert!(line.contains(" -Dtest=SumTest#adds "), "{line}");
    let gradle = &profiles("java_kotlin", "gradle-app")[0];
    let line = test_line(gradle, CommandScope::File("gradle-app/src/test/kotlin/SumTest.kt"), None);
    assert_eq!(line, "./gradlew --console=plain test --tests *SumTest --continue");
}

#[test]
fn checks_are_pointed_at_files_where_the_tool_can_be() {
    let biome = &profiles("node_biome", ".")[0];
    let lint = plan_check(biome, ProfileField::Lint, CommandScope::File("src/a.ts")).unwrap();
    assert_eq!(line(&lint), "yarn run biome check src/a.ts --reporter=json --max-diagnostics=none");
    let rust = &profiles("cargo_workspace", "crates/core")[0];
    let lint =
        plan_check(rust, ProfileField::Lint, CommandScope::File("crates/core/src/lib.rs")).unwrap();
    assert_eq!(
        line(&lint),
        "cargo clippy --all-targets -p acme-core --message-format=json --locked"
    );
    let format =
        plan_check(rust, ProfileField::FormatCheck, CommandScope::File("crates/core/src/lib.rs"))
            .unwrap();
    assert_eq!(line(&format), "rustfmt --edition 2024 --check src/lib.rs");
    let format = plan_check(rust, ProfileField::Format, CommandScope::Project).unwrap();
    assert_eq!((line(&format).as_str(), format.report), ("cargo fmt", ReportFormat::Rustfmt));
    let python = &profiles("python_ruff_only", ".")[0];
    let lint = plan_check(python, ProfileField::Lint, CommandScope::File("script.py")).unwrap();
    assert_eq!(
        line(&lint),
        "ruff check script.py --output-format json --output-file {artifacts}/ruff.json --no-fix \
         --no-fix-only"
    );
}

/// Plans a check of a project that is laid out from a text.
fn check(files: &str, field: ProfileField) -> Result<Invocation, PlanError> {
    let workspace = lay_out(files);
    let found = detect(&workspace.root, Path::new("."));
    plan_check(&found.profiles[0], field, CommandScope::Project)
}

#[test]
fn mypy_is_given_no_path_if_the_project_names_its_files() {
    let configured = [
        "-- pyproject.toml --\n[tool.mypy]\nfiles = [\"src\"]\n",
        "-- pyproject.toml --\n[tool.mypy]\npackages = [\"a\"]\n",
        "-- setup.py --\n-- mypy.ini --\n[mypy]\nfiles = src\n",
        "-- setup.py --\n-- setup.cfg --\n[mypy]\nfiles = src\n",
    ];
    for files in configured {
        let plan = check(files, ProfileField::Typecheck).unwrap();
        assert_eq!(plan.argv[..2], ["mypy", "--no-color-output"], "{files}");
        assert!(!plan.argv.contains(&"--exclude".to_owned()), "{files}");
    }
    let plan = check("-- pyproject.toml --\n[tool.mypy]\nstrict = true\n", ProfileField::Typecheck);
    let argv = plan.unwrap().argv;
    assert_eq!(argv[..2], ["mypy", "."]);
    let sources = "-- pyproject.toml --\n[tool.mypy]\nstrict = true\n-- src/a.py --\n";
    assert_eq!(check(sources, ProfileField::Typecheck).unwrap().argv[..2], ["mypy", "src"]);
    let exclude = argv.iter().position(|word| word == "--exclude").unwrap();
    assert!(argv[exclude + 1].contains("|node_modules|"), "{argv:?}");
}

#[test]
fn environments_and_fixtures_are_left_out_unless_the_project_says_which() {
    let eslint = "-- package.json --\n{\"name\": \"x\"}\n-- eslint.config.js --\n";
    let excluded = [
        "-- pyproject.toml --\n[tool.ruff]\n",
        "-- setup.py --\n-- .flake8 --\n[flake8]\n",
        "-- setup.py --\n-- .pylintrc --\n[MAIN]\n",
        &format!("{eslint}export default [];\n"),
    ];
    for files in excluded {
        let plan = line(&check(files, ProfileField::Lint).unwrap());
        assert!(plan.contains("venv") && plan.contains("fixtures"), "{plan}");
    }
    let configured = [
        "-- pyproject.toml --\n[tool.ruff]\nextend-exclude = [\"examples\"]\n",
        "-- setup.py --\n-- .flake8 --\n[flake8]\nexclude = a\n",
        &format!("{eslint}export default [{{ ignores: ['a'] }}];\n"),
    ];
    for files in configured {
        let plan = line(&check(files, ProfileField::Lint).unwrap());
        assert!(!plan.contains("fixtures"), "{plan}");
    }
}

#[test]
fn checks_never_fix_and_have_a_read_only_tree_with_caches_elsewhere() {
    let files = "-- setup.py --\n-- ruff.toml --\nfix = true\n-- carrel.toml --\n[profile]\n\
        lint = [\"ruff\", \"check\", \"--fix\", \"src\"]\n";
    let lint = check(files, ProfileField::Lint).unwrap();
    assert!(line(&lint).starts_with("ruff check src ") && line(&lint).ends_with(" --no-fix-only"));
    assert!(!lint.argv.contains(&"--fix".to_owned()), "{}", line(&lint));
    let eslint =
        "-- package.json --\n{\"name\": \"x\", \"scripts\": {\"lint\": \"eslint --fix .\"}}\n";
    let lint = check(eslint, ProfileField::Lint).unwrap();
    assert!(!line(&lint).contains("--fix"), "{}", line(&lint));
    for (name, value) in [("RUFF_CACHE_DIR", "ruff"), ("CARGO_TARGET_DIR", "cargo")] {
        let value = format!("{CACHE}/{value}");
        assert!(lint.environment.contains(&(name.to_owned(), value)), "{name}");
    }
    assert_eq!(lint.access, TreeAccess::ReadOnly);
    let rust = "-- Cargo.toml --\n[package]\nname = \"a\"\n";
    assert_eq!(check(rust, ProfileField::FormatCheck).unwrap().access, TreeAccess::ReadOnly);
    assert_eq!(check(rust, ProfileField::Format).unwrap().access, TreeAccess::ReadWrite);
    let make = "-- Makefile --\nall:\n\tcc a.c\n-- a.c --\n";
    assert_eq!(check(make, ProfileField::Typecheck).unwrap().access, TreeAccess::ReadWrite);
}

#[test]
fn a_script_that_writes_is_not_run_as_a_check() {
    let script = |text: &str| {
        format!("-- package.json --\n{{\"name\": \"x\", \"scripts\": {{\"lint\": \"{text}\"}}}}\n")
    };
    let refused = check(&script("standard --fix"), ProfileField::Lint).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the script `lint` changes files (--fix), and lint never does; set `lint` in \
         ./carrel.toml to a command that only checks, or run it with run_script"
    );
    // The linter at the end of a script is run without the option.
    let plan = check(&script("tsc && eslint src --fix"), ProfileField::Lint).unwrap();
    assert!(
        line(&plan).contains("eslint src ") && !line(&plan).contains("--fix"),
        "{}",
        line(&plan)
    );
    assert!(check(&script("standard"), ProfileField::Lint).is_ok());
}

#[test]
fn test_runs_rewrite_no_snapshots() {
    let node =
        "-- package.json --\n{\"name\": \"x\", \"scripts\": {\"test\": \"vitest run -u\"}}\n";
    let workspace = lay_out(node);
    let found = detect(&workspace.root, Path::new("."));
    let plan = plan_tests(&found.profiles[0], &Target::default()).unwrap().remove(0);
    assert!(!plan.argv.contains(&"-u".to_owned()), "{}", line(&plan));
    for variable in [("CI", "1"), ("INSTA_UPDATE", "no")] {
        let variable = (variable.0.to_owned(), variable.1.to_owned());
        assert_eq!(plan.environment.iter().filter(|one| **one == variable).count(), 1);
    }
}

#[test]
fn a_file_of_another_kind_is_not_given_to_a_tool() {
    let rust = &profiles("cargo_workspace", "crates/core")[0];
    for path in ["crates/core/Cargo.toml", "crates/core/README.md"] {
        let refused =
            plan_check(rust, ProfileField::FormatCheck, CommandScope::File(path)).unwrap_err();
        assert_eq!(
            refused,
            PlanError::NotUnderstood { tool: ProjectTool::Rustfmt, path: path.to_owned() }
        );
    }
    assert_eq!(
        plan_check(rust, ProfileField::Lint, CommandScope::File("crates/tool/src/main.rs"))
            .unwrap_err()
            .to_string(),
        "crates/tool/src/main.rs is not inside the project in crates/core"
    );
}

#[test]
fn a_name_that_looks_like_an_option_stays_a_file() {
    let python = &profiles("python_ruff_only", ".")[0];
    let lint = plan_check(python, ProfileField::Lint, CommandScope::File("--fix.py")).unwrap();
    assert!(line(&lint).starts_with("ruff check ./--fix.py "), "{}", line(&lint));
}

#[test]
fn a_command_that_is_not_known_says_how_to_name_it() {
    let node = &profiles("bun_only", ".")[0];
    assert_eq!(
        plan_check(node, ProfileField::Typecheck, CommandScope::Project).unwrap_err().to_string(),
        "no typecheck command is known for the node project in .; set `typecheck` in ./carrel.toml"
    );
}

#[test]
fn the_artifact_directory_is_inserted_last() {
    let node = &profiles("node_jest_installed", ".")[0];
    let plan = plan_tests(node, &Target::default()).unwrap().remove(0).with_artifacts("/run/x");
    assert!(plan.argv.contains(&"--outputFile=/run/x/jest.json".to_owned()));
    assert!(plan.environment.contains(&("NODE_ENV".to_owned(), "test".to_owned())));
}

#[test]
fn installing_happens_where_the_workspace_is() {
    let ui = &profiles("pnpm_monorepo", "packages/ui")[0];
    let install = plan_check(ui, ProfileField::Install, CommandScope::Project).unwrap();
    assert_eq!((line(&install).as_str(), install.directory.as_str()), ("pnpm install", "."));
}

#[test]
fn scripts_are_run_by_name_and_missing_ones_are_listed() {
    let node = &profiles("node_jest_installed", ".")[0];
    let script = plan_script(node, " build ").unwrap();
    assert_eq!((line(&script).as_str(), script.report), ("pnpm run build", ReportFormat::Text));
    assert_eq!(plan_script(node, "  ").unwrap_err().to_string(), "run_script: name is required");
    assert_eq!(
        plan_script(node, "deploy").unwrap_err().to_string(),
        "run_script: no script named \"deploy\" in package.json; available: build, lint, test, typecheck"
    );
    let bun = &profiles("bun_only", ".")[0];
    assert_eq!(
        plan_script(bun, "x").unwrap_err().to_string(),
        "run_script: no script named \"x\" in package.json; available: (none defined)"
    );
    let go = &profiles("go_workspace", ".")[0];
    assert_eq!(
        plan_script(go, "x").unwrap_err(),
        ScriptError::Unsupported {
            looked_for: vec!["Makefile", "justfile", "Taskfile.yml"],
            root: go.root.clone(),
        }
    );
    let broken = &profiles("broken_markers", ".")[1];
    assert_eq!(
        plan_script(broken, "test").unwrap_err().to_string(),
        "run_script: parsing package.json: line 3: invalid JSON: key must be a string"
    );
}

#[test]
fn scripts_of_other_files_are_run_by_their_own_programs() {
    let run = |fixture: &str, from: &str, at: usize, name: &str| {
        line(&plan_script(&profiles(fixture, from)[at], name).unwrap())
    };
    assert_eq!(run("cargo_workspace", "crates/core", 0, "xtask"), "cargo xtask");
    assert_eq!(run("nested_only", "frontend", 0, "dev"), "deno task dev");
    assert_eq!(run("polyglot", ".", 0, "lint"), "make lint");
    assert_eq!(run("others", "php", 0, "check"), "composer run-script check");
    assert_eq!(run("python_uv_workspace", ".", 0, "docs"), "poe docs");
}

#[test]
fn a_missing_tool_comes_with_the_command_that_installs_it() {
    let hint = |fixture: &str| {
        plan_check(&profiles(fixture, ".")[0], ProfileField::Lint, CommandScope::Project)
            .unwrap()
            .install_hint
    };
    assert_eq!(hint("node_biome"), "run `yarn add -D @biomejs/biome`");
    assert_eq!(hint("bun_only"), "run `bun add -d oxlint`");
    assert_eq!(hint("python_uv_workspace"), "run `uv add --dev ruff`");
    assert_eq!(hint("cargo_workspace"), "run `rustup component add clippy`");
}

#[test]
fn a_package_manager_does_not_fetch_itself() {
    let yarn = &profiles("node_biome", ".")[0];
    let lint = plan_check(yarn, ProfileField::Lint, CommandScope::Project).unwrap();
    let offline = ("COREPACK_ENABLE_NETWORK".to_owned(), "0".to_owned());
    assert!(lint.environment.contains(&offline));
    assert!(
        !plan_check(yarn, ProfileField::Install, CommandScope::Project)
            .unwrap()
            .environment
            .contains(&offline)
    );
}

#[test]
fn clang_format_is_never_started_without_a_file() {
    let workspace = load("others");
    let cpp = detect_for_file(&workspace.root, Path::new("cmake/main.cpp")).profile.unwrap();
    let format =
        plan_check(&cpp, ProfileField::FormatCheck, CommandScope::File("cmake/main.cpp")).unwrap();
    assert_eq!(line(&format), "clang-format --dry-run --Werror main.cpp");
    assert_eq!(
        plan_check(&cpp, ProfileField::FormatCheck, CommandScope::Project).unwrap_err(),
        PlanError::NeedsFile { tool: ProjectTool::ClangFormat }
    );
}
