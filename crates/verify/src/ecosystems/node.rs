//! Node: package.json, package managers, workspaces, and the tools around them.
//!
//! A script of package.json is executed as it is only if it cannot be understood. A script of one
//! known command is taken apart and planned directly, so that options for reports and single tests
//! reach the tool.

mod checks;
mod package_json;
mod package_manager;
mod script;
mod test_runner;

use crate::paths;
use crate::profile::{Ecosystem, Membership, PackageManager, Profile, words};
use crate::project_reader::ProjectReader;
use package_json::PackageJson;

use super::{DetectedManager, dotted, install_directory};

const MANIFEST: &str = "package.json";

const BIN: &str = "node_modules/.bin";

/// Files of yarn's Plug'n'Play mode, which has no `node_modules`.
const PLUG_AND_PLAY: &str = ".pnp.cjs .pnp.loader.mjs";

struct Project<'a> {
    reader: &'a ProjectReader<'a>,
    directory: &'a str,
    manifest: String,
    package: PackageJson,
    manager: DetectedManager,
}

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let manifest = paths::join(directory, MANIFEST);
    if !reader.has(&manifest) {
        return None;
    }
    let (package, problem) = match PackageJson::read(reader, &manifest) {
        Ok(package) => (package, None),
        Err(problem) => (PackageJson::default(), Some(problem)),
    };
    // A package.json with nothing but `"type": "module"` is not a project.
    if problem.is_none() && directory != paths::TOP && package.is_bare() {
        return None;
    }
    let manager = package_manager::detect(reader, directory);
    let project = Project { reader, directory, manifest, package, manager };
    let mut profile = Profile::new(Ecosystem::Node, directory, &project.manifest);
    profile.problems.extend(problem);
    profile.name.clone_from(&project.package.name);
    project.describe(&mut profile);
    Some(profile)
}

impl Project<'_> {
    fn describe(&self, profile: &mut Profile) {
        self.membership(profile);
        profile.set_manager(self.manager.kind, &self.manager.file);
        self.install(profile);
        self.scripts(profile);
        self.add_test(profile);
        self.add_lint(profile);
        self.add_format(profile);
        self.add_typecheck(profile);
    }

    fn membership(&self, profile: &mut Profile) {
        match package_manager::members(self.reader, self.directory) {
            Ok(Some(members)) => profile.membership = Some(Membership::Root { members }),
            Ok(None) => {
                let owner = package_manager::owner(self.reader, self.directory);
                profile.membership = owner.map(|of| Membership::Member { of });
            }
            Err(problem) => profile.problems.push(problem),
        }
    }

    /// Dependencies of members are installed at the workspace root.
    fn install(&self, profile: &mut Profile) {
        let directory = install_directory(profile);
        let argv = format!("{} install", self.manager.kind.as_str());
        profile.set_install(&directory, &argv, &self.manager.file);
        profile.set_deps_dir(paths::join(&directory, "node_modules"), &self.manifest);
    }

    fn scripts(&self, profile: &mut Profile) {
        for (name, text) in &self.package.scripts {
            profile.add_script(name, text, &self.manifest, self.run_script(name));
        }
    }

    /// Returns the command line that runs a script.
    fn run_script(&self, name: &str) -> Vec<String> {
        let run = match self.manager.kind {
            PackageManager::Yarn => words("yarn"),
            manager => vec![manager.as_str().to_owned(), "run".to_owned()],
        };
        [run, vec![name.to_owned()]].concat()
    }

    /// Returns the command line of a program: its installed path, or else the package manager in a
    /// form that fails if the program is missing instead of downloading it.
    fn program(&self, name: &str) -> Vec<String> {
        if let Some(path) = self.installed(name) {
            return vec![dotted(paths::relative(self.directory, &path))];
        }
        let plug_and_play = self.reader.nearest(self.directory, PLUG_AND_PLAY).is_some();
        let starter = match self.manager.kind {
            _ if plug_and_play => "yarn run",
            PackageManager::Pnpm => "pnpm exec",
            PackageManager::Yarn => "yarn run",
            PackageManager::Bun => "bunx --no-install",
            _ => "npx --no-install --offline",
        };
        [words(starter), vec![name.to_owned()]].concat()
    }

    /// Returns the nearest installed program of a name.
    fn installed(&self, name: &str) -> Option<String> {
        let program = format!("{BIN}/{name}");
        let mut paths = paths::upwards(self.directory).map(|above| paths::join(above, &program));
        paths.find(|path| self.reader.has_program(path))
    }
}
