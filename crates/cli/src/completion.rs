//! Completion in shells, and manual pages.
//!
//! The script of `carrel completions` asks the program itself for each word, so that names are completed that only
//! it knows: tools, and the workspaces of the root that the command line names. After an error nothing is completed and
//! nothing is printed: a shell would show it in the middle of the line that is being typed.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use carrel_config::Environment;
use carrel_config::environment::CARREL_COMPLETE;
use carrel_domain::Code;
use carrel_tools::ToolSelection;
use carrel_workspace::{Freshness, Workspaces};
use clap::CommandFactory as _;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use crate::arguments::{Arguments, Command};
use crate::error::{CliError, Result};
use crate::output;
use crate::workspace::{RootArguments, Settings};

const PROGRAM: &str = "carrel";

/// The most names that are offered.
const MAX_NAMES: usize = 500;

/// Answers the script of a shell and ends the process, if it is the one that asks.
pub(crate) fn answer_shell() {
    CompleteEnv::with_factory(Arguments::<Command>::command)
        .var(CARREL_COMPLETE)
        .bin(PROGRAM)
        .completer(PROGRAM)
        .complete();
}

pub(crate) fn write_script(shell: Shell) -> Result<ExitCode> {
    let shells = Shells::builtins();
    let name = shell.to_string();
    let completer = shells.completer(&name);
    let completer = completer.ok_or_else(|| CliError::new(Code::Usage, format!("no {name}")))?;
    let mut script = Vec::new();
    completer
        .write_registration(CARREL_COMPLETE, PROGRAM, PROGRAM, PROGRAM, &mut script)
        .map_err(|error| output::unwritten(&error))?;
    output::write(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a manual page for each command.
pub(crate) fn write_manual(directory: &Path) -> Result<ExitCode> {
    let command = Arguments::<Command>::command();
    clap_mangen::generate_to(command, directory).map_err(|error| {
        let doing = format!("could not write the manual into {}", directory.display());
        CliError::of(Code::Io, &error).context(doing).at(directory)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Completes the name of a tool.
pub(crate) fn tool_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let tools = carrel_tools::definitions(ToolSelection::ALL);
    let named = tools.filter(|tool| starts_with(tool.about.name, typed));
    named
        .map(|tool| CompletionCandidate::new(tool.about.name).help(Some(tool.about.title.into())))
        .collect()
}

/// Completes the identifier of a workspace.
pub(crate) fn workspace_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let listed = in_named_root(async |workspaces| workspaces.list(Freshness::Cached).await.ok());
    let names = listed.into_iter().flatten().map(|listing| listing.record.identifier.to_string());
    candidates(names, typed)
}

/// Completes the name of kept work.
pub(crate) fn kept_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let kept = in_named_root(async |workspaces| workspaces.kept().await.ok());
    candidates(kept.into_iter().flatten().map(|kept| kept.name), typed)
}

fn candidates(names: impl Iterator<Item = String>, typed: &OsStr) -> Vec<CompletionCandidate> {
    let fitting = names.filter(|name| starts_with(name, typed)).take(MAX_NAMES);
    fitting.map(CompletionCandidate::new).collect()
}

fn starts_with(name: &str, typed: &OsStr) -> bool {
    name.as_bytes().starts_with(typed.as_encoded_bytes())
}

/// Looks into the root that the words of the command line name.
fn in_named_root<T>(look: impl AsyncFnOnce(&Workspaces) -> Option<T>) -> Option<T> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let arguments =
        RootArguments { root: option(&words, "--root"), config: option(&words, "--config") };
    let settings = Settings::load(&arguments, &Environment::process()).ok()?;
    let workspaces = Workspaces::open_existing(&settings.options).ok()??;
    crate::runtime().ok()?.block_on(look(&workspaces))
}

/// Returns the value of an option: the next word, or the part after `=`.
fn option(words: &[OsString], name: &str) -> Option<PathBuf> {
    let place = words.iter().position(|word| {
        let rest = word.as_encoded_bytes().strip_prefix(name.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"="))
    })?;
    match words[place].to_str().and_then(|word| word.split_once('=')) {
        Some((_, value)) => Some(value.into()),
        None => words.get(place + 1).map(PathBuf::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_an_option_follows_it_or_its_equals_sign() {
        let option = |words: &[&str]| {
            option(&words.iter().map(OsString::from).collect::<Vec<_>>(), "--root")
        };
        assert_eq!(option(&["carrel", "--root", "/x", "show"]), Some("/x".into()));
        assert_eq!(option(&["carrel", "--root=/x=y", "show"]), Some("/x=y".into()));
        assert_eq!(option(&["carrel", "--roots", "/x"]), None);
        assert_eq!(option(&["carrel", "--root"]), None);
    }
}
