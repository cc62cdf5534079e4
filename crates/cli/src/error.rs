//! The errors of all commands, and the one place that prints them.
//!
//! Each error has a stable code. The message ends with the way out: a hint for this very case, or else the
//! first remedy of the code; `--json` prints the same as an object.

use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use carrel_config::Environment;
use carrel_domain::{Code, Coded, ErrorEnvelope, Failure, message_of};
use carrel_tools::{AuditedCall, Violation};
use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue};
use serde_json::{Value, json};

use crate::arguments::{Arguments, Command};
use crate::logging;
use crate::output::{Format, printable};
use crate::sandbox;

const FAILED: u8 = 1;
const USED_WRONGLY: u8 = 2;

pub(crate) type Result<T, E = CliError> = std::result::Result<T, E>;

/// An error that ends a command: one of another crate, or one of the command line's own.
///
/// No caller tells errors apart, since all of them are printed; so this holds what is printed, the causes
/// being part of the message.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CliError {
    code: Code,
    message: String,
    /// The way out in this case, in place of the code's remedy.
    hint: Option<Box<str>>,
    detail: Value,
}

impl<E: Coded> From<E> for CliError {
    fn from(error: E) -> Self {
        Self { code: error.code(), message: message_of(&error), hint: None, detail: error.detail() }
    }
}

impl CliError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, detail: json!({}) }
    }

    /// Wraps an error that has no code, or not this one.
    pub(crate) fn of(code: Code, error: &impl Error) -> Self {
        Self::new(code, message_of(error))
    }

    /// Takes over the refusal of a tool.
    pub(crate) fn of_failure(failure: Failure) -> Self {
        Self::new(failure.code, failure.message).with(failure.detail)
    }

    pub(crate) fn usage(error: impl Error) -> Self {
        Self::of(Code::Usage, &error)
    }

    /// Puts the object that an error is about in front of its message.
    pub(crate) fn context(self, subject: impl fmt::Display) -> Self {
        Self { message: format!("{subject}: {}", self.message), ..self }
    }

    /// Names the way out in place of the remedy of the code.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into().into_boxed_str()), ..self }
    }

    /// Adds the facts for programs.
    pub(crate) fn with(self, detail: Value) -> Self {
        Self { detail, ..self }
    }

    /// Adds a path as the fact for programs.
    pub(crate) fn at(self, path: &Path) -> Self {
        self.with(json!({ "path": path.display().to_string() }))
    }

    pub(crate) fn start(doing: &'static str) -> impl Fn(io::Error) -> Self + Copy {
        move |cause| {
            Self::of(Code::SpawnFailed, &cause).context(format_args!("could not start: {doing}"))
        }
    }

    pub(crate) fn listen(address: impl fmt::Display) -> impl Fn(io::Error) -> Self {
        move |cause| {
            Self::of(Code::SpawnFailed, &cause).context(format_args!(
                "could not listen on {address}, which another program may use; name another port"
            ))
        }
    }

    /// A data directory that cannot be used.
    pub(crate) fn data(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |cause| {
            let subject = format!("--data {} cannot be used", path.display());
            Self::of(Code::Io, &cause).context(subject).at(path)
        }
    }

    /// An address that other machines can reach while there is no key for tokens.
    pub(crate) fn no_key(address: SocketAddr) -> Self {
        let message = format!(
            "other machines can reach {address}, and there is no key for tokens yet; make one with `carrel token new`, or set CARREL_TOKEN_SECRET"
        );
        Self::new(Code::Usage, message).with(json!({ "address": address.to_string() }))
    }

    /// An environment variable whose value is not what it has to be.
    pub(crate) fn variable(name: &str, value: &str, expected: impl fmt::Display) -> Self {
        let message = format!("{name}={value} cannot be used; it is {expected}");
        Self::new(Code::Usage, message).with(json!({ "variable": name }))
    }

    /// Records a refusal in the operator's audit log. `operation` is the command that it ends.
    pub(crate) fn audit(&self, operation: &str, environment: &Environment) {
        if let Some(violation) = Violation::of_code(self.code, self.detail.clone()) {
            let audited_call = AuditedCall::of_command_line(operation);
            sandbox::direct_events(environment).add_violation(&audited_call, violation);
        }
    }

    /// Prints the error as the last line of stderr and returns the exit status.
    pub(crate) fn report(self, format: Format) -> ExitCode {
        let Self { code, message, hint, detail } = self;
        let message = match hint.as_deref() {
            None if tells_remedy(code) => message,
            hint => format!("{message}; {}", hint.unwrap_or(code.remedy())),
        };
        logging::show_held(Some(&message));
        report(&ErrorEnvelope::new(code, message, detail), format);
        ExitCode::from(if code == Code::Usage { USED_WRONGLY } else { FAILED })
    }
}

/// Returns whether every message of a code ends with the way out in its case.
fn tells_remedy(code: Code) -> bool {
    matches!(code, Code::WorkspaceFrozen | Code::ForkRefused | Code::ForkConflict)
}

fn report(envelope: &ErrorEnvelope, format: Format) {
    let mut stderr = io::stderr().lock();
    // A closed stderr cannot be reported anywhere.
    let _ = match format {
        Format::Json => serde_json::to_writer(&mut stderr, envelope)
            .map_err(io::Error::from)
            .and_then(|()| stderr.write_all(b"\n")),
        Format::Text => {
            let error = &envelope.error;
            writeln!(stderr, "error: {} [{}]", printable(&error.message), error.code)
        }
    };
}

/// Prints the usage error, or the help that was requested.
pub(crate) fn report_usage(mut error: clap::Error, arguments: &[OsString]) -> ExitCode {
    suggest_command(&mut error, arguments);
    let asked_for_help = !error.use_stderr();
    let json = arguments.iter().any(|argument| argument == "--json");
    if asked_for_help || !json {
        let _ = error.print();
        return ExitCode::from(if asked_for_help { 0 } else { USED_WRONGLY });
    }
    let text = error.to_string();
    let message = text.trim().strip_prefix("error: ").unwrap_or(text.trim());
    report(&ErrorEnvelope::new(Code::Usage, message, json!({})), Format::Json);
    ExitCode::from(USED_WRONGLY)
}

/// Words that other programs have for a command, and its name here.
const SYNONYMS: [(&str, &str); 14] = [
    ("delete", "rm"),
    ("remove", "rm"),
    ("destroy", "rm"),
    ("list", "ls"),
    ("new", "create"),
    ("add", "create"),
    ("make", "create"),
    ("info", "show"),
    ("describe", "show"),
    ("get", "show"),
    ("clean", "gc"),
    ("prune", "gc"),
    ("recover", "restore"),
    ("add", "new"),
];

/// Adds the command that is meant by a word for it, where the spelling alone suggests none.
fn suggest_command(error: &mut clap::Error, arguments: &[OsString]) {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let mut parent = Arguments::<Command>::command();
    for argument in arguments.iter().skip(1).take_while(|argument| *argument != given.as_str()) {
        if let Some(found) = parent.find_subcommand(argument) {
            parent = found.clone();
        }
    }
    let meant = SYNONYMS
        .iter()
        .find(|(word, name)| word == given && parent.find_subcommand(name).is_some());
    if let Some((_, name)) = meant {
        let names = ContextValue::Strings(vec![(*name).to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, names);
    }
}
