//! Forks the cell of a single command before anything else is known.
//!
//! `carrel exec` starts the process that becomes its cell before it parses its arguments, so that the
//! kernel makes the namespaces on one core while the program reads policy and workspace on another.
//! Forking a copy instead of starting the program again took `carrel exec -- true` from 1.31 to 1.20
//! times the time of bubblewrap.

use carrel_config::TierChoice;
use carrel_domain::Tier;
use carrel_exec::{Cgroups, PreforkedCell};

use crate::runner::{Feature, SandboxMode, find_cgroups};

/// The cell process and control groups of a runner for one command, started ahead.
#[derive(Debug, Default)]
pub struct Prefork {
    pub(crate) cgroups: Option<Cgroups>,
    pub(crate) cell: Option<PreforkedCell>,
}

impl Prefork {
    /// Forks the process that becomes the command's cell, if there is to be a sandbox. A failure is not
    /// an error here: the cell is then made later, and reports the reason.
    ///
    /// The process is a copy of the calling one: see [`PreforkedCell::fork`] for what that requires.
    pub fn start(mode: SandboxMode, disabled: &[Feature]) -> Self {
        let tier = match mode {
            SandboxMode::Off => return Self::default(),
            SandboxMode::Enforced(TierChoice::Auto) => Tier::Full,
            SandboxMode::Enforced(TierChoice::Only(tier)) => tier,
        };
        // Before the fork: finding control groups may move this process to another group, and a child
        // that exists already would stay behind.
        let cgroups = Cgroups::may_move().then(|| find_cgroups(disabled));
        Self { cgroups, cell: PreforkedCell::fork(tier).ok() }
    }
}
