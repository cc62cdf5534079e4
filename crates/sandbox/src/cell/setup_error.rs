//! The error of a failed setup: the step, the object and the error number.

use std::fmt;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The step of a cell's setup that failed. It is serialised and sent to the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupError {
    /// The step that failed.
    pub step: SetupStep,
    /// The path that the step worked on, for steps that work on several.
    pub object: Option<String>,
    /// The error number of the failed system call.
    pub errno: i32,
}

/// A step of a cell's setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum SetupStep {
    /// Creating the user namespace and writing its id maps.
    #[error("creating a user namespace")]
    UserNamespace,
    /// Creating the other namespaces, or joining those of a companion cell.
    #[error("creating namespaces")]
    Namespaces,
    /// Switching to the user of the commands.
    #[error("switching to another user")]
    CommandUser,
    /// Making a mount id-mapped, so that files of the owner on disk belong to the commands' user.
    #[error("mapping the owner of files")]
    MapOwner,
    /// Opening a path of the host.
    #[error("opening")]
    Find,
    /// Mounting the tree of a fork.
    #[error("mounting an overlay")]
    Overlay,
    /// Mounting layers of a fork that were mounted before.
    #[error("mounting the used layers")]
    UsedLayers,
    /// Building the root directory and mounting into it.
    #[error("building a root directory")]
    Root,
    /// Bringing up the loopback interface.
    #[error("bringing up the loopback")]
    Loopback,
    /// Creating a Landlock ruleset.
    #[error("creating Landlock rules")]
    Landlock,
    /// Dropping capabilities for good.
    #[error("dropping capabilities")]
    Capabilities,
}

impl SetupError {
    /// Returns whether the host forbids this step for every workspace, so that trying again with another
    /// one is pointless. Errors of shortage and races do not count.
    pub fn is_host_limitation(&self) -> bool {
        match self.step {
            // `ENOSPC` is the error for a limit of zero user namespaces.
            SetupStep::UserNamespace => {
                [libc::EPERM, libc::ENOSYS, libc::EINVAL, libc::EACCES, libc::ENOSPC]
                    .contains(&self.errno)
            }
            // Shortage and races give other numbers; these two mean that it is not permitted.
            SetupStep::Namespaces | SetupStep::Root | SetupStep::Loopback | SetupStep::Find => {
                [libc::EPERM, libc::ENOSYS].contains(&self.errno)
            }
            // Without the module, or on a kernel that permits the mount to root only.
            SetupStep::Overlay => [libc::EPERM, libc::ENOSYS, libc::ENODEV].contains(&self.errno),
            SetupStep::CommandUser
            | SetupStep::MapOwner
            | SetupStep::UsedLayers
            | SetupStep::Landlock
            | SetupStep::Capabilities => false,
        }
    }

    /// Returns whether tier `landlock`, which does without this step, may work where tier `full` failed.
    pub fn is_tier_limitation(&self) -> bool {
        self.is_host_limitation() || self.step == SetupStep::MapOwner
    }

    /// Returns the error for a plan that shows an overlay where none is mounted, or the other way round.
    pub fn wrong_workspace_source() -> Self {
        Self { step: SetupStep::Overlay, object: None, errno: libc::EINVAL }
    }

    /// Returns the error for a companion cell, whose network was to be shared, that has none of its own.
    pub fn no_network_to_share() -> Self {
        Self { step: SetupStep::Namespaces, object: None, errno: libc::ESRCH }
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = io::Error::from_raw_os_error(self.errno);
        match &self.object {
            Some(object) => write!(f, "{} {object}: {error}", self.step),
            None => write!(f, "{}: {error}", self.step),
        }
    }
}

impl std::error::Error for SetupError {}

/// Attaches the setup step to an error.
pub(crate) trait StepContext<T> {
    fn during(self, step: SetupStep) -> Result<T, SetupError>;
    fn during_with(self, step: SetupStep, object: &Path) -> Result<T, SetupError>;
}

impl<T, E: Into<io::Error>> StepContext<T> for Result<T, E> {
    fn during(self, step: SetupStep) -> Result<T, SetupError> {
        self.map_err(|error| SetupError { step, object: None, errno: number(&error.into()) })
    }

    fn during_with(self, step: SetupStep, object: &Path) -> Result<T, SetupError> {
        let object = Some(object.display().to_string());
        self.map_err(|error| SetupError { step, object, errno: number(&error.into()) })
    }
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
