//! The linter, formatter and type checker of a Python project.

use crate::manifest::Toml;
use crate::paths;
use crate::profile::{Ecosystem, Profile, ProfileField, ProjectCommand, has_word, words};
use crate::tool::ProjectTool;

use super::{PYPROJECT, Project};

const REQUIREMENTS: &str = "requirements.txt requirements-dev.txt dev-requirements.txt \
    requirements_dev.txt requirements-test.txt test-requirements.txt requirements/dev.txt";

/// Bounds the entries that are looked into for packages.
const MAX_PACKAGES: usize = 50;

/// Directory of the sources, by convention.
const SOURCES: &str = "src";

/// Settings of mypy that choose the files; a path in the arguments would override them.
const MYPY_PATHS: &str = "files packages modules";

impl Project<'_> {
    pub(super) fn add_lint(&self, profile: &mut Profile) {
        let settings = [
            (ProjectTool::Ruff, self.ruff_settings()),
            (ProjectTool::Flake8, self.flake8_settings()),
            (ProjectTool::Pylint, self.pylint_settings()),
        ];
        self.add_check(profile, ProfileField::Lint, settings);
    }

    /// Sets the first of several tools that has settings, or else is mentioned, or else the first.
    fn add_check<const N: usize>(
        &self,
        profile: &mut Profile,
        field: ProfileField,
        settings: [(ProjectTool, Option<String>); N],
    ) {
        let tools = settings.each_ref().map(|(tool, _)| *tool);
        let named = settings.into_iter().find_map(|(tool, file)| Some((tool, file?)));
        let mentioned = || tools.iter().find_map(|tool| Some((*tool, self.mention(tool.name())?)));
        match named.or_else(mentioned) {
            Some((tool, file)) => profile.set(field, self.checker(tool), &file),
            None => profile.set(field, self.checker(tools[0]).assumed(), &self.marker),
        }
    }

    fn checker(&self, tool: ProjectTool) -> ProjectCommand {
        let (base, paths) = match tool {
            ProjectTool::Ruff => ([self.program("ruff"), words("check")].concat(), "."),
            // Without a path pyright uses the paths of its settings, as does mypy.
            ProjectTool::Pyright => (self.program("pyright"), ""),
            ProjectTool::Mypy if self.mypy_setting(MYPY_PATHS) => (self.program("mypy"), ""),
            // By convention the sources; tests and examples are rarely typed.
            ProjectTool::Mypy if self.has_sources() => (self.program("mypy"), SOURCES),
            ProjectTool::Pylint => (self.program("pylint"), "--recursive=y ."),
            other => (self.program(other.name()), "."),
        };
        let extensions = Ecosystem::Python.extensions();
        let command = ProjectCommand::for_files(tool, self.directory, base, paths, extensions);
        ProjectCommand { leave_out: !self.excludes(tool), ..command }
    }

    /// Returns true if the directory of sources contains modules or packages of Python.
    fn has_sources(&self) -> bool {
        let sources = paths::join(self.directory, SOURCES);
        let is_package = |name: &str| {
            let package = paths::join(&sources, name);
            self.reader.has(&paths::join(&package, "__init__.py"))
        };
        !self.reader.files(&sources, &[".py"]).is_empty()
            || self
                .reader
                .list(&sources)
                .iter()
                .take(MAX_PACKAGES)
                .any(|(name, _)| is_package(name))
    }

    /// Returns true if the project configures exclusions for a tool.
    fn excludes(&self, tool: ProjectTool) -> bool {
        let configures = |file: Option<String>, keys: &str| {
            let text = file.and_then(|file| self.reader.text(&file)).unwrap_or_default();
            let key = |line: &str| line.split(['=', ':']).next().map(|key| key.trim().to_owned());
            text.lines().any(|line| key(line).is_some_and(|key| has_word(keys, &key)))
        };
        match tool {
            ProjectTool::Ruff => configures(self.ruff_settings(), "exclude extend-exclude"),
            ProjectTool::Flake8 => {
                configures(self.flake8_settings(), "exclude extend-exclude extend_exclude")
            }
            ProjectTool::Pylint => {
                configures(self.pylint_settings(), "ignore ignore-paths ignore-patterns")
            }
            ProjectTool::Mypy => self.mypy_setting(MYPY_PATHS) || self.mypy_setting("exclude"),
            _ => false,
        }
    }

    /// Returns true if the settings that mypy reads have one of these keys.
    fn mypy_setting(&self, keys: &str) -> bool {
        let files = ["mypy.ini", ".mypy.ini", "setup.cfg"];
        let in_section = |file: &&str| {
            let text = self.reader.text(&paths::join(self.directory, file)).unwrap_or_default();
            let section = text.lines().skip_while(|line| line.trim() != "[mypy]").skip(1);
            let mut lines = section.take_while(|line| !line.starts_with('['));
            lines.any(|line| has_word(keys, line.split('=').next().unwrap_or_default().trim()))
        };
        // Only the first of these files that has settings is read by mypy.
        let ini =
            files[..2].iter().find(|name| self.reader.has(&paths::join(self.directory, name)));
        match ini {
            Some(file) => in_section(file),
            None if self.has_setting("tool.mypy") => {
                keys.split(' ').any(|key| self.has_setting(&format!("tool.mypy.{key}")))
            }
            None => in_section(&files[2]),
        }
    }

    pub(super) fn add_format(&self, profile: &mut Profile) {
        let black = || self.nearest_table("tool.black").or_else(|| self.mention("black"));
        let ruff = self.ruff_settings().or_else(|| self.mention("ruff"));
        // Projects with both use ruff for linting and black for formatting.
        match (black(), ruff) {
            (Some(file), _) => self.set_format(profile, ProjectTool::Black, &file, false),
            (None, Some(file)) => self.set_format(profile, ProjectTool::RuffFormat, &file, false),
            (None, None) => self.set_format(profile, ProjectTool::RuffFormat, &self.marker, true),
        }
    }

    fn set_format(&self, profile: &mut Profile, tool: ProjectTool, file: &str, assumed: bool) {
        let base = match tool {
            ProjectTool::Black => self.program("black"),
            _ => [self.program("ruff"), words("format")].concat(),
        };
        let command = |options| {
            let argv = [base.clone(), words(options)].concat();
            let extensions = Ecosystem::Python.extensions();
            let command = ProjectCommand::for_files(tool, self.directory, argv, ".", extensions);
            ProjectCommand { assumed, ..command }
        };
        profile.set(ProfileField::Format, command(""), file);
        profile.set(ProfileField::FormatCheck, command("--check"), file);
    }

    pub(super) fn add_typecheck(&self, profile: &mut Profile) {
        let pyright = self
            .table("tool.pyright")
            .or_else(|| self.reader.first(self.directory, "pyrightconfig.json"));
        let mypy = self
            .table("tool.mypy")
            .or_else(|| self.reader.first(self.directory, "mypy.ini .mypy.ini"))
            .or_else(|| self.section("setup.cfg", "mypy"));
        let settings = [(ProjectTool::Mypy, mypy), (ProjectTool::Pyright, pyright)];
        self.add_check(profile, ProfileField::Typecheck, settings);
    }

    fn ruff_settings(&self) -> Option<String> {
        let own = self.reader.nearest(self.directory, "ruff.toml .ruff.toml");
        own.or_else(|| self.nearest_table("tool.ruff"))
    }

    fn flake8_settings(&self) -> Option<String> {
        self.reader
            .first(self.directory, ".flake8")
            .or_else(|| self.table("tool.flake8"))
            .or_else(|| self.section("setup.cfg", "flake8"))
            .or_else(|| self.section("tox.ini", "flake8"))
    }

    fn pylint_settings(&self) -> Option<String> {
        self.reader
            .first(self.directory, ".pylintrc pylintrc")
            .or_else(|| self.table("tool.pylint"))
    }

    /// Returns pyproject.toml if it has a table.
    fn table(&self, path: &str) -> Option<String> {
        self.has_setting(path).then(|| paths::join(self.directory, PYPROJECT))
    }

    /// Returns the nearest pyproject.toml that has a table.
    fn nearest_table(&self, path: &str) -> Option<String> {
        paths::upwards(self.directory).find_map(|above| {
            let file = paths::join(above, PYPROJECT);
            let text = self.reader.text(&file)?;
            Toml::parse(&file, &text).ok()?.has(path).then_some(file)
        })
    }

    /// Returns an INI file if it has a section.
    pub(super) fn section(&self, name: &str, section: &str) -> Option<String> {
        let file = paths::join(self.directory, name);
        let header = format!("[{section}]");
        let text = self.reader.text(&file)?;
        text.lines().any(|line| line.trim() == header).then_some(file)
    }

    /// Returns the evidence for a tool: a requirement, or its program in the environment.
    fn mention(&self, tool: &str) -> Option<String> {
        self.requirement(tool).or_else(|| self.installed(tool))
    }

    /// Returns the file that lists a package as a requirement.
    pub(super) fn requirement(&self, package: &str) -> Option<String> {
        if self.settings.as_ref().is_some_and(|settings| lists_package(settings, package)) {
            return Some(paths::join(self.directory, PYPROJECT));
        }
        let mut lists = REQUIREMENTS.split(' ').map(|name| paths::join(self.directory, name));
        lists.find(|file| {
            let text = self.reader.text(file).unwrap_or_default();
            text.lines().any(|line| requires(line, package))
        })
    }
}

/// Returns true if pyproject.toml lists a package as a requirement.
fn lists_package(settings: &Toml<'_>, package: &str) -> bool {
    let mut lists = words("project.dependencies tool.uv.dev-dependencies");
    for table in ["project.optional-dependencies", "dependency-groups"] {
        lists.extend(settings.entries(table).iter().map(|(name, _)| format!("{table}.{name}")));
    }
    let listed = |list: &String| settings.strings(list).iter().any(|line| requires(line, package));
    let poetry = "tool.poetry.dependencies tool.poetry.dev-dependencies \
        tool.poetry.group.dev.dependencies tool.poetry.group.test.dependencies";
    let mut poetry = poetry.split(' ');
    lists.iter().any(listed) || poetry.any(|table| settings.has(&format!("{table}.{package}")))
}

/// Returns true if a requirement line is for a package, with any version or extras.
pub(super) fn requires(line: &str, package: &str) -> bool {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    line.trim().split(ends).next() == Some(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_is_recognised_by_its_whole_name() {
        for line in ["pytest", "pytest>=8", "pytest[x]==1", " pytest ; python_version > '3'"] {
            assert!(requires(line, "pytest"), "{line}");
        }
        for line in ["pytest-cov", "# pytest", "py", ""] {
            assert!(!requires(line, "pytest"), "{line}");
        }
    }
}
