//! Ruby: Bundler, `RSpec` or rake, `RuboCop`. All programs run through `bundle exec`, so the
//! versions of the lock file are used.

use crate::paths;
use crate::profile::{Ecosystem, PackageManager, Profile, ProfileField, ProjectCommand, args};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

const EXTENSIONS: &[&str] = &["rb", "rake"];

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let gemspec = || {
        let name = reader.files(directory, &[".gemspec"]).into_iter().next()?;
        Some(paths::join(directory, &name))
    };
    let marker = reader.first(directory, &["Gemfile"]).or_else(gemspec)?;
    let mut profile = Profile::new(Ecosystem::Ruby, directory, &marker);
    profile.set_manager(PackageManager::Bundler, &marker);
    let install = ProjectCommand::new(ProjectTool::Installer, directory, &["bundle", "install"]);
    profile.set(ProfileField::Install, install, &marker);
    let text = reader.text(&marker).unwrap_or_default();
    let exec = |tool: ProjectTool, tail: &[&str]| {
        let single = [args(&["bundle", "exec", tool.name()]), args(tail)].concat();
        ProjectCommand::from_args(tool, directory, single.clone()).per_file(single, EXTENSIONS)
    };
    let named = |file: &str, word: &str| {
        let own = reader.first(directory, &[file]);
        own.or_else(|| text.contains(word).then(|| marker.clone()))
    };
    let rake = reader.first(directory, &["Rakefile"]);
    match (named(".rspec", "rspec"), rake) {
        (Some(file), _) => profile.set(ProfileField::Test, exec(ProjectTool::Rspec, &[]), &file),
        (None, Some(file)) if reader.has_directory(&paths::join(directory, "test")) => {
            let argv = ["bundle", "exec", "rake", "test"];
            profile.set(
                ProfileField::Test,
                ProjectCommand::new(ProjectTool::Rake, directory, &argv),
                &file,
            );
        }
        (None, _) => {}
    }
    if let Some(file) = named(".rubocop.yml", "rubocop") {
        profile.set(ProfileField::Lint, exec(ProjectTool::Rubocop, &[]), &file);
        profile.set(ProfileField::Format, exec(ProjectTool::Rubocop, &["--fix-layout"]), &file);
        profile.set(
            ProfileField::FormatCheck,
            exec(ProjectTool::Rubocop, &["--only", "Layout"]),
            &file,
        );
    }
    Some(profile)
}
