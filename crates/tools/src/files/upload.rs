//! Uploads: files that arrive in parts.
//!
//! An upload obeys the rules of a file that a tool writes: valid name, quota, trust check. It is written to a
//! temporary file and renamed when complete; an upload that is dropped removes the temporary file and the
//! directories that were created for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_domain::Failure;
use carrel_fsroot::{AtomicFile, WriteOptions};
use carrel_runner::Reservation;
use carrel_workspace::Amount;
use sha2::{Digest as _, Sha256};

use super::workspace_files::{WorkspaceFiles, check_name, shown};
use crate::blocking::blocking;
use crate::named_workspace::NamedWorkspace;
use crate::registry::check_restored;
use crate::session::Session;
use crate::toolbox::Toolbox;

/// Quota is reserved in steps of this size, as long as that much is left.
const STEP_BYTES: u64 = 8 << 20;

/// Larger files are judged by their path alone in the trust check.
const MAX_CHECKED_BYTES: usize = 1 << 20;

/// An upload in progress.
#[derive(Debug)]
pub struct Upload {
    files: WorkspaceFiles,
    path: PathBuf,
    /// None after the commit.
    file: Option<AtomicFile>,
    /// Directories that were created for it, the innermost first.
    made: Vec<PathBuf>,
    digest: Sha256,
    written: u64,
    reservation: Reservation,
    /// All bytes so far; none once there are more than [`MAX_CHECKED_BYTES`].
    start: Option<Vec<u8>>,
}

/// A completed upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadedFile {
    /// The file, relative to the workspace.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

impl Upload {
    /// Begins an upload, and reserves quota for the expected size.
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

    /// Writes a part. Blocks on the disk.
    pub fn write(&mut self, part: &[u8]) -> Result<(), Failure> {
        self.reserve(part.len() as u64)?;
        let Some(file) = &mut self.file else { return Ok(()) };
        file.append(part)?;
        self.digest.update(part);
        self.written += part.len() as u64;
        self.reservation.used(Amount { bytes: part.len() as u64, files: 0 });
        match &mut self.start {
            Some(start) if start.len() + part.len() <= MAX_CHECKED_BYTES => start.extend(part),
            start => *start = None,
        }
        Ok(())
    }

    fn reserve(&mut self, bytes: u64) -> Result<(), Failure> {
        let needed = bytes.saturating_sub(self.reservation.left().bytes);
        if needed == 0 {
            return Ok(());
        }
        let reserve = |bytes| self.files.workspace.handle().reserve(Amount { bytes, files: 0 });
        // A full step may not fit where the last part does.
        let more = reserve(needed.max(STEP_BYTES)).or_else(|_| reserve(needed))?;
        self.reservation.extend(more);
        Ok(())
    }

    /// Returns the SHA-256 of all parts so far.
    pub fn digest(&self) -> [u8; 32] {
        self.digest.clone().finalize().into()
    }

    /// Moves the complete file to its path.
    pub async fn finish(self, toolbox: &Toolbox) -> Result<UploadedFile, Failure> {
        let runner = toolbox.runner.clone();
        let workspace = Arc::clone(&self.files.workspace);
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
        files.check_runs_later_unread(&self.path, self.start.as_deref())?;
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
            // Fails if another call has put a file there, which is right.
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
    let reservation =
        files.workspace.handle().reserve(Amount { bytes: expected, files: new_files })?;
    let mut upload = Upload {
        files: files.clone(),
        path,
        file: None,
        made: Vec::new(),
        digest: Sha256::new(),
        written: 0,
        reservation,
        start: Some(Vec::new()),
    };
    let writing = files.writing()?;
    upload.made = missing_above(files, &upload.path);
    files.create_visible_parents(&upload.path)?;
    drop(writing);
    let browsed = files.root().browse();
    upload.file = Some(browsed.begin_write(&upload.path, WriteOptions::default())?);
    upload.reservation.used(Amount { bytes: 0, files: 1 });
    Ok(upload)
}

/// Returns the missing parent directories of a file, the innermost first.
fn missing_above(files: &WorkspaceFiles, path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    let is_missing =
        |above: &&Path| files.root().metadata(above).is_err_and(|error| error.is_not_found());
    above.take_while(is_missing).map(Path::to_owned).collect()
}
