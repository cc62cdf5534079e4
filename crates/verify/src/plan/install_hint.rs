//! Installation hints for missing tools. They are shown in reports and never executed.

use crate::profile::{PackageManager, Profile};
use crate::tool::ProjectTool;

/// The way to install a tool: a fixed text, or a package for the project's package manager.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InstallHint {
    Text(&'static str),
    Npm(&'static str),
    Pip(&'static str),
    Bundler(&'static str),
    /// The program is not part of a project.
    Machine,
}

/// Returns how to install a tool in a project, with the project's package manager.
pub(super) fn install(profile: &Profile, tool: ProjectTool) -> String {
    match tool.facts().install {
        InstallHint::Text(text) => text.to_owned(),
        InstallHint::Npm(package) => node(profile, package),
        InstallHint::Pip(package) => python(profile, package),
        InstallHint::Bundler(package) => format!("run `bundle add {package}`"),
        InstallHint::Machine => {
            let program = tool.name().split(' ').next().unwrap_or_default();
            format!("install `{program}` on this machine")
        }
    }
}

fn node(profile: &Profile, package: &str) -> String {
    match profile.package_manager {
        Some(PackageManager::Pnpm) => format!("run `pnpm add -D {package}`"),
        Some(PackageManager::Yarn) => format!("run `yarn add -D {package}`"),
        Some(PackageManager::Bun) => format!("run `bun add -d {package}`"),
        _ => format!("run `npm install --save-dev {package}`"),
    }
}

fn python(profile: &Profile, package: &str) -> String {
    match profile.package_manager {
        Some(PackageManager::Uv) => format!("run `uv add --dev {package}`"),
        Some(PackageManager::Poetry) => format!("run `poetry add --group dev {package}`"),
        Some(PackageManager::Pipenv) => format!("run `pipenv install --dev {package}`"),
        Some(PackageManager::Pdm) => format!("run `pdm add -dG dev {package}`"),
        _ => format!("run `pip install {package}`"),
    }
}
