//! What a program that runs one command does first thing.

use carrel_config::TierChoice;
use carrel_domain::Tier;
use carrel_exec::{Cgroups, PreforkedCell};

use crate::runner::{Feature, SandboxMode, find_cgroups};

/// What was begun before anything was read, for a runner of one command.
#[derive(Debug, Default)]
pub struct Prefork {
    pub(crate) cgroups: Option<Cgroups>,
    pub(crate) cell: Option<PreforkedCell>,
}

impl Prefork {
    /// Starts the process that becomes the command's cell, if there are to be walls. It gets ready while
    /// the rest is prepared. What cannot be begun here is begun later, and says why it cannot.
    ///
    /// That process is a copy of the calling one: see [`PreforkedCell::fork`].
    pub fn begin(mode: SandboxMode, disabled: &[Feature]) -> Self {
        let tier = match mode {
            SandboxMode::Off => return Self::default(),
            SandboxMode::Enforced(TierChoice::Auto) => Tier::Full,
            SandboxMode::Enforced(TierChoice::Only(tier)) => tier,
        };
        // First, since a process that is there already would stay behind.
        let cgroups = Cgroups::may_move().then(|| find_cgroups(disabled));
        Self { cgroups, cell: PreforkedCell::fork(tier).ok() }
    }
}
