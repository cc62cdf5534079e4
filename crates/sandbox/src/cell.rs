//! The sandbox cell: a process that has applied a plan once and is forked for each command.
//!
//! The expensive part of a sandbox is the same for every command of a workspace: the user namespace, the
//! mounts, the network and the compiled rules. A cell goes through it once. For each command it forks a
//! supervisor (the command's init), and only the parts that must be separate are made again: the process
//! namespace with its `/proc` and, unless the cell serves a single command, the mount and IPC namespaces.
//!
//! The order of the setup is fixed, because each step removes the rights that the one before needed:
//!
//! 1. [`Cell::enter`] joins the namespaces, switches the user, builds the root directory and compiles the
//!    Landlock rulesets. Everything that can fail because of the host fails here.
//! 2. [`UnsealedCell::seal`] empties the capability bounding set, makes the process undumpable and
//!    compiles the seccomp filter. A sealed cell still holds capabilities, but only over its own
//!    namespaces, and programs that it executes cannot inherit them.
//! 3. [`Cell::fork`] and [`Cell::supervise`] make the supervisor of one command. It is under the filter
//!    already, and in tier `landlock` in a domain that confines its signals.
//! 4. [`Cell::confine`], in the command's own process, drops the capabilities, applies Landlock and the
//!    rest of the filter. The next step is `execve`.
//!
//! The invariant: no code of a command runs before step 4 has succeeded, and an error in any step ends the
//! process. There is no way to undo a step, so a cell that failed is not repaired but replaced. A cell
//! that dies leaves no state behind except processes in its namespaces, which the kernel ends with their
//! init; supervisors notice through the cell's pidfd ([`Cell::is_alive`]).

mod directory_builder;
mod entering;
mod root;
mod setup_error;
mod shared_mounts;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use carrel_domain::Tier;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::process::{
    DumpableBehavior, PidfdFlags, Signal, fchdir, getpid, pidfd_open, set_dumpable_behavior,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

pub(crate) use self::entering::become_user;
pub(crate) use self::root::open_if_same;
pub(crate) use self::setup_error::StepContext;
pub use self::setup_error::{SetupError, SetupStep};
pub use self::shared_mounts::SharedMounts;
use crate::fork::{Fork, fork};
use crate::landlock::Ruleset;
use crate::mounts;
use crate::namespaces::{self, NetworkNamespace, UserNamespace};
use crate::overlay::OverlayNamespaces;
use crate::plan::Plan;
use crate::seccomp::{BpfProgram, Listener, Reporting};

/// The descriptors and prepared parts that a process needs to become a cell.
#[derive(Debug)]
pub struct CellResources {
    /// The workspace directory. The plan's path must lead to the same directory.
    pub workspace: OwnedFd,
    /// The scratch directory.
    pub scratch: OwnedFd,
    /// The namespaces of another cell of the same workspace, which are joined.
    pub companion: Option<NetworkNamespace>,
    /// The namespaces of the workspace's overlay, if the plan shows one. `workspace` is its root then.
    pub overlay: Option<OverlayNamespaces>,
    /// A descriptor that stays open as long as the cell or a command of it lives, such as a lock.
    pub held: Option<OwnedFd>,
    /// Namespaces that were created before the plan was known.
    pub prepared: Option<PreparedNamespaces>,
    /// Parts of the root directory that the spawner made once for all cells.
    pub shared_mounts: SharedMounts,
    /// The number of commands that the cell will serve.
    pub lifetime: CellLifetime,
}

/// The number of commands that a cell serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellLifetime {
    /// One command. In tier `full` it uses the mounts and the IPC namespace of the cell itself instead of
    /// copies.
    OneCommand,
    /// Any number of commands, at the same time or one after the other.
    ManyCommands,
}

/// Namespaces and a root directory that every cell of tier `full` needs, created before the plan is
/// known. Dropping the value removes them.
#[derive(Debug)]
pub struct PreparedNamespaces {
    users: UserNamespace,
    /// Maps file owners of id-mapped mounts. Only root can make such mounts.
    owners: Option<UserNamespace>,
    system: root::PrebuiltRoot,
}

impl PreparedNamespaces {
    /// Starts to create the namespaces, in the process that becomes the cell and has one thread.
    ///
    /// Namespaces take longer than anything else about a cell, so setup processes create them in the
    /// background. They start last: until then this process and its server keep two processors busy,
    /// and both still have work to do before they need the namespaces.
    pub fn prepare() -> io::Result<Self> {
        let system = root::PrebuiltRoot::build();
        let users = UserNamespace::create(root::namespaces(true))?;
        let is_root = rustix::process::geteuid().is_root();
        let owners =
            if is_root { Some(UserNamespace::create(UnshareFlags::empty())?) } else { None };
        Ok(Self { users, owners, system })
    }
}

/// A process that has entered the sandbox of a plan and could still pass its capabilities to a program.
#[derive(Debug)]
pub struct UnsealedCell {
    plan: Plan,
    lifetime: CellLifetime,
    /// In tier `landlock`, the directory that commands are started beneath; in tier `full`, the directory
    /// that must be at the workspace's path.
    workspace: OwnedFd,
    rules: Option<Ruleset>,
    supervisor: Option<Ruleset>,
    network: Option<NetworkNamespace>,
    /// Only kept open.
    #[expect(dead_code, reason = "a lock is held by its descriptor")]
    held: Option<OwnedFd>,
    /// The cell's own pidfd, through which supervisors see that it has ended.
    itself: OwnedFd,
}

impl UnsealedCell {
    /// Takes the network namespace that other cells of the workspace can share, as with network `loopback`.
    pub fn take_network(&mut self) -> Option<NetworkNamespace> {
        self.network.take()
    }

    /// Empties the capability bounding set, so that no executed program gains capabilities, makes the
    /// process undumpable, and assembles the seccomp filter.
    pub fn seal(self) -> Result<Cell, SetupError> {
        drop_bounding_set().during(SetupStep::Capabilities)?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable).during(SetupStep::Capabilities)?;
        let seccomp = &self.plan.seccomp;
        let (early, late) = match self.plan.tier {
            Tier::Full => {
                let (early, late) = seccomp.split();
                (early.assemble(Reporting::Supervisor), Some(late.assemble(Reporting::Silent)))
            }
            // The supervisor gets the command's directory as a descriptor and needs no `openat2`.
            Tier::Landlock => (seccomp.assemble(Reporting::Supervisor), None),
        };
        Ok(Cell { entered: self, early, late })
    }
}

/// A process that has applied a plan. Its methods are called in a fixed order: `fork`, `supervise` in the
/// child, `confine` in the process that becomes the command.
#[derive(Debug)]
pub struct Cell {
    entered: UnsealedCell,
    /// The filter of supervisors, which their commands inherit.
    early: BpfProgram,
    /// The rest of the filter, for commands only.
    late: Option<BpfProgram>,
}

impl Cell {
    /// Turns the calling process, which must have one thread, into a cell. This cannot be undone: after
    /// an error the process can only exit.
    ///
    /// All steps that can fail because of the host are done when this returns. The cell must still be
    /// [sealed](UnsealedCell::seal).
    pub fn enter(plan: Plan, mut resources: CellResources) -> Result<UnsealedCell, SetupError> {
        let itself = pidfd_open(getpid(), PidfdFlags::empty()).during(SetupStep::Namespaces)?;
        if plan.shows_overlay() != resources.overlay.is_some() {
            return Err(SetupError::wrong_workspace_source());
        }
        let rules = || ruleset(plan.landlock.handled, &plan.landlock.rules);
        let (rules, network) = match plan.tier {
            Tier::Full => {
                let network = entering::enter_namespaces(&plan, &mut resources)?;
                (rules()?, network)
            }
            Tier::Landlock => {
                drop(resources.prepared.take());
                // Before the switch to a user who may be unable to open some granted paths.
                let rules = rules()?;
                drop_bounding_set().during(SetupStep::Capabilities)?;
                entering::drop_groups(plan.run_as)?;
                entering::switch_user(plan.run_as)?;
                (rules, None)
            }
        };
        let supervisor = ruleset(plan.landlock.supervisor, &plan.landlock.supervised)?;
        let CellResources { workspace, lifetime, held, .. } = resources;
        Ok(UnsealedCell { plan, lifetime, workspace, rules, supervisor, network, held, itself })
    }

    /// Returns the plan that the cell has applied.
    pub fn plan(&self) -> &Plan {
        &self.entered.plan
    }

    /// Forks the cell. The child is the future supervisor of one command; in tier `full` it is the init
    /// of a new process namespace.
    pub fn fork(&self) -> io::Result<Fork> {
        match self.plan().tier {
            Tier::Full => namespaces::fork_for_command(self.entered.lifetime),
            Tier::Landlock => fork(),
        }
    }

    /// Returns whether the cell's only command uses the cell's mounts. The `/proc` in them then belongs to
    /// the command's process namespace, so the cell must not use it to look up its own processes.
    pub fn shares_mounts_with_command(&self) -> bool {
        self.plan().tier == Tier::Full && self.entered.lifetime == CellLifetime::OneCommand
    }

    /// Makes the calling fork of the cell the supervisor of one command. Returns the reach of its signals
    /// and the listener for system calls that the filter denies.
    ///
    /// The supervisor installs the filter on itself and its command inherits it: a supervisor that waits
    /// for a command has already paid for the installation. It makes none of the denied calls; a call that
    /// is reported would block it forever, because it is the one to respond.
    pub fn supervise(&self) -> io::Result<(SignalScope, Option<Listener>)> {
        let mut leaving = None;
        let enclosure = match (self.plan().tier, &self.entered.supervisor) {
            (Tier::Full, _) => {
                match self.entered.lifetime {
                    CellLifetime::OneCommand => {
                        leaving = Some(mounts::mount_proc_and_detach_old_root()?);
                    }
                    CellLifetime::ManyCommands => mounts::replace_proc()?,
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
        // No command may start before the old root is detached.
        leaving.map_or(Ok(()), |leaving| leaving.wait_for_task())?;
        Ok((enclosure, listener))
    }

    /// Returns whether the cell still runs. A supervisor in a process namespace of its own cannot see the
    /// cell's process id, so this polls a pidfd.
    pub fn is_alive(&self) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut watched = [PollFd::new(&self.entered.itself, PollFlags::IN)];
        Ok(poll(&mut watched, Some(&Timespec::default()))? == 0)
    }

    /// Opens the start directory of a command, relative to the workspace. Returns nothing in tier `full`,
    /// where a descriptor of the cell belongs to other mounts than the command's; see
    /// [`enter_directory`](Self::enter_directory).
    pub fn open_directory(&self, directory: &Path) -> io::Result<Option<OwnedFd>> {
        self.opens_directories()
            .then(|| open_beneath(&self.entered.workspace, directory))
            .transpose()
    }

    /// Returns whether [`open_directory`](Self::open_directory) opens start directories, as in tier
    /// `landlock`.
    pub fn opens_directories(&self) -> bool {
        self.plan().tier == Tier::Landlock
    }

    /// Changes to the start directory of a command, relative to the workspace, where it cannot be
    /// [opened](Self::open_directory) in advance. Fails with `ESTALE` if another directory is at the
    /// workspace's path.
    pub fn enter_directory(&self, directory: &Path) -> io::Result<()> {
        // By its path: a descriptor of the cell belongs to the cell's mounts, whose `/proc` is the
        // host's.
        let resolve = ResolveFlags::NO_SYMLINKS;
        let found = openat2(CWD, &self.plan().workspace, DIRECTORY, Mode::empty(), resolve)?;
        if identity_of(&found)? != identity_of(&self.entered.workspace)? {
            return Err(rustix::io::Errno::STALE.into());
        }
        Ok(fchdir(open_beneath(&found, directory)?)?)
    }

    /// Drops all capabilities of the calling process, a child of a supervisor, and applies Landlock and
    /// the rest of the filter. The next step is to execute the command's program.
    pub fn confine(&self) -> io::Result<()> {
        clear_ambient_capability_set()?;
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, sets)?;
        if let Some(rules) = &self.entered.rules {
            rules.restrict()?;
        }
        self.late.as_ref().map_or(Ok(None), BpfProgram::install).map(drop)
    }
}

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

/// The reach of the calling process's signals: exactly the process tree of its command, because it is the
/// init of a process namespace or in a Landlock domain that signals do not leave; or unrestricted.
///
/// Only [`Cell::supervise`] makes a restricted value, in a process that does not leave its scope. It is
/// the proof that `kill(-1)` is safe.
#[derive(Clone, Copy, Debug)]
pub struct SignalScope(bool);

impl SignalScope {
    /// The scope of an ordinary process, whose signals reach every process of its user.
    pub fn unrestricted() -> Self {
        Self(false)
    }

    /// Sends a signal to every process of the tree except the caller. Returns false, and sends nothing, if
    /// the scope is unrestricted; the caller then has to walk the tree.
    pub fn signal_all(self, signal: Signal) -> bool {
        if self.0 {
            // SAFETY: the call takes two integers. It reaches only the tree, since this value is
            // made only in a process whose signals are restricted to it for good.
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

/// Removes every capability from the bounding set, so that programs executed later cannot have any. The
/// process keeps its own.
fn drop_bounding_set() -> io::Result<()> {
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // `EINVAL`: past the last capability of this kernel. `EPERM`: the process may not drop any;
            // then it has none to pass on, and `no_new_privs` is set before it executes anything.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
