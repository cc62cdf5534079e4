//! The answer of a judgement.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::script::{Command, CommandOrigin};

/// Whether a command line may run, and what was found in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The answer.
    pub decision: Decision,
    /// The simple commands that were found.
    pub commands: Vec<CommandSummary>,
}

/// The answer itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The command line may run.
    Allow,
    /// It may not.
    Refuse(Refusal),
}

/// Why a command line may not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The name of the rule, which programs may rely on.
    pub rule: &'static str,
    /// What is refused, and what would pass instead.
    pub message: String,
    /// The byte of the text at which it stands.
    pub position: usize,
    /// The simple command, where the rule is about one.
    pub command: Option<String>,
}

/// A simple command, as it is shown to a caller.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CommandSummary {
    /// The command as written, shortened.
    pub command: String,
    /// Its name, when that is known before it runs.
    pub name: Option<String>,
    /// The byte of the text at which it stands.
    pub position: usize,
    /// Whether another command runs it.
    pub wrapped: bool,
}

impl CommandSummary {
    pub(crate) fn of(command: &Command) -> Self {
        Self {
            command: command.shown(),
            name: command.name().map(crate::error::shortened),
            position: command.position,
            wrapped: command.origin == CommandOrigin::Wrapped,
        }
    }
}

impl Verdict {
    /// Tells whether the command line may run.
    pub fn is_allowed(&self) -> bool {
        self.refusal().is_none()
    }

    /// Returns why the command line may not run.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.decision {
            Decision::Allow => None,
            Decision::Refuse(refusal) => Some(refusal),
        }
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
