//! Python: package managers, virtual environments and tools.
//!
//! Tools run from the nearest virtual environment (`.venv` or `venv`). If it lacks them, managers
//! that keep environments outside of the project start them; otherwise the bare name is used.

mod checks;
mod package_manager;
mod test_runner;

use crate::manifest::Toml;
use crate::paths;
use crate::profile::{
    Ecosystem, Membership, PackageManager, Profile, ProfileField, ProjectCommand, words,
};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

use super::{DetectedManager, install_directory};

/// Marker files, in order of precedence as evidence.
const MARKERS: &str = "pyproject.toml setup.py setup.cfg Pipfile requirements.txt ruff.toml \
    .ruff.toml pytest.ini uv.lock tox.ini tox.toml noxfile.py";

const PYPROJECT: &str = "pyproject.toml";

const ENVIRONMENTS: [&str; 2] = [".venv", "venv"];

struct Project<'a> {
    reader: &'a ProjectReader<'a>,
    directory: &'a str,
    marker: String,
    settings: Option<Toml<'a>>,
    manager: DetectedManager,
    environment: Option<String>,
}

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let marker = reader.first(directory, MARKERS)?;
    let mut profile = Profile::new(Ecosystem::Python, directory, &marker);
    let file = paths::join(directory, PYPROJECT);
    let text = profile.accept(reader.read(&file)).flatten();
    let settings = text.as_deref().and_then(|text| profile.accept(Toml::parse(&file, text)));
    let manager = package_manager::detect(reader, directory, settings.as_ref(), &marker);
    let environment = package_manager::environment(reader, directory);
    let project = Project { reader, directory, marker, settings, manager, environment };
    project.describe(&mut profile);
    Some(profile)
}

/// Detects a workspace that has tests for pytest or unittest and no manifest.
pub(crate) fn detect_bare(reader: &ProjectReader<'_>) -> Option<Profile> {
    let directory = paths::TOP;
    let manager = DetectedManager { kind: PackageManager::Pip, file: String::new() };
    let environment = package_manager::environment(reader, directory);
    let mut project =
        Project { reader, directory, marker: String::new(), settings: None, manager, environment };
    project.marker = project.bare_evidence()?;
    let mut profile = Profile::new(Ecosystem::Python, directory, &project.marker);
    project.add_test(&mut profile);
    project.add_lint(&mut profile);
    project.add_format(&mut profile);
    project.add_typecheck(&mut profile);
    Some(profile)
}

impl Project<'_> {
    fn describe(&self, profile: &mut Profile) {
        profile.name = self.setting("project.name").or_else(|| self.setting("tool.poetry.name"));
        profile.membership = self.membership();
        profile.set_manager(self.manager.kind, &self.manager.file);
        self.install(profile);
        self.tasks(profile);
        self.add_test(profile);
        self.add_lint(profile);
        self.add_format(profile);
        self.add_typecheck(profile);
    }

    fn setting(&self, path: &str) -> Option<String> {
        self.settings.as_ref()?.string(path)
    }

    fn has_setting(&self, path: &str) -> bool {
        self.settings.as_ref().is_some_and(|settings| settings.has(path))
    }

    fn membership(&self) -> Option<Membership> {
        let settings = self.settings.as_ref()?;
        if settings.has("tool.uv.workspace") {
            let members = settings.strings("tool.uv.workspace.members");
            return Some(Membership::Root { members });
        }
        package_manager::owner(self.reader, self.directory).map(|of| Membership::Member { of })
    }

    fn install(&self, profile: &mut Profile) {
        let directory = install_directory(profile);
        let environment = paths::join(&directory, ENVIRONMENTS[0]);
        profile.set_deps_dir(self.environment.clone().unwrap_or(environment), &self.marker);
        let install = match self.manager.kind {
            PackageManager::Uv => "uv sync",
            PackageManager::Poetry => "poetry install",
            PackageManager::Pipenv => "pipenv install --dev",
            PackageManager::Pdm => "pdm install",
            _ => return self.install_with_pip(&directory, profile),
        };
        profile.set_install(&directory, install, &self.manager.file);
    }

    /// Installs a package in editable mode, or else its list of requirements.
    fn install_with_pip(&self, directory: &str, profile: &mut Profile) {
        let package = self.has_setting("project") || self.has_setting("build-system");
        let setup = self.reader.first(self.directory, "setup.py");
        let requirements = self.reader.first(self.directory, "requirements.txt");
        let (tail, file) = match (package, setup, requirements) {
            (true, _, _) => ("install -e .", paths::join(self.directory, PYPROJECT)),
            (false, Some(setup), _) => ("install -e .", setup),
            (false, None, Some(list)) => ("install -r requirements.txt", list),
            (false, None, None) => return,
        };
        let argv = [self.program("pip"), words(tail)].concat();
        let command = ProjectCommand::new(ProjectTool::Installer, directory, argv);
        profile.set(ProfileField::Install, command, &file);
    }

    /// Returns the command line of a program: its path in the environment, or else a manager that
    /// keeps environments elsewhere. `uv run` is not used, because it would create an environment.
    fn program(&self, name: &str) -> Vec<String> {
        if let Some(path) = self.installed(name) {
            return vec![paths::relative(self.directory, &path)];
        }
        let launcher = match self.manager.kind {
            PackageManager::Poetry => "poetry run",
            PackageManager::Pipenv => "pipenv run",
            PackageManager::Pdm => "pdm run",
            _ => "",
        };
        [words(launcher), vec![name.to_owned()]].concat()
    }

    fn installed(&self, name: &str) -> Option<String> {
        let path = paths::join(self.environment.as_ref()?, &format!("bin/{name}"));
        self.reader.has_program(&path).then_some(path)
    }

    /// Adds the tasks of poe and pdm as scripts.
    fn tasks(&self, profile: &mut Profile) {
        let Some(settings) = &self.settings else { return };
        let file = paths::join(self.directory, PYPROJECT);
        let runners =
            [("tool.poe.tasks", self.program("poe")), ("tool.pdm.scripts", words("pdm run"))];
        for (table, runner) in runners {
            for (name, value) in settings.entries(table) {
                let text = value.get_ref().as_str().unwrap_or_default();
                let argv = [runner.clone(), vec![name.clone()]].concat();
                profile.add_script(&name, text, &file, argv);
            }
        }
    }
}
