//! Java and Kotlin with Maven or Gradle, through their wrapper scripts if present.

use crate::paths;
use crate::profile::{
    Ecosystem, Membership, PackageManager, Profile, ProfileField, ProjectCommand, words,
};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

use super::dotted;

const GRADLE: &str = "build.gradle.kts build.gradle settings.gradle.kts settings.gradle";

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    if let Some(marker) = reader.first(directory, "pom.xml") {
        return Some(maven(reader, directory, &marker));
    }
    let marker = reader.first(directory, GRADLE)?;
    Some(gradle(reader, directory, &marker))
}

/// A build tool with its program and the options of every command.
struct BuildTool<'a> {
    tool: ProjectTool,
    program: String,
    options: &'static str,
    marker: &'a str,
}

impl BuildTool<'_> {
    /// Sets a command that runs a goal or task.
    fn set(&self, profile: &mut Profile, field: ProfileField, task: &str) {
        let tool = if field == ProfileField::Install { ProjectTool::Installer } else { self.tool };
        let argv = [vec![self.program.clone()], words(self.options), words(task)].concat();
        let command = ProjectCommand::new(tool, &profile.root, argv);
        profile.set(field, command.per_package(Ecosystem::Java.extensions()), self.marker);
    }

    fn set_format(&self, profile: &mut Profile, apply: &str, check: &str) {
        self.set(profile, ProfileField::Format, apply);
        self.set(profile, ProfileField::FormatCheck, check);
    }
}

/// Returns the nearest wrapper script, relative to the project, or else the program.
fn program(
    reader: &ProjectReader<'_>,
    directory: &str,
    wrapper: &'static str,
    name: &str,
) -> String {
    let wrapper = reader.nearest(directory, wrapper);
    let relative = wrapper.map(|path| dotted(paths::relative(directory, &path)));
    relative.unwrap_or_else(|| name.to_owned())
}

fn maven(reader: &ProjectReader<'_>, directory: &str, marker: &str) -> Profile {
    let mut profile = Profile::new(Ecosystem::Java, directory, marker);
    profile.set_manager(PackageManager::Maven, marker);
    let text = profile.accept(reader.read(marker)).flatten().unwrap_or_default();
    let members = elements(&text, "module");
    if !members.is_empty() {
        profile.membership = Some(Membership::Root { members });
    }
    let program = program(reader, directory, "mvnw", "mvn");
    let options = "-B -ntp -Dstyle.color=never";
    let maven = BuildTool { tool: ProjectTool::Maven, program, options, marker };
    maven.set(&mut profile, ProfileField::Install, "dependency:resolve");
    maven.set(&mut profile, ProfileField::Test, "test");
    maven.set(&mut profile, ProfileField::Typecheck, "test-compile");
    if text.contains("spotless-maven-plugin") {
        maven.set_format(&mut profile, "spotless:apply", "spotless:check");
    }
    if text.contains("maven-checkstyle-plugin") {
        maven.set(&mut profile, ProfileField::Lint, "checkstyle:check");
    }
    profile
}

fn gradle(reader: &ProjectReader<'_>, directory: &str, marker: &str) -> Profile {
    let mut profile = Profile::new(Ecosystem::Java, directory, marker);
    profile.set_manager(PackageManager::Gradle, marker);
    let read = |name| reader.text(&paths::join(directory, name)).unwrap_or_default();
    let text: String = GRADLE.split(' ').map(read).collect();
    profile.membership = includes(&text).map(|members| Membership::Root { members });
    let program = program(reader, directory, "gradlew", "gradle");
    let options = "--console=plain";
    let gradle = BuildTool { tool: ProjectTool::Gradle, program, options, marker };
    gradle.set(&mut profile, ProfileField::Install, "dependencies");
    gradle.set(&mut profile, ProfileField::Test, "test");
    gradle.set(&mut profile, ProfileField::Typecheck, "testClasses");
    let lint = [("detekt", "detekt"), ("ktlint", "ktlintCheck"), ("checkstyle", "checkstyleMain")];
    if let Some((_, task)) = lint.iter().find(|(plugin, _)| text.contains(plugin)) {
        gradle.set(&mut profile, ProfileField::Lint, task);
    }
    let format =
        [("spotless", "spotlessApply", "spotlessCheck"), ("ktlint", "ktlintFormat", "ktlintCheck")];
    if let Some((_, apply, check)) = format.iter().find(|(plugin, ..)| text.contains(plugin)) {
        gradle.set_format(&mut profile, apply, check);
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
