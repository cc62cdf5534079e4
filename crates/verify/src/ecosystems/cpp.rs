//! C and C++: `CMake`, or make if there are sources beside the Makefile.

use crate::paths;
use crate::profile::{Ecosystem, PackageManager, Profile, ProfileField, ProjectCommand, words};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

use super::makefile;

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let mut profile = match reader.first(directory, "CMakeLists.txt") {
        Some(marker) => cmake(directory, &marker),
        None => make(reader, directory)?,
    };
    if let Some(file) = reader.nearest(directory, ".clang-format") {
        let format = |argv| {
            // Without files clang-format reads standard input.
            ProjectCommand::new(ProjectTool::ClangFormat, directory, Vec::new())
                .per_file(words(argv), Ecosystem::Cpp.extensions())
        };
        profile.set(ProfileField::Format, format("clang-format -i"), &file);
        profile.set(ProfileField::FormatCheck, format("clang-format --dry-run --Werror"), &file);
    }
    Some(profile)
}

fn cmake(directory: &str, marker: &str) -> Profile {
    let mut profile = Profile::new(Ecosystem::Cpp, directory, marker);
    profile.set_manager(PackageManager::Cmake, marker);
    profile.set_install(directory, "cmake -S . -B build", marker);
    let command = |tool, argv| ProjectCommand::new(tool, directory, words(argv));
    let build = command(ProjectTool::Cmake, "cmake --build build");
    profile.set(ProfileField::Typecheck, build, marker);
    let test = command(ProjectTool::Ctest, "ctest --test-dir build --output-on-failure");
    profile.set(ProfileField::Test, test, marker);
    profile
}

/// Requires C or C++ sources, because a Makefile alone may belong to any ecosystem.
fn make(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let marker = reader.first(directory, makefile::NAMES)?;
    let sources = [directory.to_owned(), paths::join(directory, "src")];
    let has_sources =
        |directory: &String| !reader.files(directory, &[".c", ".cc", ".cpp", ".cxx"]).is_empty();
    if !sources.iter().any(has_sources) {
        return None;
    }
    let mut profile = Profile::new(Ecosystem::Cpp, directory, &marker);
    profile.set_manager(PackageManager::Make, &marker);
    let make = |argv: &str| ProjectCommand::new(ProjectTool::Make, directory, words(argv));
    profile.set(ProfileField::Typecheck, make("make"), &marker);
    let targets = makefile::targets(&reader.text(&marker).unwrap_or_default());
    let has_target = |name: &&str| targets.iter().any(|target| target == name);
    if let Some(name) = ["test", "check", "tests"].iter().find(|name| has_target(name)) {
        profile.set(ProfileField::Test, make(&format!("make {name}")), &marker);
    }
    if has_target(&"lint") {
        profile.set(ProfileField::Lint, make("make lint"), &marker);
    }
    Some(profile)
}
