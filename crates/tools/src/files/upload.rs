//! A file that arrives in parts.
//!
//! It is held to what a file is that a tool writes at once: names, quota, and what would run later. Until
//! it is whole it has another name, and nothing is left of one that never gets whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_fsroot::{AtomicFile, WriteOptions};
use carrel_runner::Reservation;
use carrel_workspace::Amount;
use sha2::{Digest as _, Sha256};

use super::common::{WorkspaceFiles, check_name, shown};
use crate::blocking::blocking;
use crate::failure::Failure;
use crate::named_workspace::NamedWorkspace;
use crate::registry::check_restored;
use crate::session::Session;
use crate::toolbox::Toolbox;

/// Room is taken in steps of this size, as long as there is so much.
const STEP_BYTES: u64 = 8 << 20;

/// A file up to this size is looked into for what would run later. Of a larger one the name decides.
const MAX_LOOKED_INTO: usize = 1 << 20;

/// A file that arrives.
#[derive(Debug)]
pub struct Upload {
    files: WorkspaceFiles,
    path: PathBuf,
    /// None once it has its name.
    file: Option<AtomicFile>,
    /// The directories that were made for it, the innermost first.
    made: Vec<PathBuf>,
    digest: Sha256,
    written: u64,
    /// The room that is set aside for the rest.
    room: Reservation,
    /// Everything so far, as long as it is little.
    start: Option<Vec<u8>>,
}

/// What is known of a file that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadedFile {
    /// Where it is, relative to the workspace.
    pub path: String,
    /// How large it is.
    pub bytes: u64,
}

impl Upload {
    /// Begins, and takes room for as much as is known to come.
    pub async fn begin(
        toolbox: &Toolbox,
        workspace: &Arc<NamedWorkspace>,
        path: &str,
        expected: Option<u64>,
    ) -> Result<Self, Failure> {
        toolbox.runner.record_trust(workspace.handle()).await?;
        let path = workspace.relative(path);
        let files = WorkspaceFiles::new(toolbox, Arc::clone(workspace), Session::new("upload"));
        blocking(move || begin(&files, path, expected.unwrap_or(0))).await
    }

    /// Writes a part. It may wait for the disk.
    pub fn write(&mut self, part: &[u8]) -> Result<(), Failure> {
        self.take_room(part.len() as u64)?;
        let Some(file) = &mut self.file else { return Ok(()) };
        file.append(part)?;
        self.digest.update(part);
        self.written += part.len() as u64;
        self.room.used(Amount { bytes: part.len() as u64, files: 0 });
        match &mut self.start {
            Some(start) if start.len() + part.len() <= MAX_LOOKED_INTO => start.extend(part),
            start => *start = None,
        }
        Ok(())
    }

    fn take_room(&mut self, bytes: u64) -> Result<(), Failure> {
        let needed = bytes.saturating_sub(self.room.left().bytes);
        if needed == 0 {
            return Ok(());
        }
        let reserve = |bytes| self.files.workspace.handle().reserve(Amount { bytes, files: 0 });
        // What is not needed must not be why the last part does not fit.
        let more = reserve(needed.max(STEP_BYTES)).or_else(|_| reserve(needed))?;
        self.room.extend(more);
        Ok(())
    }

    /// Returns the SHA-256 of what has arrived.
    pub fn digest(&self) -> [u8; 32] {
        self.digest.clone().finalize().into()
    }

    /// Gives the file its name.
    pub async fn finish(self, toolbox: &Toolbox) -> Result<UploadedFile, Failure> {
        let (runner, workspace) = (toolbox.runner.clone(), Arc::clone(&self.files.workspace));
        let arrived = blocking(move || self.commit()).await?;
        check_restored(&runner.check_trust(workspace.handle()).await?)?;
        Ok(arrived)
    }

    fn commit(mut self) -> Result<UploadedFile, Failure> {
        let shown = shown(&self.path);
        if let Some(text) = self.start.as_deref().and_then(|start| str::from_utf8(start).ok()) {
            self.files.check_masks(text, &shown)?;
        }
        if let Some(file) = &mut self.file {
            file.sync_contents()?;
        }
        let files = self.files.clone();
        let _writing = files.writing()?;
        files.check_unread_later(&self.path, self.start.as_deref())?;
        if let Some(file) = self.file.take() {
            file.commit()?;
        }
        self.made.clear();
        Ok(UploadedFile { path: shown, bytes: self.written })
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        drop(self.file.take());
        for directory in &self.made {
            // Others may have put something there by now.
            let _ = self.files.root().remove_directory(directory);
        }
    }
}

fn begin(files: &WorkspaceFiles, path: PathBuf, expected: u64) -> Result<Upload, Failure> {
    check_name(&path)?;
    let replaces = match files.root().browse().metadata(&path) {
        Ok(_) => true,
        Err(error) if error.is_not_found() => false,
        Err(error) => return Err(error.into()),
    };
    let new_files = u64::from(!replaces);
    let room = files.workspace.handle().reserve(Amount { bytes: expected, files: new_files })?;
    let mut upload = Upload {
        files: files.clone(),
        path,
        file: None,
        made: Vec::new(),
        digest: Sha256::new(),
        written: 0,
        room,
        start: Some(Vec::new()),
    };
    let writing = files.writing()?;
    upload.made = missing_above(files, &upload.path);
    files.make_way(&upload.path)?;
    drop(writing);
    let root = files.root().browse();
    upload.file = Some(root.begin_write(&upload.path, WriteOptions::default())?);
    upload.room.used(Amount { bytes: 0, files: 1 });
    Ok(upload)
}

/// Returns the directories on the way to a file that are not there, the innermost first.
fn missing_above(files: &WorkspaceFiles, path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    let is_missing =
        |above: &&Path| files.root().metadata(above).is_err_and(|error| error.is_not_found());
    above.take_while(is_missing).map(Path::to_owned).collect()
}
