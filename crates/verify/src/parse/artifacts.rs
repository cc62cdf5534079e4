//! Reading the reports that a run left in the project.

use std::path::Path;
use std::time::{Duration, SystemTime};

use carrel_fsroot::{FileKind, Root, WalkControl};

use crate::manifest::matches;
use crate::parse::outcome::ArtifactFile;
use crate::paths;
use crate::plan::{Artifact, Invocation};

/// Bounds how many reports of one run are read.
pub const MAX_ARTIFACTS: usize = 500;

/// Bounds one report.
pub const MAX_ARTIFACT_BYTES: u64 = 4 * 1024 * 1024;

/// The kernel stamps files with a clock that lags behind by a tick.
const CLOCK_LAG: Duration = Duration::from_millis(20);

/// Directories in which no report of the project lies.
const SKIPPED: [&str; 4] = ["node_modules", ".git", ".venv", ".gradle"];

/// Reads the reports that a run left in the project since it began.
///
/// Older ones are of other runs. What cannot be read is left out; the report then says
/// that something is missing rather than that all is well.
pub fn project_artifacts(
    root: &Root,
    invocation: &Invocation,
    began: SystemTime,
) -> Vec<ArtifactFile> {
    let mut found = Vec::new();
    for artifact in &invocation.artifacts {
        match artifact {
            Artifact::Private { .. } => {}
            Artifact::Project { pattern } => {
                collect(root, &invocation.directory, pattern, began, &mut found);
            }
        }
    }
    found
}

fn collect(
    root: &Root,
    directory: &str,
    pattern: &str,
    began: SystemTime,
    found: &mut Vec<ArtifactFile>,
) {
    let walked = root.walk(
        Path::new(directory),
        |visit| {
            if found.len() >= MAX_ARTIFACTS {
                return Ok(WalkControl::Stop);
            }
            let Some(path) = visit.path.to_str() else { return Ok(WalkControl::Skip) };
            if SKIPPED.contains(&paths::name(path)) {
                return Ok(WalkControl::Skip);
            }
            let fresh = || {
                visit
                    .metadata()
                    .ok()
                    .flatten()
                    .is_some_and(|metadata| metadata.modified + CLOCK_LAG >= began)
            };
            if visit.kind == FileKind::File && matches(pattern, path) && fresh() {
                let name = paths::join(directory, path);
                if let Ok(contents) = root.read(Path::new(&name), MAX_ARTIFACT_BYTES) {
                    found.push(ArtifactFile { name, contents });
                }
            }
            Ok(WalkControl::Continue)
        },
        |_| Ok(()),
    );
    // A walk that breaks off leaves fewer reports, and the exit status still tells.
    let _ = walked;
}
