//! .NET: solutions and projects.

use crate::lookup::Lookup;
use crate::paths;
use crate::profile::{Command, Ecosystem, Fact, PackageManager, Profile};
use crate::tool::Tool;

/// A solution is preferred to the projects in it.
static ENDINGS: [&str; 5] = [".sln", ".slnx", ".csproj", ".fsproj", ".vbproj"];

const EXTENSIONS: &[&str] = &["cs", "fs", "vb"];

pub(crate) fn detect(lookup: &Lookup<'_>, directory: &str) -> Option<Profile> {
    let files = lookup.files(directory, &ENDINGS);
    let name =
        ENDINGS.iter().find_map(|ending| files.iter().find(|name| name.ends_with(ending)))?;
    let marker = paths::join(directory, name);
    let mut profile = Profile::new(Ecosystem::Dotnet, directory, &marker);
    profile.set_manager(PackageManager::Dotnet, &marker);
    // The file is named because a directory with two of them is refused.
    let command = |tool, verb: &str, tail: &[&str]| {
        let argv = [&["dotnet", verb, name.as_str()], tail].concat();
        Command::new(tool, directory, &argv)
            .extensions(EXTENSIONS)
            .with("DOTNET_CLI_TELEMETRY_OPTOUT", "1")
            .with("DOTNET_NOLOGO", "1")
    };
    profile.set(Fact::Install, command(Tool::Installer, "restore", &[]), &marker);
    profile.set(Fact::Test, command(Tool::DotnetTest, "test", &[]), &marker);
    profile.set(Fact::Typecheck, command(Tool::DotnetBuild, "build", &[]), &marker);
    profile.set(Fact::Format, command(Tool::DotnetFormat, "format", &[]), &marker);
    let check = command(Tool::DotnetFormat, "format", &["--verify-no-changes"]);
    profile.set(Fact::FormatCheck, check, &marker);
    Some(profile)
}
