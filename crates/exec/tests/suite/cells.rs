//! Commands in cells, in both tiers.
//!
//! What commands cannot do there is tried by the suite of the program itself, with all layers in
//! place; these tests are about the cells.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use carrel_domain::{Network, Tier, WorkspaceAccess};
use carrel_exec::{
    Cell, CellError, CommandSpec, Directory, ExitStatus, Outcome, SpawnError, Spawner,
};
use carrel_sandbox::{
    GIT_SETTINGS_TEXT, GitDirectory, Host, Owner, Plan, Policy, UserRange, WorkspaceSource,
};
use rustix::process::geteuid;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{PATH, directory, spawner};

/// Somebody who is not the administrator.
const SOMEBODY: u32 = 2_000_000_000;

/// A workspace with its scratch directory.
pub(crate) struct TestWorkspace {
    home: TempDir,
}

impl TestWorkspace {
    pub(crate) fn new(tier: Tier) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        for name in ["workspace", "scratch/tmp", "scratch/shm"] {
            fs::create_dir_all(home.path().join(name)).unwrap();
            if tier == Tier::Landlock && geteuid().is_root() {
                chown(home.path().join(name), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
            }
        }
        fs::write(home.path().join("scratch/gitconfig"), GIT_SETTINGS_TEXT).unwrap();
        Self { home }
    }

    fn workspace(&self) -> PathBuf {
        fs::canonicalize(self.home.path()).unwrap().join("workspace")
    }

    fn plan(&self, tier: Tier, network: Network) -> Plan {
        self.plan_with(tier, network, Vec::new())
    }

    fn plan_with(&self, tier: Tier, network: Network, readable: Vec<PathBuf>) -> Plan {
        let workspace = self.workspace();
        let metadata = fs::metadata(&workspace).unwrap();
        let policy = Policy {
            owner: Owner { user: metadata.uid(), group: metadata.gid() },
            scratch: workspace.with_file_name("scratch"),
            home: None,
            workspace,
            access: WorkspaceAccess::ReadWrite,
            workspace_source: WorkspaceSource::Directory,
            alias: None,
            git_directory: GitDirectory::Absent,
            readable,
            writable: Vec::new(),
            hidden: Vec::new(),
            network,
            users: UserRange::default(),
        };
        Plan::new(&policy, &Host::probe(), tier).unwrap()
    }

    async fn enter(&self, spawner: &Spawner, plan: Plan, with: Option<&Cell>) -> Cell {
        let workspace = directory(self.workspace());
        let scratch = directory(self.workspace().with_file_name("scratch"));
        spawner.cell(plan, workspace.as_fd(), scratch.as_fd(), with).await.unwrap()
    }

    pub(crate) async fn cell(&self, spawner: &Spawner, tier: Tier) -> Cell {
        self.enter(spawner, self.plan(tier, Network::None), None).await
    }
}

pub(crate) fn shell(script: &str) -> CommandSpec {
    let argv = ["bash", "-c", script].map(Into::into).to_vec();
    let environment = vec![("PATH".into(), PATH.into())];
    CommandSpec { environment, ..CommandSpec::starting_in(argv, Directory::Inside(PathBuf::new())) }
}

async fn run(cell: &Cell, script: &str) -> Outcome {
    cell.run(shell(script), &CancellationToken::new()).await.unwrap()
}

pub(crate) fn printed(outcome: &Outcome) -> String {
    outcome.stdout.to_text(100_000)
}

pub(crate) const BOTH: [Tier; 2] = [Tier::Full, Tier::Landlock];

#[tokio::test]
async fn what_a_command_writes_belongs_to_the_owner_of_the_workspace() {
    for tier in BOTH {
        let (test_workspace, spawner) = (TestWorkspace::new(tier), spawner());
        let cell = test_workspace.cell(&spawner, tier).await;
        let outcome = run(&cell, "mkdir -p a/b && echo hi > a/b/c && cat a/b/c").await;
        assert_eq!(
            (outcome.end, printed(&outcome).as_str()),
            (ExitStatus::Exited(0), "hi\n"),
            "{tier}"
        );
        let owner = fs::metadata(test_workspace.workspace()).unwrap().uid();
        assert_eq!(
            fs::metadata(test_workspace.workspace().join("a/b/c")).unwrap().uid(),
            owner,
            "{tier}"
        );
    }
}

#[tokio::test]
async fn a_command_starts_in_a_directory_of_the_workspace_and_nowhere_else() {
    for tier in BOTH {
        let (test_workspace, spawner) = (TestWorkspace::new(tier), spawner());
        let cell = test_workspace.cell(&spawner, tier).await;
        fs::create_dir(test_workspace.workspace().join("inner")).unwrap();
        std::os::unix::fs::symlink("/usr", test_workspace.workspace().join("out")).unwrap();
        let start = |relative: &str| {
            let argv = vec!["pwd".into(), "-P".into()];
            let environment = vec![("PATH".into(), PATH.into())];
            CommandSpec {
                environment,
                ..CommandSpec::starting_in(argv, Directory::Inside(relative.into()))
            }
        };
        let cancel = CancellationToken::new();
        let outcome = cell.run(start("inner"), &cancel).await.unwrap();
        let inner = test_workspace.workspace().join("inner");
        assert_eq!(Path::new(printed(&outcome).trim_end()), inner, "{tier}");
        for outside in ["..", "out", "/usr", "inner/../.."] {
            let error = cell.run(start(outside), &cancel).await.unwrap_err();
            assert!(matches!(error, SpawnError::Directory(_)), "{tier} {outside}: {error:?}");
        }
        let host = CommandSpec::new(vec!["pwd".into()], directory("/"));
        let error = cell.run(host, &cancel).await.unwrap_err();
        assert!(matches!(error, SpawnError::WrongSide), "{error:?}");
    }
}

#[tokio::test]
async fn a_descriptor_of_a_host_directory_is_not_let_in() {
    for tier in BOTH {
        let (test_workspace, spawner) = (TestWorkspace::new(tier), spawner());
        let cell = test_workspace.cell(&spawner, tier).await;
        let spec =
            CommandSpec { inherited: vec![directory("/")], ..shell("ls /proc/self/fd/100/") };
        let error = cell.run(spec, &CancellationToken::new()).await.unwrap_err();
        assert!(matches!(error, SpawnError::Confine(_)), "{tier}: {error:?}");
    }
}

#[tokio::test]
async fn refused_system_calls_are_reported_once_each() {
    for tier in BOTH {
        let (test_workspace, spawner) = (TestWorkspace::new(tier), spawner());
        let cell = test_workspace.cell(&spawner, tier).await;
        let outcome = run(&cell, "unshare -U true; unshare -U true; unshare -m true").await;
        let seen: Vec<_> = outcome
            .refused
            .iter()
            // Without a network the shell is also refused the socket of a name service.
            .filter(|refused| refused.call == "unshare")
            .map(|refused| (refused.call.as_str(), refused.detail.as_deref()))
            .collect();
        let expected = [("unshare", Some("CLONE_NEWUSER")), ("unshare", Some("CLONE_NEWNS"))];
        assert_eq!(seen, expected, "{tier}: {}", printed(&outcome));
    }
}

#[tokio::test]
async fn a_process_that_ignores_sigterm_is_killed() {
    for tier in BOTH {
        let (test_workspace, spawner) = (TestWorkspace::new(tier), spawner());
        let cell = test_workspace.cell(&spawner, tier).await;
        // In /proc there are the processes of others as well.
        let own = format!("10{}", std::process::id());
        let script = "trap '' TERM; setsid bash -c 'trap \"\" TERM; sleep OWN & sleep OWN' & \
                      (setsid sleep OWN &) ; sleep OWN";
        let script = script.replace("OWN", &own);
        let spec = CommandSpec { deadline: Some(Duration::from_millis(300)), ..shell(&script) };
        let outcome = cell.run(spec, &CancellationToken::new()).await.unwrap();
        assert!(outcome.timed_out());
        // A second command finds nothing of the first; in tier `landlock` it would see it in /proc.
        let look = format!("grep -l '^sleep.{own}' /proc/[0-9]*/cmdline 2>/dev/null");
        let left = run(&cell, &look).await;
        assert_eq!(printed(&left), "", "{tier}");
    }
}

#[tokio::test]
async fn cells_of_one_workspace_can_share_a_loopback() {
    let (test_workspace, spawner) = (TestWorkspace::new(Tier::Full), spawner());
    let plan = test_workspace.plan(Tier::Full, Network::Loopback);
    let first = test_workspace.enter(&spawner, plan.clone(), None).await;
    let second = test_workspace.enter(&spawner, plan.clone(), Some(&first)).await;
    let stranger = test_workspace.enter(&spawner, plan, None).await;
    let namespace = "readlink /proc/self/ns/net";
    let (one, two) = (run(&first, namespace).await, run(&second, namespace).await);
    assert_eq!(printed(&one), printed(&two));
    assert_ne!(printed(&one), printed(&run(&stranger, namespace).await));
    let script = "exec 3<>/dev/tcp/127.0.0.1/1 || echo $?";
    assert_eq!(printed(&run(&first, script).await).lines().last(), Some("1"));
}

#[tokio::test]
async fn a_cell_that_cannot_be_made_says_which_step_failed() {
    let (test_workspace, spawner) = (TestWorkspace::new(Tier::Full), spawner());
    let mut plan = test_workspace.plan(Tier::Full, Network::None);
    plan.workspace = test_workspace.workspace().with_file_name("elsewhere");
    let workspace = directory(test_workspace.workspace());
    let scratch = directory(test_workspace.workspace().with_file_name("scratch"));
    let error = spawner.cell(plan, workspace.as_fd(), scratch.as_fd(), None).await.unwrap_err();
    let CellError::Refused(failure) = error else { panic!("{error:?}") };
    assert_eq!(failure.step, carrel_sandbox::SetupStep::Find);
    assert!(failure.object.unwrap().ends_with("elsewhere"));
}

#[tokio::test]
async fn a_granted_path_that_has_become_a_link_is_not_followed() {
    for tier in BOTH {
        let (test_workspace, spawner) = (TestWorkspace::new(tier), spawner());
        let (granted, secret) = (
            test_workspace.workspace().with_file_name("granted"),
            test_workspace.workspace().with_file_name("secret"),
        );
        fs::create_dir(&granted).unwrap();
        fs::create_dir(&secret).unwrap();
        let plan = test_workspace.plan_with(tier, Network::None, vec![granted.clone()]);
        fs::remove_dir(&granted).unwrap();
        std::os::unix::fs::symlink(&secret, &granted).unwrap();
        let workspace = directory(test_workspace.workspace());
        let scratch = directory(test_workspace.workspace().with_file_name("scratch"));
        let made = spawner.cell(plan, workspace.as_fd(), scratch.as_fd(), None).await;
        let Err(CellError::Refused(failure)) = made else { panic!("{tier}: {made:?}") };
        assert_eq!(failure.errno, rustix::io::Errno::LOOP.raw_os_error(), "{tier}: {failure}");
        // One workspace's trouble is not a reason to give all of them a weaker sandbox.
        assert!(!failure.is_host_limitation(), "{tier}: {failure}");
    }
}

#[tokio::test]
async fn cells_that_were_made_from_the_same_parts_know_nothing_of_each_other() {
    let spawner = spawner();
    let workspaces_under_test = [TestWorkspace::new(Tier::Full), TestWorkspace::new(Tier::Full)];
    let cells = [
        workspaces_under_test[0].cell(&spawner, Tier::Full).await,
        workspaces_under_test[1].cell(&spawner, Tier::Full).await,
        // Another network, and so another file of names.
        workspaces_under_test[1]
            .enter(&spawner, workspaces_under_test[1].plan(Tier::Full, Network::Loopback), None)
            .await,
    ];
    let workspaces = workspaces_under_test
        .each_ref()
        .map(|test_workspace| test_workspace.workspace().display().to_string());
    for (cell, own, other) in [(0, 0, 1), (1, 1, 0), (2, 1, 0)] {
        let seen = run(&cells[cell], "cat /etc/passwd /proc/self/mountinfo; ls -a / /proc").await;
        let seen = printed(&seen);
        assert!(seen.contains(&format!(":Carrel:{}:", workspaces[own])), "{seen}");
        assert!(!seen.contains(&workspaces[other]), "{seen}");
        let changes = "touch /etc/new /dev/new; rm /etc/passwd /dev/null; echo x > /etc/passwd; \
                       chmod 600 /dev/null; mkdir /dev/shm/own && echo kept > /dev/shm/own/file";
        run(&cells[cell], changes).await;
    }
    for cell in &cells {
        let script = "test ! -e /etc/new -a ! -e /dev/new -a -s /etc/passwd && grep -q x /etc/group \
                      && echo gone > /dev/null && head -c 3 /dev/zero | wc -c && \
                      stat -c '%F %a %t:%T' /dev/null /dev/urandom && cat /dev/shm/own/file";
        let outcome = run(cell, script).await;
        let expected = "3\ncharacter special file 666 1:3\ncharacter special file 666 1:9\nkept\n";
        assert_eq!((outcome.end, printed(&outcome).as_str()), (ExitStatus::Exited(0), expected));
    }
}
