//! Deno, whose program includes the test runner, linter, formatter and type checker.

use crate::manifest::parse_jsonc;
use crate::profile::{
    Ecosystem, Membership, PackageManager, Profile, ProfileField, ProjectCommand, ProjectScript,
    SCRIPT_EXTENSIONS,
};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;
use serde_json::Value;

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let marker = reader.first(directory, &["deno.json", "deno.jsonc"])?;
    let mut profile = Profile::new(Ecosystem::Deno, directory, &marker);
    profile.set_manager(PackageManager::Deno, &marker);
    let text = reader.read(&marker).map(Option::unwrap_or_default);
    let settings = text.and_then(|text| parse_jsonc(&marker, &text)).unwrap_or_else(|problem| {
        profile.problems.push(problem);
        Value::Null
    });
    profile.name = settings["name"].as_str().map(str::to_owned);
    profile.membership =
        members(&settings["workspace"]).map(|members| Membership::Root { members });
    commands(directory, &marker, &mut profile);
    for (name, task) in settings["tasks"].as_object().into_iter().flatten() {
        let text =
            task.as_str().or_else(|| task["command"].as_str()).unwrap_or_default().to_owned();
        let argv = ["deno", "task", name].map(str::to_owned).to_vec();
        profile.scripts.push(ProjectScript {
            name: name.clone(),
            text,
            file: marker.clone(),
            argv,
        });
    }
    Some(profile)
}

fn commands(directory: &str, marker: &str, profile: &mut Profile) {
    let command = |tool, words: &[&str]| {
        let single = words.iter().map(|&word| word.to_owned()).collect();
        ProjectCommand::new(tool, directory, words).per_file(single, SCRIPT_EXTENSIONS)
    };
    let install = ProjectCommand::new(ProjectTool::Installer, directory, &["deno", "install"]);
    profile.set(ProfileField::Install, install, marker);
    profile.set(ProfileField::Test, command(ProjectTool::DenoTest, &["deno", "test"]), marker);
    profile.set(ProfileField::Lint, command(ProjectTool::DenoLint, &["deno", "lint"]), marker);
    profile.set(ProfileField::Format, command(ProjectTool::DenoFmt, &["deno", "fmt"]), marker);
    profile.set(
        ProfileField::FormatCheck,
        command(ProjectTool::DenoFmt, &["deno", "fmt", "--check"]),
        marker,
    );
    let mut check = command(ProjectTool::DenoCheck, &["deno", "check"]);
    check.argv.push(".".to_owned());
    profile.set(ProfileField::Typecheck, check, marker);
}

fn members(value: &Value) -> Option<Vec<String>> {
    let list = value.as_array().or_else(|| value["members"].as_array())?;
    Some(list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect())
}
