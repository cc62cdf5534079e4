//! An SSH key that a command may use and not read.
//!
//! The command is started by an agent of its own (`ssh-agent`), which is part of what the command leaves
//! behind and ends with it, whatever ends it. The key reaches the agent through a pipe and is nowhere else.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use carrel_domain::{Network, Secret, Tier};
use carrel_exec::CommandSpec;
use carrel_fsroot::Root;
use rustix::fs::{Mode, fchmod};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::error::RunError;
use crate::request::RunRequest;
use crate::sandbox_cell::Walled;
use carrel_workspace::blocking;

const AGENT: &str = "/usr/bin/ssh-agent";
const ADD: &str = "/usr/bin/ssh-add";

/// More would not fit into a pipe that nobody reads yet.
const MAX_KEY_BYTES: usize = 32 << 10;

/// The longest path of a socket.
const MAX_SOCKET_BYTES: usize = 107;

/// The agent of one command. What there is of it on disk, its socket, is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Agent {
    scratch: Root,
    name: PathBuf,
    /// Where the socket is for the command.
    socket: PathBuf,
    /// The number under which the command finds the key.
    number: u32,
}

impl Agent {
    /// Makes the place for the socket, and puts the key where the agent reads it.
    pub(crate) async fn make(
        request: &mut RunRequest,
        walled: &Walled,
        network: Network,
    ) -> Result<Option<Self>, RunError> {
        let Some(key) = request.ssh_key.take() else { return Ok(None) };
        let refused = |reason| RunError::SshKey { reason };
        if ![AGENT, ADD].iter().all(|program| Path::new(program).exists()) {
            return Err(refused(
                "it needs /usr/bin/ssh-agent and /usr/bin/ssh-add; install openssh-client on the server",
            ));
        }
        let tier = walled.plan().map(|plan| plan.tier);
        if tier == Some(Tier::Landlock) && network != Network::Full {
            return Err(refused(
                "commands without network have no sockets in tier `landlock`, so that they reach no agent; \
                 give the step network `full`, or the server tier `full`",
            ));
        }
        // LazySpawner can make directories there too, and must not foresee the name.
        let own = format!("{:016x}", fastrand::u64(..));
        let socket = walled.temporary().join(&own).join("agent");
        if socket.as_os_str().len() > MAX_SOCKET_BYTES {
            return Err(refused(
                "the path of its socket would be too long; use a data directory with a shorter path",
            ));
        }
        let number = CommandSpec::FIRST_INHERITED
            + u32::try_from(request.inherited.len()).expect("few descriptors");
        request.inherited.push(piped(&key)?);
        let walled = walled.clone();
        let make = move || {
            if walled.lacks_directory() {
                walled.make_directory()?;
            }
            walled.make_below_temporary(&own)
        };
        let (scratch, name) = blocking(make).await?;
        Ok(Some(Self { scratch, name, socket, number }))
    }

    /// Returns what is started in place of a command: the agent, then what hands it the key, then the
    /// command, which is the process that was started.
    pub(crate) fn around(&self, argv: Vec<OsString>) -> Vec<OsString> {
        let number = self.number;
        // Shells do not take a number of three digits behind `<&`.
        let load = format!(
            "{ADD} -q - </proc/self/fd/{number} 2>/dev/null || \
             {{ echo 'carrel: the SSH key of the credential could not be loaded' >&2; exit 126; }}; \
             exec \"$@\""
        );
        let agent = [AGENT.into(), "-a".into(), self.socket.clone().into_os_string()];
        let shell = ["/bin/sh".into(), "-c".into(), load.into(), "sh".into()];
        agent.into_iter().chain(shell).chain(argv).collect()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It goes with the scratch directory otherwise.
        let _ = self.scratch.remove_tree(&self.name);
    }
}

/// Puts a key into a pipe, from which it is read once.
fn piped(key: &Secret) -> Result<OwnedFd, RunError> {
    if key.expose().len() > MAX_KEY_BYTES {
        return Err(RunError::SshKey { reason: "it is too long" });
    }
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(std::io::Error::from)?;
    File::from(writer).write_all(key.expose().as_bytes())?;
    // The command may be another user, and opens it by its name. Only those who have it find that.
    fchmod(&reader, Mode::RUSR | Mode::RGRP | Mode::ROTH).map_err(std::io::Error::from)?;
    Ok(reader)
}
