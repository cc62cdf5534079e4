//! Installation hints for missing tools. They are shown in reports and never executed.

use crate::profile::{PackageManager, Profile};
use crate::tool::ProjectTool;

/// Returns how to install a tool in a project, with the project's package manager.
pub(super) fn install(profile: &Profile, tool: ProjectTool) -> String {
    match tool {
        ProjectTool::CargoTest | ProjectTool::CargoCheck => "install Rust with rustup".to_owned(),
        ProjectTool::Clippy => "run `rustup component add clippy`".to_owned(),
        ProjectTool::Rustfmt => "run `rustup component add rustfmt`".to_owned(),
        ProjectTool::Nextest => "run `cargo install cargo-nextest --locked`".to_owned(),
        ProjectTool::Jest
        | ProjectTool::Vitest
        | ProjectTool::Mocha
        | ProjectTool::Eslint
        | ProjectTool::Oxlint
        | ProjectTool::Prettier => node(profile, tool.name()),
        ProjectTool::Biome => node(profile, "@biomejs/biome"),
        ProjectTool::Tsc => node(profile, "typescript"),
        ProjectTool::Pytest
        | ProjectTool::Ruff
        | ProjectTool::Black
        | ProjectTool::Flake8
        | ProjectTool::Pylint
        | ProjectTool::Mypy
        | ProjectTool::Pyright => python(profile, tool.name()),
        ProjectTool::RuffFormat => python(profile, "ruff"),
        ProjectTool::Rspec | ProjectTool::Rake | ProjectTool::Rubocop => {
            format!("run `bundle add {}`", tool.name())
        }
        ProjectTool::Phpunit => "run `composer require --dev phpunit/phpunit`".to_owned(),
        ProjectTool::Phpstan => "run `composer require --dev phpstan/phpstan`".to_owned(),
        ProjectTool::PhpCsFixer => {
            "run `composer require --dev friendsofphp/php-cs-fixer`".to_owned()
        }
        ProjectTool::GoTest | ProjectTool::GoVet | ProjectTool::Gofmt => {
            "install Go on this machine".to_owned()
        }
        ProjectTool::Golangci => "see https://golangci-lint.run for how to install it".to_owned(),
        ProjectTool::NodeTest
        | ProjectTool::BunTest
        | ProjectTool::Unittest
        | ProjectTool::Maven
        | ProjectTool::Gradle
        | ProjectTool::DenoTest
        | ProjectTool::DenoLint
        | ProjectTool::DenoFmt
        | ProjectTool::DenoCheck
        | ProjectTool::DotnetTest
        | ProjectTool::DotnetBuild
        | ProjectTool::DotnetFormat
        | ProjectTool::Ctest
        | ProjectTool::Cmake
        | ProjectTool::Make
        | ProjectTool::ClangFormat => {
            let program = tool.name().split(' ').next().unwrap_or_default();
            format!("install `{program}` on this machine")
        }
        ProjectTool::Installer | ProjectTool::Script | ProjectTool::Other => {
            "install the program on this machine, or name another in carrel.toml".to_owned()
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
