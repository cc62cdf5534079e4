//! Counting what a large workspace uses.

use std::path::Path;
use std::time::Duration;

use carrel_domain::{Identifier, WorkspaceKey};
use carrel_workspace::{Freshness, MeasuredUsage};

use crate::Fault;
use crate::ground::Ground;
use crate::measure::{Pair, Samples, interleave, timed};
use crate::report::{Budget, Row};
use crate::tree;

const UNCHANGED_LIMIT: Duration = Duration::from_millis(5);

pub(crate) fn rows(ground: &Ground) -> Result<Vec<Row>, Fault> {
    let files = ground.pace.counted_files;
    let created = ground.create(&Identifier::parse("COUNTED-1")?)?;
    let key = &created.record.key;
    tree::build(&created.path, files)?;
    must_agree(ground, key, &created.path)?;
    let mut unchanged = Vec::new();
    let counted = interleave(
        ground.pace.trees,
        || timed(|| tree::count(&created.path)),
        || {
            // Says that something was written, so that the last count is not good enough.
            ground.wait(ground.workspaces.touch(key))?;
            let time = timed(|| usage(ground, key))?;
            for _ in 0..ground.pace.moves {
                unchanged.push(timed(|| usage(ground, key))?);
            }
            Ok(time)
        },
    )?;
    let walk = counted.plain.clone();
    let unchanged = Pair { plain: walk, carrel: Samples::new(unchanged) };
    Ok(vec![
        Row::new(
            format!("usage of {files} files, nothing changed; a full walk"),
            unchanged,
            Budget::Time(UNCHANGED_LIMIT),
        ),
        Row::new(
            format!("usage of {files} files, first count; a full walk"),
            counted,
            Budget::None,
        ),
    ])
}

fn usage(ground: &Ground, key: &WorkspaceKey) -> Result<MeasuredUsage, Fault> {
    let measured = ground.wait(ground.workspaces.usage(key, Freshness::Cached))?;
    measured.ok_or_else(|| "the workspace is not there".into())
}

/// Makes sure that both sides count the same; a fast wrong answer is worth nothing.
fn must_agree(ground: &Ground, key: &WorkspaceKey, path: &Path) -> Result<(), Fault> {
    let (ours, theirs) = (usage(ground, key)?.amount, tree::count(path)?);
    if ours.files == theirs.entries {
        return Ok(());
    }
    Err(format!("Carrel counts {} entries, a plain walk {}", ours.files, theirs.entries).into())
}
