//! A process inside the walls of a plan, from which the commands of one workspace are started.
//!
//! The dear part of a sandbox is the same for every command of a workspace: users, mounts, network,
//! rules. A cell is a process that has been through it once. It copies itself for each command, and
//! only what must be each command's own is made again: its processes, its `/proc`, its objects of
//! System V. The cell itself keeps the rights that this takes, inside its own namespace only;
//! commands lose them before their program starts.

mod directory_builder;
mod root;
mod shared_mounts;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use carrel_domain::{Network, Tier};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::process::{
    DumpableBehavior, PidfdFlags, Signal, fchdir, getpid, pidfd_open, set_dumpable_behavior,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use serde::{Deserialize, Serialize};

pub use self::shared_mounts::SharedMounts;
use crate::fork::{Fork, fork};
use crate::landlock::Ruleset;
use crate::namespaces::{self, IdMapping, UserNamespace, join_network};
use crate::plan::{CommandUser, Plan};
use crate::seccomp::{BpfProgram, Listener, Reporting};
use crate::{mounts, policy::Owner};

/// What the maker of a cell hands over.
#[derive(Debug)]
pub struct CellResources {
    /// The workspace.
    pub workspace: OwnedFd,
    /// The scratch directory.
    pub scratch: OwnedFd,
    /// Another cell of the same workspace, whose network is to be shared.
    pub companion: Option<OwnedFd>,
    /// Namespaces that were made before.
    pub prepared: Option<PreparedNamespaces>,
    /// Parts of the root directory that were made before.
    pub shared_mounts: SharedMounts,
    /// How many commands it is for.
    pub lifetime: CellLifetime,
}

/// How many commands a cell is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellLifetime {
    /// One. In tier `full` it has the mounts and the objects of System V of the cell, which nobody
    /// else uses.
    OneCommand,
    /// Any number, at the same time or one after the other.
    ManyCommands,
}

/// What every cell of tier `full` needs, made before it is known which one. What no cell takes is
/// gone with this.
#[derive(Debug)]
pub struct PreparedNamespaces {
    users: UserNamespace,
    /// What is to say who owns files, if that can be said at all.
    owners: Option<UserNamespace>,
    system: root::PrebuiltRoot,
}

impl PreparedNamespaces {
    /// Makes it in a process that is the only thread of its own, and that becomes the cell.
    ///
    /// Namespaces take longer than anything else about a cell. They are made by another process, and
    /// last: this one and its server have enough to do until then for two processors, and still have
    /// something to do before they need them.
    pub fn prepare() -> io::Result<Self> {
        let system = root::PrebuiltRoot::open();
        let users = UserNamespace::make(root::namespaces(true))?;
        let is_root = rustix::process::geteuid().is_root();
        let owners = if is_root { Some(UserNamespace::make(UnshareFlags::empty())?) } else { None };
        Ok(Self { users, owners, system })
    }
}

/// Where making a cell failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupError {
    /// What was being done.
    pub step: SetupStep,
    /// What it was being done to, if there is more than one such thing.
    pub object: Option<String>,
    /// The error number that the kernel gave.
    pub errno: i32,
}

/// What is being done when a cell is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetupStep {
    /// Making a user namespace.
    UserNamespace,
    /// Making the other namespaces.
    Namespaces,
    /// Becoming another user.
    CommandUser,
    /// Showing files of one owner as those of another.
    MapOwner,
    /// Finding something of the host.
    Find,
    /// Building the root directory.
    Root,
    /// Bringing the loopback up.
    Loopback,
    /// Making Landlock's rules.
    Landlock,
    /// Giving up rights for good.
    Capabilities,
}

impl SetupError {
    /// Returns whether the host as a whole refuses what this step does, for every workspace alike.
    pub fn is_host_limitation(&self) -> bool {
        match self.step {
            // The last is what a limit of zero user namespaces gives.
            SetupStep::UserNamespace => {
                [libc::EPERM, libc::ENOSYS, libc::EINVAL, libc::EACCES, libc::ENOSPC]
                    .contains(&self.errno)
            }
            // Shortage and races give other numbers, and pass: these say that it may not be done.
            SetupStep::Namespaces | SetupStep::Root | SetupStep::Loopback | SetupStep::Find => {
                [libc::EPERM, libc::ENOSYS].contains(&self.errno)
            }
            SetupStep::CommandUser
            | SetupStep::MapOwner
            | SetupStep::Landlock
            | SetupStep::Capabilities => false,
        }
    }

    /// Returns whether another tier could do without this step.
    pub fn is_tier_limitation(&self) -> bool {
        self.is_host_limitation() || self.step == SetupStep::MapOwner
    }

    /// Says that the cell whose network was to be shared is not there any more.
    pub fn companion_gone() -> Self {
        Self { step: SetupStep::Namespaces, object: None, errno: libc::ESRCH }
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = match self.step {
            SetupStep::UserNamespace => "making a user namespace",
            SetupStep::Namespaces => "making namespaces",
            SetupStep::CommandUser => "becoming another user",
            SetupStep::MapOwner => "mapping the owner of files",
            SetupStep::Find => "opening",
            SetupStep::Root => "building a root directory",
            SetupStep::Loopback => "bringing up the loopback",
            SetupStep::Landlock => "making Landlock rules",
            SetupStep::Capabilities => "giving up capabilities",
        };
        let error = io::Error::from_raw_os_error(self.errno);
        match &self.object {
            Some(object) => write!(f, "{step} {object}: {error}"),
            None => write!(f, "{step}: {error}"),
        }
    }
}

impl std::error::Error for SetupError {}

/// Names the step in which an error happened.
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

/// A process inside the walls of a plan that still could give its rights to a program.
#[derive(Debug)]
pub struct UnsealedCell {
    plan: Plan,
    lifetime: CellLifetime,
    workspace: OwnedFd,
    rules: Option<Ruleset>,
    supervisor: Option<Ruleset>,
    itself: OwnedFd,
}

impl UnsealedCell {
    /// Takes away what no program may have that is executed later, and prepares the filter.
    pub fn seal(self) -> Result<Cell, SetupError> {
        drop_bounding_set().during(SetupStep::Capabilities)?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable).during(SetupStep::Capabilities)?;
        let Self { plan, lifetime, workspace, rules, supervisor, itself } = self;
        let (early, late) = match plan.tier {
            Tier::Full => {
                let (early, late) = plan.seccomp.split();
                (early.assemble(Reporting::Supervisor), Some(late.assemble(Reporting::Silent)))
            }
            // Carrel needs nothing more of the command's directory than a descriptor.
            Tier::Landlock => (plan.seccomp.assemble(Reporting::Supervisor), None),
        };
        Ok(Cell { plan, lifetime, workspace, rules, supervisor, early, late, itself })
    }
}

/// A process inside the walls of a plan.
#[derive(Debug)]
pub struct Cell {
    plan: Plan,
    lifetime: CellLifetime,
    /// Where commands start in a tier without a root of its own, and what they must find at the
    /// workspace's path in the other.
    workspace: OwnedFd,
    rules: Option<Ruleset>,
    supervisor: Option<Ruleset>,
    /// What supervisors put in force for themselves and their commands, and what is left for commands.
    early: BpfProgram,
    late: Option<BpfProgram>,
    /// The cell itself, so that those it starts can tell whether it is gone.
    itself: OwnedFd,
}

impl Cell {
    /// Turns the calling process, which must be the only thread, into a cell. There is no way back,
    /// and after a failure nothing left to do but to end.
    ///
    /// What it returns is complete as far as anything can fail for reasons of the host. It must be
    /// [sealed](Unsealed::seal) to be of use.
    pub fn enter(plan: Plan, mut resources: CellResources) -> Result<UnsealedCell, SetupError> {
        let itself = pidfd_open(getpid(), PidfdFlags::empty()).during(SetupStep::Namespaces)?;
        let rules = || ruleset(plan.landlock.handled, &plan.landlock.rules);
        let rules = match plan.tier {
            Tier::Full => {
                enter_namespaces(&plan, &mut resources)?;
                rules()?
            }
            Tier::Landlock => {
                drop(resources.prepared.take());
                // Before becoming a user who may be unable to find some of what is granted.
                let rules = rules()?;
                drop_bounding_set().during(SetupStep::Capabilities)?;
                leave_groups(plan.run_as)?;
                switch_user(plan.run_as)?;
                rules
            }
        };
        let supervisor = ruleset(plan.landlock.supervisor, &plan.landlock.supervised)?;
        let CellResources { workspace, lifetime, .. } = resources;
        Ok(UnsealedCell { plan, lifetime, workspace, rules, supervisor, itself })
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Copies the cell. The copy is to supervise one command.
    pub fn fork(&self) -> io::Result<Fork> {
        match self.plan.tier {
            Tier::Full => namespaces::fork_for_command(self.lifetime),
            Tier::Landlock => fork(),
        }
    }

    /// Returns whether the cell gives its own mounts to its only command. Its `/proc` is then that of
    /// the command, whose processes have other numbers here.
    pub fn shares_mounts_with_command(&self) -> bool {
        self.plan.tier == Tier::Full && self.lifetime == CellLifetime::OneCommand
    }

    /// Makes the calling copy of the cell the supervisor of one command. Returns with it what tells of
    /// system calls that are refused.
    ///
    /// The supervisor is under the same filter as its command, which inherits it: a supervisor that is
    /// ready before its command is needed has paid for it. It makes none of the calls that are
    /// refused, and least of all one that it would have to answer itself.
    pub fn supervise(&self) -> io::Result<(SignalScope, Option<Listener>)> {
        let mut leaving = None;
        let enclosure = match (self.plan.tier, &self.supervisor) {
            (Tier::Full, _) => {
                match self.lifetime {
                    CellLifetime::OneCommand => {
                        leaving = Some(mounts::show_processes_and_leave_old_root()?)
                    }
                    CellLifetime::ManyCommands => mounts::show_processes()?,
                }
                SignalScope(true)
            }
            (Tier::Landlock, None) => SignalScope(false),
            (Tier::Landlock, Some(ruleset)) => {
                set_no_new_privs(true)?;
                ruleset.restrict()?;
                SignalScope(true)
            }
        };
        set_no_new_privs(true)?;
        let listener = self.early.install()?;
        // No command starts before the host is out of reach.
        leaving.map_or(Ok(()), |leaving| leaving.done())?;
        Ok((enclosure, listener))
    }

    /// Returns whether the cell is still there. The supervisor of a command is not necessarily able
    /// to see its process id.
    pub fn is_alive(&self) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut watched = [PollFd::new(&self.itself, PollFlags::IN)];
        Ok(poll(&mut watched, Some(&Timespec::default()))? == 0)
    }

    /// Opens the directory, relative to the workspace, in which a command is to start, where a
    /// descriptor of the cell leads to it: where commands have the mounts of the cell, which are the host's.
    pub fn open_directory(&self, directory: &Path) -> io::Result<Option<OwnedFd>> {
        self.opens_directories().then(|| open_beneath(&self.workspace, directory)).transpose()
    }

    /// Returns whether the cell opens the directories of its commands.
    pub fn opens_directories(&self) -> bool {
        self.plan.tier == Tier::Landlock
    }

    /// Enters the directory, relative to the workspace, in which a command starts, where none can be
    /// [opened](Self::open_directory) before.
    pub fn enter_directory(&self, directory: &Path) -> io::Result<()> {
        // By its path: a descriptor of the cell belongs to the cell's mounts, whose `/proc` is the
        // host's.
        let (flags, resolve) = (DIRECTORY, ResolveFlags::NO_SYMLINKS);
        let found = openat2(CWD, &self.plan.workspace, flags, Mode::empty(), resolve)?;
        if identity_of(&found)? != identity_of(&self.workspace)? {
            return Err(rustix::io::Errno::STALE.into());
        }
        Ok(fchdir(open_beneath(&found, directory)?)?)
    }

    /// Takes every right from the calling process, a child of a supervisor, that a command must not
    /// have. The next step is to execute its program.
    pub fn confine(&self) -> io::Result<()> {
        clear_ambient_capability_set()?;
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, sets)?;
        if let Some(rules) = &self.rules {
            rules.restrict()?;
        }
        self.late.as_ref().map_or(Ok(None), BpfProgram::install).map(drop)
    }
}

/// How a directory is opened to be entered.
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn open_beneath(top: &OwnedFd, directory: &Path) -> io::Result<OwnedFd> {
    let relative = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(top, relative, DIRECTORY, Mode::empty(), resolve)?)
}

fn identity_of(descriptor: &OwnedFd) -> io::Result<(u64, u64)> {
    let status = rustix::fs::fstat(descriptor)?;
    Ok((status.st_dev, status.st_ino))
}

/// Says that the calling process can signal exactly the tree of its command: it is the first
/// process of a namespace, or in a domain of Landlock that signals do not leave.
#[derive(Clone, Copy, Debug)]
pub struct SignalScope(bool);

impl SignalScope {
    /// An enclosure that is none: signals go to whatever they are sent to.
    pub fn unrestricted() -> Self {
        Self(false)
    }

    /// Sends a signal to every process of the tree but the caller, and returns whether that is
    /// possible at all.
    pub fn signal_all(self, signal: Signal) -> bool {
        if self.0 {
            // SAFETY: the call takes two integers. It reaches only the tree, since this value is
            // made only in a process that is enclosed and does not leave it.
            unsafe { libc::kill(-1, signal.as_raw()) };
        }
        self.0
    }
}

fn ruleset(
    handled: crate::landlock::Handled,
    rules: &[crate::plan::Rule],
) -> Result<Option<Ruleset>, SetupError> {
    if handled.is_empty() {
        return Ok(None);
    }
    Ruleset::new(handled, rules).map(Some)
}

/// Takes capabilities away from whatever is executed later. The process itself keeps its own.
fn drop_bounding_set() -> io::Result<()> {
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Past the last one that this kernel knows; or without the right to take any away, and
            // then there are none to be gained either: the process gives up gaining privileges
            // before it executes anything.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn switch_user(run_as: CommandUser) -> Result<(), SetupError> {
    match run_as {
        CommandUser::Server(_) => Ok(()),
        CommandUser::WorkspaceOwner(owner) | CommandUser::Mapped { inside: owner, .. } => {
            become_user(owner).during(SetupStep::CommandUser)
        }
    }
}

fn become_user(Owner { user, group }: Owner) -> io::Result<()> {
    use rustix::thread::{set_thread_res_gid, set_thread_res_uid};
    let user = rustix::process::Uid::from_raw(user);
    let group = rustix::process::Gid::from_raw(group);
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    Ok(())
}

fn enter_namespaces(plan: &Plan, resources: &mut CellResources) -> Result<(), SetupError> {
    let apart = resources.companion.is_none() && plan.network != Network::Full;
    let wanted = root::namespaces(apart);
    let (prepared, found) = resources
        .prepared
        .take()
        .map(|prepared| (prepared.users, (prepared.system, prepared.owners)))
        .unzip();
    let users = match &resources.companion {
        None => Some(make_users(plan, wanted, prepared)?),
        Some(_) => None,
    };
    let sources = match plan.run_as {
        // What the own user cannot even find must be opened before becoming it.
        CommandUser::Mapped { .. } => {
            Some(root::PreparedRoot::open(plan, resources, found.unwrap_or_default())?)
        }
        CommandUser::Server(_) | CommandUser::WorkspaceOwner(_) => None,
    };
    leave_groups(plan.run_as)?;
    let joined = match (&users, &resources.companion) {
        (Some(users), _) => users.join(wanted).during(SetupStep::UserNamespace)?,
        (None, companion) => {
            let joined = companion.as_ref().map_or(Ok(()), |cell| join_network(cell.as_fd()));
            joined.during(SetupStep::Namespaces)?;
            UnshareFlags::empty()
        }
    };
    switch_user(plan.run_as)?;
    let missing = UnshareFlags::NEWNS | wanted.difference(joined);
    namespaces::unshare(missing).during(SetupStep::Namespaces)?;
    let sources = match sources {
        Some(sources) => sources,
        None => root::PreparedRoot::open(plan, resources, (root::PrebuiltRoot::default(), None))?,
    };
    root::build(plan, &sources, resources.lifetime)?;
    if apart && plan.network == Network::Loopback {
        namespaces::raise_loopback().during(SetupStep::Loopback)?;
    }
    Ok(())
}

/// Makes a user namespace, whose processes have every right over the namespaces that they make, and
/// none over anything else.
fn make_users(
    plan: &Plan,
    others: UnshareFlags,
    prepared: Option<UserNamespace>,
) -> Result<UserNamespace, SetupError> {
    // Its files in `/proc` belong to an ordinary user only while the process can be inspected.
    set_dumpable_behavior(DumpableBehavior::Dumpable).during(SetupStep::UserNamespace)?;
    let (mapping, meanwhile) = match plan.run_as {
        // Nothing can be done here meanwhile.
        CommandUser::Server(owner) | CommandUser::WorkspaceOwner(owner) => {
            (IdMapping { inside: owner, outside: owner, privileged: false }, UnshareFlags::empty())
        }
        CommandUser::Mapped { inside, outside, .. } => {
            (IdMapping { inside, outside, privileged: true }, others)
        }
    };
    let made = prepared.map_or_else(|| UserNamespace::make(meanwhile), Ok);
    let users = made.during(SetupStep::UserNamespace)?;
    users.describe(mapping).during(SetupStep::UserNamespace)?;
    Ok(users)
}

/// Gives up the groups of an administrator.
fn leave_groups(run_as: CommandUser) -> Result<(), SetupError> {
    match run_as {
        CommandUser::Server(_) => Ok(()),
        CommandUser::WorkspaceOwner(_) | CommandUser::Mapped { .. } => {
            rustix::thread::set_thread_groups(&[]).during(SetupStep::CommandUser)
        }
    }
}
