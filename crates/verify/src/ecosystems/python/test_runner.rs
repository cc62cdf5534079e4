//! The test runner of a Python project: pytest, or unittest if nothing requires pytest, or else the
//! environments of tox or the sessions of nox.

use crate::paths;
use crate::profile::{Profile, ProfileField, ProjectCommand, words};
use crate::tool::ProjectTool;

use super::Project;

const TEST_DIRECTORIES: [&str; 3] = ["tests", "test", "."];

/// Bounds the test files that are read to determine their runner.
const MAX_SAMPLES: usize = 5;

impl Project<'_> {
    pub(super) fn add_test(&self, profile: &mut Profile) {
        match (self.pytest_evidence(), self.unittest_evidence()) {
            (Some(file), _) => profile.set(ProfileField::Test, self.pytest(), &file),
            (None, Some(file)) => profile.set(ProfileField::Test, self.unittest(), &file),
            (None, None) => match self.session_runner() {
                Some((command, file)) => profile.set(ProfileField::Test, command, &file),
                None => profile.set(ProfileField::Test, self.pytest().assumed(), &self.marker),
            },
        }
    }

    /// Returns the command of tox or nox, whose sessions install the project themselves.
    fn session_runner(&self) -> Option<(ProjectCommand, String)> {
        let tox = self
            .reader
            .first(self.directory, "tox.ini tox.toml")
            .or_else(|| self.section("setup.cfg", "tox:tox"))
            .or_else(|| self.has_setting("tool.tox").then(|| self.pyproject()));
        let nox = || self.reader.first(self.directory, "noxfile.py");
        let (tool, file) = match tox {
            Some(file) => (ProjectTool::Tox, file),
            None => (ProjectTool::Nox, nox()?),
        };
        Some((ProjectCommand::new(tool, self.directory, self.program(tool.name())), file))
    }

    /// Returns a test file or `conftest.py` of a project without a manifest.
    pub(super) fn bare_evidence(&self) -> Option<String> {
        let settings = "conftest.py tests/conftest.py test/conftest.py";
        self.reader.first(self.directory, settings).or_else(|| {
            TEST_DIRECTORIES.iter().find_map(|name| {
                let directory = paths::resolve(self.directory, name)?;
                self.samples(&directory).into_iter().find(|file| {
                    let text = self.reader.text(file).unwrap_or_default();
                    text.contains("def test") || text.contains("unittest")
                })
            })
        })
    }

    fn pyproject(&self) -> String {
        paths::join(self.directory, super::PYPROJECT)
    }

    fn pytest(&self) -> ProjectCommand {
        let argv = self.program("pytest");
        ProjectCommand::for_files(ProjectTool::Pytest, self.directory, argv, "", "py")
    }

    fn unittest(&self) -> ProjectCommand {
        let program = self.program("python");
        // Outside of an environment `python` may be missing or Python 2.
        let python = if program == ["python"] { words("python3") } else { program };
        let single = [python.clone(), words("-m unittest -v")].concat();
        let mut whole = [python, words("-m unittest discover -v")].concat();
        // Discovery does not enter directories without `__init__.py`.
        let has_tests = |name: &&str| {
            let directory = paths::join(self.directory, name);
            !self.reader.has(&paths::join(&directory, "__init__.py"))
                && !self.samples(&directory).is_empty()
        };
        if let Some(directory) = ["tests", "test"].into_iter().find(has_tests) {
            whole.extend(["-s".to_owned(), directory.to_owned()]);
        }
        ProjectCommand::new(ProjectTool::Unittest, self.directory, whole).per_file(single, "py")
    }

    fn pytest_evidence(&self) -> Option<String> {
        if self.has_setting("tool.pytest") {
            return Some(self.pyproject());
        }
        let settings = "pytest.ini .pytest.ini conftest.py tests/conftest.py test/conftest.py";
        self.reader
            .first(self.directory, settings)
            .or_else(|| self.section("setup.cfg", "tool:pytest"))
            .or_else(|| self.section("tox.ini", "pytest"))
            .or_else(|| self.tox_with_pytest())
            .or_else(|| self.requirement("pytest"))
            .or_else(|| self.installed("pytest"))
    }

    /// Returns `tox.ini` if its environments require pytest or run it.
    fn tox_with_pytest(&self) -> Option<String> {
        let file = paths::join(self.directory, "tox.ini");
        let text = self.reader.text(&file)?;
        let names = |line: &str| {
            let value = line.split_once('=').map_or(line, |(_, value)| value);
            super::checks::requires(value, "pytest")
        };
        text.lines().any(names).then_some(file)
    }

    /// Returns a test file that uses unittest, if no sampled file mentions pytest.
    fn unittest_evidence(&self) -> Option<String> {
        let mut found = None;
        for directory in TEST_DIRECTORIES {
            let directory = paths::resolve(self.directory, directory)?;
            for file in self.samples(&directory) {
                let text = self.reader.text(&file)?;
                if text.contains("pytest") {
                    return None;
                }
                let imports = |line: &str| {
                    let line = line.trim_start();
                    let is_import = line.starts_with("import ") || line.starts_with("from ");
                    is_import && line.contains("unittest")
                };
                if text.lines().any(imports) {
                    found.get_or_insert(file);
                }
            }
        }
        found
    }

    fn samples(&self, directory: &str) -> Vec<String> {
        let names = self.reader.files(directory, &[".py"]).into_iter();
        let is_test = |name: &String| name.starts_with("test") || name.ends_with("_test.py");
        let tests = names.filter(is_test).take(MAX_SAMPLES);
        tests.map(|name| paths::join(directory, &name)).collect()
    }
}
