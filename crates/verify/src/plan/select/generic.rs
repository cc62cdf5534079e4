//! Selection for runners that take files and names as plain arguments, or not at all.

use crate::plan::{CommandScope, PlanError, Selector, Target};
use crate::profile::{ProjectCommand, args};
use crate::tool::ProjectTool;

use super::{by_file, cannot_narrow, escape, exactly, local, single};

pub(super) fn narrow(
    tool: ProjectTool,
    command: &ProjectCommand,
    target: &Target<'_>,
) -> Result<Vec<String>, PlanError> {
    let paths = match target.scope {
        CommandScope::Project => vec![],
        CommandScope::File(path) | CommandScope::Directory(path) if command.file_argv.is_some() => {
            vec![local(command, path)]
        }
        CommandScope::File(_) => return Err(cannot_narrow(tool, "a file")),
        CommandScope::Directory(_) => return Err(cannot_narrow(tool, "a directory")),
        CommandScope::Package(_) => return Err(cannot_narrow(tool, "a package name")),
    };
    let name = match target.name {
        None => vec![],
        Some(name) => name_args(tool, name)?,
    };
    Ok([single(command), name, paths].concat())
}

fn name_args(tool: ProjectTool, name: &str) -> Result<Vec<String>, PlanError> {
    match tool {
        ProjectTool::DenoTest => Ok(args(&["--filter", name])),
        ProjectTool::Rspec => Ok(args(&["-e", name])),
        ProjectTool::Phpunit => Ok(args(&["--filter", &escape(name)])),
        ProjectTool::Ctest => Ok(args(&["-R", &escape(name)])),
        ProjectTool::DotnetTest => Ok(args(&["--filter", &format!("FullyQualifiedName~{name}")])),
        other => Err(cannot_narrow(other, "a test name")),
    }
}

pub(super) fn rerun(
    tool: ProjectTool,
    command: &ProjectCommand,
    tests: &[&Selector],
) -> Result<Vec<Vec<String>>, PlanError> {
    let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
    match tool {
        ProjectTool::DenoTest => Ok(by_file(tests)
            .into_iter()
            .map(|(file, names)| {
                let filter = format!("/{}/", exactly(&names));
                let paths = if file.is_empty() { vec![] } else { vec![local(command, file)] };
                [single(command), args(&["--filter", &filter]), paths].concat()
            })
            .collect()),
        ProjectTool::Rspec => Ok(vec![[single(command), args(&names)].concat()]),
        ProjectTool::Phpunit => {
            let filter =
                format!("/::({})$/", names.iter().map(|n| escape(n)).collect::<Vec<_>>().join("|"));
            Ok(vec![[single(command), args(&["--filter", &filter])].concat()])
        }
        ProjectTool::Ctest => Ok(vec![[single(command), args(&["-R", &exactly(&names)])].concat()]),
        other => Err(cannot_narrow(other, "the failed tests")),
    }
}
