//! Forks: overlays over a base, and the cells that show them.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use carrel_domain::{Network, Tier, WorkspaceAccess};
use carrel_exec::{Cell, CellError, ExitStatus, Outcome, OverlayError, OverlayMount, Spawner};
use carrel_fsroot::{Collision, Root, WriteOptions, Writer};
use carrel_sandbox::{
    GitDirectory, Host, OverlayDirectories, OverlayPlan, Owner, Plan, PlanError, Policy,
    SetupError, SetupStep, UsedLayers, UserRange, WorkspaceSource,
};
use pretty_assertions::assert_eq;
use rustix::fs::{Mode, OFlags, ResolveFlags, XattrFlags, getxattr, openat2, setxattr};
use rustix::io::Errno;
use rustix::process::{Signal, geteuid};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::cells::{printed, shell};
use crate::processes::{Mark, children_of, send, this_process};
use crate::support::{directory, spawner, until};

/// The owner of a base where the server is root.
const SOMEBODY: u32 = 2_000_000_001;

/// A base with two forks, of which the second is only a directory with layers.
struct TestForks {
    home: PathBuf,
    /// Removes the directories at the end of the test that made them.
    _made: Option<TempDir>,
}

impl TestForks {
    fn new() -> Self {
        let made = tempfile::tempdir().unwrap();
        fs::set_permissions(made.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let home = fs::canonicalize(made.path()).unwrap();
        let forks = Self { home, _made: Some(made) };
        for name in ["base/kept", "fork", "sibling", "scratch/tmp", "scratch/shm"] {
            fs::create_dir_all(forks.path(name)).unwrap();
        }
        for name in ["layers", "layers of, sibling:\\"] {
            fs::create_dir(forks.path(name)).unwrap();
            // Closed to everyone but the server, whose root may be closed, too.
            fs::set_permissions(forks.path(name), fs::Permissions::from_mode(0o700)).unwrap();
        }
        fs::write(forks.path("base/file"), "of the base\n").unwrap();
        fs::write(forks.path("base/kept/deep"), "deep\n").unwrap();
        if geteuid().is_root() {
            for name in ["base", "base/kept", "base/file", "base/kept/deep", "fork", "sibling"] {
                chown(forks.path(name), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
            }
        }
        forks
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    fn policy(&self, name: &str) -> Policy {
        let metadata = fs::metadata(self.path("base")).unwrap();
        Policy {
            workspace: self.path(name),
            owner: Owner { user: metadata.uid(), group: metadata.gid() },
            workspace_source: WorkspaceSource::Overlay,
            alias: None,
            access: WorkspaceAccess::ReadWrite,
            git_directory: GitDirectory::Absent,
            scratch: self.path("scratch"),
            home: None,
            readable: Vec::new(),
            writable: Vec::new(),
            hidden: Vec::new(),
            network: Network::None,
            users: UserRange::default(),
        }
    }

    fn overlay_plan(&self, name: &str, layers: &str) -> OverlayPlan {
        let plan = plan(&self.policy(name));
        OverlayPlan::new(&plan, self.path("base"), self.path(layers)).unwrap()
    }

    async fn try_mount(
        &self,
        spawner: &Spawner,
        plan: OverlayPlan,
    ) -> Result<OverlayMount, OverlayError> {
        self.try_mount_on(spawner, plan, "layers").await
    }

    async fn try_mount_on(
        &self,
        spawner: &Spawner,
        plan: OverlayPlan,
        layers: &str,
    ) -> Result<OverlayMount, OverlayError> {
        let (lower, layers) = (directory(self.path("base")), directory(self.path(layers)));
        let target = directory(plan.target());
        let directories = OverlayDirectories {
            lower: lower.as_fd(),
            layers: layers.as_fd(),
            target: target.as_fd(),
        };
        spawner.overlay(plan, directories).await
    }

    async fn mount(&self, spawner: &Spawner) -> OverlayMount {
        self.try_mount(spawner, self.overlay_plan("fork", "layers")).await.unwrap()
    }

    async fn enter(
        &self,
        spawner: &Spawner,
        fork: &OverlayMount,
        policy: &Policy,
        companion: Option<&Cell>,
    ) -> Cell {
        let scratch = directory(self.path("scratch"));
        spawner.cell(plan(policy), fork, scratch.as_fd(), companion).await.unwrap()
    }

    async fn cell(&self, spawner: &Spawner, fork: &OverlayMount) -> Cell {
        self.enter(spawner, fork, &self.policy("fork"), None).await
    }

    /// Returns the files of a directory with their contents, whatever the kernel keeps apart.
    fn tree(&self, name: &str) -> BTreeMap<PathBuf, String> {
        let top = self.path(name);
        let mut found = BTreeMap::new();
        let mut pending = vec![top.clone()];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let path = entry.path();
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => pending.push(path),
                    kind if kind.is_file() => {
                        let relative = path.strip_prefix(&top).unwrap().to_owned();
                        let contents = fs::read(path).unwrap();
                        found.insert(relative, String::from_utf8_lossy(&contents).into_owned());
                    }
                    _ => {}
                }
            }
        }
        found
    }
}

fn plan(policy: &Policy) -> Plan {
    Plan::new(policy, &Host::probe(), Tier::Full).unwrap()
}

async fn run(cell: &Cell, script: &str) -> Outcome {
    cell.run(shell(script), &CancellationToken::new()).await.unwrap()
}

async fn prints(cell: &Cell, script: &str) -> String {
    let outcome = run(cell, script).await;
    assert_eq!(outcome.end, ExitStatus::Exited(0), "{script}: {}", printed(&outcome));
    printed(&outcome)
}

fn read(fork: &OverlayMount, path: &str) -> String {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = openat2(fork.root(), path, flags, Mode::empty(), resolve).unwrap();
    std::io::read_to_string(fs::File::from(file)).unwrap()
}

#[tokio::test]
async fn a_command_sees_the_base_and_changes_only_the_layers_of_its_fork() {
    let (forks, spawner) = (TestForks::new(), spawner());
    let before = forks.tree("base");
    let fork = forks.mount(&spawner).await;
    let cell = forks.cell(&spawner, &fork).await;
    let script = "cat file kept/deep && echo more >> file && rm kept/deep && mkdir -p new/er && \
                  echo new > new/er/file && chmod 700 kept && pwd && stat -c %U . file new";
    let expected =
        format!("of the base\ndeep\n{}\ncarrel\ncarrel\ncarrel\n", forks.path("fork").display());
    assert_eq!(prints(&cell, script).await, expected);
    assert_eq!(forks.tree("base"), before);
    assert_eq!(fs::read_dir(forks.path("fork")).unwrap().count(), 0);
    let upper = forks.tree("layers/upper");
    let of = |text: &str| text.to_owned();
    let expected = [("file", of("of the base\nmore\n")), ("new/er/file", of("new\n"))];
    assert_eq!(upper, expected.map(|(path, text)| (path.into(), text)).into());
    let whiteout = fs::symlink_metadata(forks.path("layers/upper/kept/deep")).unwrap();
    assert!(whiteout.file_type().is_char_device() && whiteout.rdev() == 0);
    let owner = fs::metadata(forks.path("base")).unwrap().uid();
    for name in ["", "file", "new/er/file", "kept"] {
        let found = fs::metadata(forks.path("layers/upper").join(name)).unwrap();
        assert_eq!(found.uid(), owner, "{name}");
    }
}

#[tokio::test]
async fn the_server_and_the_commands_of_a_fork_change_one_tree() {
    let (forks, spawner) = (TestForks::new(), spawner());
    let before = forks.tree("base");
    let plan = forks.overlay_plan("fork", "layers");
    let fork = forks.try_mount(&spawner, plan.clone()).await.unwrap();
    let cell = forks.cell(&spawner, &fork).await;
    let root = fork.root().try_clone_to_owned().unwrap();
    let writer = plan.writer().map(|owner| Writer { user: owner.user, group: owner.group });
    let root = Root::with_label(root, plan.target().to_owned(), writer);
    let (file, options) = (Path::new("file"), WriteOptions::default());
    root.write(file, b"of the server\n", options).unwrap();
    root.create_directories(Path::new("made/by"), 0o755).unwrap();
    root.write(Path::new("made/by/server"), b"new\n", options).unwrap();
    root.rename(Path::new("kept/deep"), Path::new("made/deep"), Collision::Refuse).unwrap();
    let script = "cat file made/by/server made/deep; stat -c %U file made made/by/server; \
                  echo of a command > file; echo more >> made/by/server; rm made/deep; \
                  ln -s $PWD/made link";
    let expected = "of the server\nnew\ndeep\ncarrel\ncarrel\ncarrel\n";
    assert_eq!(prints(&cell, script).await, expected);
    assert_eq!(root.read(file, 100).unwrap(), b"of a command\n");
    assert_eq!(root.read(Path::new("link/by/server"), 100).unwrap(), b"new\nmore\n");
    assert!(root.read(Path::new("made/deep"), 100).unwrap_err().is_not_found());
    root.remove_tree(Path::new("made")).unwrap();
    assert_eq!(prints(&cell, "ls").await, "file\nkept\nlink\n");
    assert_eq!(forks.tree("base"), before);
    let owner = fs::metadata(forks.path("base")).unwrap().uid();
    let upper = fs::metadata(forks.path("layers/upper/file")).unwrap();
    assert_eq!(upper.uid(), owner, "on disk");
}

#[tokio::test]
async fn cells_of_one_fork_show_the_same_tree_with_their_own_access_and_network() {
    let (forks, spawner) = (TestForks::new(), spawner());
    let fork = forks.mount(&spawner).await;
    let policy = forks.policy("fork");
    let reader = Policy { access: WorkspaceAccess::ReadOnly, ..policy.clone() };
    let looped = Policy { network: Network::Loopback, ..policy.clone() };
    let full = Policy { network: Network::Full, ..policy };
    let writer = forks.cell(&spawner, &fork).await;
    let reader = forks.enter(&spawner, &fork, &reader, None).await;
    let looped_cell = forks.enter(&spawner, &fork, &looped, None).await;
    let full = forks.enter(&spawner, &fork, &full, None).await;
    prints(&writer, "echo written > by-writer").await;
    for cell in [&writer, &reader, &looped_cell, &full] {
        assert_eq!(prints(cell, "cat by-writer file").await, "written\nof the base\n");
    }
    prints(&looped_cell, "echo again >> by-writer").await;
    assert_eq!(prints(&reader, "cat by-writer").await, "written\nagain\n");
    let refused = run(&reader, "echo no > file; rm by-writer; mkdir new").await;
    assert!(!refused.succeeded(), "{}", printed(&refused));
    assert_eq!(forks.tree("layers/upper").len(), 1);
    let network = "readlink /proc/self/ns/net";
    let host = fs::read_link("/proc/self/ns/net").unwrap().display().to_string();
    assert_eq!(prints(&full, network).await.trim(), host);
    let (one, two) = (prints(&writer, network).await, prints(&looped_cell, network).await);
    assert!(one != two && one.trim() != host && two.trim() != host);
}

#[tokio::test]
async fn cells_of_one_fork_can_share_a_loopback() {
    let (forks, spawner) = (TestForks::new(), spawner());
    let fork = forks.mount(&spawner).await;
    let policy = Policy { network: Network::Loopback, ..forks.policy("fork") };
    let reader = Policy { access: WorkspaceAccess::ReadOnly, ..policy.clone() };
    let first = forks.enter(&spawner, &fork, &policy, None).await;
    let second = forks.enter(&spawner, &fork, &reader, Some(&first)).await;
    let namespace = "readlink /proc/self/ns/net && cat file";
    assert_eq!(prints(&first, namespace).await, prints(&second, namespace).await);
}

#[tokio::test]
async fn a_fork_shows_neither_the_base_nor_its_siblings_nor_the_layers() {
    let (forks, spawner) = (TestForks::new(), spawner());
    let fork = forks.mount(&spawner).await;
    let odd = "layers of, sibling:\\";
    let sibling = forks.try_mount_on(&spawner, forks.overlay_plan("sibling", odd), odd);
    let sibling = sibling.await.unwrap();
    let cell = forks.cell(&spawner, &fork).await;
    let other = forks.enter(&spawner, &sibling, &forks.policy("sibling"), None).await;
    prints(&other, "echo secret > secret").await;
    prints(&cell, "echo own > own").await;
    assert_eq!(prints(&other, "ls").await, "file\nkept\nsecret\n");
    assert_eq!(prints(&cell, "ls").await, "file\nkept\nown\n");
    let home = forks.home.display();
    let look = format!(
        "ls {home}; for name in base sibling layers; do \
           ls $name ../$name {home}/$name /proc/*/root{home}/$name /proc/*/cwd/../$name; \
         done 2>/dev/null; \
         ln -s {home}/sibling link; cat link/secret; ls -d /proc/[0-9]* | wc -l; \
         cat /proc/self/mountinfo /proc/*/environ /proc/*/mounts"
    );
    let seen = printed(&run(&cell, &look).await);
    assert!(seen.starts_with("fork\n"), "{seen}");
    for hidden in ["secret\n", "base", "sibling ", "layers"] {
        assert!(!seen.contains(hidden), "{hidden}: {seen}");
    }
    // Ways of a process with capabilities over the namespaces; a command has none.
    let ways = "exec 2>/dev/null; umount . && echo umount; unshare -m true && echo unshare; \
                nsenter -t 1 -m true && echo nsenter; ls /proc/1/root && echo root; \
                mount -t overlay -o lowerdir=/usr:/bin x /tmp && echo mount; true";
    assert_eq!(prints(&cell, ways).await, "");
}

#[tokio::test]
async fn git_finds_a_clean_tree_in_a_fork_and_cannot_change_its_hooks() {
    let (forks, spawner) = (TestForks::new(), spawner());
    // A cell of the base makes the repository as a command would.
    let base = Policy {
        workspace: forks.path("base"),
        workspace_source: WorkspaceSource::Directory,
        alias: None,
        ..forks.policy("base")
    };
    let (workspace, scratch) = (directory(forks.path("base")), directory(forks.path("scratch")));
    let cell = spawner.cell(plan(&base), workspace.as_fd(), scratch.as_fd(), None).await.unwrap();
    let make = "export GIT_CONFIG_GLOBAL=/etc/carrel/gitconfig; git init -q . && git add -A && \
                git commit -qm first && mkdir -p .git/hooks && git status --porcelain";
    assert_eq!(prints(&cell, make).await, "");
    drop(cell);
    let fork = forks.mount(&spawner).await;
    let policy = Policy { git_directory: GitDirectory::WithHooks, ..forks.policy("fork") };
    let cell = forks.enter(&spawner, &fork, &policy, None).await;
    let look = "export GIT_CONFIG_GLOBAL=/etc/carrel/gitconfig; git status --porcelain; \
                git diff-files --raw; git update-index --refresh";
    assert_eq!(prints(&cell, look).await, "");
    let work = "export GIT_CONFIG_GLOBAL=/etc/carrel/gitconfig; echo more >> file && \
                git commit -qam second && git gc -q && git log --format=%s && git fsck";
    assert_eq!(prints(&cell, work).await, "second\nfirst\n");
    let hook = run(&cell, "echo 'true' > .git/hooks/pre-commit || mv .git elsewhere").await;
    assert!(!hook.succeeded());
    assert_eq!(forks.tree("base")[Path::new("file")], "of the base\n");
}

#[tokio::test]
async fn a_directory_of_the_base_cannot_be_renamed_and_a_new_one_can() {
    let (forks, spawner) = (TestForks::new(), spawner());
    let fork = forks.mount(&spawner).await;
    let cell = forks.cell(&spawner, &fork).await;
    let rename = "mkdir new; for name in kept new file; do \
                  perl -e 'rename($ARGV[0], \"$ARGV[0]-2\") or print $!{EXDEV} ? \"EXDEV\" : $!; \
                  print \"\\n\"' $name; done; ls";
    assert_eq!(prints(&cell, rename).await, "EXDEV\n\n\nfile-2\nkept\nnew-2\n");
    // Programs that fall back to a copy succeed.
    assert_eq!(
        prints(&cell, "mv kept moved && ls && cat moved/deep").await,
        "file-2\nmoved\nnew-2\ndeep\n"
    );
}

#[tokio::test]
async fn removed_and_replaced_entries_and_hard_links_look_as_on_any_file_system() {
    let (forks, spawner) = (TestForks::new(), spawner());
    fs::hard_link(forks.path("base/file"), forks.path("base/twin")).unwrap();
    let fork = forks.mount(&spawner).await;
    let cell = forks.cell(&spawner, &fork).await;
    let replace = "rm -r kept && test ! -e kept && mkdir kept && ls -A kept && \
                   ln kept/../file link && stat -c %h link && rm file && echo new > file && \
                   cat file link && cat twin";
    // The copied-up file has left its twin in the base, and only its new links count.
    let expected = "2\nnew\nof the base\nof the base\n";
    assert_eq!(prints(&cell, replace).await, expected);
    assert_eq!(prints(&cell, "echo changed > twin; cat link").await, "of the base\n");
    let opaque = forks.path("layers/upper/kept");
    let mut value = [0; 8];
    let length = getxattr(&opaque, "user.overlay.opaque", &mut value).unwrap();
    assert_eq!(&value[..length], b"y");
}

#[tokio::test]
async fn marks_of_the_overlay_that_a_command_sets_are_escaped() {
    let (forks, spawner) = (TestForks::new(), spawner());
    let fork = forks.mount(&spawner).await;
    let kept = format!("/proc/self/fd/{}/kept", fork.root().as_raw_fd());
    setxattr(&kept, "user.overlay.opaque", b"y", XattrFlags::empty()).unwrap();
    let mut value = [0; 8];
    let length = getxattr(&kept, "user.overlay.opaque", &mut value).unwrap();
    assert_eq!(&value[..length], b"y");
    let upper = forks.path("layers/upper/kept");
    let length = getxattr(&upper, "user.overlay.overlay.opaque", &mut value).unwrap();
    assert_eq!(&value[..length], b"y");
    assert_eq!(getxattr(&upper, "user.overlay.opaque", &mut value), Err(Errno::NODATA));
    let cell = forks.cell(&spawner, &fork).await;
    assert_eq!(prints(&cell, "ls kept").await, "deep\n");
}

#[tokio::test]
async fn layers_serve_one_overlay_at_a_time_and_are_not_mounted_again_unasked() {
    let (forks, spawner) = (TestForks::new(), spawner());
    let plan = forks.overlay_plan("fork", "layers");
    let fork = forks.mount(&spawner).await;
    let cell = forks.cell(&spawner, &fork).await;
    prints(&cell, "echo kept > left").await;
    let again = forks.try_mount(&spawner, plan.clone()).await;
    assert!(matches!(again, Err(OverlayError::InUse)), "{again:?}");
    // A cell keeps the overlay mounted, and the lock with it.
    let unmounted = fork.unmounted().unwrap();
    drop(fork);
    let again = forks.try_mount(&spawner, plan.clone()).await;
    assert!(matches!(again, Err(OverlayError::InUse)), "{again:?}");
    assert_eq!(prints(&cell, "cat left").await, "kept\n");
    drop(cell);
    unmounted.wait().await.unwrap();
    let again = forks.try_mount(&spawner, plan.clone()).await;
    assert!(matches!(again, Err(OverlayError::UsedBefore)), "{again:?}");
    let accepted = plan.with_used_layers(UsedLayers::Accept);
    let fork = forks.try_mount(&spawner, accepted.clone()).await.unwrap();
    assert_eq!(read(&fork, "left"), "kept\n");
    fork.end().await.unwrap();
    // The same on layers that were never used, and on those without the mark.
    let fork = forks.try_mount(&spawner, accepted).await.unwrap();
    fork.end().await.unwrap();
}

#[tokio::test]
async fn an_overlay_is_unmounted_when_its_handle_and_its_cells_are_gone() {
    let (forks, spawner, mark) = (TestForks::new(), spawner(), Mark::new());
    let fork = forks.mount(&spawner).await;
    let helper = children_of(this_process())[0];
    // The process that mounted it has ended.
    until("the spawner has no child", || children_of(helper).is_empty()).await;
    let cell = forks.cell(&spawner, &fork).await;
    let running = cell.spawn(mark.put_on(shell("sleep 1000"))).await.unwrap();
    assert!(!shown_by(&forks).is_empty());
    let unmounted = fork.unmounted().unwrap();
    drop((running, cell));
    mark.until_gone().await;
    assert_eq!(read(&fork, "file"), "of the base\n");
    drop(fork);
    unmounted.wait().await.unwrap();
    assert_eq!(shown_by(&forks), Vec::<i32>::new());
    assert_eq!(children_of(helper), Vec::<i32>::new());
}

/// Returns the processes that can be looked at and have an overlay on a fork's directory.
fn shown_by(forks: &TestForks) -> Vec<i32> {
    let mount = format!(" {} ", forks.path("fork").display());
    let pids = fs::read_dir("/proc").unwrap();
    let pids = pids.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
        mounts.lines().any(|line| line.contains(&mount) && line.contains(" - overlay "))
    })
    .collect()
}

#[tokio::test]
async fn a_fork_survives_its_spawner_and_gets_cells_from_another() {
    let (forks, first) = (TestForks::new(), spawner());
    let fork = forks.mount(&first).await;
    let cell = forks.cell(&first, &fork).await;
    prints(&cell, "echo kept > left").await;
    send(children_of(this_process())[0], Signal::KILL);
    first.gone().await;
    let second = spawner();
    let cell = forks.cell(&second, &fork).await;
    assert_eq!(prints(&cell, "cat left").await, "kept\n");
}

#[tokio::test]
async fn a_killed_server_takes_its_forks_along() {
    let (forks, mark) = (TestForks::new(), Mark::new());
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "overlays::stand_in_for_a_server_with_a_fork"])
        .env("STAND_IN_MARK", mark.name())
        .env("STAND_IN_HOME", &forks.home)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    mark.until_alive(1).await;
    let locked = forks.try_mount(&spawner(), forks.overlay_plan("fork", "layers")).await;
    assert!(matches!(locked, Err(OverlayError::InUse)), "{locked:?}");
    server.kill().unwrap();
    server.wait().unwrap();
    mark.until_gone().await;
    until("nobody shows the fork", || shown_by(&forks).is_empty()).await;
    let plan = forks.overlay_plan("fork", "layers").with_used_layers(UsedLayers::Accept);
    let spawner = spawner();
    let fork = loop {
        match forks.try_mount(&spawner, plan.clone()).await {
            // Processes end one after the other.
            Err(OverlayError::InUse) => tokio::task::yield_now().await,
            mounted => break mounted.unwrap(),
        }
    };
    assert_eq!(read(&fork, "left"), "kept\n");
}

#[tokio::test]
#[ignore = "the process that another test starts and kills"]
async fn stand_in_for_a_server_with_a_fork() {
    let Ok(home) = std::env::var("STAND_IN_HOME") else { return };
    let mark = Mark::named(&std::env::var("STAND_IN_MARK").unwrap());
    let forks = TestForks { home: home.into(), _made: None };
    let spawner = spawner();
    let fork = forks.mount(&spawner).await;
    let cell = forks.cell(&spawner, &fork).await;
    let script = "echo kept > left; trap '' TERM HUP; setsid sleep 1000 & sleep 1000";
    cell.run(mark.put_on(shell(script)), &CancellationToken::new()).await.unwrap();
}

#[tokio::test]
async fn an_overlay_and_the_plan_of_a_cell_belong_together() {
    let (forks, spawner) = (TestForks::new(), spawner());
    let fork = forks.mount(&spawner).await;
    let scratch = directory(forks.path("scratch"));
    let plain = Policy { workspace_source: WorkspaceSource::Directory, ..forks.policy("fork") };
    let target = directory(forks.path("fork"));
    let wrong = [
        spawner.cell(plan(&plain), &fork, scratch.as_fd(), None).await,
        spawner.cell(plan(&forks.policy("fork")), target.as_fd(), scratch.as_fd(), None).await,
    ];
    for made in wrong {
        let Err(CellError::Refused(failure)) = made else { panic!("{made:?}") };
        assert_eq!(failure, SetupError::wrong_workspace_source());
    }
    // The overlay of one fork is not at the path of another.
    let sibling = plan(&forks.policy("sibling"));
    let made = spawner.cell(sibling, &fork, scratch.as_fd(), None).await;
    let Err(CellError::Refused(failure)) = made else { panic!("{made:?}") };
    assert_eq!((failure.step, failure.errno), (SetupStep::Find, Errno::STALE.raw_os_error()));
    assert!(OverlayPlan::new(&plan(&plain), forks.path("base"), forks.path("layers")).is_none());
    let landlock = Plan::new(&forks.policy("fork"), &Host::probe(), Tier::Landlock);
    assert_eq!(landlock.unwrap_err(), PlanError::Overlay);
}

#[tokio::test]
async fn a_replaced_directory_is_not_mounted() {
    for name in ["base", "layers", "fork"] {
        let (forks, spawner) = (TestForks::new(), spawner());
        let (lower, layers, target) = ("base", "layers", "fork");
        let [lower, layers, target] =
            [lower, layers, target].map(|name| directory(forks.path(name)));
        fs::rename(forks.path(name), forks.path("before")).unwrap();
        fs::create_dir(forks.path(name)).unwrap();
        let directories = || OverlayDirectories {
            lower: lower.as_fd(),
            layers: layers.as_fd(),
            target: target.as_fd(),
        };
        let plan = forks.overlay_plan("fork", "layers");
        let mounted = spawner.overlay(plan.clone(), directories()).await;
        let Err(OverlayError::Refused(failure)) = mounted else { panic!("{name}: {mounted:?}") };
        let found = (failure.step, failure.errno, failure.object);
        let path = forks.path(name).display().to_string();
        assert_eq!(found, (SetupStep::Find, Errno::STALE.raw_os_error(), Some(path)));
        fs::remove_dir(forks.path(name)).unwrap();
        std::os::unix::fs::symlink("before", forks.path(name)).unwrap();
        let mounted = spawner.overlay(plan, directories()).await;
        let Err(OverlayError::Refused(failure)) = mounted else { panic!("{name}: {mounted:?}") };
        assert_eq!(failure.errno, Errno::LOOP.raw_os_error(), "{name}");
    }
}
