//! The linter, formatter and type checker of a package.

use serde_json::Value;

use crate::manifest::parse_jsonc;
use crate::profile::{OptionPassing, Profile, ProfileField, ProjectCommand, SCRIPT_EXTENSIONS};
use crate::tool::ProjectTool;

use super::Project;
use super::script::{self, ScriptCommand, ScriptShape};

const BIOME: [&str; 4] = ["biome.json", "biome.jsonc", ".biome.json", ".biome.jsonc"];

const OXLINT: [&str; 2] = [".oxlintrc.json", "oxlintrc.json"];

const ESLINT: [&str; 12] = [
    "eslint.config.js",
    "eslint.config.mjs",
    "eslint.config.cjs",
    "eslint.config.ts",
    "eslint.config.mts",
    "eslint.config.cts",
    ".eslintrc",
    ".eslintrc.js",
    ".eslintrc.cjs",
    ".eslintrc.json",
    ".eslintrc.yml",
    ".eslintrc.yaml",
];

const PRETTIER: [&str; 14] = [
    ".prettierrc",
    ".prettierrc.json",
    ".prettierrc.json5",
    ".prettierrc.yml",
    ".prettierrc.yaml",
    ".prettierrc.toml",
    ".prettierrc.js",
    ".prettierrc.cjs",
    ".prettierrc.mjs",
    ".prettierrc.ts",
    "prettier.config.js",
    "prettier.config.cjs",
    "prettier.config.mjs",
    "prettier.config.ts",
];

const BIOME_EXTENSIONS: &[&str] =
    &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "json", "jsonc", "css"];

const PRETTIER_EXTENSIONS: &[&str] = &[
    "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "json", "jsonc", "json5", "css", "scss",
    "less", "html", "vue", "md", "mdx", "yml", "yaml", "graphql",
];

/// Arguments of lint scripts that change files or the report, and are dropped.
const DROPPED: [&str; 8] =
    ["--fix", "--write", "--apply", "--cache", "check", "lint", "--quiet", "--unsafe"];

/// Dropped options whose value is the next argument.
const DROPPED_WITH_VALUE: [&str; 5] = ["-f", "--format", "-o", "--output-file", "--reporter"];

impl Project<'_> {
    pub(super) fn add_lint(&self, profile: &mut Profile) {
        let settings = self
            .biome("linter", profile)
            .map(|file| (ProjectTool::Biome, file))
            .or_else(|| self.settings(&OXLINT, "oxlint").map(|file| (ProjectTool::Oxlint, file)))
            .or_else(|| {
                self.settings(&ESLINT, "eslintConfig").map(|file| (ProjectTool::Eslint, file))
            });
        if let Some((tool, file)) = settings {
            let line = self.script_line("lint", tool);
            return profile.set(ProfileField::Lint, self.linter(tool, line.as_ref()), &file);
        }
        let Some(text) = self.package.script("lint") else { return };
        let command = match script::read(text) {
            ScriptShape::Single(line) if is_linter(line.tool) => {
                self.linter(line.tool, Some(&line))
            }
            ScriptShape::EndsWith(line) if is_linter(line.tool) => self.through_linter(line.tool),
            ScriptShape::Single(_) | ScriptShape::EndsWith(_) | ScriptShape::Opaque => {
                self.opaque("lint")
            }
        };
        profile.set(ProfileField::Lint, command, &self.manifest);
    }

    fn linter(&self, tool: ProjectTool, line: Option<&ScriptCommand>) -> ProjectCommand {
        let (base, extensions) = match tool {
            ProjectTool::Biome => {
                ([self.program("biome"), vec!["check".to_owned()]].concat(), BIOME_EXTENSIONS)
            }
            other => (self.program(other.name()), SCRIPT_EXTENSIONS),
        };
        let kept = line.map(|line| kept(&line.arguments)).unwrap_or_default();
        let paths: Vec<String> = if kept.iter().any(|word| !word.starts_with('-')) {
            vec![]
        } else {
            vec![".".to_owned()]
        };
        let whole = [base.clone(), kept, paths].concat();
        let mut command =
            ProjectCommand::from_args(tool, self.directory, whole).per_file(base, extensions);
        command.environment = line.map(|line| line.environment.clone()).unwrap_or_default();
        command
    }

    fn through_linter(&self, tool: ProjectTool) -> ProjectCommand {
        let through = self.through_script("lint", tool);
        let linter = self.linter(tool, None);
        ProjectCommand { argv: through.argv, injection: through.injection, ..linter }
    }

    pub(super) fn add_format(&self, profile: &mut Profile) {
        if let Some(file) = self.biome("formatter", profile) {
            return self.set_format(profile, ProjectTool::Biome, &file);
        }
        let settings = self.settings(&PRETTIER, "prettier");
        let needed = || self.package.needs("prettier").then(|| self.manifest.clone());
        if let Some(file) = settings.or_else(needed) {
            self.set_format(profile, ProjectTool::Prettier, &file);
        }
    }

    fn set_format(&self, profile: &mut Profile, tool: ProjectTool, file: &str) {
        let (base, write, check, extensions): (_, &[&str], &[&str], _) = match tool {
            ProjectTool::Biome => (
                [self.program("biome"), vec!["format".to_owned()]].concat(),
                &["--write"],
                &[],
                BIOME_EXTENSIONS,
            ),
            _ => (
                self.program("prettier"),
                &["--ignore-unknown", "--write"],
                &["--ignore-unknown", "--check"],
                PRETTIER_EXTENSIONS,
            ),
        };
        let command = |options: &[&str]| {
            let single: Vec<String> =
                base.iter().cloned().chain(options.iter().map(|&w| w.to_owned())).collect();
            let whole = [single.clone(), vec![".".to_owned()]].concat();
            ProjectCommand::from_args(tool, self.directory, whole).per_file(single, extensions)
        };
        profile.set(ProfileField::Format, command(write), file);
        profile.set(ProfileField::FormatCheck, command(check), file);
    }

    pub(super) fn add_typecheck(&self, profile: &mut Profile) {
        let scripts = ["typecheck", "type-check", "check-types"];
        let script = scripts.iter().find_map(|name| Some((*name, self.package.script(name)?)));
        let line = script.and_then(|(_, text)| match script::read(text) {
            ScriptShape::Single(line) if line.tool == ProjectTool::Tsc => Some(line),
            ScriptShape::Single(_) | ScriptShape::EndsWith(_) | ScriptShape::Opaque => None,
        });
        let settings = self.reader.first(self.directory, &["tsconfig.json"]);
        let (command, file) = match (script, line, settings) {
            (_, Some(line), _) => (self.compiler(&line.arguments), self.manifest.clone()),
            (Some((name, _)), None, _) => (self.opaque(name), self.manifest.clone()),
            (None, None, Some(file)) => (self.compiler(&[]), file),
            (None, None, None) => return,
        };
        profile.set(ProfileField::Typecheck, command, &file);
    }

    fn compiler(&self, arguments: &[String]) -> ProjectCommand {
        let waits =
            |word: &&String| !matches!(word.as_str(), "--watch" | "-w" | "--noEmit" | "--pretty");
        let kept = arguments.iter().filter(waits).cloned().collect();
        let argv = [self.program("tsc"), vec!["--noEmit".to_owned()], kept].concat();
        ProjectCommand::from_args(ProjectTool::Tsc, self.directory, argv)
            .extensions(SCRIPT_EXTENSIONS)
    }

    fn opaque(&self, script: &str) -> ProjectCommand {
        let argv = self.run_script(script);
        let mut command =
            ProjectCommand::from_args(ProjectTool::Script, self.directory, argv).with("CI", "1");
        command.injection = OptionPassing::Impossible;
        command
    }

    /// Returns the command of a script that runs exactly one tool.
    fn script_line(&self, name: &str, tool: ProjectTool) -> Option<ScriptCommand> {
        match script::read(self.package.script(name)?) {
            ScriptShape::Single(line) if line.tool == tool => Some(line),
            ScriptShape::Single(_) | ScriptShape::EndsWith(_) | ScriptShape::Opaque => None,
        }
    }

    /// Returns the nearest settings file, or the manifest if it contains the settings.
    fn settings(&self, names: &[&str], key: &str) -> Option<String> {
        if self.package.settings.contains(&key) {
            return Some(self.manifest.clone());
        }
        self.reader.nearest(self.directory, names)
    }

    /// Returns Biome's settings file unless it disables a part of Biome.
    fn biome(&self, part: &str, profile: &mut Profile) -> Option<String> {
        let file = self.reader.nearest(self.directory, &BIOME)?;
        let settings = match self
            .reader
            .read(&file)
            .and_then(|text| parse_jsonc(&file, &text.unwrap_or_default()))
        {
            Ok(settings) => settings,
            // The project uses Biome, which will report the problem itself.
            Err(problem) => {
                if !profile.problems.contains(&problem) {
                    profile.problems.push(problem);
                }
                Value::Null
            }
        };
        (settings[part]["enabled"] != Value::Bool(false)).then_some(file)
    }
}

fn is_linter(tool: ProjectTool) -> bool {
    matches!(tool, ProjectTool::Eslint | ProjectTool::Biome | ProjectTool::Oxlint)
}

fn kept(arguments: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let name = word.split('=').next().unwrap_or(word);
        if DROPPED_WITH_VALUE.contains(&name) {
            if !word.contains('=') {
                rest.next();
            }
        } else if !DROPPED.contains(&word.as_str()) {
            kept.push(word.clone());
        }
    }
    kept
}
