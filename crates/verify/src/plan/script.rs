//! Plans for scripts that a project defines by name.

use crate::plan::{Invocation, command_line};
use crate::profile::{Profile, ProfileField, ProjectCommand};

/// The reason why a script cannot be run. The messages are shown to agents unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum ScriptError {
    #[error("run_script: no scripts are defined: {} not found in {root}", looked_for.join(", "))]
    Unsupported { looked_for: Vec<&'static str>, root: String },
    #[error("run_script: name is required")]
    NoName,
    #[error("run_script: parsing {file}: {message}")]
    Broken { file: String, message: String },
    #[error("run_script: no script named \"{name}\" in {file}; available: {}", list(available))]
    Unknown { name: String, file: String, available: Vec<String> },
}

fn list(available: &[String]) -> String {
    if available.is_empty() { "(none defined)".to_owned() } else { available.join(", ") }
}

/// Files of any ecosystem that define scripts.
const SHARED_FILES: [&str; 3] = ["Makefile", "justfile", "Taskfile.yml"];

/// Plans a run of a script. Its report is text, since its commands are unknown.
pub fn plan_script(profile: &Profile, name: &str) -> Result<Invocation, ScriptError> {
    let name = name.trim();
    if name.is_empty() {
        return Err(ScriptError::NoName);
    }
    let Some(script) = profile.scripts.iter().find(|script| script.name == name) else {
        return Err(missing(profile, name));
    };
    let command = ProjectCommand::script(&profile.root, script.argv.clone());
    let line = command_line::CommandLine::for_project(&command);
    Ok(command_line::invocation(profile, &command, line))
}

fn missing(profile: &Profile, name: &str) -> ScriptError {
    let own = profile.ecosystem.script_file();
    let broken = profile
        .problems
        .iter()
        .find(|problem| own.is_some_and(|file| crate::paths::name(&problem.file) == file));
    if let Some(problem) = broken {
        let line = problem.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let message = format!("{line}{}", problem.message);
        let file = crate::paths::name(&problem.file).to_owned();
        return ScriptError::Broken { file, message };
    }
    let mut files: Vec<&str> = Vec::new();
    for script in &profile.scripts {
        if !files.contains(&script.file.as_str()) {
            files.push(&script.file);
        }
    }
    // The project's own file is named although it may define nothing.
    let marker = profile.evidence_of(ProfileField::Ecosystem);
    let own_exists = marker.filter(|marker| own == Some(crate::paths::name(marker)));
    if files.is_empty() {
        files.extend(own_exists);
    }
    if files.is_empty() {
        let looked_for = own.into_iter().chain(SHARED_FILES).collect::<Vec<_>>();
        let mut looked_for: Vec<&'static str> = looked_for;
        looked_for.dedup();
        return ScriptError::Unsupported { looked_for, root: profile.root.clone() };
    }
    let mut available: Vec<String> =
        profile.scripts.iter().map(|script| script.name.clone()).collect();
    available.sort();
    ScriptError::Unknown { name: name.to_owned(), file: files.join(", "), available }
}
