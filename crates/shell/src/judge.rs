//! Holds a preset against a command line.

use std::path::Path;
use std::str::FromStr;

use crate::error::ParseError;
use crate::parse::parse;
use crate::policy::{self, Finding};
use crate::script::{Command, CommandLine};
use crate::verdict::{CommandSummary, Decision, Refusal, Verdict};

/// How much a command line may do before the kernel is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Listed commands only, and none of the blocked operations.
    Allowlist,
    /// Everything but commands for privileges, devices and power.
    Denylist,
    /// Everything; the kernel decides.
    Open,
}

/// The text names no preset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such preset: {0}; there are allowlist, denylist and open")]
pub struct UnknownPreset(String);

impl Preset {
    /// Returns the name.
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
        match text {
            "allowlist" => Ok(Self::Allowlist),
            "denylist" => Ok(Self::Denylist),
            "open" => Ok(Self::Open),
            _ => Err(UnknownPreset(crate::error::shortened(text))),
        }
    }
}

/// What a judgement may know about where the command runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    /// The absolute path of the own workspace; without it every absolute path is outside.
    pub workspace: Option<&'a Path>,
}

/// Judges a command line.
///
/// Under [`Preset::Allowlist`] what is not understood is refused. Under [`Preset::Denylist`] the
/// commands that were found decide, because refusing unusual but honest text would protect
/// nothing that the kernel does not.
pub fn judge(text: &str, preset: Preset, context: &Context<'_>) -> Verdict {
    let (script, problem) = match parse(text) {
        Ok(script) => (script, None),
        Err(problem) => ((*problem.found).clone(), Some(problem)),
    };
    let refusal = match preset {
        Preset::Open => None,
        Preset::Denylist => {
            policy::denied(&script.commands).map(|(command, finding)| refusal(command, finding))
        }
        Preset::Allowlist => not_listed(text, &script, problem.as_ref(), context),
    };
    let decision = refusal.map_or(Decision::Allow, Decision::Refuse);
    Verdict { decision, commands: script.commands.iter().map(CommandSummary::of).collect() }
}

/// Returns the first refusal of the list: what is certainly blocked comes before what is not
/// understood, and that before a name that is merely not listed.
fn not_listed(
    text: &str,
    script: &CommandLine,
    problem: Option<&ParseError>,
    context: &Context<'_>,
) -> Option<Refusal> {
    let of = |(command, finding): (&Command, Finding)| refusal(command, finding);
    empty(text)
        .or_else(|| policy::blocked(&script.commands, context).map(of))
        .or_else(|| backtick(script))
        .or_else(|| policy::by_path(&script.commands).map(of))
        .or_else(|| problem.map(not_understood))
        .or_else(|| newline(script))
        .or_else(|| policy::unlisted(script).map(of))
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
    text.trim().is_empty().then(|| Refusal {
        rule: "empty",
        message: "the command is empty".to_owned(),
        position: 0,
        command: None,
    })
}

fn backtick(script: &CommandLine) -> Option<Refusal> {
    script.backticks.first().map(|position| Refusal {
        rule: "backtick",
        message: "backticks are refused; write `$(…)` for a substitution, or put the text \
                  between single quotes if the backtick is meant as such"
            .to_owned(),
        position: *position,
        command: None,
    })
}

fn newline(script: &CommandLine) -> Option<Refusal> {
    script.newlines.first().map(|position| Refusal {
        rule: "newline",
        message: "a newline between commands is refused; join them with `;` or `&&`, quote a \
                  newline that belongs to an argument, or put the lines into a file"
            .to_owned(),
        position: *position,
        command: None,
    })
}

fn not_understood(problem: &ParseError) -> Refusal {
    Refusal {
        rule: "not_understood",
        message: format!("{problem}; write commands and what they run out in plain words"),
        position: problem.position,
        command: None,
    }
}
