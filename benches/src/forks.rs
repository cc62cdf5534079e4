//! Forks of a workspace beside copies of it, over REST, and what a promotion moves.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use carrel_fork::{Layers, PromoteOptions, Source, promote};
use carrel_fsroot::{Durability, Root};
use serde_json::json;

use crate::Fault;
use crate::corpus;
use crate::ground::Ground;
use crate::measure::{Pair, interleave, timed};
use crate::plain;
use crate::report::{Budget, Row};
use crate::rest::{Client, Service};
use crate::sandbox::beside;
use crate::source_tree::{FEW, SourceTree};

const FORKS: usize = 8;
const ALL_OF_A_COPY: f64 = 1.0 / 20.0;
const ALL: Duration = Duration::from_millis(40);
const ONE: Duration = Duration::from_millis(10);
const UNSYNCED: Duration = Duration::from_millis(10);
const SYNCED: Duration = Duration::from_millis(75);

pub(crate) fn rows(ground: &Ground) -> Result<Vec<Row>, Fault> {
    let mut rows = vec![
        promotion(ground, "unsynced", Durability::Buffered, UNSYNCED)?,
        promotion(ground, "synced", Durability::Synced, SYNCED)?,
    ];
    let Some(program) = beside("carrel") else {
        let why = "carrel is not built beside this program";
        rows.push(Row::left_out("forks over REST, all rows", why, Budget::Time(ALL)));
        return Ok(rows);
    };
    let service = Service { program, data: ground.directory("forks-service")? };
    let server = service.start(&[])?;
    let mut client = Client::connect(&service, &server)?;
    for measures in ground.pace.recorded_trees {
        let base = client.new_workspace()?;
        let path = service.data.join("workspaces").join(&base);
        let tree = SourceTree::build(&path, *measures)?;
        own_as(&path, &path)?;
        let side = ground.directory(&format!("copied-{}", measures.files))?;
        let mut forked = Forked { ground, client: &mut client, base, tree, side };
        rows.extend(forked.rows()?);
    }
    Ok(rows)
}

/// Gives everything in a directory to the owner of another one, as if a command had made it.
fn own_as(owner: &Path, directory: &Path) -> Result<(), Fault> {
    let metadata = std::fs::metadata(owner)?;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        chown(entry.path(), Some(metadata.uid()), Some(metadata.gid()))?;
        if entry.file_type()?.is_dir() {
            own_as(owner, &entry.path())?;
        }
    }
    Ok(())
}

/// A workspace of the service that is forked again and again.
struct Forked<'a> {
    ground: &'a Ground,
    client: &'a mut Client,
    base: String,
    tree: SourceTree,
    side: PathBuf,
}

impl Forked<'_> {
    fn rows(&mut self) -> Result<Vec<Row>, Fault> {
        let size = self.tree.size();
        let all = self.all()?;
        let work = format!("{FORKS} forks of {size} with a `true` each, over REST; one `cp -a`");
        Ok(vec![
            Row::new(work.clone(), all.clone(), Budget::Ratio(ALL_OF_A_COPY)),
            Row::new(work, all, Budget::Time(ALL)),
            Row::new(
                format!("one fork of {size}, over REST; `mkdir` and a directory fsync"),
                self.one()?,
                Budget::Time(ONE),
            ),
            Row::new(
                "first `true` in a new fork, over REST; in a new workspace",
                self.first_command()?,
                Budget::None,
            ),
            Row::new(
                format!(
                    "promotion of {FEW} files into {size}, over REST; as many files written, synced and renamed"
                ),
                self.promotion()?,
                Budget::None,
            ),
        ])
    }

    fn all(&mut self) -> Result<Pair, Fault> {
        let (from, to) = (text(&self.tree.path)?, text(&self.side.join("copy"))?);
        let (tree, base) = (&self.tree, self.base.clone());
        let client = &mut *self.client;
        interleave(
            self.ground.pace.trees,
            || {
                tree.settle()?;
                let time = timed(|| corpus::run(&["cp", "-a", &from, &to], Path::new("/")))?;
                std::fs::remove_dir_all(&to)?;
                tree.settle()?;
                Ok(time)
            },
            || {
                let mut clients =
                    (0..FORKS).map(|_| client.another()).collect::<Result<Vec<_>, Fault>>()?;
                let mut forks = Vec::new();
                let time = timed(|| {
                    forks = make(client, &base, FORKS)?;
                    std::thread::scope(|scope| {
                        let threads: Vec<_> = clients
                            .iter_mut()
                            .zip(&forks)
                            .map(|(client, fork)| scope.spawn(move || run_true(client, fork)))
                            .collect();
                        threads.into_iter().try_for_each(|thread| {
                            thread.join().map_err(|_| Fault::from("a client panicked"))?
                        })
                    })
                })?;
                forks.iter().try_for_each(|fork| remove(client, fork))?;
                Ok(time)
            },
        )
    }

    fn one(&mut self) -> Result<Pair, Fault> {
        let (side, base) = (self.side.clone(), self.base.clone());
        let client = &mut *self.client;
        interleave(
            self.ground.pace.searches,
            || {
                let plain = side.join("plain");
                let time = timed(|| {
                    std::fs::create_dir(&plain)?;
                    plain::sync_directory(&side)
                })?;
                std::fs::remove_dir(&plain)?;
                Ok(time)
            },
            || {
                let mut forks = Vec::new();
                let time = timed(|| {
                    forks = make(client, &base, 1)?;
                    Ok::<_, Fault>(())
                })?;
                forks.iter().try_for_each(|fork| remove(client, fork))?;
                Ok(time)
            },
        )
    }

    fn first_command(&mut self) -> Result<Pair, Fault> {
        let base = self.base.clone();
        let client = std::cell::RefCell::new(&mut *self.client);
        interleave(
            self.ground.pace.searches,
            || {
                let client = &mut **client.borrow_mut();
                let workspace = client.new_workspace()?;
                let time = timed(|| run_true(client, &workspace))?;
                remove(client, &workspace)?;
                Ok(time)
            },
            || {
                let client = &mut **client.borrow_mut();
                let forks = make(client, &base, 1)?;
                let fork = forks.first().ok_or("no fork was made")?;
                let time = timed(|| run_true(client, fork))?;
                remove(client, fork)?;
                Ok(time)
            },
        )
    }

    /// The base has a snapshot before, as it has after each promotion.
    fn promotion(&mut self) -> Result<Pair, Fault> {
        let (ground, base) = (self.ground, self.base.clone());
        let path = format!("/api/workspaces/{base}/snapshots");
        self.client.send("POST", &path, Some(&json!({ "name": "bench", "replace": true })))?;
        let plain = self.side.join("written");
        std::fs::create_dir(&plain)?;
        let (client, tree) = (&mut *self.client, &mut self.tree);
        let mut round = 0;
        interleave(
            ground.pace.searches,
            || timed(|| write_few(&plain, Durability::Synced)),
            || {
                round += 1;
                let forks = make(client, &base, 1)?;
                let fork = forks.first().ok_or("no fork was made")?;
                for number in 0..FEW {
                    let content = format!("{round} ").repeat(4000);
                    let body = json!({ "path": format!("p0/file-{number}"), "content": content });
                    let path = format!("/api/workspaces/{fork}/files/write");
                    client.send("POST", &path, Some(&body))?;
                }
                tree.settle()?;
                let path = format!("/api/workspaces/{fork}/promote");
                let request = client.request("POST", &path, Some(&json!({})));
                client.time(&request)
            },
        )
    }
}

fn make(client: &mut Client, base: &str, count: usize) -> Result<Vec<String>, Fault> {
    let path = format!("/api/workspaces/{base}/forks");
    let made = client.send("POST", &path, Some(&json!({ "count": count })))?;
    let forks = made["forks"].as_array().ok_or("no forks in the answer")?;
    let id = |fork: &serde_json::Value| fork["id"].as_str().map(str::to_owned);
    let forks: Vec<_> = forks.iter().filter_map(id).collect();
    if forks.len() == count { Ok(forks) } else { Err("not all forks were made".into()) }
}

fn run_true(client: &mut Client, workspace: &str) -> Result<(), Fault> {
    let path = format!("/api/workspaces/{workspace}/exec");
    let answer = client.send("POST", &path, Some(&json!({ "command": "true" })))?;
    if answer["exit_code"] == 0 { Ok(()) } else { Err(format!("not run: {answer}").into()) }
}

fn remove(client: &mut Client, workspace: &str) -> Result<(), Fault> {
    let path = format!("/api/workspaces/{workspace}");
    let request = client.request("DELETE", &path, None);
    client.time(&request).map(drop)
}

fn write_few(directory: &Path, durability: Durability) -> Result<(), Fault> {
    for number in 0..FEW {
        let path = directory.join(format!("file-{number}"));
        let content = [b'b'; 8000];
        match durability {
            Durability::Synced => plain::replace_synced(&path, &content)?,
            Durability::Atomic => plain::replace_whole(&path, &content)?,
            Durability::Buffered => plain::replace_buffered(&path, &content)?,
        }
    }
    Ok(())
}

fn text(path: &Path) -> Result<String, Fault> {
    Ok(path.to_str().ok_or("a path is not UTF-8")?.to_owned())
}

/// Moves the changed files of a fork into its base, without what is around it: no snapshot, no mount, no rows.
fn promotion(
    ground: &Ground,
    how: &str,
    durability: Durability,
    limit: Duration,
) -> Result<Row, Fault> {
    let top = ground.directory(&format!("promoted-{how}"))?;
    let plain = top.join("plain");
    std::fs::create_dir(&plain)?;
    let mut round = 0;
    let pair = interleave(
        ground.pace.searches,
        || timed(|| write_few(&plain, durability)),
        || {
            round += 1;
            Promotable::build(&top.join(format!("{round}")))?.promote(durability)
        },
    )?;
    let work = format!(
        "promotion of {FEW} files, {how}, in process; as many files written beside and renamed"
    );
    Ok(Row::new(work, pair, Budget::Time(limit)))
}

/// A base of a thousand files, and the upper layer of a fork with changed ones.
struct Promotable {
    top: PathBuf,
    base: Root,
    layers: Layers,
}

impl Promotable {
    fn build(top: &Path) -> Result<Self, Fault> {
        for name in ["base", "forks", "journal", "trash"] {
            std::fs::create_dir_all(top.join(name))?;
        }
        let name = |number: usize| format!("d{}/f{number}", number % 20);
        for number in 0..1000 {
            let path = top.join("base").join(name(number));
            std::fs::create_dir_all(path.parent().unwrap_or(top))?;
            std::fs::write(path, [b'a'; 8000])?;
        }
        let base = Root::open(&top.join("base"))?;
        let layers = Layers::create(&Root::open(&top.join("forks"))?, Path::new("fork"), &base)?;
        let (upper, _) = layers.paths();
        for number in 0..FEW {
            let path = upper.join(name(number));
            std::fs::create_dir_all(path.parent().unwrap_or(top))?;
            std::fs::write(&path, [b'b'; 8000])?;
            // As the kernel marks a file that it copied up.
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(&path, "user.overlay.origin", b"origin", flags)?;
        }
        Ok(Self { top: top.to_owned(), base, layers })
    }

    fn promote(&self, durability: Durability) -> Result<Duration, Fault> {
        let (journal, trash) =
            (Root::open(&self.top.join("journal"))?, Root::open(&self.top.join("trash"))?);
        let server = carrel_fork::Server { journal: &journal, trash: &trash };
        let options = PromoteOptions { durability, ..PromoteOptions::default() };
        rustix::fs::syncfs(std::fs::File::open(&self.top)?)?;
        timed(|| {
            let upper = self.layers.upper()?;
            let promoted = promote(&self.base, Source::Upper(&upper), server, &options)?;
            let is_whole = promoted.changes.len() >= FEW && promoted.conflicts.is_empty();
            if is_whole { Ok(promoted) } else { Err(Fault::from("not all was promoted")) }
        })
    }
}
