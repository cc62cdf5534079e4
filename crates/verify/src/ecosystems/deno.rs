//! Deno, whose program includes the test runner, linter, formatter and type checker.

use crate::manifest::parse_jsonc;
use crate::profile::{
    Ecosystem, Membership, PackageManager, Profile, ProfileField, ProjectCommand,
    SCRIPT_EXTENSIONS, args, words,
};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let marker = reader.first(directory, "deno.json deno.jsonc")?;
    let mut profile = Profile::new(Ecosystem::Deno, directory, &marker);
    profile.set_manager(PackageManager::Deno, &marker);
    let settings = profile.accept(reader.document(&marker, parse_jsonc)).unwrap_or_default();
    profile.name = settings["name"].as_str().map(str::to_owned);
    let members = settings["workspace"].as_array();
    let members = members.or_else(|| settings["workspace"]["members"].as_array());
    profile.membership = members.map(|list| Membership::Root { members: super::strings(list) });
    commands(directory, &marker, &mut profile);
    for (name, task) in settings["tasks"].as_object().into_iter().flatten() {
        let text = task.as_str().or_else(|| task["command"].as_str()).unwrap_or_default();
        profile.add_script(name, text, &marker, args(&["deno", "task", name]));
    }
    Some(profile)
}

fn commands(directory: &str, marker: &str, profile: &mut Profile) {
    profile.set_install(directory, "deno install", marker);
    let mut set = |field, tool, argv, paths| {
        let argv = words(argv);
        let command = ProjectCommand::for_files(tool, directory, argv, paths, SCRIPT_EXTENSIONS);
        profile.set(field, command, marker);
    };
    set(ProfileField::Test, ProjectTool::DenoTest, "deno test", "");
    set(ProfileField::Lint, ProjectTool::DenoLint, "deno lint", "");
    set(ProfileField::Format, ProjectTool::DenoFmt, "deno fmt", "");
    set(ProfileField::FormatCheck, ProjectTool::DenoFmt, "deno fmt --check", "");
    set(ProfileField::Typecheck, ProjectTool::DenoCheck, "deno check", ".");
}
