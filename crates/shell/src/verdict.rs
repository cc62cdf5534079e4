//! The verdict of a preset about a command line.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::command_line::{Command, CommandOrigin};

/// The decision about a command line, with the commands that were found in it.
///
/// Serialises as one flat object:
///
/// ```json
/// {"verdict":"refuse","rule":"privilege","message":"`sudo ls` is refused: it changes privileges; …",
///  "commands":[{"command":"sudo ls","name":"sudo","position":0,"wrapped":false}],
///  "position":0,"command":"sudo ls"}
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The reason why the command line may not run; none if it may.
    pub refusal: Option<Refusal>,
    /// The simple commands, in the order of the text.
    pub commands: Vec<CommandSummary>,
}

/// The reason why a command line may not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The stable name of the rule.
    pub rule: &'static str,
    /// The refused construct, and what would pass instead.
    pub message: String,
    /// The byte offset of the refused construct.
    pub position: usize,
    /// The simple command, if the rule is about one.
    pub command: Option<String>,
}

/// A simple command as it is reported to callers, also if the command line was refused because of another
/// one.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CommandSummary {
    /// The command as written, shortened.
    pub command: String,
    /// Its name, unless that is computed.
    pub name: Option<String>,
    /// The byte offset in the text.
    pub position: usize,
    /// True if a wrapper runs it.
    pub wrapped: bool,
}

impl Refusal {
    /// Returns a refusal of the text itself, by a rule that is not about one command.
    pub(crate) fn of_text(rule: &'static str, message: impl Into<String>, position: usize) -> Self {
        Self { rule, message: message.into(), position, command: None }
    }
}

impl CommandSummary {
    pub(crate) fn of(command: &Command) -> Self {
        Self {
            command: command.shown(),
            name: command.name().map(crate::parse_error::shortened),
            position: command.position,
            wrapped: command.origin == CommandOrigin::Wrapped,
        }
    }
}

impl Verdict {
    /// Returns whether the command line may run.
    pub fn is_allowed(&self) -> bool {
        self.refusal.is_none()
    }

    /// Returns the reason why the command line may not run.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let refusal = self.refusal();
        map.serialize_entry("verdict", if refusal.is_some() { "refuse" } else { "allow" })?;
        map.serialize_entry("rule", &refusal.map(|refusal| refusal.rule))?;
        map.serialize_entry("message", &refusal.map(|refusal| &refusal.message))?;
        map.serialize_entry("commands", &self.commands)?;
        if let Some(refusal) = refusal {
            map.serialize_entry("position", &refusal.position)?;
            map.serialize_entry("command", &refusal.command)?;
        }
        map.end()
    }
}
