//! The process that starts commands, and its copies inside the walls of a sandbox, which do the
//! same there.
//!
//! It forks an init for each command and otherwise waits. When an init dies before its tree, the
//! orphans become children of the spawner, which kills them.

use std::collections::HashMap;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use carrel_domain::Tier;
use carrel_sandbox::{
    Cell, CellLifetime, CellResources, Fork, PreparedNamespaces, SetupError, SharedMounts,
    SignalQueue, SignalScope, close_on_exec, fork, restore_default_dispositions,
};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, chdir, getpid, getppid, kill_process, pidfd_open,
    set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal, setsid,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, stdin};

use super::{FAILURE, FIRST_DESCRIPTOR, SUCCESS, children, init, ready, tree};
use crate::protocol::{
    CellDescriptors, Descriptors, Inside, MAX_INLINE_BYTES, MakeCell, Report, Request, Start, Step,
};
use crate::socket::{self, Packet};

/// Serves requests on stdin until it closes, and then ends every command.
pub(super) fn run() -> u8 {
    play(Spawner::prepare().and_then(Spawner::serve))
}

/// Becomes the cell that the first request on stdin asks for, without another process in between. It is
/// probably going to be of this tier.
pub(crate) fn run_cell(tier: Tier) -> u8 {
    play(Spawner::prepare().and_then(|spawner| spawner.await_cell(tier)))
}

/// Is whatever the process is to be, until it is over.
fn play(mut served: io::Result<Role>) -> u8 {
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
            Ok(Role::Cell { make, descriptors, origin, signals }) => {
                match become_cell(*make, descriptors, origin, signals) {
                    Some(cell) => cell.serve(),
                    None => return SUCCESS,
                }
            }
            Err(error) => {
                // Nobody may be reading any more.
                let _ = writeln!(io::stderr(), "carrel: the spawner failed: {error}");
                return FAILURE;
            }
        }
    }
}

/// How long inits and cells that are left have to end by themselves.
const BY_THEMSELVES: Duration = Duration::from_millis(50);

/// What the process is when it stops serving requests.
enum Role {
    /// The spawner or a cell, with nothing left to do.
    Done,
    /// A new child that is the init of a command. It owns none of the spawner's descriptors.
    Init {
        start: Box<Start>,
        descriptors: Box<Descriptors<OwnedFd>>,
        signals: SignalQueue,
        origin: init::Origin,
    },
    /// A new child that gets ready for the next command of a cell.
    Spare { spare: init::Spare, signals: SignalQueue, origin: init::Origin },
    /// A process that is to become a cell. It owns none of the spawner's descriptors.
    Cell {
        make: Box<MakeCell>,
        descriptors: CellDescriptors<OwnedFd>,
        origin: CellOrigin,
        signals: SignalQueue,
    },
}

/// What becomes a cell.
enum CellOrigin {
    /// A copy of the spawner, which it ends with. Another cell may share its network.
    Spawner { pid: Pid, companion: Option<OwnedFd>, parts: SharedMounts },
    /// A process that was started for this cell and its only command, and what it has made before. It
    /// sees the end of the server by itself.
    Preforked(Option<Box<PreparedNamespaces>>),
}

/// What a new child is to become.
enum Child {
    Init(Box<Start>, Box<Descriptors<OwnedFd>>),
    Spare(init::Spare),
    Cell(Box<MakeCell>, CellDescriptors<OwnedFd>, Option<OwnedFd>),
}

/// An init that is ready for a command.
struct Spare {
    pid: Pid,
    requests: OwnedFd,
}

struct Spawner {
    /// The spawner's own id, also in a child that is to become something else.
    pid: Pid,
    /// Who it ends with. Anybody of the same user could send the signal that says so.
    parent: Option<Pid>,
    requests: OwnedFd,
    signals: SignalQueue,
    /// The cell that this process is, if it is one, and the socket that says so until it ends.
    cell: Option<(Box<Cell>, OwnedFd)>,
    /// Inits and cells, by the numbers of their requests.
    children: HashMap<u64, Pid>,
    /// An init of a cell that is ready for the next command. There is one from the second command on:
    /// for many the only one is the last.
    spare: Option<Spare>,
    has_started: bool,
    /// Whether there may be orphans of an init that died.
    orphans: bool,
    /// What cells have in common.
    parts: SharedMounts,
}

impl Spawner {
    fn prepare() -> io::Result<Self> {
        let requests = take_stdin()?;
        close_on_exec(FIRST_DESCRIPTOR..=u32::MAX)?;
        chdir("/")?;
        // A session of its own: what a terminal sends to the server does not end commands.
        setsid()?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        set_child_subreaper(Some(getpid()))?;
        restore_default_dispositions();
        let signals = SignalQueue::block_all_except_reading(&[Signal::CHILD, init::END])?;
        Ok(Self::new(requests, signals, None))
    }

    fn new(requests: OwnedFd, signals: SignalQueue, cell: Option<(Box<Cell>, OwnedFd)>) -> Self {
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
            orphans: false,
            parts: SharedMounts::default(),
        }
    }

    fn serve(mut self) -> io::Result<Role> {
        if self.knows_all() {
            // It gets ready while the server prepares the command.
            if let Some(child) = self.make_spare(Vec::new()) {
                return Ok(self.become_child(child));
            }
            self.has_started = self.spare.is_some();
        }
        loop {
            let [requested, signalled] = self.wait()?;
            if signalled {
                if self.signals.take()?.contains(&init::END) && getppid() != self.parent {
                    return Ok(self.end());
                }
                self.reap()?;
                let has_none = self.spare.is_none() && self.children.is_empty();
                if has_none && self.has_started && self.knows_all() {
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
                // Descriptors or memory are short. One command fails to start; the others go on.
                Err(_) => continue,
            };
            if let Some(child) = self.handle(packet) {
                return Ok(self.become_child(child));
            }
        }
    }

    /// Ends everything. Inits and cells see the end of their sockets and end by themselves, but a
    /// stopped one does not.
    fn end(self) -> Role {
        // Whoever reads what the server wrote does not have to wait for this.
        let _ = leave_stderr();
        let knows_all = self.knows_all();
        let Self { signals, children: mut known, spare, .. } = self;
        known.extend(spare.map(|spare| (u64::MAX, spare.pid)));
        let mut patience = BY_THEMSELVES;
        loop {
            let forget = |pid, _| known.retain(|_, child| *child != pid);
            if children::gone_within(patience, &signals, forget).unwrap_or(false) {
                return Role::Done;
            }
            if knows_all {
                // They are children that have not been waited for, so the ids are still their own.
                for child in known.values() {
                    let _ = kill_process(*child, Signal::KILL);
                }
            } else {
                children::kill_all(&signals, SignalScope::unrestricted(), |_, _| {});
            }
            patience = children::SWEEP_PAUSE;
        }
    }

    /// Returns whether every process below this one is a child that it started, or ends with one. Such
    /// a cell must not look for others: the processes that it sees have numbers of another namespace.
    fn knows_all(&self) -> bool {
        self.cell.as_ref().is_some_and(|(cell, _)| cell.shares_mounts_with_command())
    }

    fn become_child(self, child: Child) -> Role {
        let Self { signals, pid: spawner, cell, parts, .. } = self;
        match child {
            Child::Init(start, descriptors) => {
                let origin = init::Origin::of(cell, spawner);
                Role::Init { start, descriptors, signals, origin }
            }
            Child::Spare(spare) => {
                Role::Spare { spare, signals, origin: init::Origin::of(cell, spawner) }
            }
            Child::Cell(make, descriptors, companion) => {
                let origin = CellOrigin::Spawner { pid: spawner, companion, parts };
                Role::Cell { make, descriptors, origin, signals }
            }
        }
    }

    /// Waits for the request for a cell. Anything else ends the process.
    fn await_cell(self, tier: Tier) -> io::Result<Role> {
        let ahead = match tier {
            // What cannot be made now is made when it is needed, and fails there.
            Tier::Full => PreparedNamespaces::prepare().map(Box::new).ok(),
            Tier::Landlock => None,
        };
        let Some(mut packet) = socket::receive(&self.requests, MAX_INLINE_BYTES)? else {
            return Ok(Role::Done);
        };
        let Request::Cell(make) = Request::from_packet(&mut packet)? else { return Ok(Role::Done) };
        let descriptors = CellDescriptors::from_received(packet.descriptors)?;
        let Self { signals, .. } = self;
        Ok(Role::Cell { make, descriptors, origin: CellOrigin::Preforked(ahead), signals })
    }

    fn wait(&self) -> io::Result<[bool; 2]> {
        let until = self.orphans.then(|| Instant::now() + children::SWEEP_PAUSE);
        ready::wait([self.requests.as_fd(), self.signals.as_fd()], until)
    }

    /// Does what a packet asks for. Returns what to become in a process that is a new child.
    ///
    /// A packet that makes no sense is dropped; its sender finds the control socket closed.
    fn handle(&mut self, mut packet: Packet) -> Option<Child> {
        let is_inline = Request::is_inline(&packet);
        match Request::from_packet(&mut packet).ok()? {
            Request::Start(start) if self.knows_all() && self.has_started => {
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
                    let number = start.terms.number;
                    if self.hand_over(&packet, opened.as_ref(), number) {
                        return self.make_spare(packet.payload);
                    }
                }
                let mut descriptors =
                    Descriptors::from_received(packet.descriptors, &start.terms).ok()?;
                descriptors.directory = opened.or(descriptors.directory);
                self.start(*start, descriptors, packet.payload)
            }
            Request::Cell(make) => {
                let descriptors = CellDescriptors::from_received(packet.descriptors).ok()?;
                self.make_cell(make, descriptors)
            }
            Request::End { number } => {
                let child = *self.children.get(&number)?;
                // It is a child that has not been waited for, so the id is still its own.
                let _ = kill_process(child, Signal::KILL);
                None
            }
        }
    }

    /// Starts the only command of a cell, in the init that is ready for it. Whoever asks for another
    /// command, or comes when the init is gone, finds the control socket closed.
    fn start_only(&mut self, start: Box<Start>, descriptors: Vec<OwnedFd>) {
        let number = start.terms.number;
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
                self.children.insert(start.terms.number, init);
            }
            Err(error) => init::refuse(&descriptors.control, Step::Fork, &error),
        }
        drop(descriptors);
        if std::mem::replace(&mut self.has_started, true) { self.make_spare(request) } else { None }
    }

    /// Opens the directory of a command of this cell, if it has to be opened here.
    fn open_directory(&self, start: &Start) -> io::Result<Option<OwnedFd>> {
        match (&self.cell, &start.terms.inside) {
            (Some((cell, _)), Some(Inside(path))) => cell.open_directory(path),
            _ => Ok(None),
        }
    }

    /// Gives a request to the init that is ready for one, if there is any, with the directory that was
    /// opened for it.
    fn hand_over(&mut self, packet: &Packet, opened: Option<&OwnedFd>, number: u64) -> bool {
        let Some(Spare { pid, requests }) = self.spare.take() else { return false };
        let descriptors = packet.descriptors.iter().chain(opened);
        let descriptors: Vec<_> = descriptors.map(AsFd::as_fd).collect();
        let handed = socket::send(&requests, &packet.payload, &descriptors).is_ok();
        // One that did not get it ends when its socket closes, and is a child all the same.
        self.children.insert(if handed { number } else { u64::MAX }, pid);
        handed
    }

    /// Makes an init of a cell that is ready for the next command, after the last request.
    fn make_spare(&mut self, last: Vec<u8>) -> Option<Child> {
        let (cell, _) = self.cell.as_ref()?;
        // Without a spare the next command takes a little longer.
        let (requests, far) = socket::pair().ok()?;
        match cell.fork().ok()? {
            Fork::Child => return Some(Child::Spare(init::Spare { requests: far, last })),
            Fork::Parent(pid) => self.spare = Some(Spare { pid, requests }),
        }
        None
    }

    fn make_cell(
        &mut self,
        make: Box<MakeCell>,
        descriptors: CellDescriptors<OwnedFd>,
    ) -> Option<Child> {
        let companion = make.companion.and_then(|number| self.children.get(&number));
        let companion = companion.and_then(|pid| pidfd_open(*pid, PidfdFlags::empty()).ok());
        if make.plan.tier == Tier::Full {
            self.parts.prepare(&make.plan);
        }
        match fork() {
            Ok(Fork::Child) => return Some(Child::Cell(make, descriptors, companion)),
            Ok(Fork::Parent(cell)) => {
                self.children.insert(make.number, cell);
            }
            Err(error) => init::refuse(&descriptors.control, Step::Fork, &error),
        }
        None
    }

    fn reap(&mut self) -> io::Result<()> {
        let knows_all = self.knows_all();
        children::reap(|pid, status| {
            // A child that ends by itself has seen the end of its tree. Any other was an orphan,
            // and where one was there may be more.
            let is_spare = self.spare.take_if(|spare| spare.pid == pid).is_some();
            let known = self.children.len();
            self.children.retain(|_, child| *child != pid);
            let is_known = is_spare || self.children.len() < known;
            let tree_ended = is_known && status.exit_status() == Some(0);
            self.orphans |= !tree_ended && !knows_all;
        })?;
        Ok(())
    }

    fn kill_orphans(&mut self) {
        if self.orphans {
            let spare = self.spare.as_ref().map(|spare| spare.pid);
            let spared = self.children.values().copied().chain(spare).collect();
            // A process table that cannot be read at the moment is read again after a pause.
            self.orphans = tree::kill(&spared).map_or(true, |found| found > 0);
        }
    }
}

/// Turns this process into a cell, and tells the server whether that worked.
fn become_cell(
    make: MakeCell,
    descriptors: CellDescriptors<OwnedFd>,
    origin: CellOrigin,
    signals: SignalQueue,
) -> Option<Spawner> {
    let CellDescriptors { control, requests, workspace, scratch } = descriptors;
    let (spawner, companion, parts, ahead, lifetime) = match origin {
        CellOrigin::Spawner { pid, companion, parts } => {
            (Some(pid), companion, parts, None, CellLifetime::ManyCommands)
        }
        CellOrigin::Preforked(ahead) => (
            None,
            None,
            SharedMounts::default(),
            ahead.map(|ahead| *ahead),
            CellLifetime::OneCommand,
        ),
    };
    let entered = if make.companion.is_some() && companion.is_none() {
        Err(SetupError::companion_gone())
    } else {
        Cell::enter(
            make.plan,
            CellResources {
                workspace,
                scratch,
                companion,
                prepared: ahead,
                shared_mounts: parts,
                lifetime,
            },
        )
    };
    let cell = match (entered, lifetime) {
        (Ok(unsealed), CellLifetime::ManyCommands) => {
            unsealed.seal().map(|cell| settle(cell, &control, spawner))
        }
        // The server has things to do before it asks for the command.
        (Ok(unsealed), CellLifetime::OneCommand) => {
            settle((), &control, spawner)?;
            // Whoever reads what the server writes does not have to wait for this process.
            leave_stderr().ok()?;
            unsealed.seal().map(Some)
        }
        (Err(failure), _) => Err(failure),
    };
    match cell {
        Ok(cell) => Some(Spawner::new(requests, signals, Some((Box::new(cell?), control)))),
        Err(failure) => {
            // A server that was told otherwise takes the end of this process for an answer.
            init::report(&control, &Report::CellFailed(failure));
            None
        }
    }
}

/// Sees to it that the cell ends when it should, and tells the server that it is there.
fn settle<T>(cell: T, control: &OwnedFd, spawner: Option<Pid>) -> Option<T> {
    // Orphans of an init that dies come here, not to the spawner.
    set_child_subreaper(Some(getpid())).ok()?;
    if let Some(spawner) = spawner {
        // Late: becoming another user would have undone it.
        set_parent_process_death_signal(Some(init::END)).ok()?;
        if getppid() != Some(spawner) {
            return None;
        }
    }
    init::report(control, &Report::CellReady);
    Some(cell)
}

/// Takes the socket that the server passed as stdin, and leaves nothing to read there.
fn take_stdin() -> io::Result<OwnedFd> {
    let socket = fcntl_dupfd_cloexec(stdin(), FIRST_DESCRIPTOR.cast_signed())?;
    dup2_stdin(open_null()?)?;
    Ok(socket)
}

/// Writes what goes wrong from here on to nobody.
fn leave_stderr() -> io::Result<()> {
    Ok(dup2_stderr(open_null()?)?)
}

fn open_null() -> io::Result<OwnedFd> {
    Ok(open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}
