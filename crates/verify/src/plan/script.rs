//! Plans for scripts that a project defines by name.

use crate::plan::{Invocation, command_line};
use crate::profile::{Profile, ProjectCommand};

/// The reason why a script cannot be run. The messages are shown to agents unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum ScriptError {
    #[error("run_script: no scripts are defined for this kind of project (detected: {language})")]
    Unsupported { language: &'static str },
    #[error("run_script: name is required")]
    NoName,
    #[error("run_script: parsing {file}: {message}")]
    Broken { file: String, message: String },
    #[error("run_script: no script named \"{name}\" in {file}; available: {}", list(available))]
    Unknown { name: String, file: &'static str, available: Vec<String> },
}

fn list(available: &[String]) -> String {
    if available.is_empty() { "(none defined)".to_owned() } else { available.join(", ") }
}

/// Plans a run of a script. Its report is text, since its commands are unknown.
pub fn plan_script(profile: &Profile, name: &str) -> Result<Invocation, ScriptError> {
    let file = profile.ecosystem.script_file();
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
    let command = ProjectCommand::script(&profile.root, script.argv.clone());
    let line = command_line::CommandLine::for_project(&command);
    Ok(command_line::invocation(profile, &command, line))
}

fn missing(profile: &Profile, name: &str, file: &'static str) -> ScriptError {
    let broken = profile.problems.iter().find(|problem| crate::paths::name(&problem.file) == file);
    if let Some(problem) = broken {
        let line = problem.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let message = format!("{line}{}", problem.message);
        return ScriptError::Broken { file: file.to_owned(), message };
    }
    let mut available: Vec<String> =
        profile.scripts.iter().map(|script| script.name.clone()).collect();
    available.sort();
    ScriptError::Unknown { name: name.to_owned(), file, available }
}
