//! Reports that a run wrote into the project, such as `target/surefire-reports`.
//!
//! Earlier runs leave reports in the same directories. Only files modified since the start of the
//! run are read, or an old green report would hide a build that failed before any test ran.

use std::path::Path;
use std::time::{Duration, SystemTime};

use carrel_fsroot::{FileKind, Root, WalkControl};

use crate::manifest::matches;
use crate::parse::ArtifactFile;
use crate::paths;
use crate::plan::{Artifact, Invocation};

/// Bounds the report files of one run.
pub const MAX_ARTIFACTS: usize = 500;

/// Bounds the size of one report file.
pub const MAX_ARTIFACT_BYTES: u64 = 4 * 1024 * 1024;

/// File times come from a coarse kernel clock, which lags behind `SystemTime::now` by up to a tick.
const CLOCK_LAG: Duration = Duration::from_millis(20);

const SKIPPED: [&str; 4] = ["node_modules", ".git", ".venv", ".gradle"];

/// Reads the report files that match the patterns of an invocation and were modified since `began`.
///
/// Files that cannot be read are skipped, and a run without any report does not pass.
pub fn project_artifacts(
    root: &Root,
    invocation: &Invocation,
    began: SystemTime,
) -> Vec<ArtifactFile> {
    let mut found = Vec::new();
    for artifact in &invocation.artifacts {
        if let Artifact::Project { pattern } = artifact {
            collect(root, &invocation.directory, pattern, began, &mut found);
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
            let metadata = || visit.metadata().ok().flatten();
            let fresh = || metadata().is_some_and(|found| found.modified + CLOCK_LAG >= began);
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
    // An error of the walk means fewer reports, which cannot turn a failure into a pass.
    let _ = walked;
}
