//! The six tools of the workspace service, with the schemas that its clients know.
//!
//! They keep to the rules of that service: names that hold credentials do not exist for them, a write
//! needs no read before it, and commands are held against the allow-list.

mod data;
mod files;
mod run;

use crate::registry::Catalogue;

/// Adds the tools of this module.
pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add(files::ReadFile);
    catalogue.add(files::WriteFile);
    catalogue.add(files::ListDir);
    catalogue.add(files::GrepFiles);
    catalogue.add(run::Exec);
    catalogue.add(run::Git);
}
