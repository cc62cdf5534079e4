//! What a program that runs one command does first thing.

use carrel_config::TierChoice;
use carrel_domain::Tier;
use carrel_exec::{Groups, Seed};

use super::{Boundary, Feature, find_groups};

/// What was begun before anything was read, for a runner of one command.
#[derive(Debug, Default)]
pub struct Early {
    pub(super) groups: Option<Groups>,
    pub(super) seed: Option<Seed>,
}

impl Early {
    /// Starts the process that becomes the command's cell, if there are to be walls. It gets ready while
    /// the rest is prepared. What cannot be begun here is begun later, and says why it cannot.
    ///
    /// That process is a copy of the calling one: see [`Seed::plant`].
    pub fn begin(boundary: Boundary, without: &[Feature]) -> Self {
        let tier = match boundary {
            Boundary::Off => return Self::default(),
            Boundary::Walls(TierChoice::Auto) => Tier::Full,
            Boundary::Walls(TierChoice::Only(tier)) => tier,
        };
        // First, since a process that is there already would stay behind.
        let groups = Groups::may_move().then(|| find_groups(without));
        Self { groups, seed: Seed::plant(tier).ok() }
    }
}
