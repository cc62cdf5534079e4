//! Java and Kotlin with Maven or Gradle, through their wrapper scripts if present.

use crate::paths;
use crate::profile::{
    Ecosystem, Membership, PackageManager, Profile, ProfileField, ProjectCommand,
};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

const EXTENSIONS: &[&str] = &["java", "kt", "kts"];

const GRADLE: [&str; 4] =
    ["build.gradle.kts", "build.gradle", "settings.gradle.kts", "settings.gradle"];

const MAVEN_OPTIONS: [&str; 3] = ["-B", "-ntp", "-Dstyle.color=never"];

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    if let Some(marker) = reader.first(directory, &["pom.xml"]) {
        return Some(maven(reader, directory, &marker));
    }
    let marker = reader.first(directory, &GRADLE)?;
    Some(gradle(reader, directory, &marker))
}

/// Returns the nearest wrapper script, relative to the project, or else the program.
fn program(reader: &ProjectReader<'_>, directory: &str, wrapper: &str, name: &str) -> String {
    match reader.nearest(directory, &[wrapper]) {
        Some(path) => {
            let path = paths::relative(directory, &path);
            if path.contains('/') { path } else { format!("./{path}") }
        }
        None => name.to_owned(),
    }
}

fn maven(reader: &ProjectReader<'_>, directory: &str, marker: &str) -> Profile {
    let mut profile = Profile::new(Ecosystem::Java, directory, marker);
    profile.set_manager(PackageManager::Maven, marker);
    let text = reader.read(marker).unwrap_or_else(|problem| {
        profile.problems.push(problem);
        None
    });
    let text = text.unwrap_or_default();
    let modules = elements(&text, "module");
    if !modules.is_empty() {
        profile.membership = Some(Membership::Root { members: modules });
    }
    let program = program(reader, directory, "mvnw", "mvn");
    let command = |tool, goals: &[&str]| {
        let argv = [&[program.as_str()], &MAVEN_OPTIONS[..], goals].concat();
        ProjectCommand::new(tool, directory, &argv).per_package(EXTENSIONS)
    };
    profile.set(
        ProfileField::Install,
        command(ProjectTool::Installer, &["dependency:resolve"]),
        marker,
    );
    profile.set(ProfileField::Test, command(ProjectTool::Maven, &["test"]), marker);
    profile.set(ProfileField::Typecheck, command(ProjectTool::Maven, &["test-compile"]), marker);
    if text.contains("spotless-maven-plugin") {
        profile.set(ProfileField::Format, command(ProjectTool::Maven, &["spotless:apply"]), marker);
        profile.set(
            ProfileField::FormatCheck,
            command(ProjectTool::Maven, &["spotless:check"]),
            marker,
        );
    }
    if text.contains("maven-checkstyle-plugin") {
        profile.set(ProfileField::Lint, command(ProjectTool::Maven, &["checkstyle:check"]), marker);
    }
    profile
}

fn gradle(reader: &ProjectReader<'_>, directory: &str, marker: &str) -> Profile {
    let mut profile = Profile::new(Ecosystem::Java, directory, marker);
    profile.set_manager(PackageManager::Gradle, marker);
    let read = |name: &&str| reader.text(&paths::join(directory, name)).unwrap_or_default();
    let text: String = GRADLE.iter().map(read).collect();
    if let Some(members) = includes(&text) {
        profile.membership = Some(Membership::Root { members });
    }
    let program = program(reader, directory, "gradlew", "gradle");
    let command = |tool, task: &str| {
        let argv = [program.as_str(), "--console=plain", task];
        ProjectCommand::new(tool, directory, &argv).per_package(EXTENSIONS)
    };
    profile.set(ProfileField::Install, command(ProjectTool::Installer, "dependencies"), marker);
    profile.set(ProfileField::Test, command(ProjectTool::Gradle, "test"), marker);
    profile.set(ProfileField::Typecheck, command(ProjectTool::Gradle, "testClasses"), marker);
    let lint = [("detekt", "detekt"), ("ktlint", "ktlintCheck"), ("checkstyle", "checkstyleMain")];
    if let Some((_, task)) = lint.iter().find(|(plugin, _)| text.contains(plugin)) {
        profile.set(ProfileField::Lint, command(ProjectTool::Gradle, task), marker);
    }
    let format =
        [("spotless", "spotlessApply", "spotlessCheck"), ("ktlint", "ktlintFormat", "ktlintCheck")];
    if let Some((_, apply, check)) = format.iter().find(|(plugin, ..)| text.contains(plugin)) {
        profile.set(ProfileField::Format, command(ProjectTool::Gradle, apply), marker);
        profile.set(ProfileField::FormatCheck, command(ProjectTool::Gradle, check), marker);
    }
    profile
}

/// Returns the texts of elements without attributes, anywhere in the document.
fn elements(text: &str, name: &str) -> Vec<String> {
    let open = format!("<{name}>");
    let close = format!("</{name}>");
    let found = text.split(&open).skip(1).filter_map(|rest| rest.split(&close).next());
    found.map(|inner| inner.trim().to_owned()).collect()
}

/// Returns the projects that Gradle settings include; `None` if there are none.
fn includes(text: &str) -> Option<Vec<String>> {
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with("include"));
    let quoted = lines.flat_map(|line| line.split(['"', '\'']).skip(1).step_by(2));
    let members: Vec<String> =
        quoted.map(|name| name.trim_start_matches(':').replace(':', "/")).collect();
    (!members.is_empty()).then_some(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_from_both_build_tools() {
        assert_eq!(
            elements("<modules><module>a</module> <module> b </module></modules>", "module"),
            ["a", "b"]
        );
        let text = "rootProject.name = \"x\"\ninclude(\":app\", \":lib:core\")\ninclude ':b'";
        assert_eq!(includes(text).unwrap(), ["app", "lib/core", "b"]);
    }
}
