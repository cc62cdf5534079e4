//! Work in a workspace that is saved nowhere else.
//!
//! Git is asked about every repository. Files outside of repositories count as unsaved, and so does everything that
//! cannot be read or that git cannot tell: a tree that is kept in vain costs disk space, one that is not kept in
//! time costs work.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use carrel_domain::message_of;
use carrel_exec::LazySpawner;
use carrel_fsroot::{FileKind, Root, WalkControl};

use crate::blocking::blocking;
use crate::error::Error;
use crate::git_state::GitState;
use crate::workspaces::Workspaces;

impl Workspaces {
    /// Describes the unsaved work in a directory; empty if there is none.
    pub(crate) async fn unsaved_work(
        &self,
        directory: &Root,
        spawner: &LazySpawner,
    ) -> Vec<String> {
        match self.look_for_unsaved_work(directory, spawner).await {
            Ok(reasons) => reasons,
            Err(error) => vec![format!("it cannot be looked through ({})", message_of(&error))],
        }
    }

    async fn look_for_unsaved_work(
        &self,
        directory: &Root,
        spawner: &LazySpawner,
    ) -> Result<Vec<String>, Error> {
        let states = self.repositories(directory, spawner).await?;
        let mut reasons: Vec<String> = states.iter().flat_map(GitState::unsaved).collect();
        let repositories = states.into_iter().map(|state| state.path).collect();
        let files = directory.try_clone().map_err(Error::files("could not open the workspace"))?;
        let loose = blocking(move || loose_file(&files, &repositories)).await?;
        reasons.extend(
            loose.map(|path| format!("files in no repository, such as {}", path.display())),
        );
        Ok(reasons)
    }
}

/// Returns the first file outside of all repositories.
fn loose_file(directory: &Root, repositories: &HashSet<PathBuf>) -> Result<Option<PathBuf>, Error> {
    if repositories.contains(Path::new(".")) {
        return Ok(None);
    }
    let mut found = None;
    let walked = directory.walk(
        Path::new("."),
        |visit| {
            if repositories.contains(visit.path) {
                return Ok(WalkControl::Skip);
            }
            if visit.kind == FileKind::Directory {
                return Ok(WalkControl::Continue);
            }
            found = Some(visit.path.to_owned());
            Ok(WalkControl::Stop)
        },
        // Directories that cannot be read are listed by the search for repositories already.
        |_| Ok(()),
    );
    walked.map_err(Error::files("could not look for files outside of repositories"))?;
    Ok(found)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test plays the agent")]
mod tests {
    use super::*;

    #[test]
    fn a_file_outside_of_repositories_is_found_and_directories_are_none() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::open(directory.path()).unwrap();
        let repositories = HashSet::from([PathBuf::from("repos/a")]);
        let loose = || loose_file(&root, &repositories).unwrap();
        std::fs::create_dir_all(directory.path().join("repos/a/src")).unwrap();
        std::fs::create_dir_all(directory.path().join("empty/deep")).unwrap();
        std::fs::write(directory.path().join("repos/a/src/main"), "").unwrap();
        assert_eq!(loose(), None);
        std::os::unix::fs::symlink("/nowhere", directory.path().join("empty/deep/link")).unwrap();
        assert_eq!(loose(), Some(PathBuf::from("empty/deep/link")));
        assert_eq!(loose_file(&root, &HashSet::from([PathBuf::from(".")])).unwrap(), None);
    }
}
