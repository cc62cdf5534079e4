//! `carrel init`: writes a commented workflow file or policy file, generated from the tables that the
//! settings are read by. A file that exists is left as it is.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use carrel_config::Environment;
use carrel_domain::Code;
use clap::Args;
use clap::builder::TypedValueParser;
use serde_json::json;

use crate::arguments::choice;
use crate::error::{CliError, Result};
use crate::output::{self, Invocation};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    Workflow,
    Policy,
}

#[derive(Args, Debug)]
pub(crate) struct InitArguments {
    /// The file to write
    #[arg(value_name = "KIND", default_value = "workflow", value_parser = kind())]
    kind: FileKind,
    /// Its path; WORKFLOW.md in this directory, or the user's policy file, if none is given
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

fn kind() -> impl TypedValueParser<Value = FileKind> {
    choice([
        ("workflow", "The workflow of `carrel run`", FileKind::Workflow),
        ("policy", "The operator's policy for sandboxed commands", FileKind::Policy),
    ])
}

pub(crate) fn run(arguments: &InitArguments, cli: &Invocation) -> Result<ExitCode> {
    let path = match &arguments.file {
        Some(path) => path.clone(),
        None => default_path(arguments.kind, &cli.environment)?,
    };
    let shown = path.display();
    let (kind, text, next) = match arguments.kind {
        FileKind::Workflow => {
            let next = format!("`carrel check {shown}` reads it, `carrel run {shown}` works by it");
            ("workflow", carrel_config::workflow_template(), next)
        }
        FileKind::Policy => {
            let next = format!("`carrel doctor --policy {shown}` reads it");
            ("policy", carrel_config::policy_template(), next)
        }
    };
    write_new(&path, &text).map_err(|error| unwritable(&path, &error))?;
    cli.print(&json!({ "kind": kind, "path": path.to_string_lossy() }), || {
        output::line(&format!("wrote {shown}"))?;
        output::note(&next);
        Ok(())
    })
}

fn default_path(kind: FileKind, environment: &Environment) -> Result<PathBuf> {
    match kind {
        FileKind::Workflow => Ok(PathBuf::from("WORKFLOW.md")),
        FileKind::Policy => carrel_config::user_policy_file(environment).ok_or_else(|| {
            CliError::new(Code::Usage, "there is no home directory for the policy file")
                .hint("name the file: `carrel init policy FILE`")
        }),
    }
}

#[expect(clippy::disallowed_methods, reason = "an operator names a file of the host")]
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let mut file = std::fs::File::options().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

fn unwritable(path: &Path, error: &io::Error) -> CliError {
    let shown = path.display();
    if error.kind() == io::ErrorKind::AlreadyExists {
        let message = format!("{shown} exists and is not overwritten");
        let hint = "name another file behind the kind, or move this one away";
        return CliError::new(Code::AlreadyExists, message).hint(hint).at(path);
    }
    CliError::of(Code::Io, error).context(format_args!("could not write {shown}")).at(path)
}
