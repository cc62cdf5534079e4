//! The spawner process, and its copies inside a sandbox, the cells.
//!
//! Both serve the same requests: fork an init for a command, fork a process that becomes a cell or mounts
//! an overlay, kill an init. The loop waits for requests and for ended children, and does nothing else, so a request is
//! never delayed by another command. When an init dies before its tree, the orphans become children of
//! the spawner, which kills them.
//!
//! After a fork the child must not run the parent's loop, nor keep its descriptors. So the loop returns
//! a [`Role`] in the child, all the way up to [`run_role`], dropping the spawner's state on the way; a
//! cell then enters the loop again with state of its own.
//!
//! A preforked cell serves one command. It shares mounts and process namespace with it, so it must not
//! use its process table, whose numbers are those of the command's namespace, and ends with the command.

use std::collections::HashMap;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use carrel_domain::Tier;
use carrel_sandbox::{
    Cell, Fork, PreparedNamespaces, SharedMounts, SignalQueue, SignalScope, close_on_exec, fork,
    restore_default_dispositions,
};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{
    DumpableBehavior, Pid, Signal, chdir, getpid, getppid, kill_process, set_child_subreaper,
    set_dumpable_behavior, setsid,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, stdin};

use super::new_cell::{self, CellOrigin};
use super::{FAILURE, FIRST_DESCRIPTOR, SUCCESS, children, init, overlay, poll, process_tree};
use crate::protocol::{
    CellDescriptors, CellPath, Descriptors, MAX_INLINE_BYTES, MakeCell, MountOverlay,
    OverlayDescriptors, Request, Start, Step,
};
use crate::socket::{self, Packet};

/// Serves requests on stdin until it closes, and then ends every command.
pub(super) fn run() -> u8 {
    run_role(Spawner::prepare().and_then(Spawner::serve))
}

/// Becomes the cell of the first request on stdin. `tier` is the expected one, for which namespaces are
/// made ahead.
pub(crate) fn run_cell(tier: Tier) -> u8 {
    run_role(Spawner::prepare().and_then(|spawner| spawner.await_cell(tier)))
}

/// Runs the role of this process, which for a new cell is to serve requests again.
fn run_role(mut served: io::Result<Role>) -> u8 {
    loop {
        served = match served {
            Ok(Role::Done) => return SUCCESS,
            Ok(Role::Init { start, descriptors, signals, origin }) => {
                init::run(&start, *descriptors, signals, origin);
                return SUCCESS;
            }
            Ok(Role::Spare { spare, signals, origin }) => {
                init::run_spare(spare, signals, origin);
                return SUCCESS;
            }
            Ok(Role::Overlay { mount, descriptors }) => {
                overlay::mount(&mount.plan, descriptors);
                return SUCCESS;
            }
            Ok(Role::Cell { make, descriptors, origin, signals }) => {
                match new_cell::become_cell(*make, descriptors, origin, signals) {
                    Some(cell) => cell.serve(),
                    None => return SUCCESS,
                }
            }
            Err(error) => {
                // The reader may have ended.
                let _ = writeln!(io::stderr(), "carrel: the spawner failed: {error}");
                return FAILURE;
            }
        }
    }
}

/// The time that inits and cells have to end by themselves.
const SELF_EXIT_TIMEOUT: Duration = Duration::from_millis(50);

/// The role of a process that has left the loop.
enum Role {
    /// The spawner or a cell at its end.
    Done,
    /// A new child that is the init of a command.
    Init {
        start: Box<Start>,
        descriptors: Box<Descriptors<OwnedFd>>,
        signals: SignalQueue,
        origin: init::ForkParent,
    },
    /// A new child that waits for the next command of a cell.
    Spare { spare: init::Spare, signals: SignalQueue, origin: init::ForkParent },
    /// A new child that mounts an overlay and ends.
    Overlay { mount: Box<MountOverlay>, descriptors: OverlayDescriptors<OwnedFd> },
    Cell {
        make: Box<MakeCell>,
        descriptors: CellDescriptors<OwnedFd>,
        origin: CellOrigin,
        signals: SignalQueue,
    },
}

enum Child {
    Init(Box<Start>, Box<Descriptors<OwnedFd>>),
    Spare(init::Spare),
    Cell(Box<MakeCell>, CellDescriptors<OwnedFd>),
    Overlay(Box<MountOverlay>, OverlayDescriptors<OwnedFd>),
}

struct Spare {
    pid: Pid,
    requests: OwnedFd,
}

pub(super) struct Spawner {
    /// The spawner's own id, also in a new child.
    pid: Pid,
    /// The process that it ends with. The parent-death signal alone is no proof: any process of the
    /// same user could send it.
    parent: Option<Pid>,
    requests: OwnedFd,
    signals: SignalQueue,
    /// For a cell: its sandbox, and the socket by which the server notices its end.
    cell: Option<(Box<Cell>, OwnedFd)>,
    children: HashMap<u64, Pid>,
    /// Made after the second command: many cells run only one.
    spare: Option<Spare>,
    has_started: bool,
    /// Set while there may be orphans of an init that died.
    has_orphans: bool,
    mounts: SharedMounts,
}

impl Spawner {
    fn prepare() -> io::Result<Self> {
        let requests = take_stdin()?;
        close_on_exec(FIRST_DESCRIPTOR..=u32::MAX)?;
        chdir("/")?;
        // A new session: signals of the server's terminal do not end commands.
        setsid()?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        set_child_subreaper(Some(getpid()))?;
        restore_default_dispositions();
        let signals = SignalQueue::block_all_except_reading(&[Signal::CHILD, init::PARENT_DIED])?;
        Ok(Self::new(requests, signals, None))
    }

    pub(super) fn new(
        requests: OwnedFd,
        signals: SignalQueue,
        cell: Option<(Box<Cell>, OwnedFd)>,
    ) -> Self {
        let children = HashMap::new();
        Self {
            pid: getpid(),
            parent: getppid(),
            requests,
            signals,
            cell,
            children,
            spare: None,
            has_started: false,
            has_orphans: false,
            mounts: SharedMounts::default(),
        }
    }

    fn serve(mut self) -> io::Result<Role> {
        if self.serves_one_command() {
            // It prepares while the server prepares the command.
            if let Some(child) = self.make_spare(Vec::new()) {
                return Ok(self.become_child(child));
            }
            self.has_started = self.spare.is_some();
        }
        loop {
            let [requested, signalled] = self.wait()?;
            if signalled {
                if self.signals.take()?.contains(&init::PARENT_DIED) && getppid() != self.parent {
                    return Ok(self.end());
                }
                self.reap()?;
                let has_none = self.spare.is_none() && self.children.is_empty();
                if has_none && self.has_started && self.serves_one_command() {
                    return Ok(self.end());
                }
            }
            self.kill_orphans();
            if !requested {
                continue;
            }
            let packet = match socket::receive(&self.requests, MAX_INLINE_BYTES) {
                Ok(Some(packet)) => packet,
                Ok(None) => return Ok(self.end()),
                // Out of descriptors or memory. One command fails to start; the others go on.
                Err(_) => continue,
            };
            if let Some(child) = self.handle(packet) {
                return Ok(self.become_child(child));
            }
        }
    }

    /// Ends every child. Inits and cells notice the end of their sockets and end by themselves; a stopped
    /// one is killed.
    fn end(self) -> Role {
        // A reader of the server's stderr does not have to wait for this process.
        let _ = leave_stderr();
        let serves_one_command = self.serves_one_command();
        let Self { signals, children: mut known, spare, .. } = self;
        known.extend(spare.map(|spare| (u64::MAX, spare.pid)));
        let mut timeout = SELF_EXIT_TIMEOUT;
        loop {
            let forget = |pid, _| known.retain(|_, child| *child != pid);
            if children::all_ended_within(timeout, &signals, forget).unwrap_or(false) {
                return Role::Done;
            }
            if serves_one_command {
                // Children that were not reaped yet, so the ids are still theirs.
                for child in known.values() {
                    let _ = kill_process(*child, Signal::KILL);
                }
            } else {
                children::kill_all(&signals, SignalScope::unrestricted(), |_, _| {});
            }
            timeout = children::SWEEP_PAUSE;
        }
    }

    /// Returns whether this is a preforked cell. Every process below it is a child that it started or ends
    /// with one, and it must not look for others: the process ids that it sees are of another namespace.
    fn serves_one_command(&self) -> bool {
        self.cell.as_ref().is_some_and(|(cell, _)| cell.shares_mounts_with_command())
    }

    fn become_child(self, child: Child) -> Role {
        let Self { signals, pid: spawner, cell, mounts, .. } = self;
        match child {
            Child::Init(start, descriptors) => {
                let origin = init::ForkParent::of(cell, spawner);
                Role::Init { start, descriptors, signals, origin }
            }
            Child::Spare(spare) => {
                Role::Spare { spare, signals, origin: init::ForkParent::of(cell, spawner) }
            }
            Child::Cell(make, descriptors) => {
                let origin = CellOrigin::Spawner { pid: spawner, mounts };
                Role::Cell { make, descriptors, origin, signals }
            }
            Child::Overlay(mount, descriptors) => Role::Overlay { mount, descriptors },
        }
    }

    /// Waits for the request of a cell. Any other request ends the process.
    fn await_cell(self, tier: Tier) -> io::Result<Role> {
        let prepared = match tier {
            // On failure they are made with the cell, which reports the error.
            Tier::Full => PreparedNamespaces::prepare().map(Box::new).ok(),
            Tier::Landlock => None,
        };
        let Some(mut packet) = socket::receive(&self.requests, MAX_INLINE_BYTES)? else {
            return Ok(Role::Done);
        };
        let Request::Cell(make) = Request::from_packet(&mut packet)? else { return Ok(Role::Done) };
        let descriptors = CellDescriptors::from_received(packet.descriptors, &make)?;
        let Self { signals, .. } = self;
        Ok(Role::Cell { make, descriptors, origin: CellOrigin::Preforked(prepared), signals })
    }

    fn wait(&self) -> io::Result<[bool; 2]> {
        let until = self.has_orphans.then(|| Instant::now() + children::SWEEP_PAUSE);
        poll::wait([self.requests.as_fd(), self.signals.as_fd()], until)
    }

    /// Handles a request. Returns the future role in a process that is a new child.
    ///
    /// A malformed packet is dropped; its sender finds the control socket closed.
    fn handle(&mut self, mut packet: Packet) -> Option<Child> {
        let is_inline = Request::is_inline(&packet);
        match Request::from_packet(&mut packet).ok()? {
            Request::Start(start) if self.serves_one_command() && self.has_started => {
                self.start_only(start, packet.descriptors);
                None
            }
            Request::Start(start) => {
                let opened = match self.open_directory(&start) {
                    Ok(opened) => opened,
                    Err(error) => {
                        init::refuse(packet.descriptors.first()?, Step::Directory, &error);
                        return None;
                    }
                };
                if is_inline {
                    let number = start.options.number;
                    if self.hand_over(&packet, opened.as_ref(), number) {
                        return self.make_spare(packet.payload);
                    }
                }
                let mut descriptors =
                    Descriptors::from_received(packet.descriptors, &start.options).ok()?;
                descriptors.directory = opened.or(descriptors.directory);
                self.start(*start, descriptors, packet.payload)
            }
            Request::Cell(make) => {
                let descriptors = CellDescriptors::from_received(packet.descriptors, &make).ok()?;
                self.make_cell(make, descriptors)
            }
            Request::Overlay(mount) => {
                let descriptors = OverlayDescriptors::from_received(packet.descriptors).ok()?;
                self.mount_overlay(mount, descriptors)
            }
            Request::Kill { number } => {
                let child = *self.children.get(&number)?;
                // A child that was not reaped yet, so the id is still its own.
                let _ = kill_process(child, Signal::KILL);
                None
            }
        }
    }

    /// Starts the only command of a preforked cell, in its spare init. The sender of a second request finds
    /// the control socket closed.
    fn start_only(&mut self, start: Box<Start>, descriptors: Vec<OwnedFd>) {
        let number = start.options.number;
        let Ok((payload, file)) = Request::Start(start).into_payload() else { return };
        let descriptors = descriptors.into_iter().chain(file).collect();
        self.hand_over(&Packet { payload, descriptors }, None, number);
    }

    fn start(
        &mut self,
        start: Start,
        descriptors: Descriptors<OwnedFd>,
        request: Vec<u8>,
    ) -> Option<Child> {
        let forked = match &self.cell {
            None => fork(),
            Some((cell, _)) => cell.fork(),
        };
        match forked {
            Ok(Fork::Child) => return Some(Child::Init(Box::new(start), Box::new(descriptors))),
            Ok(Fork::Parent(init)) => {
                self.children.insert(start.options.number, init);
            }
            Err(error) => init::refuse(&descriptors.control, Step::Fork, &error),
        }
        drop(descriptors);
        if std::mem::replace(&mut self.has_started, true) { self.make_spare(request) } else { None }
    }

    /// Opens the working directory of a command, if the cell and not the command has to.
    fn open_directory(&self, start: &Start) -> io::Result<Option<OwnedFd>> {
        match (&self.cell, &start.options.inside) {
            (Some((cell, _)), Some(CellPath(path))) => cell.open_directory(path),
            _ => Ok(None),
        }
    }

    /// Passes a request to the spare init, if there is one, with the directory that was opened for it.
    fn hand_over(&mut self, packet: &Packet, opened: Option<&OwnedFd>, number: u64) -> bool {
        let Some(Spare { pid, requests }) = self.spare.take() else { return false };
        let descriptors = packet.descriptors.iter().chain(opened);
        let descriptors: Vec<_> = descriptors.map(AsFd::as_fd).collect();
        let handed = socket::send(&requests, &packet.payload, &descriptors).is_ok();
        // If sending failed, the spare ends when its socket closes; it is still a child.
        self.children.insert(if handed { number } else { u64::MAX }, pid);
        handed
    }

    /// Forks the spare init of a cell. `last_request` is the request to decode ahead.
    fn make_spare(&mut self, last_request: Vec<u8>) -> Option<Child> {
        let (cell, _) = self.cell.as_ref()?;
        // On failure the next command forks its own init.
        let (requests, far) = socket::pair().ok()?;
        match cell.fork().ok()? {
            Fork::Child => return Some(Child::Spare(init::Spare { requests: far, last_request })),
            Fork::Parent(pid) => self.spare = Some(Spare { pid, requests }),
        }
        None
    }

    fn make_cell(
        &mut self,
        make: Box<MakeCell>,
        descriptors: CellDescriptors<OwnedFd>,
    ) -> Option<Child> {
        if make.plan.tier == Tier::Full {
            self.mounts.prepare(&make.plan);
        }
        match fork() {
            Ok(Fork::Child) => return Some(Child::Cell(make, descriptors)),
            Ok(Fork::Parent(cell)) => {
                self.children.insert(make.number, cell);
            }
            Err(error) => init::refuse(&descriptors.control, Step::Fork, &error),
        }
        None
    }

    fn mount_overlay(
        &mut self,
        mount: Box<MountOverlay>,
        descriptors: OverlayDescriptors<OwnedFd>,
    ) -> Option<Child> {
        match fork() {
            Ok(Fork::Child) => return Some(Child::Overlay(mount, descriptors)),
            Ok(Fork::Parent(child)) => {
                self.children.insert(mount.number, child);
            }
            Err(error) => init::refuse(&descriptors.control, Step::Fork, &error),
        }
        None
    }

    fn reap(&mut self) -> io::Result<()> {
        let serves_one_command = self.serves_one_command();
        children::reap(|pid, status| {
            // A child that ends with success has reaped its tree. Any other one was an orphan or has
            // left orphans.
            let is_spare = self.spare.take_if(|spare| spare.pid == pid).is_some();
            let known = self.children.len();
            self.children.retain(|_, child| *child != pid);
            let is_known = is_spare || self.children.len() < known;
            let tree_ended = is_known && status.exit_status() == Some(0);
            self.has_orphans |= !tree_ended && !serves_one_command;
        })?;
        Ok(())
    }

    fn kill_orphans(&mut self) {
        if self.has_orphans {
            let spare = self.spare.as_ref().map(|spare| spare.pid);
            let spared = self.children.values().copied().chain(spare).collect();
            // A failed read of the process table is repeated after a pause.
            self.has_orphans = process_tree::kill(&spared).map_or(true, |found| found > 0);
        }
    }
}

/// Takes the socket that the server passed as stdin, and replaces it by `/dev/null`.
fn take_stdin() -> io::Result<OwnedFd> {
    let socket = fcntl_dupfd_cloexec(stdin(), FIRST_DESCRIPTOR.cast_signed())?;
    dup2_stdin(open_null()?)?;
    Ok(socket)
}

pub(super) fn leave_stderr() -> io::Result<()> {
    Ok(dup2_stderr(open_null()?)?)
}

fn open_null() -> io::Result<OwnedFd> {
    Ok(open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}
