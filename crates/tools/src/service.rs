//! The six tools of the workspace service, with the schemas that its clients know.
//!
//! They keep to the rules of that service: names that hold credentials do not exist for them, a write
//! needs no read before it, and commands are held against the allow-list.

mod data;
mod files;
mod run;

use crate::registry::Registry;

/// Adds the tools of this module.
pub(crate) fn register(registry: &mut Registry) {
    registry.add(files::ReadFile);
    registry.add(files::WriteFile);
    registry.add(files::ListDir);
    registry.add(files::GrepFiles);
    registry.add(run::Exec);
    registry.add(run::Git);
}
