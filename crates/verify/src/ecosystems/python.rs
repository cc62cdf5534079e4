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
    Ecosystem, Membership, PackageManager, Profile, ProfileField, ProjectCommand, ProjectScript,
    args,
};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;
use package_manager::DetectedManager;

/// Marker files, in order of precedence as evidence.
const MARKERS: [&str; 9] = [
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "Pipfile",
    "requirements.txt",
    "ruff.toml",
    ".ruff.toml",
    "pytest.ini",
    "uv.lock",
];

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
    let marker = reader.first(directory, &MARKERS)?;
    let mut profile = Profile::new(Ecosystem::Python, directory, &marker);
    let file = paths::join(directory, PYPROJECT);
    let text = reader.read(&file).unwrap_or_else(|problem| {
        profile.problems.push(problem);
        None
    });
    let settings = match text.as_deref().map(|text| Toml::parse(&file, text)) {
        Some(Ok(settings)) => Some(settings),
        Some(Err(problem)) => {
            profile.problems.push(problem);
            None
        }
        None => None,
    };
    let manager = package_manager::detect(reader, directory, settings.as_ref(), &marker);
    let environment = package_manager::environment(reader, directory);
    let project = Project { reader, directory, marker, settings, manager, environment };
    project.describe(&mut profile);
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
        let directory = match &profile.membership {
            Some(Membership::Member { of }) => of.clone(),
            Some(Membership::Root { .. }) | None => self.directory.to_owned(),
        };
        let environment = paths::join(&directory, ENVIRONMENTS[0]);
        profile.set_deps_dir(self.environment.clone().unwrap_or(environment), &self.marker);
        let Some((argv, file)) = self.install_args() else { return };
        let command = ProjectCommand::from_args(ProjectTool::Installer, &directory, argv);
        profile.set(ProfileField::Install, command, &file);
    }

    fn install_args(&self) -> Option<(Vec<String>, String)> {
        let fixed = |argv: &[&str]| Some((args(argv), self.manager.file.clone()));
        match self.manager.kind {
            PackageManager::Uv => fixed(&["uv", "sync"]),
            PackageManager::Poetry => fixed(&["poetry", "install"]),
            PackageManager::Pipenv => fixed(&["pipenv", "install", "--dev"]),
            PackageManager::Pdm => fixed(&["pdm", "install"]),
            _ => self.pip_args(),
        }
    }

    /// Installs a package in editable mode, or else its list of requirements.
    fn pip_args(&self) -> Option<(Vec<String>, String)> {
        let pip = self.program("pip");
        let package = self.has_setting("project") || self.has_setting("build-system");
        let setup = self.reader.first(self.directory, &["setup.py"]);
        let requirements = self.reader.first(self.directory, &["requirements.txt"]);
        let (tail, file): (&[&str], _) = match (package, setup, requirements) {
            (true, _, _) => (&["install", "-e", "."], paths::join(self.directory, PYPROJECT)),
            (false, Some(setup), _) => (&["install", "-e", "."], setup),
            (false, None, Some(list)) => (&["install", "-r", "requirements.txt"], list),
            (false, None, None) => return None,
        };
        Some(([pip, args(tail)].concat(), file))
    }

    /// Returns the command line of a program: its path in the environment, or else a manager that
    /// keeps environments elsewhere. `uv run` is not used, because it would create an environment.
    fn program(&self, name: &str) -> Vec<String> {
        if let Some(path) = self.installed(name) {
            return vec![paths::relative(self.directory, &path)];
        }
        let launcher: &[&str] = match self.manager.kind {
            PackageManager::Poetry => &["poetry", "run"],
            PackageManager::Pipenv => &["pipenv", "run"],
            PackageManager::Pdm => &["pdm", "run"],
            _ => &[],
        };
        [args(launcher), vec![name.to_owned()]].concat()
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
            [("tool.poe.tasks", self.program("poe")), ("tool.pdm.scripts", args(&["pdm", "run"]))];
        for (table, runner) in runners {
            for (name, value) in settings.entries(table) {
                let text = value.get_ref().as_str().unwrap_or_default().to_owned();
                let argv = [runner.clone(), vec![name.clone()]].concat();
                profile.scripts.push(ProjectScript { name, text, file: file.clone(), argv });
            }
        }
    }
}
