//! Snapshots of a workspace beside `git add -A` and `git write-tree`, restores, and undo.
//!
//! Git has its directory beside the tree and is told to sync nothing, while a snapshot survives a power loss when the
//! call returns.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use carrel_fsroot::{Durability, Root, WriteOptions};
use carrel_snapshot::{CreateRequest, Reason, RestoreOptions, Store};
use carrel_tools::{CallOptions, Interface, Registry, Session};
use serde_json::{Value, json};

use crate::Fault;
use crate::corpus;
use crate::ground::Ground;
use crate::measure::{interleave, timed};
use crate::plain;
use crate::report::{Budget, Row};
use crate::sandbox::installed;
use crate::source_tree::{FEW, SourceTree};
use crate::tools::{object, registry};

/// The budgets of an unchanged snapshot, of the time of git: in a tree of some thousand files, and of a hundred thousand.
const UNCHANGED: [f64; 2] = [0.5, 0.6];
const FEW_CHANGED: f64 = 0.7;
const FIRST: f64 = 0.35;

/// A tree from which on the second of two budgets holds.
const LARGE_TREE: usize = 50_000;

const UNSYNCED: Duration = Duration::from_millis(10);
const SYNCED: Duration = Duration::from_millis(75);
const UNDO: f64 = 2.0;

/// The bytes of the file that is edited.
const EDITED_BYTES: usize = 12_000;
const EDITED: &str = "edited.txt";
const WORDS: [&str; 2] = ["before the edit", "behind the edit"];

pub(crate) fn rows(ground: &Ground) -> Result<Vec<Row>, Fault> {
    let mut rows = Vec::new();
    for measures in ground.pace.recorded_trees {
        let top = ground.directory(&format!("recorded-{}", measures.files))?;
        let path = top.join("workspace");
        std::fs::create_dir(&path)?;
        let tree = SourceTree::build(&path, *measures)?;
        let unchanged = UNCHANGED[usize::from(measures.files >= LARGE_TREE)];
        rows.extend(Recorded { ground, top, tree: RefCell::new(tree) }.rows(unchanged)?);
    }
    rows.push(checkpoint(ground)?);
    rows.push(undo(ground)?);
    Ok(rows)
}

/// A tree that both sides record, each in a directory of its own beside it.
struct Recorded<'a> {
    ground: &'a Ground,
    top: PathBuf,
    tree: RefCell<SourceTree>,
}

impl Recorded<'_> {
    fn rows(&self, unchanged: f64) -> Result<Vec<Row>, Fault> {
        let size = self.tree.borrow().size();
        let works = [
            (
                format!("first snapshot of {size}, durable; `git add -A`, `git write-tree`"),
                Budget::Ratio(FIRST),
            ),
            (format!("snapshot of {size}, unchanged, durable; the same"), Budget::Ratio(unchanged)),
            ("the same, automatic; the same".to_owned(), Budget::Ratio(unchanged)),
            ("the same, by a process that opens the store; the same".to_owned(), Budget::None),
            (
                format!("snapshot of {size}, {FEW} changed, durable; the same"),
                Budget::Ratio(FEW_CHANGED),
            ),
        ];
        let mut rows = Vec::new();
        if installed("git").is_none() {
            let left_out = |(work, budget)| Row::left_out(work, "git is not installed", budget);
            rows.extend(works.map(left_out));
        } else {
            let pairs = [
                self.first()?,
                self.unchanged(&Reason::Asked)?,
                self.unchanged(&Reason::Automatic("bench".to_owned()))?,
                self.opened()?,
                self.few_changed()?,
            ];
            let row = |((work, budget), pair)| Row::new(work, pair, budget);
            rows.extend(works.into_iter().zip(pairs).map(row));
        }
        rows.push(self.restore("unsynced", Durability::Buffered, UNSYNCED)?);
        rows.push(self.restore("synced", Durability::Synced, SYNCED)?);
        Ok(rows)
    }

    fn first(&self) -> Result<crate::measure::Pair, Fault> {
        interleave(
            self.ground.pace.trees,
            || {
                self.remove("git")?;
                self.git(&["init", "--quiet"])?;
                self.settle()?;
                self.time_git()
            },
            || {
                self.remove("store")?;
                self.settle()?;
                timed(|| record(&self.store()?, Reason::Asked))
            },
        )
    }

    fn unchanged(&self, reason: &Reason) -> Result<crate::measure::Pair, Fault> {
        let store = self.store()?;
        record(&store, Reason::Asked)?;
        interleave(
            self.ground.pace.searches,
            || self.time_git(),
            || {
                self.settle()?;
                timed(|| record(&store, reason.clone()))
            },
        )
    }

    fn opened(&self) -> Result<crate::measure::Pair, Fault> {
        interleave(
            self.ground.pace.searches,
            || self.time_git(),
            || {
                self.settle()?;
                timed(|| record(&self.store()?, Reason::Asked))
            },
        )
    }

    /// Each side records changes that it has not seen; those of the other side's rounds are recorded untimed before.
    fn few_changed(&self) -> Result<crate::measure::Pair, Fault> {
        let store = self.store()?;
        interleave(
            self.ground.pace.searches,
            || {
                self.time_git()?;
                self.change_few()?;
                self.time_git()
            },
            || {
                record(&store, Reason::Asked)?;
                self.change_few()?;
                timed(|| record(&store, Reason::Asked))
            },
        )
    }

    fn restore(&self, how: &str, durability: Durability, limit: Duration) -> Result<Row, Fault> {
        let store = self.store()?;
        let plain = self.top.join(format!("plain-{how}"));
        let pair = interleave(
            self.ground.pace.searches,
            || {
                let contents = self.contents_of_few()?;
                self.settle()?;
                timed(|| write_plainly(&plain, &contents, durability))
            },
            || {
                record(&store, Reason::Asked)?;
                let newest = store.list()?.first().ok_or("there is no snapshot")?.id;
                self.change_few()?;
                let options = RestoreOptions { durability, ..RestoreOptions::default() };
                let mut changed = 0;
                let time = timed(|| {
                    let restored = store.restore(&newest.into(), options)?;
                    changed = restored.changes.len();
                    Ok::<_, Fault>(restored)
                })?;
                if changed == FEW { Ok(time) } else { Err("not all files were restored".into()) }
            },
        )?;
        let size = self.tree.borrow().size();
        let work =
            format!("restore of {FEW} of {size}, {how}; as many files written beside and renamed");
        Ok(Row::new(work, pair, Budget::Time(limit)))
    }

    fn contents_of_few(&self) -> Result<Vec<Vec<u8>>, Fault> {
        let mut tree = self.tree.borrow_mut();
        let names = tree.change_few()?;
        names.iter().map(|name| Ok(std::fs::read(tree.path.join(name))?)).collect()
    }

    fn change_few(&self) -> Result<(), Fault> {
        self.tree.borrow_mut().change_few()?;
        self.settle()
    }

    fn settle(&self) -> Result<(), Fault> {
        self.tree.borrow().settle()
    }

    fn store(&self) -> Result<Store, Fault> {
        let directory = self.top.join("store");
        std::fs::create_dir_all(&directory)?;
        let workspace = Root::open(&self.tree.borrow().path)?;
        Ok(Store::open(Root::open(&directory)?, workspace)?)
    }

    fn time_git(&self) -> Result<Duration, Fault> {
        self.settle()?;
        timed(|| {
            self.git(&["add", "-A"])?;
            self.git(&["write-tree"])
        })
    }

    /// Runs git with its directory beside the tree.
    fn git(&self, arguments: &[&str]) -> Result<Vec<u8>, Fault> {
        let text = |path: &Path| path.to_str().map(str::to_owned).ok_or("a path is not UTF-8");
        let (directory, tree) = (text(&self.top.join("git"))?, text(&self.tree.borrow().path)?);
        let mut argv = vec!["git", "--git-dir", &directory, "--work-tree", &tree];
        argv.extend(["-c", "core.fsync=none", "-c", "gc.auto=0"]);
        argv.extend(arguments);
        corpus::run(&argv, &self.top)
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        match std::fs::remove_dir_all(self.top.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

fn record(store: &Store, reason: Reason) -> Result<(), Fault> {
    let created = store.create(&CreateRequest::unnamed(reason))?;
    if created.left_out.is_empty() { Ok(()) } else { Err("a snapshot is not whole".into()) }
}

fn write_plainly(
    directory: &Path,
    contents: &[Vec<u8>],
    durability: Durability,
) -> Result<(), Fault> {
    std::fs::create_dir_all(directory)?;
    for (number, content) in contents.iter().enumerate() {
        let path = directory.join(format!("file-{number}"));
        match durability {
            Durability::Synced => plain::replace_synced(&path, content)?,
            Durability::Atomic => plain::replace_whole(&path, content)?,
            Durability::Buffered => plain::replace_buffered(&path, content)?,
        }
    }
    Ok(())
}

/// Measures the part of undo in a write: the content before is kept.
fn checkpoint(ground: &Ground) -> Result<Row, Fault> {
    let (path, directory) = (ground.directory("kept")?, ground.directory("kept-store")?);
    let workspace = Root::open(&path)?;
    let store = Store::open(Root::open(&directory)?, Root::open(&path)?)?;
    let options = WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
    let name = Path::new(EDITED);
    let number = RefCell::new(0);
    let write = || {
        *number.borrow_mut() += 1;
        let content = format!("{:09}\n", number.borrow()).repeat(EDITED_BYTES / 10);
        workspace.write(name, content.as_bytes(), options)
    };
    write()?;
    let pair = interleave(
        ground.pace.slow,
        || timed(write),
        || {
            timed(|| {
                let mut checkpoint = store.begin_checkpoint("bench", "write");
                checkpoint.before_image(name)?;
                write()?;
                checkpoint.commit()?.ok_or("nothing was kept")?;
                Ok::<_, Fault>(())
            })
        },
    )?;
    let work = "write of 12 KB that can be undone, buffered; the same write";
    Ok(Row::new(work, pair, Budget::Ratio(UNDO)))
}

/// Takes an edit back, beside making it.
fn undo(ground: &Ground) -> Result<Row, Fault> {
    let (path, state) = (ground.directory("undone")?, ground.directory("undone-state")?);
    let mut text = format!("{:059}\n", 0).repeat(EDITED_BYTES / 60);
    text.push_str(WORDS[0]);
    std::fs::write(path.join(EDITED), text)?;
    let caller =
        Caller { ground, registry: registry(&path, &state)?, session: Session::new("undo") };
    let edit = |from: usize| {
        let (old, new) = (WORDS[from], WORDS[1 - from]);
        json!({ "file_path": EDITED, "old_string": old, "new_string": new })
    };
    // What was put back has to be read again.
    let read = || caller.time("Read", json!({ "file_path": EDITED }));
    let pair = interleave(
        ground.pace.slow,
        || {
            read()?;
            let time = caller.time("Edit", edit(0))?;
            caller.time("Edit", edit(1))?;
            Ok(time)
        },
        || {
            read()?;
            caller.time("Edit", edit(0))?;
            caller.time("undo", json!({}))
        },
    )?;
    let work = "undo of an Edit of 12 KB, in process; the Edit";
    Ok(Row::new(work, pair, Budget::Ratio(UNDO)))
}

/// Calls tools of a registry in this process, in one session.
struct Caller<'a> {
    ground: &'a Ground,
    registry: Registry,
    session: Arc<Session>,
}

impl Caller<'_> {
    fn time(&self, tool: &str, arguments: Value) -> Result<Duration, Fault> {
        let options = CallOptions::new(Interface::Stdio);
        timed(|| {
            let call = self.registry.call(&self.session, tool, object(arguments), options);
            let answer = self.ground.wait(call);
            if answer.is_error { Err(Fault::from(answer.text())) } else { Ok(answer) }
        })
    }
}
