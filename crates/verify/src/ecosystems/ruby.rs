//! Ruby: Bundler, `RSpec` or rake, `RuboCop`. With a `Gemfile` all programs run through `bundle exec`, so the
//! versions of the lock file are used; without one, Bundler cannot run.

use crate::paths;
use crate::profile::{Ecosystem, PackageManager, Profile, ProfileField, ProjectCommand, words};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let gemspec = || {
        let name = reader.files(directory, &[".gemspec"]).into_iter().next()?;
        Some(paths::join(directory, &name))
    };
    let gemfile = reader.first(directory, "Gemfile");
    let is_bundled = gemfile.is_some();
    let marker = gemfile.or_else(gemspec)?;
    let mut profile = Profile::new(Ecosystem::Ruby, directory, &marker);
    profile.set_manager(PackageManager::Bundler, &marker);
    if is_bundled {
        profile.set_install(directory, "bundle install", &marker);
    }
    let text = reader.text(&marker).unwrap_or_default();
    let extensions = Ecosystem::Ruby.extensions();
    let through = |argv| {
        let launcher = if is_bundled { "bundle exec" } else { "" };
        [words(launcher), words(argv)].concat()
    };
    let exec =
        |tool, argv| ProjectCommand::for_files(tool, directory, through(argv), "", extensions);
    let named = |file, word: &str| {
        let own = reader.first(directory, file);
        own.or_else(|| text.contains(word).then(|| marker.clone()))
    };
    let rake = reader.first(directory, "Rakefile");
    match (named(".rspec", "rspec"), rake) {
        (Some(file), _) => {
            profile.set(ProfileField::Test, exec(ProjectTool::Rspec, "rspec"), &file);
        }
        (None, Some(file)) if reader.has_directory(&paths::join(directory, "test")) => {
            let argv = through("rake test");
            let command = ProjectCommand::new(ProjectTool::Rake, directory, argv);
            profile.set(ProfileField::Test, command, &file);
        }
        (None, _) => {}
    }
    if let Some(file) = named(".rubocop.yml", "rubocop") {
        let mut set = |field, argv| profile.set(field, exec(ProjectTool::Rubocop, argv), &file);
        set(ProfileField::Lint, "rubocop");
        set(ProfileField::Format, "rubocop --fix-layout");
        set(ProfileField::FormatCheck, "rubocop --only Layout");
    }
    Some(profile)
}
