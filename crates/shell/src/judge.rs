//! Presets, and the judgement of a command line by a preset.
//!
//! | preset | allows | refuses |
//! |---|---|---|
//! | `allowlist` | listed command names | other names, blocked operations, text that is not understood |
//! | `denylist` | everything else | commands for privileges, mounts, disks and power |
//! | `open` | everything | nothing |
//!
//! The allowlist reports the most certain finding first: a blocked operation, then a backtick, a program
//! given by its path, text that is not understood, a newline, and last a name that is not on the list. So
//! `sudo $X` is refused because of `sudo` and not because of `$X`.

use std::path::Path;
use std::str::FromStr;

use crate::command_line::{Command, CommandLine};
use crate::parse::parse;
use crate::parse_error::ParseError;
use crate::policy::{self, Finding};
use crate::verdict::{CommandSummary, Refusal, Verdict};

/// A named table of rules for command lines. Under every preset the sandbox has the last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Listed commands only, and none of the blocked operations. Programs must be given by name, so that a
    /// file of the workspace cannot pose as a listed program.
    Allowlist,
    /// Everything except commands for privileges, mounts, disks and power. It catches mistakes early and
    /// leaves everything else to the sandbox.
    Denylist,
    /// Everything. The text is still parsed, so that the verdict lists its commands.
    Open,
}

/// A text that is not the name of a preset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such preset: {0}; there are allowlist, denylist and open")]
pub struct UnknownPreset(String);

impl Preset {
    /// Returns the name, as policies and command lines write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowlist => "allowlist",
            Self::Denylist => "denylist",
            Self::Open => "open",
        }
    }
}

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(text: &str) -> Result<Self, UnknownPreset> {
        let presets = [Self::Allowlist, Self::Denylist, Self::Open];
        let named = presets.into_iter().find(|preset| preset.as_str() == text);
        named.ok_or_else(|| UnknownPreset(crate::parse_error::shortened(text)))
    }
}

/// The facts about a command's surroundings that a judgement may use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    /// The absolute path of the workspace; without it every absolute path counts as outside.
    pub workspace: Option<&'a Path>,
}

/// Judges a command line by a preset.
///
/// Under [`Preset::Allowlist`] text that is not understood is refused. Under [`Preset::Denylist`] the
/// commands that were found decide, because refusing unusual but honest text would protect nothing that the
/// sandbox does not protect.
pub fn judge(text: &str, preset: Preset, context: &Context<'_>) -> Verdict {
    let (line, problem) = match parse(text) {
        Ok(line) => (line, None),
        Err(problem) => ((*problem.partial).clone(), Some(problem)),
    };
    let refusal = match preset {
        Preset::Open => None,
        Preset::Denylist => {
            policy::denied(&line.commands).map(|(command, finding)| refusal(command, finding))
        }
        Preset::Allowlist => not_listed(text, &line, problem.as_ref(), context),
    };
    Verdict { refusal, commands: line.commands.iter().map(CommandSummary::of).collect() }
}

/// Returns the first refusal of the allowlist, the most certain first.
fn not_listed(
    text: &str,
    line: &CommandLine,
    problem: Option<&ParseError>,
    context: &Context<'_>,
) -> Option<Refusal> {
    let of = |(command, finding): (&Command, Finding)| refusal(command, finding);
    empty(text)
        .or_else(|| policy::blocked(&line.commands, context).map(of))
        .or_else(|| backtick(line))
        .or_else(|| policy::by_path(&line.commands).map(of))
        .or_else(|| problem.map(not_understood))
        .or_else(|| newline(line))
        .or_else(|| policy::unlisted(line).map(of))
}

fn refusal(command: &Command, finding: Finding) -> Refusal {
    let shown = command.shown();
    let message = if shown.is_empty() {
        finding.message
    } else {
        format!("`{shown}` is refused: {}", finding.message)
    };
    let position = finding.position.unwrap_or(command.position);
    Refusal { rule: finding.rule, message, position, command: (!shown.is_empty()).then_some(shown) }
}

fn empty(text: &str) -> Option<Refusal> {
    text.trim().is_empty().then(|| Refusal::of_text("empty", "the command is empty", 0))
}

fn backtick(line: &CommandLine) -> Option<Refusal> {
    let message = "backticks are refused; write `$(…)` for a substitution, or put the text \
                   between single quotes if the backtick is meant as such";
    line.backticks.first().map(|position| Refusal::of_text("backtick", message, *position))
}

fn newline(line: &CommandLine) -> Option<Refusal> {
    let message = "a newline between commands is refused; join them with `;` or `&&`, quote a \
                   newline that belongs to an argument, or put the lines into a file";
    line.newlines.first().map(|position| Refusal::of_text("newline", message, *position))
}

fn not_understood(problem: &ParseError) -> Refusal {
    let message = format!("{problem}; write commands and what they run out in plain words");
    Refusal::of_text("not_understood", message, problem.position)
}
