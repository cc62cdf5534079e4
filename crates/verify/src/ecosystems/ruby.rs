//! Ruby: bundler, `RSpec` or rake, `RuboCop`.

use crate::lookup::Lookup;
use crate::paths;
use crate::profile::{Command, Ecosystem, Fact, PackageManager, Profile, words};
use crate::tool::Tool;

const EXTENSIONS: &[&str] = &["rb", "rake"];

pub(crate) fn detect(lookup: &Lookup<'_>, directory: &str) -> Option<Profile> {
    let gemspec = || {
        let name = lookup.files(directory, &[".gemspec"]).into_iter().next()?;
        Some(paths::join(directory, &name))
    };
    let marker = lookup.first(directory, &["Gemfile"]).or_else(gemspec)?;
    let mut profile = Profile::new(Ecosystem::Ruby, directory, &marker);
    profile.set_manager(PackageManager::Bundler, &marker);
    let install = Command::new(Tool::Installer, directory, &["bundle", "install"]);
    profile.set(Fact::Install, install, &marker);
    let text = lookup.text(&marker).unwrap_or_default();
    let exec = |tool: Tool, tail: &[&str]| {
        let single = [words(&["bundle", "exec", tool.name()]), words(tail)].concat();
        Command::from_words(tool, directory, single.clone()).per_file(single, EXTENSIONS)
    };
    let named = |file: &str, word: &str| {
        let own = lookup.first(directory, &[file]);
        own.or_else(|| text.contains(word).then(|| marker.clone()))
    };
    let rake = lookup.first(directory, &["Rakefile"]);
    match (named(".rspec", "rspec"), rake) {
        (Some(file), _) => profile.set(Fact::Test, exec(Tool::Rspec, &[]), &file),
        (None, Some(file)) if lookup.has_directory(&paths::join(directory, "test")) => {
            let argv = ["bundle", "exec", "rake", "test"];
            profile.set(Fact::Test, Command::new(Tool::Rake, directory, &argv), &file);
        }
        (None, _) => {}
    }
    if let Some(file) = named(".rubocop.yml", "rubocop") {
        profile.set(Fact::Lint, exec(Tool::Rubocop, &[]), &file);
        profile.set(Fact::Format, exec(Tool::Rubocop, &["--fix-layout"]), &file);
        profile.set(Fact::FormatCheck, exec(Tool::Rubocop, &["--only", "Layout"]), &file);
    }
    Some(profile)
}
