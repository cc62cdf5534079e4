//! Definitions of tools as a client receives them.
//!
//! Clients put the definitions of all tools into every request to their model, so a server sends the brief
//! form unless its operator chose the full one:
//!
//! | | brief | full |
//! |---|---|---|
//! | arguments | what a model needs; `workspace` where there are several | all, with bounds and defaults |
//! | output schema | no: clients hide it from models, and facts may be sent without one | yes |
//! | title | no | yes |
//! | hints | where the protocol assumes another value | all |
//!
//! A program that checks replies against schemas asks its operator for the full form, or takes the schemas
//! from `carrel tool --json` or `/api/tools`.

use std::sync::Arc;

use carrel_tools::{Class, Definition, Effect, Masking, WorkspaceCount};
use rmcp::model::{Tool, ToolAnnotations};

/// The operator's choice how much a definition says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefinitionDetail {
    /// What a model needs.
    #[default]
    Brief,
    /// Everything, for programs.
    Full,
}

impl DefinitionDetail {
    /// Encodes the tools that a client with so many workspaces is told of.
    pub(super) fn tools(self, definitions: &[Definition], workspaces: WorkspaceCount) -> Vec<Tool> {
        let is_listed =
            |definition: &&Definition| self == Self::Full || definition.is_listed(workspaces);
        let listed = definitions.iter().filter(is_listed);
        listed.map(|definition| self.tool(definition, workspaces)).collect()
    }

    pub(super) fn tool(self, definition: &Definition, workspaces: WorkspaceCount) -> Tool {
        let about = &definition.about;
        match self {
            Self::Brief => {
                let schema = Arc::clone(definition.brief_input_schema(workspaces));
                let mut tool = Tool::new(about.name, about.description, schema);
                tool.annotations = unusual_hints(definition);
                tool
            }
            Self::Full => {
                let schema = Arc::clone(definition.input_schema());
                let mut tool = Tool::new(about.name, about.description, schema);
                tool.title = Some(about.title.to_owned());
                tool.output_schema = Some(Arc::clone(&definition.output_schema));
                tool.annotations = Some(all_hints(definition));
                tool
            }
        }
    }
}

fn is_read_only(definition: &Definition) -> bool {
    let about = &definition.about;
    let changes_nothing = about.class == Class::Read || about.effect == Effect::NONE;
    // Clients run read-only tools unasked, and a tool that discloses a secret is not for that.
    changes_nothing && about.rules.masking == Masking::Masked
}

fn all_hints(definition: &Definition) -> ToolAnnotations {
    let about = &definition.about;
    ToolAnnotations::with_title(about.title)
        .read_only(is_read_only(definition))
        .destructive(about.effect.destructive)
        .idempotent(about.effect.idempotent)
        .open_world(about.effect.open_world)
}

/// Returns the hints that a client would otherwise assume differently. By the protocol a tool without hints
/// is not read-only, destructive, not idempotent and open to the world, and a read-only one is neither
/// destructive nor in need of `idempotentHint`.
fn unusual_hints(definition: &Definition) -> Option<ToolAnnotations> {
    let effect = &definition.about.effect;
    let read_only = is_read_only(definition);
    let hints = ToolAnnotations::new();
    let hints = if read_only { hints.read_only(true) } else { hints };
    let hints = if read_only || effect.destructive { hints } else { hints.destructive(false) };
    let hints = if read_only || !effect.idempotent { hints } else { hints.idempotent(true) };
    let hints = if effect.open_world { hints } else { hints.open_world(false) };
    Some(hints).filter(|hints| *hints != ToolAnnotations::new())
}
