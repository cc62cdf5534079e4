//! Snapshots as commits of a bare git repository, for those who want to look at them with git or take them elsewhere.
//!
//! The repository is the operator's, outside of the workspace: git obeys the configuration of a repository, and one in
//! a workspace may be anybody's. The same snapshots always give the same commits, so that exporting again adds what is
//! new.

mod bare_repository;
mod git_names;
mod import_stream;

use std::collections::BTreeMap;
use std::io::BufWriter;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use carrel_domain::{Code, Failure};
use carrel_exec::LazySpawner;
use carrel_snapshot::{Snapshot, Store};
use serde::Serialize;

use self::bare_repository::BareRepository;
use self::import_stream::ImportStream;
use super::{MAX_LISTED, reference};
use crate::blocking::blocking;
use crate::named_workspace::NamedWorkspace;
use crate::snapshots::SnapshotStores;

/// Bytes of the stream that are written at once.
const BUFFER: usize = 1 << 20;

/// The snapshots to export, and the place for them.
#[derive(Clone, Debug)]
pub struct ExportRequest {
    /// The snapshots.
    pub which: ExportedSnapshots,
    /// The directory of the bare repository, made if it is missing.
    pub repository: PathBuf,
    /// The branch; one that says what it has if absent.
    pub branch: Option<String>,
}

/// The snapshots to export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportedSnapshots {
    /// The one of this name or number, as a commit without a parent.
    One(String),
    /// All that were asked for, each the parent of the next.
    All,
    /// Also those that Carrel took by itself.
    AllWithAutomatic,
}

/// An exported branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExportedBranch {
    /// The directory of the repository.
    pub repository: String,
    /// The branch.
    pub branch: String,
    /// The commits, the oldest first.
    pub commits: Vec<ExportedCommit>,
    /// Entries that the commits lack or have otherwise, since git cannot have them.
    pub left_out: Vec<ExportOmission>,
    /// The number of all of these.
    pub left_out_total: u64,
}

/// The commit of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExportedCommit {
    /// The number of the snapshot.
    pub snapshot: String,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The commit.
    pub commit: String,
}

/// An entry that git cannot have, or not so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ExportOmission {
    /// The path, relative to the workspace.
    pub path: String,
    /// The reason: that of the snapshot, such as `ignored`; `empty_directory`; `mode`, for an entry that is there with
    /// another mode; `name`, for one whose name git refuses.
    pub reason: String,
}

/// Exports snapshots of a workspace.
pub async fn export_snapshots(
    stores: &Arc<SnapshotStores>,
    workspace: &Arc<NamedWorkspace>,
    spawner: &LazySpawner,
    request: ExportRequest,
) -> Result<ExportedBranch, Failure> {
    let (all, own, which) = (Arc::clone(stores), Arc::clone(workspace), request.which.clone());
    let chosen = blocking(move || {
        let store = all.of(&own)?;
        let snapshots = chosen(&store, &which)?;
        Ok((store, snapshots))
    });
    let (store, snapshots) = chosen.await?;
    let branch = match (&request.branch, &request.which) {
        (Some(branch), _) => branch.clone(),
        (None, ExportedSnapshots::One(name)) => {
            format!("snapshot/{}", name.trim_start_matches('@'))
        }
        (None, ExportedSnapshots::All | ExportedSnapshots::AllWithAutomatic) => {
            "snapshots".to_owned()
        }
    };
    let path = outside(workspace, &request.repository)?;
    let repository = BareRepository::open_or_create(&path, &branch, spawner).await?;
    let (reader, writer) = std::io::pipe().map_err(|error| broken(&error))?;
    let (reference, exported) = (format!("refs/heads/{branch}"), snapshots.clone());
    let writing = blocking(move || {
        let mut stream = ImportStream::new(&store, BufWriter::with_capacity(BUFFER, writer));
        let written = stream.write_all(&reference, &exported);
        Ok((written, stream.into_left_out()))
    });
    let importing = repository.import(reader.into(), &branch);
    let (written, imported) = tokio::join!(writing, importing);
    let (written, left_out) = written?;
    // If git gives up, the stream breaks: what git says is the reason.
    let commits = match (imported, written) {
        (Err(failure), Ok(()) | Err(import_stream::Error::Broken(_))) => return Err(failure),
        (_, Err(error)) => return Err(error.into()),
        (Ok(commits), Ok(())) => commits,
    };
    if commits.len() != snapshots.len() {
        let message = format!("git reports {} of {} commits", commits.len(), snapshots.len());
        return Err(Failure::new(Code::Io, message));
    }
    let commits = snapshots.iter().zip(commits).map(|(snapshot, commit)| ExportedCommit {
        snapshot: snapshot.id.to_string(),
        name: snapshot.name.as_ref().map(ToString::to_string),
        commit,
    });
    let (commits, left_out_total) = (commits.collect(), left_out.len() as u64);
    let left_out = listed(left_out);
    let repository = path.display().to_string();
    Ok(ExportedBranch { repository, branch, commits, left_out, left_out_total })
}

fn listed(left_out: BTreeMap<PathBuf, &'static str>) -> Vec<ExportOmission> {
    let omission = |(path, reason): (PathBuf, &str)| ExportOmission {
        path: path.display().to_string(),
        reason: reason.to_owned(),
    };
    left_out.into_iter().take(MAX_LISTED).map(omission).collect()
}

/// Returns the snapshots, the oldest first.
fn chosen(store: &Store, which: &ExportedSnapshots) -> Result<Vec<Snapshot>, Failure> {
    let mut snapshots = match which {
        ExportedSnapshots::One(name) => vec![store.find(&reference(name)?)?],
        ExportedSnapshots::All | ExportedSnapshots::AllWithAutomatic => store.list()?,
    };
    snapshots.reverse();
    if *which == ExportedSnapshots::All {
        snapshots.retain(|snapshot| snapshot.name.is_some());
    }
    if snapshots.is_empty() {
        let message = "there are no snapshots to export; take one with `carrel snapshot create`";
        return Err(Failure::new(Code::SnapshotNotFound, message));
    }
    Ok(snapshots)
}

/// Returns the path of a repository without links, which is not in the workspace.
fn outside(workspace: &NamedWorkspace, path: &Path) -> Result<PathBuf, Failure> {
    let refused = |why: &str| {
        let message = format!("{} {why}", path.display());
        Err(Failure::argument("git", message))
    };
    let absolute = std::path::absolute(path).map_err(|error| broken(&error))?;
    // It need not be there yet; what is there of its path decides.
    let found = absolute.ancestors().find_map(|there| Some((real_path(there)?, there)));
    let (mut real, there) = found.unwrap_or_else(|| (absolute.clone(), &absolute));
    for component in absolute.strip_prefix(there).into_iter().flat_map(Path::components) {
        match component {
            Component::Normal(name) => real.push(name),
            _ => {
                return refused(
                    "leads through a directory that is not there; name it without `..`",
                );
            }
        }
    }
    if real.starts_with(workspace.files().path()) || real.starts_with(workspace.path()) {
        return refused(
            "is in the workspace, whose commands could change it; name a directory outside of it",
        );
    }
    Ok(real)
}

fn real_path(path: &Path) -> Option<PathBuf> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the repository is the operator's, outside of every root"
    )]
    std::fs::canonicalize(path).ok()
}

fn broken(error: &std::io::Error) -> Failure {
    Failure::new(Code::Io, format!("could not export snapshots: {error}"))
}
