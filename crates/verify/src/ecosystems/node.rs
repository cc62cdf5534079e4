//! Node: package.json, package managers, workspaces, and the tools around them.
//!
//! A script of package.json is executed as it is only if it cannot be understood. A script of one
//! known command is taken apart and planned directly, so that options for reports and single tests
//! reach the tool.

mod checks;
mod package_json;
mod package_manager;
mod program;
mod script;
mod test_runner;

use crate::paths;
use crate::profile::{
    Ecosystem, Membership, PackageManager, Profile, ProfileField, ProjectCommand, ProjectScript,
};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;
use package_json::PackageJson;
use package_manager::DetectedManager;

const MANIFEST: &str = "package.json";

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
        let directory = match &profile.membership {
            Some(Membership::Member { of }) => of.clone(),
            Some(Membership::Root { .. }) | None => self.directory.to_owned(),
        };
        let manager = self.manager.kind.as_str();
        let command =
            ProjectCommand::new(ProjectTool::Installer, &directory, &[manager, "install"]);
        profile.set(ProfileField::Install, command, &self.manager.file);
        profile.set_deps_dir(paths::join(&directory, "node_modules"), &self.manifest);
    }

    fn scripts(&self, profile: &mut Profile) {
        for (name, text) in &self.package.scripts {
            profile.scripts.push(ProjectScript {
                name: name.clone(),
                text: text.clone(),
                file: self.manifest.clone(),
                argv: self.run_script(name),
            });
        }
    }

    /// Returns the command line that runs a script.
    fn run_script(&self, name: &str) -> Vec<String> {
        let manager = self.manager.kind.as_str();
        match self.manager.kind {
            PackageManager::Yarn => vec![manager.to_owned(), name.to_owned()],
            _ => vec![manager.to_owned(), "run".to_owned(), name.to_owned()],
        }
    }
}
