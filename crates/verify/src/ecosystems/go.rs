//! Go modules and workspaces (`go.work`).
//!
//! Commands cover packages, since Go compiles no single files. golangci-lint is the linter if it is
//! configured, and `go vet` otherwise; `go vet` is also the type check, because it compiles tests
//! too.

use crate::paths;
use crate::profile::{
    Ecosystem, Membership, PackageManager, Profile, ProfileField, ProjectCommand,
};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

const GOLANGCI: [&str; 4] = [".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"];

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let module = reader.first(directory, &["go.mod"]);
    let work = reader.first(directory, &["go.work"]);
    let marker = module.clone().or_else(|| work.clone())?;
    let mut profile = Profile::new(Ecosystem::Go, directory, &marker);
    profile.set_manager(PackageManager::Go, &marker);
    if let Some(module) = &module {
        profile.name = reader.text(module).as_deref().and_then(module_name);
        if profile.name.is_none() {
            profile.problems.push(crate::profile::ProfileProblem {
                file: module.clone(),
                line: None,
                message: "names no module".to_owned(),
            });
        }
    }
    let members = work.and_then(|work| reader.text(&work)).map(|text| uses(&text));
    profile.membership = match &members {
        Some(members) => Some(Membership::Root { members: members.clone() }),
        None => owner(reader, directory).map(|of| Membership::Member { of }),
    };
    commands(reader, &marker, members.as_deref(), &mut profile);
    Some(profile)
}

fn commands(
    reader: &ProjectReader<'_>,
    marker: &str,
    members: Option<&[String]>,
    profile: &mut Profile,
) {
    let directory = profile.root.clone();
    // `./...` does not cross module boundaries, so each module of a go.work is named.
    let patterns: Vec<String> = match members {
        Some(members) => members.iter().map(|member| below(member)).collect(),
        None => vec!["./...".to_owned()],
    };
    let go = |tool, words: &[&str]| {
        let words = words.iter().map(|&word| word.to_owned());
        let argv = words.chain(patterns.iter().cloned()).collect();
        ProjectCommand::from_args(tool, &directory, argv).per_package(&["go"])
    };
    let install: &[&str] =
        if members.is_some() { &["go", "work", "sync"] } else { &["go", "mod", "download"] };
    profile.set(
        ProfileField::Install,
        ProjectCommand::new(ProjectTool::Installer, &directory, install),
        marker,
    );
    profile.set(ProfileField::Test, go(ProjectTool::GoTest, &["go", "test"]), marker);
    profile.set(ProfileField::Typecheck, go(ProjectTool::GoVet, &["go", "vet"]), marker);
    match reader.nearest(&directory, &GOLANGCI) {
        Some(settings) => {
            profile.set(
                ProfileField::Lint,
                go(ProjectTool::Golangci, &["golangci-lint", "run"]),
                &settings,
            );
        }
        None => profile.set(ProfileField::Lint, go(ProjectTool::GoVet, &["go", "vet"]), marker),
    }
    let gofmt = |option: &str| {
        let single = vec!["gofmt".to_owned(), option.to_owned()];
        ProjectCommand::new(ProjectTool::Gofmt, &directory, &["gofmt", option, "."])
            .per_file(single, &["go"])
    };
    profile.set(ProfileField::Format, gofmt("-w"), marker);
    profile.set(ProfileField::FormatCheck, gofmt("-l"), marker);
}

fn below(member: &str) -> String {
    match member.trim_start_matches("./") {
        "" | "." => "./...".to_owned(),
        member => format!("./{member}/..."),
    }
}

fn module_name(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("module "))?;
    line.split_whitespace().next().map(|name| name.trim_matches('"').to_owned())
}

/// Returns the directories of `use` lines and `use ( … )` blocks.
fn uses(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        match line {
            "use (" | "use(" => inside = true,
            ")" => inside = false,
            _ if inside && !line.is_empty() => found.push(line.trim_matches('"').to_owned()),
            _ => found.extend(
                line.strip_prefix("use ").map(|one| one.trim().trim_matches('"').to_owned()),
            ),
        }
    }
    found
}

fn owner(reader: &ProjectReader<'_>, directory: &str) -> Option<String> {
    paths::upwards(directory).find_map(|above| {
        let text = reader.text(&paths::join(above, "go.work"))?;
        let named = uses(&text)
            .iter()
            .any(|member| paths::resolve(above, member).as_deref() == Some(directory));
        named.then(|| above.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_workspace_are_read_from_lines_and_blocks() {
        let text = "go 1.22\n\nuse ./a // first\nuse (\n\t./b\n\t\"./c d\"\n)\n";
        assert_eq!(uses(text), ["./a", "./b", "./c d"]);
        assert_eq!(
            module_name("// x\nmodule example.com/a // y\n").as_deref(),
            Some("example.com/a")
        );
    }
}
