//! Makefiles: their targets as scripts, and the conventional ones as commands.
//!
//! The autotools write a Makefile that does not exist in a fresh checkout. Its targets are read from
//! `Makefile.in`, or are the ones that automake always makes.

use crate::paths;
use crate::profile::{PackageManager, Profile, ProfileField, ProjectCommand, args, words};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

/// Names that make looks for, in its order.
pub(crate) const NAMES: &str = "GNUmakefile makefile Makefile";

const MAX_TARGETS: usize = 200;

/// Conventional targets of every Makefile that automake writes.
const AUTOMAKE_TARGETS: &str = "check";

/// Conventional names of targets, in order of precedence.
const COMMANDS: [(ProfileField, &str); 3] = [
    (ProfileField::Test, "test check tests"),
    (ProfileField::Lint, "lint"),
    (ProfileField::Typecheck, "typecheck type-check"),
];

/// The build of a directory with make, with or without the autotools.
#[derive(Debug)]
pub(super) struct Build {
    /// The Makefile, or the file from which it is made.
    pub(super) file: String,
    targets: Vec<String>,
    /// Command that makes the Makefile, if it does not exist.
    configure: Option<&'static str>,
}

impl Build {
    pub(super) fn find(reader: &ProjectReader<'_>, directory: &str) -> Option<Self> {
        let made = reader.first(directory, NAMES);
        let targets = made.iter().flat_map(|file| all_targets(reader, directory, file)).collect();
        match (made, Self::autotools(reader, directory)) {
            (Some(file), None) => Some(Self { file, targets, configure: None }),
            // A `GNUmakefile` beside the autotools only includes the Makefile that they write.
            (Some(file), Some(build)) if paths::name(&file) != "GNUmakefile" => {
                let targets = [targets, build.targets].concat();
                Some(Self { file, targets, configure: None })
            }
            (_, build) => build,
        }
    }

    fn autotools(reader: &ProjectReader<'_>, directory: &str) -> Option<Self> {
        let file = reader.first(directory, "configure.ac configure.in configure")?;
        let template = reader.first(directory, "Makefile.am Makefile.in")?;
        let mut targets = targets(&reader.text(&template).unwrap_or_default());
        if paths::name(&template) == "Makefile.am" {
            targets.extend(words(AUTOMAKE_TARGETS));
        }
        let has_script = reader.has(&paths::join(directory, "configure"));
        let configure = Some(if has_script { "./configure" } else { "autoreconf --install" });
        Some(Self { file, targets, configure })
    }

    /// Returns true if a conventional target exists.
    pub(super) fn has_commands(&self) -> bool {
        COMMANDS.iter().any(|(_, names)| self.target(names).is_some())
    }

    fn target(&self, names: &'static str) -> Option<&'static str> {
        names.split(' ').find(|name| self.targets.iter().any(|target| target == name))
    }

    /// Sets the manager and the commands whose targets exist.
    pub(super) fn describe(&self, profile: &mut Profile) {
        let directory = profile.root.clone();
        profile.set_manager(PackageManager::Make, &self.file);
        if let Some(configure) = self.configure {
            profile.set_install(&directory, configure, &self.file);
        }
        for (field, names) in COMMANDS {
            if let Some(target) = self.target(names) {
                let argv = args(&["make", target]);
                let mut command = ProjectCommand::new(ProjectTool::Make, &directory, argv);
                if field == ProfileField::Test && self.configure.is_some() {
                    // Automake prints the log of a failed test only if asked.
                    command = command.with("VERBOSE", "1");
                }
                profile.set(field, command, &self.file);
            }
        }
    }
}

/// Adds the targets to the projects of a directory; a script of the same name takes precedence.
pub(crate) fn add_targets(reader: &ProjectReader<'_>, directory: &str, profiles: &mut [Profile]) {
    let Some(file) = reader.first(directory, NAMES) else { return };
    for target in all_targets(reader, directory, &file) {
        for profile in profiles.iter_mut() {
            if profile.scripts.iter().all(|known| known.name != target) {
                profile.add_script(&target, "", &file, args(&["make", &target]));
            }
        }
    }
}

/// Returns the targets of a Makefile, and those of the directory to which it passes all others.
fn all_targets(reader: &ProjectReader<'_>, directory: &str, file: &str) -> Vec<String> {
    let text = reader.text(file).unwrap_or_default();
    let mut found = targets(&text);
    let below = delegate(&text).and_then(|below| paths::resolve(directory, below));
    let file = below.and_then(|below| reader.first(&below, NAMES));
    let passed_on = file.and_then(|file| reader.text(&file)).map(|text| targets(&text));
    for target in passed_on.unwrap_or_default() {
        if !found.contains(&target) {
            found.push(target);
        }
    }
    found.truncate(MAX_TARGETS);
    found
}

/// Returns the directory of a recipe `.DEFAULT: cd DIRECTORY && $(MAKE) $@`.
fn delegate(text: &str) -> Option<&str> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(".DEFAULT:")).skip(1);
    let recipe = lines.next()?.strip_prefix('\t')?.trim_start_matches('@');
    let (directory, rest) = recipe.strip_prefix("cd ")?.split_once("&&")?;
    matches!(rest.trim(), "$(MAKE) $@" | "${MAKE} $@" | "make $@").then(|| directory.trim())
}

/// Returns the names of targets, in file order.
pub(crate) fn targets(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        let Some((names, rest)) = line.split_once(':') else { continue };
        // `a := b` and `a ::= b` are assignments; a recipe starts with a tab.
        if line.starts_with(['\t', ' ', '#', '.']) || rest.trim_start_matches(':').starts_with('=')
        {
            continue;
        }
        for name in names.split_whitespace() {
            if is_plain(name) && !found.iter().any(|known| known == name) {
                found.push(name.to_owned());
            }
        }
    }
    found.truncate(MAX_TARGETS);
    found
}

/// Returns false for patterns, variables and file names.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    paths::extension(name).is_empty() && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_targets_are_listed() {
        let text = "CC := gcc\nX ::= y\n.PHONY: all test\nall: build\nbuild lint: main.o\n\tcc -o x: y\n%.o: %.c\n$(OUT): z\nmain.o: main.c\ntest:\n";
        assert_eq!(targets(text), ["all", "build", "lint", "test"]);
    }

    #[test]
    fn a_default_recipe_names_the_directory_of_all_other_targets() {
        assert_eq!(delegate("all:\n\n.DEFAULT:\n\tcd src && $(MAKE) $@\n"), Some("src"));
        assert_eq!(delegate(".DEFAULT:\n\t@echo $@\n"), None);
        assert_eq!(delegate("all:\n"), None);
    }
}
