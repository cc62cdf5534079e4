//! Roots in another mount namespace: the merged tree of a real overlay, as root and as an ordinary user,
//! while the namespace lives and after it has ended.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use carrel_fsroot::{
    Collision, Durability, Error, FileKind, Problem, Root, UsageLimit, WalkControl, WriteOptions,
    Writer,
};
use carrel_skip::{needs, unavailable};
use rustix::fs::{CWD, Mode, OFlags, XattrFlags, openat};
use rustix::process::geteuid;

use crate::p;

/// The owner of the tree where the tests run as root.
const SOMEBODY: Writer = Writer { user: 2_000_000_005, group: 2_000_000_006 };

/// The path of the tree for those who live in its namespace.
const LABEL: &str = "/srv/fork";

/// A mounted overlay, and the process that holds its namespaces.
struct Fork {
    directory: tempfile::TempDir,
    holder: Option<Child>,
    merged: OwnedFd,
}

/// The life of the namespace in which the overlay is mounted.
#[derive(Clone, Copy, Debug)]
enum Namespace {
    Alive,
    Ended,
}

const BOTH: [Namespace; 2] = [Namespace::Alive, Namespace::Ended];

impl Fork {
    /// Mounts an overlay over a small tree; nothing where that is not possible.
    fn mount(namespace: Namespace) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let directories = ["base/kept/deep", "base/.ssh", "upper", "work", "merged"];
        for name in directories {
            std::fs::create_dir_all(path(name)).unwrap();
        }
        std::fs::write(path("base/file"), "of the base").unwrap();
        std::fs::set_permissions(path("base/file"), PermissionsExt::from_mode(0o640)).unwrap();
        std::fs::write(path("base/kept/deep/file"), "deep").unwrap();
        std::fs::write(path("base/.ssh/key"), "key").unwrap();
        rustix::fs::setxattr(path("base/file"), "user.note", b"kept", XattrFlags::empty()).unwrap();
        symlink(format!("{LABEL}/kept"), path("base/absolute")).unwrap();
        symlink(directory.path().join("base/kept"), path("base/outside")).unwrap();
        symlink(".ssh", path("base/harmless")).unwrap();
        let mut command = Command::new("setpriv");
        if geteuid().is_root() {
            std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
            let all = Command::new("chown")
                .args(["-Rh", &format!("{}:{}", SOMEBODY.user, SOMEBODY.group)])
                .args(["base", "upper", "work", "merged"].map(path))
                .status();
            assert!(all.unwrap().success());
            let user = format!("--reuid={}", SOMEBODY.user);
            command.args([&user, &format!("--regid={}", SOMEBODY.group), "--clear-groups"]);
        }
        let script = "mount -t overlay overlay -o \
                      userxattr,volatile,lowerdir=base,upperdir=upper,workdir=work merged && \
                      echo mounted && exec cat";
        command.args(["unshare", "-r", "-m", "sh", "-c", script]);
        command.current_dir(directory.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line != "mounted\n" {
            holder.wait().unwrap();
            unavailable("an overlay in a user namespace");
            return None;
        }
        let top = std::fs::canonicalize(directory.path()).unwrap();
        let merged = format!("/proc/{}/root{}/merged", holder.id(), top.display());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let merged = openat(CWD, merged, flags, Mode::empty()).unwrap();
        let mut fork = Self { directory, holder: Some(holder), merged };
        if let Namespace::Ended = namespace {
            fork.end_namespace();
        }
        Some(fork)
    }

    fn end_namespace(&mut self) {
        if let Some(mut holder) = self.holder.take() {
            holder.kill().unwrap();
            holder.wait().unwrap();
        }
    }

    fn root(&self) -> Root {
        self.root_with(geteuid().is_root().then_some(SOMEBODY))
    }

    fn root_with(&self, writer: Option<Writer>) -> Root {
        Root::with_label(self.merged.try_clone().unwrap(), LABEL.into(), writer)
    }

    fn upper(&self, name: &str) -> PathBuf {
        self.directory.path().join("upper").join(name)
    }

    /// Returns the paths and sizes of the base.
    fn base(&self) -> BTreeMap<PathBuf, u64> {
        let base = Root::open(&self.directory.path().join("base")).unwrap();
        let mut found = BTreeMap::new();
        base.walk(
            p(""),
            |entry| {
                let size = entry.metadata().unwrap().map_or(0, |metadata| metadata.size);
                found.insert(entry.path.to_owned(), size);
                Ok(WalkControl::Continue)
            },
            Err,
        )
        .unwrap();
        found
    }
}

impl Drop for Fork {
    fn drop(&mut self) {
        self.end_namespace();
    }
}

fn options(durability: Durability) -> WriteOptions {
    WriteOptions { durability, ..WriteOptions::default() }
}

fn problem<T: std::fmt::Debug>(result: Result<T, Error>) -> Problem {
    result.unwrap_err().problem()
}

#[test]
fn files_are_written_and_replaced_as_the_writer() {
    for namespace in BOTH {
        let Some(fork) = Fork::mount(namespace) else { return };
        let (root, before) = (fork.root(), fork.base());
        for (index, durability) in
            [Durability::Synced, Durability::Atomic, Durability::Buffered].into_iter().enumerate()
        {
            let name = format!("new-{index}");
            root.write(p(&name), b"new", options(durability)).unwrap();
            root.write(p(&name), b"newer", options(durability)).unwrap();
            root.write(p("file"), name.as_bytes(), options(durability)).unwrap();
            assert_eq!(root.read(p(&name), 100).unwrap(), b"newer", "{namespace:?}");
        }
        assert_eq!(root.read(p("file"), 100).unwrap(), b"new-2");
        let replaced = root.metadata(p("file")).unwrap();
        assert_eq!(replaced.mode, 0o640);
        let mut value = [0; 8];
        let note = rustix::fs::getxattr(fork.upper("file"), "user.note", &mut value).unwrap();
        assert_eq!(&value[..note], b"kept");
        let refused = WriteOptions { collision: Collision::Refuse, ..WriteOptions::default() };
        assert_eq!(problem(root.write(p("file"), b"no", refused)), Problem::Exists);
        drop(root.begin_write(p("unfinished"), WriteOptions::default()).unwrap());
        assert!(root.list(p("")).unwrap().iter().all(|entry| {
            !entry.name.to_string_lossy().contains("carrel-write") && entry.name != "unfinished"
        }));
        root.browse().write(p("kept/browsed"), b"browsed", WriteOptions::default()).unwrap();
        let mut file = root.begin_entry_write(p("absolute"), WriteOptions::default()).unwrap();
        file.append(b"no link").unwrap();
        file.set_mode(0o600).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        file.commit().unwrap();
        root.set_entry_mode(p("absolute"), 0o644).unwrap();
        let written = root.link_metadata(p("absolute")).unwrap();
        assert_eq!((written.kind, written.mode), (FileKind::File, 0o644));
        assert_eq!(written.modified, std::time::UNIX_EPOCH);
        root.overwrite(p("own"), b"first", 0o600).unwrap();
        root.overwrite(p("own"), b"again", 0o600).unwrap();
        assert_eq!(root.read_strict(p("own"), 100).unwrap(), b"again");
        let owner = std::fs::metadata(fork.upper("")).unwrap().uid();
        for name in ["new-0", "file", "kept/browsed", "absolute", "own"] {
            assert_eq!(std::fs::metadata(fork.upper(name)).unwrap().uid(), owner, "{name}");
        }
        assert_eq!(fork.base(), before);
    }
}

#[test]
fn directories_links_and_renames_are_made_as_the_writer() {
    for namespace in BOTH {
        let Some(fork) = Fork::mount(namespace) else { return };
        let (root, before) = (fork.root(), fork.base());
        root.create_directory(p("made"), 0o755).unwrap();
        root.create_directories(p("made/a/b/c"), 0o755).unwrap();
        root.create_link(p("a/b"), p("made/link")).unwrap();
        root.write(p("made/link/c/file"), b"through a link", WriteOptions::default()).unwrap();
        root.rename(p("file"), p("made/moved"), Collision::Refuse).unwrap();
        root.rename(p("made/a"), p("made/other"), Collision::Replace).unwrap();
        assert_eq!(root.read(p("made/moved"), 100).unwrap(), b"of the base");
        assert_eq!(root.read(p("made/other/b/c/file"), 100).unwrap(), b"through a link");
        // The overlay does not rename directories of the base.
        let below = root.open_root(p("made")).unwrap();
        let refused = root.rename_into(p("kept"), &below, p("kept"), Collision::Replace);
        assert_eq!(problem(refused), Problem::Io);
        root.remove_file(p("made/moved")).unwrap();
        root.remove_file(p("made/link")).unwrap();
        root.remove_directory(p("kept/deep")).unwrap_err();
        root.remove_file(p("kept/deep/file")).unwrap();
        root.remove_directory(p("kept/deep")).unwrap();
        let closed = below.open_root(p("other")).unwrap();
        below.set_entry_mode(p("other"), 0).unwrap();
        assert!(!closed.owner_has_access().unwrap());
        closed.grant_owner_access().unwrap();
        assert!(closed.owner_has_access().unwrap());
        let owner = std::fs::metadata(fork.upper("")).unwrap().uid();
        assert_eq!(std::fs::metadata(fork.upper("made/other/b")).unwrap().uid(), owner);
        assert_eq!(fork.base(), before);
    }
}

#[test]
fn a_tree_is_removed_whatever_its_modes_and_wherever_its_layers() {
    for namespace in BOTH {
        let Some(fork) = Fork::mount(namespace) else { return };
        let (root, before) = (fork.root(), fork.base());
        let deep: PathBuf = std::iter::repeat_n("d", 80).collect();
        root.create_directories(&p("kept").join(&deep), 0o755).unwrap();
        root.write(&p("kept").join(&deep).join("file"), b"x", WriteOptions::default()).unwrap();
        root.open_root(p("kept")).unwrap().set_entry_mode(p("deep"), 0).unwrap();
        root.remove_tree(p("kept")).unwrap();
        assert_eq!(problem(root.metadata(p("kept"))), Problem::NotFound);
        root.remove_tree(p("file")).unwrap();
        assert_eq!(fork.base(), before);
    }
}

#[test]
fn the_label_stands_for_the_path() {
    for namespace in BOTH {
        let Some(fork) = Fork::mount(namespace) else { return };
        let root = fork.root();
        assert_eq!(root.path(), p(LABEL));
        let below = root.open_root(p("kept/../kept/deep")).unwrap();
        assert_eq!(below.path(), p("/srv/fork/kept/deep"));
        assert_eq!(below.try_clone().unwrap().path(), p("/srv/fork/kept/deep"));
        assert_eq!(root.open_root(p(".")).unwrap().path(), p(LABEL));
        assert_eq!(root.open_root_strict(p("kept")).unwrap().path(), p("/srv/fork/kept"));
        assert_eq!(root.open_root(p("absolute")).unwrap().path(), p("/srv/fork/kept"));
        assert_eq!(root.locate(p("absolute/deep/../deep/file")).unwrap(), p("kept/deep/file"));
        assert_eq!(root.read(p("absolute/deep/file"), 10).unwrap(), b"deep");
        assert_eq!(
            root.read(p("outside/deep/file"), 10).unwrap_err().to_string(),
            format!(
                "path leaves the workspace, {}: outside/deep/file",
                carrel_fsroot::Escape::AbsoluteLink
            )
        );
        let target = fork.directory.path().join("base/kept");
        assert_eq!(root.outside_target(p("outside")).unwrap(), Some(target));
        assert_eq!(problem(root.browse().read(p("harmless/key"), 10)), Problem::Sensitive);
        assert_eq!(root.browse().read(p("kept/deep/file"), 10).unwrap(), b"deep");
        // The writer is inherited as well.
        below.write(p("file"), b"new", WriteOptions::default()).unwrap();
        assert_eq!(root.read(p("kept/deep/file"), 10).unwrap(), b"new");
    }
}

#[test]
fn space_usage_and_walks_are_those_of_the_merged_tree() {
    for namespace in BOTH {
        let Some(fork) = Fork::mount(namespace) else { return };
        let root = fork.root();
        let disk = Root::open(fork.directory.path()).unwrap();
        assert_eq!(root.capacity().unwrap().total, disk.capacity().unwrap().total);
        assert!(root.space().unwrap().bytes > 0);
        let before = root.usage(p(""), UsageLimit::NONE).unwrap();
        root.write(p("large"), &vec![1; 1 << 20], WriteOptions::default()).unwrap();
        root.remove_file(p("file")).unwrap();
        let after = root.usage(p(""), UsageLimit::NONE).unwrap();
        assert_eq!(after.inodes, before.inodes);
        assert!(after.bytes >= before.bytes + (1 << 20) - (4 << 10) && after.unreadable == 0);
        let mut seen = Vec::new();
        let visit = |entry: &carrel_fsroot::WalkEntry<'_>| {
            seen.push(entry.path.to_owned());
            Ok(WalkControl::Continue)
        };
        root.walk(p("kept"), visit, Err).unwrap();
        assert_eq!(seen, [p("deep"), p("deep/file")]);
        root.sync_directory(p("kept")).unwrap();
        assert!(root.identity().is_ok() && root.birth_time().is_some());
    }
}

#[test]
fn root_creates_nothing_there_as_itself() {
    needs!(Root);
    let Some(fork) = Fork::mount(Namespace::Alive) else { return };
    let root = fork.root_with(None);
    let refused = root.write(p("new"), b"new", WriteOptions::default()).unwrap_err();
    let source = std::error::Error::source(&refused).unwrap();
    let errno = source.downcast_ref::<std::io::Error>().unwrap().raw_os_error();
    assert_eq!(errno, Some(rustix::io::Errno::OVERFLOW.raw_os_error()));
    // A file that the writer may not change stays as it is, although root asks.
    chown(fork.upper(""), Some(SOMEBODY.user), Some(SOMEBODY.group)).unwrap();
    let root = fork.root();
    root.create_directory(p("closed"), 0o500).unwrap();
    let refused = root.write(p("closed/new"), b"new", WriteOptions::default());
    assert_eq!(problem(refused), Problem::PermissionDenied);
    assert_eq!(geteuid().as_raw(), 0);
}

#[test]
fn an_ordinary_user_cannot_write_as_another() {
    needs!(Ordinary);
    let Some(fork) = Fork::mount(Namespace::Alive) else { return };
    let root = fork.root_with(Some(SOMEBODY));
    let refused = root.write(p("new"), b"new", WriteOptions::default());
    assert_eq!(problem(refused), Problem::PermissionDenied);
    fork.root().write(p("new"), b"new", WriteOptions::default()).unwrap();
}
