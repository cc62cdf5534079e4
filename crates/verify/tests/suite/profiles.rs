//! Each fixture's projects, in a form that a person can check line by line.

use std::fmt::Write;

use carrel_verify::{
    Membership, Profile, ProfileField, ProjectCommand, WorkspaceProjects, choose_projects,
    detect_all,
};

use crate::fixture::load;

/// Shows a workspace: a paragraph for each project, a line for each fact and its source.
fn show(survey: &WorkspaceProjects) -> String {
    let mut text = survey.profiles.iter().map(show_profile).collect::<Vec<_>>().join("\n");
    match choose_projects(&survey.profiles, None) {
        Ok(chosen) => {
            let names: Vec<String> =
                chosen.iter().map(|p| format!("{} in {}", p.ecosystem.as_str(), p.root)).collect();
            write!(text, "\nchosen: {}\n", names.join(", ")).unwrap();
        }
        Err(error) => write!(text, "\nrefused: {error}\n").unwrap(),
    }
    if survey.truncated {
        text.push_str("cut\n");
    }
    text
}

fn show_profile(profile: &Profile) -> String {
    let mut text = format!("{} in {}", profile.ecosystem.as_str(), profile.root);
    if let Some(name) = &profile.name {
        write!(text, " ({name})").unwrap();
    }
    text.push('\n');
    let mut line = |fact: ProfileField, shown: String| {
        let file = profile.evidence_of(fact).unwrap_or("nothing");
        writeln!(text, "  {:<15} {shown}  <- {file}", fact.as_str()).unwrap();
    };
    if let Some(manager) = profile.package_manager {
        line(ProfileField::PackageManager, manager.as_str().to_owned());
    }
    let commands = [
        ProfileField::Install,
        ProfileField::Test,
        ProfileField::Lint,
        ProfileField::Typecheck,
        ProfileField::Format,
        ProfileField::FormatCheck,
    ];
    for fact in commands {
        if let Some(command) = profile.command(fact) {
            line(fact, show_command(profile, command));
        }
    }
    if let Some(directory) = &profile.deps_dir {
        line(ProfileField::DepsDir, directory.clone());
    }
    if profile.evidence_of(ProfileField::FormatOnEdit).is_some() {
        line(ProfileField::FormatOnEdit, profile.format_on_edit.to_string());
    }
    if profile.evidence_of(ProfileField::EditLimits).is_some() {
        line(ProfileField::EditLimits, format!("{:?}", profile.edit_limits));
    }
    match &profile.membership {
        Some(Membership::Root { members }) => {
            writeln!(text, "  members: {}", members.join(", ")).unwrap();
        }
        Some(Membership::Member { of }) => writeln!(text, "  member of {of}").unwrap(),
        None => {}
    }
    for script in &profile.scripts {
        writeln!(text, "  script {}: {}", script.name, script.argv.join(" ")).unwrap();
    }
    for problem in &profile.problems {
        writeln!(text, "  problem {problem}").unwrap();
    }
    text
}

fn show_command(profile: &Profile, command: &ProjectCommand) -> String {
    let mut text = format!("{:?}: {}", command.tool, command.argv.join(" "));
    if let Some(argv) = &command.file_argv {
        write!(text, " | {} FILES", argv.join(" ")).unwrap();
    }
    if command.directory != profile.root {
        write!(text, " (in {})", command.directory).unwrap();
    }
    if command.assumed {
        text.push_str(" (assumed)");
    }
    if command.injection != carrel_verify::OptionPassing::Direct {
        write!(text, " ({:?})", command.injection).unwrap();
    }
    text
}

macro_rules! fixtures {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            let workspace = load(stringify!($name));
            insta::assert_snapshot!(show(&detect_all(&workspace.root)));
        })*

        #[test]
        fn every_fixture_is_looked_at() {
            let names = [$(stringify!($name)),*];
            let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
            let root = carrel_fsroot::Root::open(directory.as_ref()).unwrap();
            for entry in root.list(".".as_ref()).unwrap() {
                let name = entry.name.into_string().unwrap();
                assert!(names.contains(&name.trim_end_matches(".txt")), "{name}");
            }
        }
    };
}

fixtures!(
    autotools,
    bazel_only,
    broken_markers,
    build_tools,
    bun_only,
    cargo_workspace,
    carrel_toml,
    go_workspace,
    java_kotlin,
    just_only,
    make_delegates,
    make_only,
    nested_only,
    no_markers,
    node_biome,
    node_jest_installed,
    node_named_scripts,
    npm_node_test,
    only_stray,
    others,
    pnpm_monorepo,
    polyglot,
    python_bare,
    python_poetry,
    python_ruff_only,
    python_tox,
    python_unittest,
    python_uv_workspace,
    task_only,
    yarn_workspaces,
);

#[test]
fn a_profile_is_written_as_json_without_what_is_absent() {
    let workspace = load("cargo_workspace");
    let survey = detect_all(&workspace.root);
    insta::assert_json_snapshot!(survey.profiles[1]);
}
