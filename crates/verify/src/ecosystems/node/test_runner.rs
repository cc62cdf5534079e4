//! The test runner of a package.
//!
//! The `test` script decides, unless it is the placeholder of `npm init`; then settings files and
//! dependencies do. A script of one known runner is planned directly, without watch mode and with a
//! report. Any other script is run by the package manager and judged by its exit status.

use crate::profile::{
    Granularity, OptionPassing, PackageManager, Profile, ProfileField, ProjectCommand,
    SCRIPT_EXTENSIONS, has_word, words,
};
use crate::tool::ProjectTool;

use super::Project;
use super::checks::MAX_SCRIPT_DEPTH;
use super::script::{self, ScriptCommand, ScriptShape};

/// Runners that a package installs, with their settings files, in order of precedence.
const INSTALLED: [(ProjectTool, &str); 3] = [
    (
        ProjectTool::Vitest,
        "vitest.config.ts vitest.config.js vitest.config.mts vitest.config.mjs vitest.config.cts \
         vitest.config.cjs vitest.workspace.ts vitest.workspace.js",
    ),
    (
        ProjectTool::Jest,
        "jest.config.js jest.config.ts jest.config.mjs jest.config.cjs jest.config.json",
    ),
    (
        ProjectTool::Mocha,
        ".mocharc.js .mocharc.cjs .mocharc.mjs .mocharc.json .mocharc.jsonc .mocharc.yml \
         .mocharc.yaml",
    ),
];

/// Packages that find test files and give them to the runner of Node, in order to add options of their own.
const NODE_WRAPPERS: [&str; 1] = ["borp"];

/// Script of the tests, by the convention of npm.
const TEST: &str = "test";

/// Other names of the same, in order of precedence.
const OTHER_SCRIPTS: &str = "test:run test:once test:ci tests unit test:unit unit-test test:all test:* check:test check:tests";

/// Arguments of watch modes, which never end.
const WATCH_ARGUMENTS: &str =
    "--watch --watchAll -w --ui --open --watch=true --watchAll=true watch dev";

/// Arguments that change the report, or that the planned command has already.
const DROPPED: &str = "--json --silent --verbose --test run test -u --update --updateSnapshot --test-update-snapshots";

/// Dropped options whose value is the next argument.
const DROPPED_WITH_VALUE: &str = "--reporter -R --reporters --outputFile --test-reporter \
    --test-reporter-destination";

/// Options whose value is the next argument, which must not be taken for a file.
const WITH_VALUE: &str = "-c --config -r --require --import --loader --project --selectProjects \
    --timeout -t --environment --env --root --dir --extension --ui-name --testEnvironment \
    --max-workers --maxWorkers --spec --ignore --experimental-loader";

impl Project<'_> {
    pub(super) fn add_test(&self, profile: &mut Profile) {
        let test = self.test_script();
        if let Some((name, text)) = test.filter(|(name, _)| *name == TEST) {
            return profile.set(
                ProfileField::Test,
                self.test_of_script(name, text),
                &self.manifest,
            );
        }
        if let Some((tool, file)) = self.runner_without_script() {
            profile.set(ProfileField::Test, self.runner(tool, &[]), &file);
        } else if let Some((name, text)) = test {
            profile.set(ProfileField::Test, self.test_of_script(name, text), &self.manifest);
        }
    }

    /// Returns the script `test`, or one of a name such as `test:unit` if there is none, if it is
    /// the placeholder of `npm init`, or if it never ends and cannot be taken apart.
    fn test_script(&self) -> Option<(&str, &str)> {
        let never_ends = |text: &str| {
            let watches = text.split_whitespace().any(|word| has_word(WATCH_ARGUMENTS, word));
            watches && script::read(text) == ScriptShape::Opaque
        };
        let main = self.package.first_script(TEST);
        let main = main.filter(|(_, text)| !script::is_placeholder(text));
        match main {
            Some((_, text)) if never_ends(text) => {
                let other = self.package.first_script(OTHER_SCRIPTS);
                other.filter(|(_, text)| !never_ends(text)).or(main)
            }
            Some(_) => main,
            None => self.package.first_script(OTHER_SCRIPTS).filter(|(_, text)| !never_ends(text)),
        }
    }

    /// A script of one known command is run directly, unless it has `pretest` or `posttest` hooks;
    /// other scripts are run by the package manager.
    fn test_of_script(&self, name: &str, text: &str) -> ProjectCommand {
        let hooks = [format!("pre{name}"), format!("post{name}")];
        let hooked = hooks.iter().any(|hook| self.package.script(hook).is_some());
        match script::read(text) {
            ScriptShape::Single(line)
                if line.tool.is_node_runner() && (!hooked || watches(&line)) =>
            {
                self.runner_of_line(line)
            }
            // Watch mode cannot be removed from a script, so the runner is run without it.
            ScriptShape::EndsWith(line) if line.tool.is_node_runner() && watches(&line) => {
                self.runner_of_line(line)
            }
            ScriptShape::Single(line) | ScriptShape::EndsWith(line)
                if line.tool.is_node_runner() =>
            {
                self.through_script(name, line.tool)
            }
            ScriptShape::Single(_) | ScriptShape::EndsWith(_) | ScriptShape::Opaque => {
                self.opaque_test(name)
            }
        }
    }

    fn opaque_test(&self, name: &str) -> ProjectCommand {
        let mut command = ProjectCommand::script(self.directory, self.run_script(name));
        // A known runner serves for single files even if the script is opaque.
        let installed = INSTALLED.iter().find(|(tool, _)| self.installed(tool.name()).is_some());
        let of_node = || self.uses_node_runner(name).then_some(ProjectTool::NodeTest);
        if let Some(tool) = installed.map(|(tool, _)| *tool).or_else(of_node) {
            command.file_argv = self.runner(tool, &[]).file_argv;
            command.scope = Granularity::Files;
        }
        command
    }

    /// Returns true if tests are written for the runner of Node itself: a script runs it, or a wrapper of it
    /// is among the dependencies.
    fn uses_node_runner(&self, script: &str) -> bool {
        NODE_WRAPPERS.iter().any(|wrapper| self.package.needs(wrapper))
            || !self.commands_of(script, ProjectTool::NodeTest, MAX_SCRIPT_DEPTH).is_empty()
    }

    /// Returns a command that runs a script and appends options for its last command.
    pub(super) fn through_script(&self, name: &str, tool: ProjectTool) -> ProjectCommand {
        let direct = self.runner(tool, &[]);
        let argv = self.run_script(name);
        let injection = match self.manager.kind {
            PackageManager::Npm => OptionPassing::ScriptAfterDashes,
            _ => OptionPassing::Script,
        };
        ProjectCommand { argv, injection, ..direct }
    }

    fn runner_of_line(&self, line: ScriptCommand) -> ProjectCommand {
        let mut command = self.runner(line.tool, &line.arguments);
        command.environment.extend(line.environment);
        command
    }

    /// Returns the command of a runner with the arguments of a script.
    pub(super) fn runner(&self, tool: ProjectTool, arguments: &[String]) -> ProjectCommand {
        let base = match tool {
            ProjectTool::NodeTest | ProjectTool::BunTest => words(tool.name()),
            ProjectTool::Vitest => [self.program("vitest"), words("run")].concat(),
            other => self.program(other.name()),
        };
        let (options, files) = split_arguments(arguments);
        let single = [base, options].concat();
        let whole = [single.clone(), files].concat();
        ProjectCommand::new(tool, self.directory, whole)
            .per_file(single, SCRIPT_EXTENSIONS)
            .with("CI", "1")
    }

    fn runner_without_script(&self) -> Option<(ProjectTool, String)> {
        let settings = INSTALLED.iter().find_map(|(tool, names)| {
            self.reader.first(self.directory, names).map(|file| (*tool, file))
        });
        let in_manifest = || {
            let (tool, _) = INSTALLED.iter().find(|(tool, _)| {
                self.package.settings.contains(&tool.name()) || self.package.needs(tool.name())
            })?;
            Some((*tool, self.manifest.clone()))
        };
        let bun = || {
            let file = self.manager.file.clone();
            (self.manager.kind == PackageManager::Bun).then_some((ProjectTool::BunTest, file))
        };
        settings.or_else(in_manifest).or_else(bun)
    }
}

/// Returns true if a command would run in watch mode.
fn watches(line: &ScriptCommand) -> bool {
    line.arguments.iter().any(|word| has_word(WATCH_ARGUMENTS, word))
}

/// Splits arguments into options and files, without watch modes and other report formats.
fn split_arguments(arguments: &[String]) -> (Vec<String>, Vec<String>) {
    let mut options = Vec::new();
    let mut files = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let name = word.split('=').next().unwrap_or(word);
        if has_word(DROPPED, word) || has_word(WATCH_ARGUMENTS, word) {
            continue;
        }
        if has_word(DROPPED_WITH_VALUE, name) {
            if !word.contains('=') {
                rest.next();
            }
        } else if has_word(WITH_VALUE, word) {
            options.push(word.clone());
            options.extend(rest.next().cloned());
        } else if word.starts_with('-') {
            options.push(word.clone());
        } else {
            files.push(word.clone());
        }
    }
    (options, files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watch_modes_and_reporters_are_dropped() {
        let words = "run --watch --reporter dot --config a.js --coverage src".split(' ');
        let words: Vec<String> = words.map(str::to_owned).collect();
        let (options, files) = split_arguments(&words);
        assert_eq!(options, ["--config", "a.js", "--coverage"]);
        assert_eq!(files, ["src"]);
    }
}
