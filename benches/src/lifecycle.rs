//! Making a workspace and finding it again.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use carrel_domain::Identifier;

use crate::Fault;
use crate::ground::Ground;
use crate::measure::{interleave, timed};
use crate::plain;
use crate::report::{Budget, Row};

const CREATE_LIMIT: Duration = Duration::from_millis(1);

/// How plain work replaces a file.
type Replace = fn(&Path, &[u8]) -> std::io::Result<()>;

/// Directories arranged as Carrel arranges its own: one for records, beside the work.
struct PlainRoot {
    top: PathBuf,
    records: PathBuf,
    /// As long as a record of Carrel's.
    record: Vec<u8>,
}

pub(crate) fn rows(ground: &Ground) -> Result<Vec<Row>, Fault> {
    let plain = PlainRoot::prepare(ground)?;
    let mut rows = vec![create(ground, &plain)?];
    rows.extend(reuse(ground, &plain)?);
    Ok(rows)
}

fn create(ground: &Ground, plain: &PlainRoot) -> Result<Row, Fault> {
    let (ours, theirs) = (Cell::new(0), Cell::new(0));
    let next = |counter: &Cell<usize>| {
        counter.set(counter.get() + 1);
        Identifier::parse(format!("NEW-{}", counter.get()))
    };
    let pair = interleave(
        ground.pace.slow,
        || {
            let name = next(&theirs)?;
            timed(|| plain.create(name.as_str()))
        },
        || {
            let identifier = next(&ours)?;
            timed(|| ground.create(&identifier).and_then(must_be_new))
        },
    )?;
    let work =
        "create a workspace; write and fsync a record, rename, directory fsync, mkdir, root fsync";
    Ok(Row::new(work, pair, Budget::Time(CREATE_LIMIT)))
}

fn must_be_new(created: carrel_workspace::Created) -> Result<carrel_workspace::Created, Fault> {
    if created.created { Ok(created) } else { Err("the workspace was there already".into()) }
}

/// Compares reuse, whose record is whole after a power loss, with plain work that promises as much
/// and with plain work that does not.
fn reuse(ground: &Ground, plain: &PlainRoot) -> Result<[Row; 2], Fault> {
    let identifier = Identifier::parse("REUSED-1")?;
    ground.create(&identifier)?;
    plain.create(identifier.as_str())?;
    let against = |work: &str, replace: Replace| {
        let pair = interleave(
            ground.pace.slow,
            || timed(|| plain.reuse(identifier.as_str(), replace)),
            || timed(|| ground.create(&identifier)),
        )?;
        Ok::<_, Fault>(Row::new(work, pair, Budget::None))
    };
    Ok([
        against("reuse a workspace; stat, write a record, fsync, rename", plain::replace_whole)?,
        against("reuse a workspace; the same without fsync", plain::replace_buffered)?,
    ])
}

impl PlainRoot {
    fn prepare(ground: &Ground) -> Result<Self, Fault> {
        let created = ground.create(&Identifier::parse("SAMPLE-1")?)?;
        let record = format!(".carrel/records/{}.json", created.record.key);
        let record = std::fs::read(ground.workspaces.path().join(record))?;
        let top = ground.directory("plain-root")?;
        let records = ground.directory("plain-root/records")?;
        Ok(Self { top, records, record })
    }

    fn record_of(&self, name: &str) -> PathBuf {
        self.records.join(Path::new(name).with_extension("json"))
    }

    fn create(&self, name: &str) -> std::io::Result<()> {
        plain::replace_synced(&self.record_of(name), &self.record)?;
        std::fs::create_dir(self.top.join(name))?;
        plain::sync_directory(&self.top)
    }

    fn reuse(&self, name: &str, replace: Replace) -> std::io::Result<()> {
        std::fs::symlink_metadata(self.top.join(name))?;
        replace(&self.record_of(name), &self.record)
    }
}
