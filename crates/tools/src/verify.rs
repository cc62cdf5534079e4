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

use crate::registry::Registry;

/// Adds the tools of this module.
pub(crate) fn register(registry: &mut Registry) {
    registry.add(profile::ShowProfile);
    registry.add(tests::RunTests);
    registry.add(checks::RunLint);
    registry.add(checks::RunTypecheck);
    registry.add(failing::RunFailingTests);
    registry.add(failing::LastTestFailures);
    registry.add(script::RunScript);
    registry.add(format::Format);
}
