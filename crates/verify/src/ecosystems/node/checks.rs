//! The linter, formatter and type checker of a package.

use serde_json::Value;

use crate::manifest::parse_jsonc;
use crate::profile::{Profile, ProfileField, ProjectCommand, SCRIPT_EXTENSIONS, has_word, words};
use crate::tool::ProjectTool;

use super::Project;
use super::script::{self, ScriptCommand, ScriptShape};

const BIOME: &str = "biome.json biome.jsonc .biome.json .biome.jsonc";

const OXLINT: &str = ".oxlintrc.json oxlintrc.json";

const ESLINT: &str = "eslint.config.js eslint.config.mjs eslint.config.cjs eslint.config.ts \
    eslint.config.mts eslint.config.cts .eslintrc .eslintrc.js .eslintrc.cjs .eslintrc.json \
    .eslintrc.yml .eslintrc.yaml";

const PRETTIER: &str = ".prettierrc .prettierrc.json .prettierrc.json5 .prettierrc.yml \
    .prettierrc.yaml .prettierrc.toml .prettierrc.js .prettierrc.cjs .prettierrc.mjs \
    .prettierrc.ts prettier.config.js prettier.config.cjs prettier.config.mjs prettier.config.ts";

const BIOME_EXTENSIONS: &str = "js jsx mjs cjs ts tsx mts cts json jsonc css";

const PRETTIER_EXTENSIONS: &str = "js jsx mjs cjs ts tsx mts cts json jsonc json5 css scss less \
    html vue md mdx yml yaml graphql";

const OXFMT: &str = ".oxfmtrc.json .oxfmtrc.jsonc oxfmt.config.ts";

/// Names of scripts by the field that they are for, in order of precedence.
const LINT_SCRIPTS: &str = "lint lint:check check:lint lint:code lint:js lint:ts lint:*";
const FORMAT_SCRIPTS: &str = "format fmt format:fix format:write prettier:write prettier:fix";
const FORMAT_CHECK_SCRIPTS: &str =
    "format:check check:format format-check fmt:check lint:format prettier:check";
const TYPECHECK_SCRIPTS: &str = "typecheck type-check check-types check:types check:type types:check \
    check:ts test:types lint:types tsc";

/// Arguments of lint scripts that change files or the report, and are dropped.
const DROPPED: &str = "--fix --write --apply --cache check lint --quiet --unsafe";

/// Dropped options whose value is the next argument.
const DROPPED_WITH_VALUE: &str = "-f --format -o --output-file --reporter";

/// Bounds the scripts that run each other by name.
pub(super) const MAX_SCRIPT_DEPTH: usize = 3;

impl Project<'_> {
    pub(super) fn add_lint(&self, profile: &mut Profile) {
        let of_tool = |tool| move |file| (tool, file);
        let settings = self
            .biome("linter", profile)
            .map(of_tool(ProjectTool::Biome))
            .or_else(|| self.settings(OXLINT, "oxlint").map(of_tool(ProjectTool::Oxlint)))
            .or_else(|| self.settings(ESLINT, "eslintConfig").map(of_tool(ProjectTool::Eslint)));
        if let Some((tool, file)) = settings {
            let script = self.package.first_script(LINT_SCRIPTS);
            let line = script.and_then(|(name, _)| self.linter_line(name, tool));
            return profile.set(ProfileField::Lint, self.linter(tool, line.as_ref()), &file);
        }
        let Some((name, text)) = self.package.first_script(LINT_SCRIPTS) else { return };
        let command = match script::read(text) {
            ScriptShape::Single(line) if is_linter(line.tool) => {
                self.linter(line.tool, Some(&line))
            }
            // A script that writes is reduced to its linter, without the option for it.
            ScriptShape::EndsWith(line) if is_linter(line.tool) && text.contains("--fix") => {
                self.linter(line.tool, Some(&line))
            }
            ScriptShape::EndsWith(line) if is_linter(line.tool) => {
                self.through_linter(name, line.tool)
            }
            ScriptShape::Single(_) | ScriptShape::EndsWith(_) | ScriptShape::Opaque => {
                self.opaque(name)
            }
        };
        profile.set(ProfileField::Lint, command, &self.manifest);
    }

    fn linter(&self, tool: ProjectTool, line: Option<&ScriptCommand>) -> ProjectCommand {
        let (base, extensions) = match tool {
            ProjectTool::Biome => {
                ([self.program("biome"), words("check")].concat(), BIOME_EXTENSIONS)
            }
            other => (self.program(other.name()), SCRIPT_EXTENSIONS),
        };
        let kept = line.map(|line| kept(&line.arguments)).unwrap_or_default();
        let has_paths = kept.iter().any(|word| !word.starts_with('-'));
        let paths = words(if has_paths { "" } else { "." });
        let whole = [base.clone(), kept, paths].concat();
        let mut command =
            ProjectCommand::new(tool, self.directory, whole).per_file(base, extensions);
        command.environment = line.map(|line| line.environment.clone()).unwrap_or_default();
        command.leave_out = !has_paths && !self.excludes(tool);
        command
    }

    /// Returns true if the project configures exclusions for a linter.
    fn excludes(&self, tool: ProjectTool) -> bool {
        let names = if tool == ProjectTool::Oxlint { OXLINT } else { ESLINT };
        let settings = self.reader.nearest(self.directory, names);
        let text = settings.and_then(|file| self.reader.text(&file)).unwrap_or_default();
        let words = ["ignores", "ignorePatterns", "globalIgnores"];
        self.reader.nearest(self.directory, ".eslintignore").is_some()
            || words.iter().any(|word| text.contains(word))
    }

    fn through_linter(&self, script: &str, tool: ProjectTool) -> ProjectCommand {
        let through = self.through_script(script, tool);
        let linter = self.linter(tool, None);
        ProjectCommand { argv: through.argv, injection: through.injection, ..linter }
    }

    pub(super) fn add_format(&self, profile: &mut Profile) {
        if let Some(file) = self.biome("formatter", profile) {
            let base = [self.program("biome"), words("format")].concat();
            let format = |options| {
                let argv = [base.clone(), words(options)].concat();
                let tool = ProjectTool::Biome;
                ProjectCommand::for_files(tool, self.directory, argv, ".", BIOME_EXTENSIONS)
            };
            profile.set(ProfileField::Format, format("--write"), &file);
            return profile.set(ProfileField::FormatCheck, format(""), &file);
        }
        let settings = self.settings(PRETTIER, "prettier");
        let needed = || self.package.needs("prettier").then(|| self.manifest.clone());
        if let Some(file) = settings.or_else(needed) {
            let base = self.program("prettier");
            let format = |options| {
                let argv = [base.clone(), words(options)].concat();
                let tool = ProjectTool::Prettier;
                ProjectCommand::for_files(tool, self.directory, argv, ".", PRETTIER_EXTENSIONS)
            };
            profile.set(ProfileField::Format, format("--ignore-unknown --write"), &file);
            return profile.set(
                ProfileField::FormatCheck,
                format("--ignore-unknown --check"),
                &file,
            );
        }
        self.add_format_scripts(profile);
    }

    /// Sets the formatter of the project's own scripts: oxfmt directly, any other as a script.
    fn add_format_scripts(&self, profile: &mut Profile) {
        let script = self.package.first_script(FORMAT_SCRIPTS);
        let uses_oxfmt =
            script.is_some_and(|(name, _)| self.script_line(name, ProjectTool::Oxfmt).is_some());
        let settings = self.reader.nearest(self.directory, OXFMT);
        let oxfmt = settings.or_else(|| uses_oxfmt.then(|| self.manifest.clone()));
        if let Some(file) = oxfmt {
            let format = |options| {
                let argv = [self.program("oxfmt"), words(options)].concat();
                let tool = ProjectTool::Oxfmt;
                ProjectCommand::for_files(tool, self.directory, argv, "", SCRIPT_EXTENSIONS)
            };
            profile.set(ProfileField::Format, format(""), &file);
            return profile.set(ProfileField::FormatCheck, format("--check"), &file);
        }
        if let Some((name, _)) = script {
            profile.set(ProfileField::Format, self.opaque(name), &self.manifest);
        }
        if let Some((name, _)) = self.package.first_script(FORMAT_CHECK_SCRIPTS) {
            profile.set(ProfileField::FormatCheck, self.opaque(name), &self.manifest);
        }
    }

    pub(super) fn add_typecheck(&self, profile: &mut Profile) {
        let script = self.package.first_script(TYPECHECK_SCRIPTS);
        let line = script.and_then(|(name, _)| self.script_line(name, ProjectTool::Tsc));
        let settings = self.reader.first(self.directory, "tsconfig.json");
        let (command, file) = match (script, line, settings) {
            (_, Some(line), _) => (self.compiler(&line.arguments), self.manifest.clone()),
            (Some((name, _)), None, _) => (self.opaque(name), self.manifest.clone()),
            (None, None, Some(file)) => (self.compiler(&[]), file),
            (None, None, None) => return,
        };
        profile.set(ProfileField::Typecheck, command, &file);
    }

    fn compiler(&self, arguments: &[String]) -> ProjectCommand {
        let kept = |word: &&String| !has_word("--watch -w --noEmit --pretty", word);
        let kept = arguments.iter().filter(kept).cloned().collect();
        let argv = [self.program("tsc"), words("--noEmit"), kept].concat();
        ProjectCommand::new(ProjectTool::Tsc, self.directory, argv).extensions(SCRIPT_EXTENSIONS)
    }

    fn opaque(&self, script: &str) -> ProjectCommand {
        ProjectCommand::script(self.directory, self.run_script(script))
    }

    /// Returns the command of a script that runs exactly one tool.
    fn script_line(&self, name: &str, tool: ProjectTool) -> Option<ScriptCommand> {
        match script::read(self.package.script(name)?) {
            ScriptShape::Single(line) if line.tool == tool => Some(line),
            ScriptShape::Single(_) | ScriptShape::EndsWith(_) | ScriptShape::Opaque => None,
        }
    }

    /// Returns the command of a linter in a script and in the scripts that it runs by name. Several commands
    /// become one with all their paths; `None` if they have options, which may not fit together.
    fn linter_line(&self, name: &str, tool: ProjectTool) -> Option<ScriptCommand> {
        let lines = self.commands_of(name, tool, MAX_SCRIPT_DEPTH);
        let is_plain = |line: &ScriptCommand| {
            line.environment.is_empty()
                && kept(&line.arguments).iter().all(|word| !word.starts_with('-'))
        };
        let together = lines.len() == 1 || lines.iter().all(is_plain);
        lines.into_iter().filter(|_| together).reduce(|mut all, line| {
            all.arguments.extend(line.arguments);
            all
        })
    }

    /// Returns the commands of a tool in a script and in the scripts that it runs by name.
    pub(super) fn commands_of(
        &self,
        name: &str,
        tool: ProjectTool,
        depth: usize,
    ) -> Vec<ScriptCommand> {
        let text = self.package.script(name).unwrap_or_default();
        let mut found = Vec::new();
        for part in text.split("&&").map(str::trim) {
            match (script::read(part), script::named_script(part)) {
                (ScriptShape::Single(line), _) if line.tool == tool => found.push(line),
                (_, Some(inner)) if depth > 0 => {
                    found.extend(self.commands_of(inner, tool, depth - 1));
                }
                (ScriptShape::Single(_) | ScriptShape::EndsWith(_) | ScriptShape::Opaque, _) => {}
            }
        }
        found
    }

    /// Returns the nearest settings file, or the manifest if it contains the settings.
    fn settings(&self, names: &'static str, key: &str) -> Option<String> {
        if self.package.settings.contains(&key) {
            return Some(self.manifest.clone());
        }
        self.reader.nearest(self.directory, names)
    }

    /// Returns Biome's settings file unless it disables a part of Biome.
    fn biome(&self, part: &str, profile: &mut Profile) -> Option<String> {
        let file = self.reader.nearest(self.directory, BIOME)?;
        // The project uses Biome, which will report a problem itself.
        let settings = profile.accept(self.reader.document(&file, parse_jsonc)).unwrap_or_default();
        profile.problems.dedup();
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
        if has_word(DROPPED_WITH_VALUE, name) {
            if !word.contains('=') {
                rest.next();
            }
        } else if !has_word(DROPPED, word) {
            kept.push(word.clone());
        }
    }
    kept
}
