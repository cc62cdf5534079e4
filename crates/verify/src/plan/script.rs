//! Running a command that the project gave a name.

use crate::plan::{Invocation, command_line};
use crate::profile::{Ecosystem, OptionPassing, Profile, ProjectCommand};
use crate::tool::ProjectTool;

/// Why a script cannot be run. The texts are shown to agents as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// Projects of this kind define none.
    #[error("run_script: no scripts are defined for this kind of project (detected: {language})")]
    Unsupported {
        /// The ecosystem.
        language: &'static str,
    },
    /// No name was given.
    #[error("run_script: name is required")]
    NoName,
    /// The file that defines scripts is broken.
    #[error("run_script: parsing {file}: {message}")]
    Broken {
        /// The file.
        file: String,
        /// What is wrong, with the line.
        message: String,
    },
    /// There is no script of this name.
    #[error("run_script: no script named \"{name}\" in {file}; available: {}", list(available))]
    Unknown {
        /// The name.
        name: String,
        /// The file in which it was looked for.
        file: &'static str,
        /// The names that there are, sorted.
        available: Vec<String>,
    },
}

fn list(available: &[String]) -> String {
    if available.is_empty() { "(none defined)".to_owned() } else { available.join(", ") }
}

/// Plans the run of a script by its name.
pub fn plan_script(profile: &Profile, name: &str) -> Result<Invocation, ScriptError> {
    let file = source(profile.ecosystem);
    if file.is_none() && profile.scripts.is_empty() {
        return Err(ScriptError::Unsupported { language: profile.ecosystem.as_str() });
    }
    let name = name.trim();
    if name.is_empty() {
        return Err(ScriptError::NoName);
    }
    let Some(script) = profile.scripts.iter().find(|script| script.name == name) else {
        return Err(missing(profile, name, file.unwrap_or("Makefile")));
    };
    let mut command =
        ProjectCommand::from_args(ProjectTool::Script, &profile.root, script.argv.clone());
    command.injection = OptionPassing::Impossible;
    command = command.with("CI", "1");
    Ok(command_line::invocation(profile, &command, command_line::CommandLine::whole(&command)))
}

fn missing(profile: &Profile, name: &str, file: &'static str) -> ScriptError {
    let broken = profile.problems.iter().find(|problem| crate::paths::name(&problem.file) == file);
    if let Some(problem) = broken {
        let place = problem.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let message = format!("{place}{}", problem.message);
        return ScriptError::Broken { file: file.to_owned(), message };
    }
    let mut available: Vec<String> =
        profile.scripts.iter().map(|script| script.name.clone()).collect();
    available.sort();
    ScriptError::Unknown { name: name.to_owned(), file, available }
}

/// Returns the file in which projects of an ecosystem define scripts.
fn source(ecosystem: Ecosystem) -> Option<&'static str> {
    match ecosystem {
        Ecosystem::Node => Some("package.json"),
        Ecosystem::Deno => Some("deno.json"),
        Ecosystem::Php => Some("composer.json"),
        Ecosystem::Python => Some("pyproject.toml"),
        Ecosystem::Rust => Some(".cargo/config.toml"),
        Ecosystem::Cpp => Some("Makefile"),
        Ecosystem::Go
        | Ecosystem::Java
        | Ecosystem::Ruby
        | Ecosystem::Dotnet
        | Ecosystem::Custom => None,
    }
}
