//! C and C++: `CMake`, or make if there are sources beside the Makefile.

use crate::paths;
use crate::profile::{Ecosystem, PackageManager, Profile, ProfileField, ProjectCommand, args};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

use super::makefile;

const BUILD: &str = "build";

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let mut profile = match reader.first(directory, &["CMakeLists.txt"]) {
        Some(marker) => cmake(directory, &marker),
        None => make(reader, directory)?,
    };
    if let Some(file) = reader.nearest(directory, &[".clang-format"]) {
        let format = |options: &[&str]| {
            let single = [args(&["clang-format"]), args(options)].concat();
            // Without files clang-format reads standard input.
            ProjectCommand::from_args(ProjectTool::ClangFormat, directory, Vec::new())
                .per_file(single, Ecosystem::Cpp.extensions())
        };
        profile.set(ProfileField::Format, format(&["-i"]), &file);
        profile.set(ProfileField::FormatCheck, format(&["--dry-run", "--Werror"]), &file);
    }
    Some(profile)
}

fn cmake(directory: &str, marker: &str) -> Profile {
    let mut profile = Profile::new(Ecosystem::Cpp, directory, marker);
    profile.set_manager(PackageManager::Cmake, marker);
    let configure =
        ProjectCommand::new(ProjectTool::Installer, directory, &["cmake", "-S", ".", "-B", BUILD]);
    let build = ProjectCommand::new(ProjectTool::Cmake, directory, &["cmake", "--build", BUILD]);
    let test = ["ctest", "--test-dir", BUILD, "--output-on-failure"];
    profile.set(ProfileField::Install, configure, marker);
    profile.set(ProfileField::Typecheck, build, marker);
    profile.set(
        ProfileField::Test,
        ProjectCommand::new(ProjectTool::Ctest, directory, &test),
        marker,
    );
    profile
}

/// Requires C or C++ sources, because a Makefile alone may belong to any ecosystem.
fn make(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let marker = reader.first(directory, &makefile::NAMES)?;
    let directories = [directory.to_owned(), paths::join(directory, "src")];
    let has_sources = directories.iter().any(|directory| has_sources(reader, directory));
    if !has_sources {
        return None;
    }
    let mut profile = Profile::new(Ecosystem::Cpp, directory, &marker);
    profile.set_manager(PackageManager::Make, &marker);
    profile.set(
        ProfileField::Typecheck,
        ProjectCommand::new(ProjectTool::Make, directory, &["make"]),
        &marker,
    );
    let targets = makefile::targets(&reader.text(&marker).unwrap_or_default());
    let test =
        ["test", "check", "tests"].into_iter().find(|name| targets.iter().any(|t| t == name));
    if let Some(name) = test {
        profile.set(
            ProfileField::Test,
            ProjectCommand::new(ProjectTool::Make, directory, &["make", name]),
            &marker,
        );
    }
    if targets.iter().any(|target| target == "lint") {
        profile.set(
            ProfileField::Lint,
            ProjectCommand::new(ProjectTool::Make, directory, &["make", "lint"]),
            &marker,
        );
    }
    Some(profile)
}

fn has_sources(reader: &ProjectReader<'_>, directory: &str) -> bool {
    !reader.files(directory, &[".c", ".cc", ".cpp", ".cxx"]).is_empty()
}
