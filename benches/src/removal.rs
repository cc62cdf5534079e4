//! Removing a workspace with many files, and deleting them afterwards.

use std::path::Path;
use std::time::Duration;

use carrel_domain::Identifier;

use crate::Fault;
use crate::ground::Ground;
use crate::measure::{self, interleave, timed};
use crate::report::{Budget, Row};
use crate::{plain, tree};

const REMOVE_LIMIT: Duration = Duration::from_millis(2);

pub(crate) fn rows(ground: &Ground) -> Result<Vec<Row>, Fault> {
    Ok(vec![remove(ground)?, sweep(ground)?])
}

/// Moves one and the same tree into the trash of either side and takes it back, so that there can
/// be many rounds.
fn remove(ground: &Ground) -> Result<Row, Fault> {
    let files = ground.pace.deleted_files;
    let identifier = Identifier::parse("REMOVED-1")?;
    let side = ground.directory("plain-removal")?;
    let trash = ground.directory("plain-removal/trash")?.join("tree");
    let (kept, doomed) = (side.join("kept"), side.join("doomed"));
    tree::build(&kept, files)?;
    let pair = interleave(
        ground.pace.moves,
        || {
            move_and_settle(&kept, &doomed)?;
            let time = timed(|| {
                std::fs::rename(&doomed, &trash)?;
                plain::sync_directory(&side)
            })?;
            move_and_settle(&trash, &kept)?;
            Ok(time)
        },
        || {
            let workspace = ground.create(&identifier)?.path;
            move_and_settle(&kept, &workspace)?;
            let time = timed(|| ground.remove(&identifier))?;
            take_back(ground, &kept)?;
            Ok(time)
        },
    )?;
    let work =
        format!("remove a workspace of {files} files, until the call returns; rename, fsync");
    Ok(Row::new(work, pair, Budget::Time(REMOVE_LIMIT)))
}

/// Moves a tree, over an empty directory if one is there, and lets the disk finish with it.
fn move_and_settle(from: &Path, to: &Path) -> Result<(), Fault> {
    std::fs::rename(from, to)?;
    plain::sync_directory(to.parent().unwrap_or(to))?;
    Ok(())
}

fn take_back(ground: &Ground, to: &Path) -> Result<(), Fault> {
    let names = ground.workspaces.trash()?;
    let [name] = names.as_slice() else {
        return Err(format!("one tree should be in the trash, not {}", names.len()).into());
    };
    move_and_settle(&ground.workspaces.path().join(".carrel/trash").join(name), to)
}

/// Deletes trees that were all made before the first is deleted: ext4 does not use an inode again
/// for a minute or longer, and making a file looks past those that were deleted in that time.
fn sweep(ground: &Ground) -> Result<Row, Fault> {
    let (rounds, files) = (ground.pace.trees, ground.pace.deleted_files);
    let side = ground.directory("plain-sweep")?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for index in 0..measure::with_warm_up(rounds) {
        let tree = side.join(format!("tree-{index}"));
        tree::build(&tree, files)?;
        theirs.push(tree);
        let identifier = Identifier::parse(format!("SWEPT-{index}"))?;
        tree::build(&ground.create(&identifier)?.path, files)?;
        ours.push(identifier);
    }
    let pair = interleave(
        rounds,
        || {
            let tree = theirs.pop().ok_or("no tree is left")?;
            timed(|| std::fs::remove_dir_all(&tree))
        },
        || {
            let identifier = ours.pop().ok_or("no tree is left")?;
            ground.remove(&identifier)?;
            let time = timed(|| ground.workspaces.sweep())?;
            must_be_empty(ground)?;
            Ok(time)
        },
    )?;
    let work = format!("delete the {files} files from the trash later; `remove_dir_all`");
    Ok(Row::new(work, pair, Budget::None))
}

fn must_be_empty(ground: &Ground) -> Result<(), Fault> {
    let left = ground.workspaces.trash()?.len();
    if left == 0 { Ok(()) } else { Err(format!("{left} trees stayed in the trash").into()) }
}
