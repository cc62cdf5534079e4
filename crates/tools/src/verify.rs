//! Tools that say what a project is, and whether it is in order.

mod checks;
mod failing;
pub(crate) mod feedback;
mod format;
mod last;
mod profile;
mod projects;
mod running;
mod script;
mod tests;

pub(crate) use last::LastRuns;

use crate::registry::Catalogue;

/// Adds the tools of this module.
pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add(profile::ShowProfile);
    catalogue.add(tests::RunTests);
    catalogue.add(checks::RunLint);
    catalogue.add(checks::RunTypecheck);
    catalogue.add(failing::RunFailingTests);
    catalogue.add(failing::LastTestFailures);
    catalogue.add(script::RunScript);
    catalogue.add(format::Format);
}
