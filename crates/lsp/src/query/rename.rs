//! Renaming a symbol, and renaming files with what refers to them.

use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::time::Instant;

use super::edits::{FileOperation, WorkspaceChange};
use super::locations::{MISSED_USES, doubt_about};
use super::missed_uses::MissedUses;
use super::{Finding, Query, Target};
use crate::definition::ServerDefinition;
use crate::fault::{Fault, QueryError};
use crate::server::LanguageServer;

/// The change that renames the symbol at a position.
#[derive(Clone, Debug)]
pub(crate) struct Rename<'q> {
    pub(crate) target: &'q Target,
    pub(crate) new_name: &'q str,
}

/// The change of other files that a new path of some files makes necessary.
#[derive(Clone, Debug)]
pub(crate) struct RenameFiles<'q> {
    /// At least one pair of the present path and the new one.
    pub(crate) moves: &'q [(PathBuf, PathBuf)],
}

impl Query for Rename<'_> {
    type Answer = WorkspaceChange;

    fn file(&self) -> &Path {
        &self.target.path
    }

    fn concerns_other_files(&self, _definition: &ServerDefinition) -> bool {
        true
    }

    async fn ask(
        &self,
        server: &mut LanguageServer,
        until: Instant,
    ) -> Result<Finding<WorkspaceChange>, Fault> {
        server.require("renameProvider", "the change that renames a symbol")?;
        let mut params = server.position_params(self.target)?;
        if server.capabilities.prepares_renames() {
            let prepared = server.request("textDocument/prepareRename", &params, until).await?;
            if prepared.is_null() {
                let message = "there is no symbol here that can be renamed".to_owned();
                let server = server.definition.name;
                return Err(QueryError::Refused { server, message }.into());
            }
        }
        params["newName"] = self.new_name.into();
        let edit = server.request("textDocument/rename", &params, until).await?;
        let mut change = server.workspace_change(edit).await?;
        let edits = change
            .files
            .iter()
            .flat_map(|file| file.edits.iter().map(|edit| (file.path.clone(), edit.range.start)));
        let edits = edits.collect();
        let doubt = match server.missed_uses(self.target, &edits, until).await? {
            // A module is renamed with its file, and what that changes is asked for below.
            _ if !change.operations.is_empty() => None,
            MissedUses::These(missed) if missed.is_empty() => None,
            MissedUses::These(_) if server.documents.is_changed() => {
                return Err(Fault::Restart(MISSED_USES));
            }
            MissedUses::These(missed) => {
                Some(format!("{} uses of the symbol would keep their name", missed.len()))
            }
            MissedUses::TooMany(count) => server.documents.is_changed().then(|| doubt_about(count)),
        };
        // rust-analyzer answers with the new path of a module alone, and expects to be asked what that changes.
        let moves: Vec<_> = change.operations.iter().filter_map(new_path).collect();
        if change.files.is_empty() && !moves.is_empty() && server.capabilities.renames_files() {
            change.files = RenameFiles { moves: &moves }.change(server, until).await?.files;
        }
        Ok(Finding { value: change, incomplete: doubt })
    }
}

impl Query for RenameFiles<'_> {
    type Answer = WorkspaceChange;

    fn file(&self) -> &Path {
        self.moves.first().map_or(Path::new(""), |(from, _)| from)
    }

    fn concerns_other_files(&self, _definition: &ServerDefinition) -> bool {
        true
    }

    async fn ask(
        &self,
        server: &mut LanguageServer,
        until: Instant,
    ) -> Result<Finding<WorkspaceChange>, Fault> {
        if !server.capabilities.renames_files() {
            let (server, what) = (server.definition.name, "what a new path of a file changes");
            return Err(QueryError::Unsupported { server, what }.into());
        }
        self.change(server, until).await.map(Finding::complete)
    }
}

impl RenameFiles<'_> {
    async fn change(
        &self,
        server: &LanguageServer,
        until: Instant,
    ) -> Result<WorkspaceChange, Fault> {
        let moves = self.moves.iter().map(|(from, to)| {
            json!({ "oldUri": server.documents.uri(from), "newUri": server.documents.uri(to) })
        });
        let params = json!({ "files": moves.collect::<Vec<_>>() });
        let edit = server.request("workspace/willRenameFiles", &params, until).await?;
        server.workspace_change(edit).await
    }
}

fn new_path(operation: &FileOperation) -> Option<(PathBuf, PathBuf)> {
    match operation {
        FileOperation::Rename { from, to } => Some((from.clone(), to.clone())),
        FileOperation::Create { .. } | FileOperation::Delete { .. } => None,
    }
}
