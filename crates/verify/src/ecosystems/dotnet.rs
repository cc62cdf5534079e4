//! .NET solutions and projects. The solution or project file is always named, and telemetry is
//! switched off for every command.

use crate::paths;
use crate::profile::{Ecosystem, PackageManager, Profile, ProfileField, ProjectCommand, args};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

/// Suffixes of markers; a solution is preferred to the projects in it.
static SUFFIXES: [&str; 5] = [".sln", ".slnx", ".csproj", ".fsproj", ".vbproj"];

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let files = reader.files(directory, &SUFFIXES);
    let name =
        SUFFIXES.iter().find_map(|suffix| files.iter().find(|name| name.ends_with(suffix)))?;
    let marker = paths::join(directory, name);
    let mut profile = Profile::new(Ecosystem::Dotnet, directory, &marker);
    profile.set_manager(PackageManager::Dotnet, &marker);
    // The file is named because dotnet refuses a directory with two of them.
    let command = |tool, verb: &str, tail: &[&str]| {
        let argv = args(&[&["dotnet", verb, name.as_str()], tail].concat());
        ProjectCommand::new(tool, directory, argv)
            .extensions(Ecosystem::Dotnet.extensions())
            .with("DOTNET_CLI_TELEMETRY_OPTOUT", "1")
            .with("DOTNET_NOLOGO", "1")
    };
    profile.set(ProfileField::Install, command(ProjectTool::Installer, "restore", &[]), &marker);
    profile.set(ProfileField::Test, command(ProjectTool::DotnetTest, "test", &[]), &marker);
    profile.set(ProfileField::Typecheck, command(ProjectTool::DotnetBuild, "build", &[]), &marker);
    profile.set(ProfileField::Format, command(ProjectTool::DotnetFormat, "format", &[]), &marker);
    let check = command(ProjectTool::DotnetFormat, "format", &["--verify-no-changes"]);
    profile.set(ProfileField::FormatCheck, check, &marker);
    Some(profile)
}
