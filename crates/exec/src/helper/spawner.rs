//! The process that starts commands.
//!
//! It forks an init for each command and otherwise waits. When an init dies before its tree, the
//! orphans become children of the spawner, which kills them.

use std::collections::HashSet;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::Instant;

use carrel_sandbox::{Fork, SignalQueue, close_on_exec, fork, restore_default_dispositions};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{
    DumpableBehavior, Pid, Signal, getpid, kill_process, set_child_subreaper,
    set_dumpable_behavior, setsid,
};
use rustix::stdio::{dup2_stdin, stdin};

use super::{FIRST_DESCRIPTOR, children, init, ready, tree};
use crate::protocol::{Descriptors, MAX_INLINE_BYTES, Request, Start};
use crate::socket::{self, Packet};

/// Serves requests on stdin until it closes, and then ends every command.
pub(super) fn run() -> ExitCode {
    let served = Spawner::prepare().and_then(Spawner::serve);
    match served {
        Ok(Role::Done) => ExitCode::SUCCESS,
        Ok(Role::Init { start, descriptors, signals, spawner }) => {
            init::run(&start, descriptors, signals, spawner)
        }
        Err(error) => {
            // Nobody may be reading any more.
            let _ = writeln!(io::stderr(), "carrel: the spawner failed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What the process is when it stops serving requests.
enum Role {
    /// The spawner, with nothing left to do.
    Done,
    /// A new child that is the init of a command. It owns none of the spawner's descriptors.
    Init { start: Start, descriptors: Descriptors<OwnedFd>, signals: SignalQueue, spawner: Pid },
}

struct Spawner {
    /// The spawner's own id, also in a child that is to become an init.
    pid: Pid,
    requests: OwnedFd,
    signals: SignalQueue,
    inits: HashSet<Pid>,
    /// Whether there may be orphans of an init that died.
    orphans: bool,
}

impl Spawner {
    fn prepare() -> io::Result<Self> {
        let requests = take_stdin()?;
        close_on_exec(FIRST_DESCRIPTOR..=u32::MAX)?;
        // A session of its own: what a terminal sends to the server does not end commands.
        setsid()?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        set_child_subreaper(Some(getpid()))?;
        restore_default_dispositions();
        let signals = SignalQueue::block_all_except_reading(&[Signal::CHILD, init::END])?;
        Ok(Self { pid: getpid(), requests, signals, inits: HashSet::new(), orphans: false })
    }

    fn serve(mut self) -> io::Result<Role> {
        loop {
            let [requested, signalled] = self.wait()?;
            if signalled {
                self.signals.take()?;
                self.reap()?;
            }
            self.kill_orphans();
            if !requested {
                continue;
            }
            let packet = match socket::receive(&self.requests, MAX_INLINE_BYTES) {
                Ok(Some(packet)) => packet,
                Ok(None) => {
                    // The inits see the end of their control sockets, but a stopped one does not.
                    children::kill_all(&self.signals, |_, _| {});
                    return Ok(Role::Done);
                }
                // Descriptors or memory are short. One command fails to start; the others go on.
                Err(_) => continue,
            };
            if let Some((start, descriptors)) = self.handle(packet) {
                let Self { signals, pid: spawner, .. } = self;
                return Ok(Role::Init { start, descriptors, signals, spawner });
            }
        }
    }

    fn wait(&self) -> io::Result<[bool; 2]> {
        let until = self.orphans.then(|| Instant::now() + children::SWEEP_PAUSE);
        ready::wait([self.requests.as_fd(), self.signals.as_fd()], until)
    }

    /// Does what a packet asks for. Returns the command in the process that is to become its init.
    ///
    /// A packet that makes no sense is dropped; its sender finds the control socket closed.
    fn handle(&mut self, mut packet: Packet) -> Option<(Start, Descriptors<OwnedFd>)> {
        match Request::from_packet(&mut packet).ok()? {
            Request::Start(start) => {
                let descriptors =
                    Descriptors::from_received(packet.descriptors, start.held).ok()?;
                self.start(start, descriptors)
            }
            Request::End { init } => {
                let init = Pid::from_raw(init).filter(|pid| self.inits.contains(pid))?;
                // It is a child that has not been waited for, so the id is still its own.
                let _ = kill_process(init, Signal::KILL);
                None
            }
        }
    }

    fn start(
        &mut self,
        start: Start,
        descriptors: Descriptors<OwnedFd>,
    ) -> Option<(Start, Descriptors<OwnedFd>)> {
        match fork() {
            Ok(Fork::Child) => return Some((start, descriptors)),
            Ok(Fork::Parent(init)) => {
                self.inits.insert(init);
            }
            Err(error) => init::refuse(&descriptors.control, &error),
        }
        None
    }

    fn reap(&mut self) -> io::Result<()> {
        children::reap(|pid, status| {
            // An init that ends by itself has seen the end of its tree. Any other child was an
            // orphan, and where one was there may be more.
            let tree_ended = self.inits.remove(&pid) && status.exit_status() == Some(0);
            self.orphans |= !tree_ended;
        })?;
        Ok(())
    }

    fn kill_orphans(&mut self) {
        if self.orphans {
            // A process table that cannot be read at the moment is read again after a pause.
            self.orphans = tree::kill(&self.inits).map_or(true, |found| found > 0);
        }
    }
}

/// Takes the socket that the server passed as stdin, and leaves nothing to read there.
fn take_stdin() -> io::Result<OwnedFd> {
    let socket = fcntl_dupfd_cloexec(stdin(), FIRST_DESCRIPTOR.cast_signed())?;
    dup2_stdin(open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)?;
    Ok(socket)
}
