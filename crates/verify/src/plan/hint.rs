//! What to tell somebody whose tool is missing.

use crate::profile::{PackageManager, Profile};
use crate::tool::Tool;

/// Returns one sentence on how to get a tool into a project.
pub(super) fn install(profile: &Profile, tool: Tool) -> String {
    match tool {
        Tool::CargoTest | Tool::CargoCheck => "install Rust with rustup".to_owned(),
        Tool::Clippy => "run `rustup component add clippy`".to_owned(),
        Tool::Rustfmt => "run `rustup component add rustfmt`".to_owned(),
        Tool::Nextest => "run `cargo install cargo-nextest --locked`".to_owned(),
        Tool::Jest | Tool::Vitest | Tool::Mocha | Tool::Eslint | Tool::Oxlint | Tool::Prettier => {
            node(profile, tool.name())
        }
        Tool::Biome => node(profile, "@biomejs/biome"),
        Tool::Tsc => node(profile, "typescript"),
        Tool::Pytest
        | Tool::Ruff
        | Tool::Black
        | Tool::Flake8
        | Tool::Pylint
        | Tool::Mypy
        | Tool::Pyright => python(profile, tool.name()),
        Tool::RuffFormat => python(profile, "ruff"),
        Tool::Rspec | Tool::Rake | Tool::Rubocop => format!("run `bundle add {}`", tool.name()),
        Tool::Phpunit => "run `composer require --dev phpunit/phpunit`".to_owned(),
        Tool::Phpstan => "run `composer require --dev phpstan/phpstan`".to_owned(),
        Tool::PhpCsFixer => "run `composer require --dev friendsofphp/php-cs-fixer`".to_owned(),
        Tool::GoTest | Tool::GoVet | Tool::Gofmt => "install Go on this machine".to_owned(),
        Tool::Golangci => "see https://golangci-lint.run for how to install it".to_owned(),
        Tool::NodeTest
        | Tool::BunTest
        | Tool::Unittest
        | Tool::Maven
        | Tool::Gradle
        | Tool::DenoTest
        | Tool::DenoLint
        | Tool::DenoFmt
        | Tool::DenoCheck
        | Tool::DotnetTest
        | Tool::DotnetBuild
        | Tool::DotnetFormat
        | Tool::Ctest
        | Tool::Cmake
        | Tool::Make
        | Tool::ClangFormat => {
            let program = tool.name().split(' ').next().unwrap_or_default();
            format!("install `{program}` on this machine")
        }
        Tool::Installer | Tool::Script | Tool::Other => {
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
