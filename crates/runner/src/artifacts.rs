//! Files that a command leaves for whoever started it, such as a report of its tests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use carrel_fsroot::Root;

use crate::error::RunError;
use crate::request::{CommandForm, RunRequest};
use crate::sandbox_cell::Walled;
use carrel_workspace::blocking;

/// The most that is read of one file. A larger one is left out.
const MAX_BYTES: u64 = 8 << 20;

/// Files that a command is to leave in a directory of its own, outside the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArtifactRequest {
    /// Stands for the directory in the command's words and variables.
    pub placeholder: &'static str,
    /// The files that are read when the command is over.
    pub names: Vec<String>,
}

/// A file that a command left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub contents: Vec<u8>,
}

/// The files that a command left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Artifacts {
    /// The directory that they were in, as the command saw it; none if it was to leave none.
    pub directory: Option<PathBuf>,
    /// The files.
    pub files: Vec<Artifact>,
}

/// The directory for the files of one command. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct ArtifactDirectory {
    scratch: Root,
    name: PathBuf,
    names: Vec<String>,
    /// Where it is for the command.
    inside: PathBuf,
}

impl ArtifactDirectory {
    /// Makes a directory for what the request wants, and puts its path into the command.
    pub(crate) async fn make(
        request: &mut RunRequest,
        walled: &Walled,
    ) -> Result<Option<Self>, RunError> {
        let Some(ArtifactRequest { placeholder, names }) = request.artifacts.take() else {
            return Ok(None);
        };
        // LazySpawner can make directories there too, and must not foresee the name.
        let own = format!("{:016x}", fastrand::u64(..));
        let inside = walled.temporary().join(&own);
        let walled = walled.clone();
        let (scratch, name) = blocking(move || walled.make_below_temporary(&own)).await?;
        substitute(request, placeholder, &inside);
        Ok(Some(Self { scratch, name, names, inside }))
    }

    /// Reads what the command left. What is missing, too large or no regular file is left out.
    pub(crate) async fn read(self) -> Result<Artifacts, RunError> {
        blocking(move || {
            let read = |name: &String| {
                let contents = self.scratch.read(&self.name.join(name), MAX_BYTES).ok()?;
                Some(Artifact { name: name.clone(), contents })
            };
            let files = self.names.iter().filter_map(read).collect();
            Ok(Artifacts { directory: Some(self.inside.clone()), files })
        })
        .await
    }
}

impl Drop for ArtifactDirectory {
    fn drop(&mut self) {
        // It goes with the scratch directory otherwise.
        let _ = self.scratch.remove_tree(&self.name);
    }
}

fn substitute(request: &mut RunRequest, placeholder: &str, inside: &Path) {
    let shown = inside.to_string_lossy();
    let put = |word: &mut OsString| {
        if let Some(text) = word.to_str().filter(|text| text.contains(placeholder)) {
            *word = text.replace(placeholder, &shown).into();
        }
    };
    request.environment.iter_mut().map(|(_, value)| value).for_each(put);
    match &mut request.form {
        CommandForm::Argv(argv) => argv.iter_mut().for_each(put),
        CommandForm::Line(line) => *line = line.replace(placeholder, &shown),
    }
}
