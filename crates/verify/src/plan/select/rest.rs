//! Parts of projects whose runners take files and names in the plain way, or not at all.

use crate::plan::{Place, PlanError, Selector, Target};
use crate::profile::{Command, words};
use crate::tool::Tool;

use super::{by_file, escape, exactly, local, single};

pub(super) fn narrow(
    tool: Tool,
    command: &Command,
    target: &Target<'_>,
) -> Result<Vec<String>, PlanError> {
    let place = match target.place {
        Place::Project => vec![],
        Place::File(path) | Place::Directory(path) if command.file_argv.is_some() => {
            vec![local(command, path)]
        }
        Place::File(_) => return Err(PlanError::CannotNarrow { tool, what: "a file" }),
        Place::Directory(_) => return Err(PlanError::CannotNarrow { tool, what: "a directory" }),
        Place::Package(_) => return Err(PlanError::CannotNarrow { tool, what: "a package name" }),
    };
    let name = match target.name {
        None => vec![],
        Some(name) => name_words(tool, name)?,
    };
    Ok([single(command), name, place].concat())
}

fn name_words(tool: Tool, name: &str) -> Result<Vec<String>, PlanError> {
    match tool {
        Tool::DenoTest => Ok(words(&["--filter", name])),
        Tool::Rspec => Ok(words(&["-e", name])),
        Tool::Phpunit => Ok(words(&["--filter", &escape(name)])),
        Tool::Ctest => Ok(words(&["-R", &escape(name)])),
        Tool::DotnetTest => Ok(words(&["--filter", &format!("FullyQualifiedName~{name}")])),
        other => Err(PlanError::CannotNarrow { tool: other, what: "a test name" }),
    }
}

pub(super) fn rerun(
    tool: Tool,
    command: &Command,
    tests: &[&Selector],
) -> Result<Vec<Vec<String>>, PlanError> {
    let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
    match tool {
        Tool::DenoTest => Ok(by_file(tests)
            .into_iter()
            .map(|(file, names)| {
                let filter = format!("/{}/", exactly(&names));
                let place = if file.is_empty() { vec![] } else { vec![local(command, file)] };
                [single(command), words(&["--filter", &filter]), place].concat()
            })
            .collect()),
        Tool::Rspec => Ok(vec![[single(command), words(&names)].concat()]),
        Tool::Phpunit => {
            let filter =
                format!("/::({})$/", names.iter().map(|n| escape(n)).collect::<Vec<_>>().join("|"));
            Ok(vec![[single(command), words(&["--filter", &filter])].concat()])
        }
        Tool::Ctest => Ok(vec![[single(command), words(&["-R", &exactly(&names)])].concat()]),
        other => Err(PlanError::CannotNarrow { tool: other, what: "the failed tests" }),
    }
}
