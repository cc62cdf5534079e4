//! The last rename of a session, which can be taken back.
//!
//! The old contents are kept in memory until the next rename. They are put back only if every file still has the
//! content that the rename gave it. This guards against a mistake, not against the end of the server.

use std::path::{Path, PathBuf};

use carrel_domain::{Code, Failure};

use super::{Facts, FileFacts, PERMISSIONS};
use crate::files::{
    After, Before, ChangeSet, NewFile, WorkspaceFiles, diff_text, run_cancellable, shown,
};
use crate::read_tracker::ContentHash;
use crate::response::Reply;
use crate::session::SessionLifetime;
use crate::text::line;
use crate::tool::ToolResult;
use crate::tool_context::ToolContext;

/// Bytes of old contents that a session keeps. A larger rename cannot be taken back.
const MAX_KEPT_BYTES: usize = 32 << 20;

/// The last rename of a session.
#[derive(Debug)]
pub(crate) struct LastRename {
    workspace: String,
    files: Vec<RenamedFile>,
}

#[derive(Clone, Debug)]
struct RenamedFile {
    path: PathBuf,
    /// None for a file that was made.
    old: Option<OldFile>,
    /// None for a file that was removed.
    new: Option<ContentHash>,
}

#[derive(Clone, Debug)]
struct OldFile {
    bytes: Vec<u8>,
    mode: u32,
}

/// Keeps the old contents of a rename in place of those of the one before.
pub(super) fn remember(context: &ToolContext, files: &WorkspaceFiles, set: &ChangeSet) {
    if context.session.lifetime() == SessionLifetime::OneRequest {
        return;
    }
    let file = |(path, new): (&PathBuf, &Option<NewFile>)| RenamedFile {
        path: path.clone(),
        old: set
            .old(files, path)
            .map(|old| OldFile { bytes: old.bytes.clone(), mode: old.metadata.mode }),
        new: new.as_ref().map(|new| ContentHash::of(&new.bytes)),
    };
    let renamed: Vec<_> = set.after.iter().map(file).collect();
    let bytes: usize =
        renamed.iter().filter_map(|file| file.old.as_ref()).map(|old| old.bytes.len()).sum();
    let workspace = files.workspace.name().to_owned();
    let kept = (bytes <= MAX_KEPT_BYTES).then_some(LastRename { workspace, files: renamed });
    context.session.state().last_rename = kept;
}

/// Takes over the contents that a formatter gave to renamed files, so that the rename can still be taken back.
pub(super) async fn follow(context: &ToolContext, formatted: &[PathBuf]) -> Result<(), Failure> {
    if formatted.is_empty() {
        return Ok(());
    }
    let (own, formatted) = (context.clone(), formatted.to_owned());
    run_cancellable(context, move |_, _| {
        let files = WorkspaceFiles::of(&own);
        let now = |path: &PathBuf| Some((path.clone(), files.load(path).ok()?.hash()));
        let now: Vec<_> = formatted.iter().filter_map(now).collect();
        let mut state = own.session.state();
        let renamed = state.last_rename.as_mut().into_iter().flat_map(|last| &mut last.files);
        for file in renamed {
            let found = now.iter().find(|(path, _)| *path == file.path);
            file.new = found.map_or(file.new, |(_, hash)| Some(*hash));
        }
        Ok(())
    })
    .await
}

/// Takes the last rename of the session back.
pub(super) async fn run(context: &ToolContext) -> ToolResult<Facts> {
    let own = context.clone();
    run_cancellable(context, move |_, _| {
        let files = WorkspaceFiles::of(&own);
        let renamed = renamed_files(&own, &files)?;
        let writing = files.writing()?;
        let mut set = ChangeSet { doing: "undo", before: Before::new(), after: After::new() };
        for file in &renamed {
            take_back(&files, &mut set, file)?;
        }
        set.commit(&files)?;
        let mut text = format!("took the last rename back in {} files", renamed.len());
        let mut facts = Vec::new();
        for (path, new) in &set.after {
            let name = shown(path);
            line(&mut text, &format!("  - {name}"));
            let hash = new.as_ref().map(|new| {
                let old = set.old(&files, path).and_then(|old| old.document(&name).ok());
                let (diff, _) =
                    diff_text(old.as_ref().map(carrel_edit::Document::text), &new.text, &name);
                set.record(&files, path, (new, &diff))
            });
            if new.is_none() {
                set.forget(&files, path);
            }
            facts.push(FileFacts { path: name, edits: 0, hash });
        }
        own.session.state().last_rename = None;
        drop(writing);
        Ok(Reply::text(text, Facts { answer: None, applied: true, files: facts, left_over: 0 }))
    })
    .await
}

fn renamed_files(
    context: &ToolContext,
    files: &WorkspaceFiles,
) -> Result<Vec<RenamedFile>, Failure> {
    let state = context.session.state();
    let last = state.last_rename.as_ref().filter(|last| last.workspace == files.workspace.name());
    last.map(|last| last.files.clone()).ok_or_else(|| {
        let message = "there is no rename of this session in this workspace to take back";
        Failure::new(Code::NotFound, message)
    })
}

fn take_back(
    files: &WorkspaceFiles,
    set: &mut ChangeSet,
    file: &RenamedFile,
) -> Result<(), Failure> {
    let name = shown(&file.path);
    let loaded = match files.load(&file.path) {
        Err(failure) if failure.code == Code::NotFound => None,
        loaded => Some(loaded?),
    };
    if loaded.as_ref().map(|loaded| ContentHash::of(&loaded.bytes)) != file.new {
        return Err(changed_since(&file.path));
    }
    // A file that is still there keeps its permissions.
    let is_gone = loaded.is_none();
    set.before.insert(name, loaded);
    let new = file.old.as_ref().map(|old| NewFile {
        text: String::from_utf8_lossy(&old.bytes).into_owned(),
        bytes: old.bytes.clone(),
        mode: is_gone.then_some(old.mode & PERMISSIONS),
    });
    set.after.insert(file.path.clone(), new);
    Ok(())
}

fn changed_since(path: &Path) -> Failure {
    let name = shown(path);
    let message = format!("{name} has changed since the rename; nothing was taken back");
    Failure::new(Code::ChangedSinceRead, message).with("path", name)
}
