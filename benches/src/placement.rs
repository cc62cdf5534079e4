//! Which cores a client and a server run on.
//!
//! A core that sleeps takes longer to wake up than a small call takes to answer, and whether the scheduler puts two
//! programs that wait for each other on one core or on two is settled when they start. So a row about small calls
//! chooses, and both sides of its comparison are placed alike.

use std::fs;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Fault;
use crate::server::Server;

/// The cores of a client and of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(crate) name: &'static str,
    client: CpuSet,
    server: CpuSet,
}

impl Placement {
    /// Returns what can be done on this machine: client and server on one core, in turns; and, with a second core,
    /// each on its own, which sleeps while the other works.
    pub(crate) fn all() -> Result<Vec<Self>, Fault> {
        let ours = sched_getaffinity(None)?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| ours.is_set(*core)).map(only);
        let first = cores.next().ok_or("no core to run on")?;
        let one = Self { name: "one core", client: first, server: first };
        let two =
            cores.next().map(|second| Self { name: "two cores", client: first, server: second });
        Ok([Some(one), two].into_iter().flatten().collect())
    }

    /// Moves all threads of a server to its core.
    pub(crate) fn place(&self, server: &Server) -> Result<(), Fault> {
        for thread in fs::read_dir(format!("/proc/{}/task", server.id()))? {
            let thread: i32 = thread?.file_name().to_string_lossy().parse()?;
            sched_setaffinity(Pid::from_raw(thread), &self.server)?;
        }
        Ok(())
    }

    /// Runs what starts a server's threads, which stay on its core.
    pub(crate) fn on_server_core<T>(
        &self,
        work: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        on(&self.server, work)
    }

    /// Runs the client's part.
    pub(crate) fn on_client_core<T>(
        &self,
        work: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        on(&self.client, work)
    }
}

fn only(core: usize) -> CpuSet {
    let mut cores = CpuSet::new();
    cores.set(core);
    cores
}

/// Runs this thread on some cores, and then where it was before.
fn on<T>(cores: &CpuSet, work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    let before = sched_getaffinity(None)?;
    sched_setaffinity(None, cores)?;
    let done = work();
    sched_setaffinity(None, &before)?;
    done
}
