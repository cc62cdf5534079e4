//! Change sets: new versions of several files that replace the old ones all or nothing.
//!
//! Every new version is written to a temporary file and synced; then the files are checked for changes since their
//! reading; and only then are they renamed one after the other. If a rename fails, those before it are undone. A
//! crash between two renames leaves some files changed and others not: there is no journal for this.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use carrel_domain::{Code, Failure};
use carrel_edit::LineFacts;
use carrel_edit::diff::Diff;
use carrel_fsroot::{AtomicFile, Collision, WriteOptions};
use carrel_workspace::Amount;

use super::trash;
use super::workspace_files::{LoadedFile, WorkspaceFiles, growth, shown_context};
use crate::read_tracker::ContentHash;

/// Files before the change, by the path that the caller wrote; none for missing files.
pub(crate) type Before = BTreeMap<String, Option<LoadedFile>>;

/// New versions by path; none for deleted files.
pub(crate) type After = BTreeMap<PathBuf, Option<NewFile>>;

/// The new version of a file.
#[derive(Debug)]
pub(crate) struct NewFile {
    pub(crate) text: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: Option<u32>,
}

/// Changes of several files. The caller holds the write lock of the workspace.
#[derive(Debug)]
pub(crate) struct ChangeSet {
    /// The verb of refusals, such as `patch`.
    pub(crate) doing: &'static str,
    pub(crate) before: Before,
    pub(crate) after: After,
}

/// A prepared change that is not yet visible.
enum Staged {
    Write(PathBuf, AtomicFile),
    Remove(PathBuf),
}

/// A change that was made, and can be taken back.
enum Undo {
    Written(PathBuf),
    Moved(PathBuf, PathBuf),
}

impl ChangeSet {
    /// Makes all changes, or none.
    pub(crate) fn commit(&self, files: &WorkspaceFiles) -> Result<(), Failure> {
        self.check_room(files)?;
        let staged = self.stage(files)?;
        let mut done: Vec<Undo> = Vec::new();
        for change in staged {
            let undo = match change {
                Staged::Write(path, file) => match file.commit() {
                    Ok(()) => {
                        self.note_written(files, &path);
                        Ok(Undo::Written(path))
                    }
                    Err(error) => Err(error.into()),
                },
                Staged::Remove(path) => {
                    trash::discard(files, &path).map(|now| Undo::Moved(path, now))
                }
            };
            match undo {
                Ok(undo) => done.push(undo),
                Err(failure) => {
                    done.into_iter().rev().for_each(|undo| self.undo(files, &undo));
                    return Err(failure.during(&format!("the {} was undone", self.doing)));
                }
            }
        }
        Ok(())
    }

    fn note_written(&self, files: &WorkspaceFiles, path: &Path) {
        match self.old(files, path) {
            Some(old) => files.note_replaced(&old.key, &old.metadata, || old.bytes.clone()),
            None => files.note_made(path),
        }
    }

    /// Returns the old version of a file; none if there was none.
    pub(crate) fn old(&self, files: &WorkspaceFiles, path: &Path) -> Option<&LoadedFile> {
        let found = self.before.iter().find(|(name, _)| files.workspace.relative(name) == path);
        found.and_then(|(_, loaded)| loaded.as_ref())
    }

    /// Records a change by the session, and returns the new hash shortened.
    pub(crate) fn record(
        &self,
        files: &WorkspaceFiles,
        path: &Path,
        (new, diff): (&NewFile, &Diff),
    ) -> String {
        let hash = ContentHash::of(&new.bytes);
        match self.old(files, path) {
            Some(old) => {
                let lines = LineFacts::of(&new.text).count;
                let shown = (lines, shown_context(diff));
                files.record_change(&old.key, (old.hash(), hash), diff, shown)
            }
            // Without a key the file has to be read again.
            None => files.record_write(path, &new.bytes).unwrap_or_else(|_| hash.short()),
        }
    }

    /// Forgets that the session has read a file that is gone.
    pub(crate) fn forget(&self, files: &WorkspaceFiles, path: &Path) {
        let old = self.old(files, path);
        let key = old.map(|old| old.key.clone()).or_else(|| files.key(path).ok());
        if let Some(key) = key {
            files.session.state().tracker.forget_file(&key);
        }
    }

    fn check_room(&self, files: &WorkspaceFiles) -> Result<(), Failure> {
        let mut all = Amount::default();
        for (path, new) in &self.after {
            let Some(new) = new else { continue };
            let more = growth(new.bytes.len(), self.old(files, path).map(|old| &old.metadata));
            all = Amount { bytes: all.bytes + more.bytes, files: all.files + more.files };
        }
        Ok(files.workspace.handle().check_room(all)?)
    }

    /// Writes all new versions to temporary files. A failure here has changed nothing.
    fn stage(&self, files: &WorkspaceFiles) -> Result<Vec<Staged>, Failure> {
        let mut staged = Vec::new();
        for (path, new) in &self.after {
            new.as_ref().map_or(Ok(()), |new| files.check_runs_later(path, &new.bytes))?;
        }
        for (path, new) in &self.after {
            let Some(new) = new else {
                // A file that a patch creates and deletes again does not exist.
                if files.root().link_metadata(path).is_ok() {
                    staged.push(Staged::Remove(path.clone()));
                }
                continue;
            };
            let exists = self.old(files, path).is_some();
            if !exists {
                files.create_parents(path)?;
            }
            let collision = if exists { Collision::Replace } else { Collision::Refuse };
            let options = WriteOptions { collision, new_mode: new.mode, ..WriteOptions::default() };
            let mut file = files.root().begin_write(path, options)?;
            file.append(&new.bytes)?;
            file.sync_contents()?;
            if let (true, Some(mode)) = (exists, new.mode) {
                file.set_mode(mode)?;
            }
            staged.push(Staged::Write(path.clone(), file));
        }
        self.check_unchanged(files)?;
        Ok(staged)
    }

    /// Refuses to commit if a file has changed since it was loaded.
    fn check_unchanged(&self, files: &WorkspaceFiles) -> Result<(), Failure> {
        for (name, loaded) in &self.before {
            let Some(loaded) = loaded else { continue };
            if !files.is_unchanged(&files.workspace.relative(name), &loaded.metadata)? {
                let doing = self.doing;
                let message =
                    format!("refusing to {doing} {name}: it is being changed; Read it again");
                let failure = Failure::new(Code::ChangedSinceRead, message);
                return Err(failure.with("path", name.as_str()));
            }
        }
        Ok(())
    }

    fn undo(&self, files: &WorkspaceFiles, change: &Undo) {
        let undone = match change {
            Undo::Written(path) => match self.old(files, path) {
                Some(loaded) => files.root().write(path, &loaded.bytes, WriteOptions::default()),
                None => files.root().remove_file(path),
            },
            Undo::Moved(path, now) => files.root().rename(now, path, Collision::Refuse),
        };
        if let Err(error) = undone {
            tracing::error!(%error, "could not undo a part of a change of several files");
        }
    }
}
