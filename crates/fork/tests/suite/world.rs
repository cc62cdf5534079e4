//! A base and its forks, mounted for real: a process in a mount namespace of its own mounts the overlay, changes what
//! it is told to, and writes down the tree that it saw.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use carrel_fork::{Change, Layers, Server};
use carrel_fsroot::Root;

/// The variables by which this binary knows that it is the process in the namespace, and what it has to do.
const TASK: &str = "CARREL_FORK_TASK";
const MERGED: &str = "CARREL_FORK_MERGED";
const SEEN: &str = "CARREL_FORK_SEEN";

/// Mounts an overlay and runs the rest of the arguments.
const MOUNT: &str = "mount -t overlay overlay -o \
    \"lowerdir=$1,upperdir=$2,workdir=$3,userxattr,volatile\" \"$4\" && shift 4 && exec \"$@\"";

pub(crate) struct World {
    directory: tempfile::TempDir,
}

impl Drop for World {
    fn drop(&mut self) {
        // A user may not remove what is in a directory that cannot be written.
        let _ = self.root("").remove_tree(Path::new("base"));
        let _ = self.root("").remove_tree(Path::new("forks"));
        let _ = self.root("").remove_tree(Path::new("trash"));
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["base", "forks", "journal", "trash", "merged"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory }
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join(path)
    }

    pub(crate) fn root(&self, path: impl AsRef<Path>) -> Root {
        Root::open(&self.path(path)).unwrap()
    }

    pub(crate) fn base(&self) -> Root {
        self.root("base")
    }

    pub(crate) fn layers(&self, name: &str) -> Layers {
        Layers::create(&self.root("forks"), Path::new(name), &self.base()).unwrap()
    }

    pub(crate) fn server(&self) -> Roots {
        Roots { journal: self.root("journal"), trash: self.root("trash") }
    }

    /// Does something in a directory.
    pub(crate) fn inside(&self, directory: &str, tasks: &str) {
        take(tasks, &self.path(directory));
    }

    /// Does something in a fork, and returns the tree as the fork sees it afterwards.
    pub(crate) fn in_fork(&self, layers: &Layers, tasks: &str) -> Tree {
        let seen = self.path("seen");
        let mut command = self.mounting(layers);
        let test = format!("{}::child_process", module_path!().split_once("::").unwrap().1);
        command
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", &test, "--nocapture"])
            .envs([(TASK, OsStr::new(tasks)), (SEEN, seen.as_os_str())])
            .env(MERGED, self.path("merged"))
            .stdout(Stdio::null());
        assert!(command.status().unwrap().success(), "the fork failed: {tasks}");
        Tree::of_text(&std::fs::read_to_string(seen).unwrap())
    }

    /// Returns a command that mounts the fork in a namespace, to which the command inside is added.
    pub(crate) fn mounting(&self, layers: &Layers) -> Command {
        let (upper, work) = layers.paths();
        let mut command = unshare();
        command.args(["sh", "-c", MOUNT, "sh"]);
        command.arg(self.path("base")).arg(upper).arg(work).arg(self.path("merged"));
        command
    }

    /// Copies base and forks with everything that belongs to them.
    pub(crate) fn duplicate(&self) -> Self {
        let copy = Self::new();
        for name in ["base", "forks"] {
            // What is in the kernel's directory is of no use without its mount, and closed to users.
            let work = self.path("forks/fork/work/work");
            let _ = Root::open(work.parent().unwrap()).unwrap().remove_tree(Path::new("work"));
            let from = format!("{}/.", self.path(name).display());
            let status = Command::new("cp").arg("-a").arg(from).arg(copy.path(name)).status();
            assert!(status.unwrap().success());
        }
        copy
    }

    pub(crate) fn tree(&self, path: impl AsRef<Path>) -> Tree {
        Tree::of(&self.path(path))
    }
}

/// The directories of the server, open.
pub(crate) struct Roots {
    pub(crate) journal: Root,
    pub(crate) trash: Root,
}

impl Roots {
    pub(crate) fn get(&self) -> Server<'_> {
        Server { journal: &self.journal, trash: &self.trash }
    }
}

/// Changes of every kind, for which a promotion takes steps of every kind.
pub(crate) const BEFORE: &str = "
    sh mkdir -p kept/deep/er gone/below replaced/old restricted empty becomes-file
    sh for i in 1 2 3 4 5 6; do echo $i > kept/$i; echo $i > gone/below/$i; echo $i > replaced/$i; done
    sh echo deep > kept/deep/er/file; echo r > restricted/file; ln -s kept link; echo x > becomes-directory
    sh echo linked > one; ln one two; echo same > same; echo ro > read-only; chmod 444 read-only
    sh echo f > becomes-file/f; mkdir -p replaced/with-whiteout/a; echo w > replaced/with-whiteout/a/w
    attribute kept/1 user.one old
    sh chmod 555 restricted";
pub(crate) const CHANGES: &str = "
    sh echo new > kept/1; echo more >> kept/2; rm kept/3; chmod 600 kept/4; touch kept/5; mv kept/6 kept/7
    sh rm -r gone; rm -r replaced; mkdir replaced; echo new > replaced/1; mkdir replaced/new
    sh ln -sfn gone link; rm becomes-directory; mkdir -p becomes-directory/a/b; echo y > becomes-directory/a/b/c
    sh rm -r becomes-file; echo file > becomes-file; mkdir -p new/tree/deep; echo t > new/tree/deep/file
    sh chmod 755 restricted; echo s >> restricted/file; echo n > restricted/new; chmod 555 restricted
    sh ln same same-too; echo changed >> one; rmdir empty; mkfifo fifo; chmod 700 kept/deep
    sh chmod 644 read-only; echo more >> read-only; chmod 444 read-only; mkdir closed; echo c > closed/c
    attribute kept/5 user.two new
    attribute kept/deep user.overlay.opaque y
    attribute new user.overlay.overlay.name value
    sh chmod 555 closed";

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.arg("-m");
    if !rustix::process::geteuid().is_root() {
        command.arg("-Ur");
    }
    command
}

/// Returns whether overlays can be mounted here, and records a skip otherwise.
#[track_caller]
pub(crate) fn has_overlays() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    let has = *HAS.get_or_init(|| {
        let world = World::new();
        let mut command = world.mounting(&world.layers("probe"));
        command.arg("true").output().is_ok_and(|output| output.status.success())
    });
    if !has {
        carrel_skip::unavailable("overlays cannot be mounted in a namespace of one's own");
    }
    has
}

/// The process in the namespace; by itself it does nothing.
#[test]
fn child_process() {
    let (Ok(tasks), Some(merged), Some(seen)) =
        (std::env::var(TASK), std::env::var_os(MERGED), std::env::var_os(SEEN))
    else {
        return;
    };
    take(&tasks, Path::new(&merged));
    std::fs::write(seen, Tree::of(Path::new(&merged)).to_text()).unwrap();
}

/// Takes tasks, one in each line: `sh SCRIPT`, `attribute PATH NAME VALUE`, or `random SEED COUNT`.
fn take(tasks: &str, top: &Path) {
    for task in tasks.lines().map(str::trim).filter(|task| !task.is_empty()) {
        let (word, rest) = task.split_once(' ').unwrap();
        match word {
            "sh" => {
                let status = Command::new("sh").args(["-euc", rest]).current_dir(top).status();
                assert!(status.unwrap().success(), "{rest}");
            }
            "attribute" => {
                let words: Vec<_> = rest.split(' ').collect();
                set_attribute(&top.join(words[0]), words[1], words[2].as_bytes()).unwrap();
            }
            "random" => {
                let (seed, count) = rest.split_once(' ').unwrap();
                let mut random = fastrand::Rng::with_seed(seed.parse().unwrap());
                for _ in 0..count.parse().unwrap() {
                    let _ = change_something(top, &mut random);
                }
            }
            word => panic!("unknown task {word}"),
        }
    }
}

fn set_attribute(path: &Path, name: &str, value: &[u8]) -> rustix::io::Result<()> {
    rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty())
}

const NAMES: [&[u8]; 9] =
    [b"a", b"b", b"a b", b"-rf", b"\xc3\xa4", b"\xff\xfe", b"new\nline", b".wh.a", b"d"];

fn some_path(top: &Path, random: &mut fastrand::Rng) -> PathBuf {
    let mut path = top.to_owned();
    for _ in 0..random.usize(1..5) {
        path.push(OsStr::from_bytes(NAMES[random.usize(..NAMES.len())]));
    }
    path
}

fn leads_through_link(top: &Path, path: &Path) -> bool {
    path.ancestors().take_while(|above| *above != top).any(Path::is_symlink)
}

/// Changes something; a change that does not fit the tree does nothing.
fn change_something(top: &Path, random: &mut fastrand::Rng) -> std::io::Result<()> {
    let (path, other) = (some_path(top, random), some_path(top, random));
    if leads_through_link(top, &path) || leads_through_link(top, &other) {
        return Ok(());
    }
    let content = vec![random.u8(..4); [0, 3, 4096, 140_000][random.usize(..4)]];
    match random.u8(..20) {
        0..4 => {
            std::fs::create_dir_all(path.parent().unwrap())?;
            std::fs::write(path, content)
        }
        4 => {
            use std::io::Write;
            std::fs::File::options().append(true).open(path)?.write_all(&content)
        }
        5 => std::fs::File::options().write(true).open(path)?.set_len(5000),
        // As it was, but copied up.
        6 => std::fs::File::options().write(true).open(path).map(drop),
        7 => std::fs::create_dir_all(path),
        8 | 9 => std::fs::remove_file(path),
        10 => std::fs::remove_dir(path),
        11 => std::fs::remove_dir_all(path),
        12 => {
            std::fs::remove_dir_all(&path)?;
            std::fs::create_dir(&path)?;
            std::fs::write(path.join("a"), content)
        }
        13 => {
            std::fs::remove_dir_all(&path)?;
            std::fs::write(path, content)
        }
        14 => {
            std::fs::remove_file(&path)?;
            std::fs::create_dir(path)
        }
        15 => std::fs::rename(path, other),
        16 => std::fs::hard_link(path, other),
        17 => symlink(other.strip_prefix(top).unwrap(), path),
        18 => {
            // Always readable, since the test has to read it as a user, too.
            let needed = if path.is_dir() { 0o500 } else { 0o400 };
            let mode = random.u32(..0o1000) | needed | (u32::from(random.u8(..4) > 0) * 0o200);
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode))
        }
        _ => {
            let names = ["user.one", "user.two", "user.overlay.opaque", "user.overlay.overlay.x"];
            let count = if top.ends_with("base") { 2 } else { 4 };
            set_attribute(&path, names[random.usize(..count)], &content[..content.len().min(9)])?;
            Ok(())
        }
    }
}

/// An entry, as tests compare it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: String,
    pub(crate) mode: String,
    pub(crate) content: String,
    pub(crate) attributes: String,
}

/// A tree, by escaped paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) entries: BTreeMap<String, Found>,
    /// The paths that are the same file.
    pub(crate) links: BTreeSet<BTreeSet<String>>,
}

impl Tree {
    pub(crate) fn of(top: &Path) -> Self {
        let mut tree = Self::default();
        let mut inodes = BTreeMap::new();
        collect(top, Path::new(""), &mut tree, &mut inodes);
        tree.links = inodes.into_values().filter(|paths: &BTreeSet<_>| paths.len() > 1).collect();
        tree
    }

    fn to_text(&self) -> String {
        let entries = self.entries.iter().map(|(path, found)| {
            let Found { kind, mode, content, attributes } = found;
            format!("{path}\t{kind}\t{mode}\t{content}\t{attributes}\n")
        });
        let links = self.links.iter().map(|paths| {
            let paths: Vec<_> = paths.iter().map(String::as_str).collect();
            format!("={}\n", paths.join("\t"))
        });
        entries.chain(links).collect()
    }

    fn of_text(text: &str) -> Self {
        let mut tree = Self::default();
        for line in text.lines() {
            if let Some(paths) = line.strip_prefix('=') {
                tree.links.insert(paths.split('\t').map(str::to_owned).collect());
                continue;
            }
            let words: Vec<_> = line.split('\t').map(str::to_owned).collect();
            let [path, kind, mode, content, attributes] = words.try_into().unwrap();
            tree.entries.insert(path, Found { kind, mode, content, attributes });
        }
        tree
    }

    /// Returns the tree without attributes that look like an overlay's.
    pub(crate) fn without_overlay(&self) -> Self {
        let mut tree = self.clone();
        for found in tree.entries.values_mut() {
            let words =
                found.attributes.split(' ').filter(|word| !word.starts_with("user.overlay."));
            found.attributes = words.collect::<Vec<_>>().join(" ");
        }
        tree
    }

    /// Returns whether files that are the same in this tree are the same in the other one.
    pub(crate) fn keeps_links_of(&self, other: &Self) -> bool {
        other.links.iter().all(|paths| self.links.iter().any(|own| paths.is_subset(own)))
    }

    /// Returns the changes to another tree, found without the crate.
    pub(crate) fn changes_to(&self, new: &Self) -> Vec<String> {
        let paths: BTreeSet<_> = self.entries.keys().chain(new.entries.keys()).collect();
        let mut changes = Vec::new();
        for path in paths {
            let kind = match (self.entries.get(path), new.entries.get(path)) {
                (None, _) => "added",
                (_, None) => "deleted",
                (Some(old), Some(new)) if old.kind != new.kind => "type",
                (Some(old), Some(new)) if old.content != new.content => "modified",
                (Some(old), Some(new)) if old.mode != new.mode => "mode",
                (Some(old), Some(new)) if old.attributes != new.attributes => "attributes",
                _ => continue,
            };
            changes.push(format!("{kind} {path}"));
        }
        changes.sort();
        changes
    }
}

fn collect(
    directory: &Path,
    below: &Path,
    tree: &mut Tree,
    inodes: &mut BTreeMap<u64, BTreeSet<String>>,
) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), below.join(entry.file_name()));
        let metadata = path.symlink_metadata().unwrap();
        let mode = format!("{:o}", metadata.mode() & 0o7777);
        let shown = name.as_os_str().as_bytes().escape_ascii().to_string();
        if metadata.nlink() > 1 && metadata.is_file() {
            inodes.entry(metadata.ino()).or_default().insert(shown.clone());
        }
        let (kind, content) = if metadata.is_dir() {
            ("directory", String::new())
        } else if metadata.is_symlink() {
            let target = std::fs::read_link(&path).unwrap();
            ("link", target.as_os_str().as_bytes().escape_ascii().to_string())
        } else if metadata.is_file() {
            let content = std::fs::read(&path).unwrap();
            ("file", format!("{} {}", content.len(), blake3::hash(&content)))
        } else {
            ("special", format!("{:o} {}", metadata.mode(), metadata.rdev()))
        };
        let attributes = if metadata.is_symlink() { String::new() } else { attributes_of(&path) };
        let mode = if kind == "link" { String::new() } else { mode };
        tree.entries.insert(shown, Found { kind: kind.to_owned(), mode, content, attributes });
        if metadata.is_dir() {
            collect(&path, &name, tree, inodes);
        }
    }
}

fn attributes_of(path: &Path) -> String {
    let mut names = vec![0; 65536];
    let length = rustix::fs::listxattr(path, names.as_mut_slice()).unwrap();
    let mut attributes: Vec<_> = names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| name.starts_with(b"user."))
        .map(|name| {
            let mut value = vec![0; 65536];
            let length = rustix::fs::getxattr(path, name, value.as_mut_slice()).unwrap();
            format!("{}={}", name.escape_ascii(), value[..length].escape_ascii())
        })
        .collect();
    attributes.sort();
    attributes.join(" ")
}

pub(crate) fn shown(changes: &[Change]) -> Vec<String> {
    let shown = |change: &Change| {
        let path = change.path.as_os_str().as_bytes().escape_ascii();
        format!("{} {path}", change.kind.as_str())
    };
    let mut shown: Vec<_> = changes.iter().map(shown).collect();
    shown.sort();
    shown
}
