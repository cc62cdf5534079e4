//! An SSH key that a command can use and not read.
//!
//! The command is started by an `ssh-agent` of its own, inside the sandbox. The agent is one of the
//! command's processes and ends with it in every case. The key reaches the agent through a pipe and
//! is neither on disk nor in the environment.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use carrel_domain::{Network, Secret, Tier};
use carrel_exec::CommandSpec;
use rustix::fs::{Mode, fchmod};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::error::RunError;
use crate::private_directory::PrivateDirectory;
use crate::request::RunRequest;
use crate::sandbox_cell::ExecutionSite;

const AGENT: &str = "/usr/bin/ssh-agent";
const ADD: &str = "/usr/bin/ssh-add";

/// The most that fits into a pipe without a reader, with a margin: pipes hold 64 KiB.
const MAX_KEY_BYTES: usize = 32 << 10;

/// The longest path of a Unix socket (`sun_path` without its NUL).
const MAX_SOCKET_BYTES: usize = 107;

/// The agent of one command. Its socket is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SshAgent {
    /// The path of the socket inside the sandbox.
    socket: PathBuf,
    _directory: PrivateDirectory,
    /// The descriptor of the pipe in the command.
    key_descriptor: u32,
}

impl SshAgent {
    /// Creates the directory of the socket, and puts the key into a pipe for the agent.
    pub(crate) async fn make(
        request: &mut RunRequest,
        site: &ExecutionSite,
        network: Network,
    ) -> Result<Option<Self>, RunError> {
        let Some(key) = request.ssh_key.take() else { return Ok(None) };
        let refused = |reason| RunError::SshKey { reason };
        if ![AGENT, ADD].iter().all(|program| Path::new(program).exists()) {
            return Err(refused(
                "it needs /usr/bin/ssh-agent and /usr/bin/ssh-add; install openssh-client on the server",
            ));
        }
        let tier = site.plan().map(|plan| plan.tier);
        if tier == Some(Tier::Landlock) && network != Network::Full {
            return Err(refused(
                "commands without network have no sockets in tier `landlock`, so that they reach no agent; \
                 the operator decides about tier and network",
            ));
        }
        let directory = PrivateDirectory::make(site).await?;
        let socket = directory.inside.join("agent");
        if socket.as_os_str().len() > MAX_SOCKET_BYTES {
            return Err(refused(
                "the path of its socket would be too long; use a data directory with a shorter path",
            ));
        }
        let key_descriptor = CommandSpec::FIRST_INHERITED
            + u32::try_from(request.inherited.len()).expect("few descriptors");
        request.inherited.push(piped(&key)?);
        Ok(Some(Self { socket, _directory: directory, key_descriptor }))
    }

    /// Wraps a command: the agent starts a shell, which loads the key and becomes the command.
    pub(crate) fn wrap(&self, argv: Vec<OsString>) -> Vec<OsString> {
        let descriptor = self.key_descriptor;
        // Shells do not take a descriptor of three digits after `<&`.
        let load = format!(
            "{ADD} -q - </proc/self/fd/{descriptor} 2>/dev/null || \
             {{ echo 'carrel: the SSH key of the credential could not be loaded' >&2; exit 126; }}; \
             exec \"$@\""
        );
        let agent = [AGENT.into(), "-a".into(), self.socket.clone().into_os_string()];
        let shell = ["/bin/sh".into(), "-c".into(), load.into(), "sh".into()];
        agent.into_iter().chain(shell).chain(argv).collect()
    }
}

/// Writes a key into a pipe, from which it can be read once.
fn piped(key: &Secret) -> Result<OwnedFd, RunError> {
    if key.expose().len() > MAX_KEY_BYTES {
        return Err(RunError::SshKey { reason: "it is too long" });
    }
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(std::io::Error::from)?;
    File::from(writer).write_all(key.expose().as_bytes())?;
    // The command may run as another user and opens the pipe by `/proc/self/fd`, which only its own
    // processes have.
    fchmod(&reader, Mode::RUSR | Mode::RGRP | Mode::ROTH).map_err(std::io::Error::from)?;
    Ok(reader)
}
