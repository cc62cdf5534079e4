//! A process that becomes one cell, started before its server knows anything.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use carrel_domain::Tier;
use carrel_sandbox::fork_scrubbed;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;

use crate::helper;
use crate::socket;

/// A process that becomes the first cell it is asked for. It does nothing else: whatever comes before
/// or after finds it gone. It ends when this is dropped.
#[derive(Debug)]
pub struct PreforkedCell {
    pub(crate) child: Pid,
    pub(crate) requests: OwnedFd,
    /// Closes when the process and everything that it started is gone.
    pub(crate) life: OwnedFd,
}

impl PreforkedCell {
    /// Starts the process, which prepares for a cell of this tier while nobody asks yet.
    ///
    /// It is a copy of the calling one, without its arguments, environment and descriptors, but with
    /// whatever else is in memory. So this is for a program that needs one cell, has read nothing
    /// that a cell must not know, and has one thread.
    pub fn fork(tier: Tier) -> io::Result<Self> {
        let (requests, far) = socket::pair()?;
        let (life, out) = pipe_with(PipeFlags::CLOEXEC)?;
        let child = fork_scrubbed(far.as_fd(), out.as_fd(), || helper::run_cell(tier))?;
        Ok(Self { child, requests, life })
    }
}
