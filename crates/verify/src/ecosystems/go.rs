//! Go modules and workspaces (`go.work`).
//!
//! Commands cover packages, since Go compiles no single files. golangci-lint is the linter if it is
//! configured, and `go vet` otherwise; `go vet` is also the type check, because it compiles tests
//! too.

use crate::paths;
use crate::profile::{
    Ecosystem, Membership, PackageManager, Profile, ProfileField, ProfileProblem, ProjectCommand,
    words,
};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

const GOLANGCI: &str = ".golangci.yml .golangci.yaml .golangci.toml .golangci.json";

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let module = reader.first(directory, "go.mod");
    let work = reader.first(directory, "go.work");
    let marker = module.clone().or_else(|| work.clone())?;
    let mut profile = Profile::new(Ecosystem::Go, directory, &marker);
    profile.set_manager(PackageManager::Go, &marker);
    if let Some(file) = module {
        profile.name = reader.text(&file).as_deref().and_then(module_name);
        if profile.name.is_none() {
            let message = "names no module".to_owned();
            profile.problems.push(ProfileProblem { file, line: None, message });
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
    let install = if members.is_some() { "go work sync" } else { "go mod download" };
    profile.set_install(&directory, install, marker);
    let go = |tool, argv| {
        let argv = [words(argv), patterns.clone()].concat();
        ProjectCommand::new(tool, &directory, argv).per_package("go")
    };
    profile.set(ProfileField::Test, go(ProjectTool::GoTest, "go test"), marker);
    let vet = go(ProjectTool::GoVet, "go vet");
    profile.set(ProfileField::Typecheck, vet.clone(), marker);
    match reader.nearest(&directory, GOLANGCI) {
        Some(settings) => {
            let lint = go(ProjectTool::Golangci, "golangci-lint run");
            profile.set(ProfileField::Lint, lint, &settings);
        }
        None => profile.set(ProfileField::Lint, vet, marker),
    }
    let gofmt =
        |argv| ProjectCommand::for_files(ProjectTool::Gofmt, &directory, words(argv), ".", "go");
    profile.set(ProfileField::Format, gofmt("gofmt -w"), marker);
    profile.set(ProfileField::FormatCheck, gofmt("gofmt -l"), marker);
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
