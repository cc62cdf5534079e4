//! Node: package.json, its managers and workspaces, and the tools around it.

mod checks;
mod manager;
mod package;
mod program;
mod script;
mod test;

use crate::lookup::Lookup;
use crate::paths;
use crate::profile::{
    Ecosystem, Membership, PackageManager, Profile, ProfileField, ProjectCommand, ProjectScript,
};
use crate::tool::ProjectTool;
use manager::Manager;
use package::Package;

const MANIFEST: &str = "package.json";

/// What the detection of one project works with.
struct Project<'a> {
    lookup: &'a Lookup<'a>,
    directory: &'a str,
    manifest: String,
    package: Package,
    manager: Manager,
}

pub(crate) fn detect(lookup: &Lookup<'_>, directory: &str) -> Option<Profile> {
    let manifest = paths::join(directory, MANIFEST);
    if !lookup.has(&manifest) {
        return None;
    }
    let (package, problem) = match Package::read(lookup, &manifest) {
        Ok(package) => (package, None),
        Err(problem) => (Package::default(), Some(problem)),
    };
    // A file that only says `"type": "module"` marks no project of its own.
    if problem.is_none() && directory != paths::TOP && package.is_bare() {
        return None;
    }
    let manager = manager::detect(lookup, directory);
    let project = Project { lookup, directory, manifest, package, manager };
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
        match manager::members(self.lookup, self.directory) {
            Ok(Some(members)) => profile.membership = Some(Membership::Root { members }),
            Ok(None) => {
                let owner = manager::owner(self.lookup, self.directory);
                profile.membership = owner.map(|of| Membership::Member { of });
            }
            Err(problem) => profile.problems.push(problem),
        }
    }

    /// Members are installed where their workspace is.
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

    /// Returns the words that run a script of the package.
    fn run_script(&self, name: &str) -> Vec<String> {
        let manager = self.manager.kind.as_str();
        match self.manager.kind {
            PackageManager::Yarn => vec![manager.to_owned(), name.to_owned()],
            _ => vec![manager.to_owned(), "run".to_owned(), name.to_owned()],
        }
    }
}
