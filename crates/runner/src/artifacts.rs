//! Files that a command leaves for its caller, such as a test report.
//!
//! The command writes them to a directory of its own among its temporary files, outside the work tree;
//! its path replaces a placeholder in the command. They are read after the command and deleted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::RunError;
use crate::private_directory::PrivateDirectory;
use crate::request::{CommandForm, RunRequest};
use crate::sandbox_cell::ExecutionSite;
use carrel_workspace::blocking;

/// The largest part of a file that is collected. A rendered picture is allowed as much.
const MAX_BYTES: u64 = 10 << 20;

/// The name of the directory of caches among the temporary files.
const CACHE_NAME: &str = "carrel-cache";

/// The directory of caches that stay, below the home.
const KEPT_CACHE: &str = ".cache/carrel";

/// A request for artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArtifactRequest {
    /// Replaced by the path of the directory in the command's arguments and variables.
    pub placeholder: &'static str,
    /// The names of the files to collect.
    pub names: Vec<String>,
    /// Replaced by the path of a directory for caches. It stays for later commands of the same sandbox
    /// cell; the command creates it.
    pub cache_placeholder: Option<&'static str>,
    /// Replaced by the path of a directory for caches that stay with the workspace, in its home; among the
    /// temporary files if the workspace is its own home. The command creates it.
    pub kept_cache_placeholder: Option<&'static str>,
}

/// A collected file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The name.
    pub name: String,
    /// The contents, at most the first 10 MiB.
    pub contents: Vec<u8>,
    /// True if the file is larger.
    pub truncated: bool,
}

/// The collected files of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Artifacts {
    /// The directory by its path inside the sandbox; none if no artifacts were requested.
    pub directory: Option<PathBuf>,
    /// The files that exist, in the order of the request.
    pub files: Vec<Artifact>,
}

/// The artifact directory of one command, deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct ArtifactDirectory {
    directory: PrivateDirectory,
    names: Vec<String>,
}

impl ArtifactDirectory {
    /// Creates the directory, if the request has artifacts, and puts its path into the command.
    pub(crate) async fn make(
        request: &mut RunRequest,
        site: &ExecutionSite,
    ) -> Result<Option<Self>, RunError> {
        let Some(artifacts) = request.artifacts.take() else { return Ok(None) };
        let ArtifactRequest { placeholder, names, cache_placeholder, kept_cache_placeholder } =
            artifacts;
        let directory = PrivateDirectory::make(site).await?;
        substitute(request, placeholder, &directory.inside);
        if let Some(placeholder) = cache_placeholder {
            substitute(request, placeholder, &site.temporary().join(CACHE_NAME));
        }
        if let Some(placeholder) = kept_cache_placeholder {
            let kept = if site.has_separate_home() {
                site.home().join(KEPT_CACHE)
            } else {
                site.temporary().join(CACHE_NAME)
            };
            substitute(request, placeholder, &kept);
        }
        Ok(Some(Self { directory, names }))
    }

    /// Reads the files. A missing or special file is left out.
    pub(crate) async fn read(self) -> Result<Artifacts, RunError> {
        blocking(move || {
            let read = |name: String| {
                let (contents, truncated) = self.directory.read(&name, MAX_BYTES)?;
                Some(Artifact { name, contents, truncated })
            };
            let files = self.names.into_iter().filter_map(read).collect();
            Ok(Artifacts { directory: Some(self.directory.inside.clone()), files })
        })
        .await
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
