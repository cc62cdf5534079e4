//! Points at which tests end the process, as `kill -9` does.

use carrel_config::Environment;
use carrel_config::environment::CARREL_TRY_KILL_AT;

/// A point between two steps of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultPoint {
    Named,
    Forked,
    InRun,
    Ran,
    InVerification,
    Verified,
    Promoting,
    Promoted,
}

impl FaultPoint {
    fn as_str(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Forked => "forked",
            Self::InRun => "in-run",
            Self::Ran => "ran",
            Self::InVerification => "in-verification",
            Self::Verified => "verified",
            Self::Promoting => "promoting",
            Self::Promoted => "promoted",
        }
    }

    /// Ends the process if a test asks for that. Released programs never do.
    pub(super) fn reach(self, environment: &Environment) {
        let is_asked = cfg!(debug_assertions)
            && environment.get_str(CARREL_TRY_KILL_AT) == Some(self.as_str());
        if is_asked {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        }
    }
}
