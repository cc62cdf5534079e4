//! Which runner a package's tests have.

use crate::profile::{
    Granularity, OptionPassing, PackageManager, Profile, ProfileField, ProjectCommand,
    SCRIPT_EXTENSIONS,
};
use crate::tool::ProjectTool;

use super::Project;
use super::script::{self, ScriptCommand, ScriptShape};

/// Settings files, the first that is found names the runner.
const SETTINGS: [(ProjectTool, &[&str]); 3] = [
    (
        ProjectTool::Vitest,
        &[
            "vitest.config.ts",
            "vitest.config.js",
            "vitest.config.mts",
            "vitest.config.mjs",
            "vitest.config.cts",
            "vitest.config.cjs",
            "vitest.workspace.ts",
            "vitest.workspace.js",
        ],
    ),
    (
        ProjectTool::Jest,
        &[
            "jest.config.js",
            "jest.config.ts",
            "jest.config.mjs",
            "jest.config.cjs",
            "jest.config.json",
        ],
    ),
    (
        ProjectTool::Mocha,
        &[
            ".mocharc.js",
            ".mocharc.cjs",
            ".mocharc.mjs",
            ".mocharc.json",
            ".mocharc.jsonc",
            ".mocharc.yml",
            ".mocharc.yaml",
        ],
    ),
];

/// Arguments that keep a runner waiting for changes.
const WAITING: [&str; 9] = [
    "--watch",
    "--watchAll",
    "-w",
    "--ui",
    "--open",
    "--watch=true",
    "--watchAll=true",
    "watch",
    "dev",
];

/// Arguments that replace a runner's report, or that every command line has anyway.
const DROPPED: [&str; 6] = ["--json", "--silent", "--verbose", "--test", "run", "test"];

/// The same with a value as the next word.
const DROPPED_WITH_VALUE: [&str; 6] = [
    "--reporter",
    "-R",
    "--reporters",
    "--outputFile",
    "--test-reporter",
    "--test-reporter-destination",
];

/// Options of runners whose value is the next word, so that it is no file.
const WITH_VALUE: [&str; 22] = [
    "-c",
    "--config",
    "-r",
    "--require",
    "--import",
    "--loader",
    "--project",
    "--selectProjects",
    "--timeout",
    "-t",
    "--environment",
    "--env",
    "--root",
    "--dir",
    "--extension",
    "--ui-name",
    "--testEnvironment",
    "--max-workers",
    "--maxWorkers",
    "--spec",
    "--ignore",
    "--experimental-loader",
];

impl Project<'_> {
    pub(super) fn add_test(&self, profile: &mut Profile) {
        if let Some(text) = self.package.script("test").filter(|text| !script::is_placeholder(text))
        {
            let command = self.test_of_script(text);
            return profile.set(ProfileField::Test, command, &self.manifest);
        }
        if let Some((tool, file)) = self.runner_without_script() {
            profile.set(ProfileField::Test, self.runner(tool, &[]), &file);
        }
    }

    /// A script of one known command is run without the package manager, unless other
    /// scripts hang on it; every other one is run as it is.
    fn test_of_script(&self, text: &str) -> ProjectCommand {
        let hooked = ["pretest", "posttest"].iter().any(|name| self.package.script(name).is_some());
        match script::read(text) {
            ScriptShape::Single(line) if is_runner(line.tool) && (!hooked || waits(&line)) => {
                self.runner_of_line(line)
            }
            // What keeps it waiting cannot be taken out of a script, so the runner is run alone.
            ScriptShape::EndsWith(line) if is_runner(line.tool) && waits(&line) => {
                self.runner_of_line(line)
            }
            ScriptShape::Single(line) | ScriptShape::EndsWith(line) if is_runner(line.tool) => {
                self.through_script("test", line.tool)
            }
            ScriptShape::Single(_) | ScriptShape::EndsWith(_) | ScriptShape::Opaque => {
                self.opaque_test()
            }
        }
    }

    fn opaque_test(&self) -> ProjectCommand {
        let mut command =
            ProjectCommand::from_args(ProjectTool::Script, self.directory, self.run_script("test"));
        // The script may end in a runner that is installed, which then serves for single files.
        let known = [ProjectTool::Vitest, ProjectTool::Jest, ProjectTool::Mocha];
        if let Some(tool) = known.into_iter().find(|tool| self.has_program(tool.name())) {
            command.file_argv = self.runner(tool, &[]).file_argv;
            command.scope = Granularity::Files;
        }
        command.injection = OptionPassing::Impossible;
        command.with("CI", "1")
    }

    /// Runs a script whose last command is a tool that options can reach.
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

    /// Builds the command of a runner with the arguments that a script gives it.
    pub(super) fn runner(&self, tool: ProjectTool, arguments: &[String]) -> ProjectCommand {
        let base = match tool {
            ProjectTool::NodeTest => vec!["node".to_owned(), "--test".to_owned()],
            ProjectTool::BunTest => vec!["bun".to_owned(), "test".to_owned()],
            ProjectTool::Vitest => [self.program("vitest"), vec!["run".to_owned()]].concat(),
            other => self.program(other.name()),
        };
        let (options, files) = sort(arguments);
        let single = [base, options].concat();
        let whole = [single.clone(), files].concat();
        ProjectCommand::from_args(tool, self.directory, whole)
            .per_file(single, SCRIPT_EXTENSIONS)
            .with("CI", "1")
    }

    fn runner_without_script(&self) -> Option<(ProjectTool, String)> {
        let settings = SETTINGS.iter().find_map(|(tool, names)| {
            self.reader.first(self.directory, names).map(|file| (*tool, file))
        });
        let in_manifest = || {
            [ProjectTool::Vitest, ProjectTool::Jest, ProjectTool::Mocha].into_iter().find(|tool| {
                self.package.settings.contains(&tool.name()) || self.package.needs(tool.name())
            })
        };
        settings
            .or_else(|| in_manifest().map(|tool| (tool, self.manifest.clone())))
            .or_else(|| self.bun().map(|file| (ProjectTool::BunTest, file)))
    }

    fn bun(&self) -> Option<String> {
        (self.manager.kind == PackageManager::Bun).then(|| self.manager.file.clone())
    }
}

fn is_runner(tool: ProjectTool) -> bool {
    matches!(
        tool,
        ProjectTool::Jest
            | ProjectTool::Vitest
            | ProjectTool::Mocha
            | ProjectTool::NodeTest
            | ProjectTool::BunTest
    )
}

/// Tells whether a command would wait for changes.
fn waits(line: &ScriptCommand) -> bool {
    line.arguments.iter().any(|word| WAITING.contains(&word.as_str()))
}

/// Splits arguments into options and files, and drops those that wait or print otherwise.
fn sort(arguments: &[String]) -> (Vec<String>, Vec<String>) {
    let mut options = Vec::new();
    let mut files = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let name = word.split('=').next().unwrap_or(word);
        if DROPPED.contains(&word.as_str()) || WAITING.contains(&word.as_str()) {
            continue;
        }
        if DROPPED_WITH_VALUE.contains(&name) {
            if !word.contains('=') {
                rest.next();
            }
        } else if WITH_VALUE.contains(&word.as_str()) {
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
    fn arguments_that_wait_or_print_otherwise_are_dropped() {
        let words = "run --watch --reporter dot --config a.js --coverage src".split(' ');
        let words: Vec<String> = words.map(str::to_owned).collect();
        let (options, files) = sort(&words);
        assert_eq!(options, ["--config", "a.js", "--coverage"]);
        assert_eq!(files, ["src"]);
    }
}
