//! Tools that run commands.
//!
//! Every command is a job with a log: one that is waited for can be read afterwards as well, from any
//! place, when its answer had to be cut.

mod bash;
mod facts;
mod kill;
mod output;
mod run;
mod scrub;
mod start;
mod watch;
mod watched;

pub(crate) use bash::{NetworkChoice, directory, exit_code};
pub(crate) use facts::object;
pub use facts::{CommandFacts, notes};
pub(crate) use scrub::scrubbed;
pub(crate) use start::{Launch, Shell};

use crate::registry::Catalogue;

/// Adds the tools of this module.
pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add(bash::Bash);
    catalogue.add(output::BashOutput);
    catalogue.add(kill::KillShell);
    catalogue.add(watch::WatchProcess);
    catalogue.add(watch::WatchProcessEvents);
    catalogue.add(run::ShellRun);
}
