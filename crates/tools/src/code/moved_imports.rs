//! Imports of files that get another path.
//!
//! Before a move, the language server of the files is asked which edits the new paths make necessary
//! (`workspace/willRenameFiles`), for a short time: a move is not held up by a server that first reads the project.
//! Without an answer, the lines that seem to import a moved file are found by its name, so that the reply can name
//! them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use carrel_domain::Failure;
use carrel_fsroot::FileKind;
use carrel_lsp::FileEdits;
use carrel_search::{Cancel, GrepRequest, Scope, Syntax, source_files};

use super::rename_symbol::edited;
use super::semantics::{Semantics, ask_within, knows};
use crate::files::{
    After, Before, ChangeSet, NewFile, WorkspaceFiles, diff_text, run_cancellable, shown,
};
use crate::tool_context::ToolContext;

/// The time for the answer of a server.
const ASKING_TIME: Duration = Duration::from_secs(5);

/// The files of a directory that a server is told about.
const MAX_MOVED: usize = 500;

/// The lines of a reply that seem to import a moved file.
const MAX_LEFT: usize = 10;

/// The moved files whose names are searched for.
const MAX_NAMES: usize = 20;

/// Words of a line that imports something, in any language with a server.
const IMPORT_WORDS: [&str; 8] =
    ["import", "from", "require", "include", "use ", "mod ", "source", "export"];

/// Names of files that are imported by the name of their directory.
const UNNAMED: [&str; 4] = ["__init__", "index", "mod", "main"];

/// The edits that new paths of files make necessary.
#[derive(Debug)]
pub(crate) enum MovedImports {
    /// A server has answered.
    Known { server: &'static str, edits: Vec<FileEdits> },
    /// None has. The places that seem to import a file, and the reason.
    Left { places: Vec<String>, reason: String },
}

/// A file whose imports were changed.
#[derive(Debug)]
pub(crate) struct UpdatedFile {
    pub(crate) path: String,
    pub(crate) hash: String,
}

impl MovedImports {
    /// Asks about a move that is about to be made. None if no server is known for what is moved.
    pub(crate) async fn of_move(
        context: &ToolContext,
        from: &Path,
        to: &Path,
    ) -> Result<Option<Self>, Failure> {
        let moves = moves(context, from, to).await?;
        if moves.is_empty() {
            return Ok(None);
        }
        let places = places_left(context, from, &moves).await?;
        // Only a file in another directory may import others by another path then.
        if places.is_empty() && from.parent() == to.parent() {
            return Ok(None);
        }
        let asked = ask_within(context, ASKING_TIME, async |servers, query| {
            servers.rename_files(query, &moves).await
        });
        match asked.await {
            Semantics::Answered(answer) => {
                Ok(Some(Self::Known { server: answer.server, edits: answer.value.files }))
            }
            Semantics::Unanswered(reason) => Ok((!places.is_empty())
                .then_some(Self::Left { places, reason: reason.untold().to_owned() })),
        }
    }
}

/// Returns the files with a known server, each with its new path.
async fn moves(
    context: &ToolContext,
    from: &Path,
    to: &Path,
) -> Result<Vec<(PathBuf, PathBuf)>, Failure> {
    let (from, to) = (from.to_owned(), to.to_owned());
    run_cancellable(context, move |workspace, cancel| {
        let root = workspace.files();
        // The move itself reports what is wrong with it.
        let Ok(metadata) = root.link_metadata(&from) else { return Ok(Vec::new()) };
        match metadata.kind {
            FileKind::File if knows(&from) => Ok(vec![(from, to)]),
            FileKind::Directory => {
                let list = source_files(&Scope::at(root, &from), knows, cancel)?;
                let moved = list.files.into_iter().take(MAX_MOVED).filter_map(|file| {
                    let rest = file.path.strip_prefix(&from).ok()?;
                    Some((file.path.clone(), to.join(rest)))
                });
                Ok(moved.collect())
            }
            FileKind::File
            | FileKind::Link
            | FileKind::Fifo
            | FileKind::Socket
            | FileKind::Device
            | FileKind::Unknown => Ok(Vec::new()),
        }
    })
    .await
}

/// Returns lines that seem to import a moved file, in files that stay where they are.
async fn places_left(
    context: &ToolContext,
    from: &Path,
    moves: &[(PathBuf, PathBuf)],
) -> Result<Vec<String>, Failure> {
    let from = from.to_owned();
    let files = moves.iter().filter_map(|(path, _)| imported_name(path));
    let mut names: Vec<_> = files.take(MAX_NAMES).chain(imported_name(&from)).collect();
    names.sort();
    names.dedup();
    run_cancellable(context, move |workspace, cancel| {
        let scope = Scope::whole(workspace.files());
        let mut places = Vec::new();
        for name in &names {
            let stays = |path: &Path| !path.starts_with(&from);
            for place in importing_lines(&scope, name, stays, cancel)? {
                if !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        places.truncate(MAX_LEFT);
        Ok(places)
    })
    .await
}

fn importing_lines(
    scope: &Scope<'_>,
    name: &str,
    stays: impl Fn(&Path) -> bool,
    cancel: &Cancel,
) -> Result<Vec<String>, Failure> {
    let request =
        GrepRequest { syntax: Syntax::Literal, whole_word: true, ..GrepRequest::new(name) };
    let report = carrel_search::grep(scope, &request, cancel)?;
    let files = report.files.iter().filter(|file| knows(&file.path) && stays(&file.path));
    let lines = files.flat_map(|file| {
        let imports = file
            .lines
            .iter()
            .filter(|line| IMPORT_WORDS.iter().any(|word| line.text.contains(word)));
        imports.map(|line| format!("{}:{}", shown(&file.path), line.number))
    });
    Ok(lines.take(MAX_LEFT).collect())
}

/// Returns the word by which other files import a file.
fn imported_name(path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_str()?;
    if UNNAMED.contains(&stem) {
        return Some(path.parent()?.file_name()?.to_str()?.to_owned());
    }
    Some(stem.split('.').next().unwrap_or(stem).to_owned())
}

/// Makes the edits of a move that has been made: all, or none. The caller holds the write lock of the workspace.
pub(crate) fn update(
    files: &WorkspaceFiles,
    edits: &[FileEdits],
    (from, to): (&Path, &Path),
) -> Result<Vec<UpdatedFile>, Failure> {
    let mut set = ChangeSet { doing: "move", before: Before::new(), after: After::new() };
    for one in edits {
        let path = match one.path.strip_prefix(from) {
            Ok(rest) if rest.as_os_str().is_empty() => to.to_owned(),
            Ok(rest) => to.join(rest),
            Err(_) => one.path.clone(),
        };
        let loaded = files.load(&path)?;
        let text = edited(&loaded, one)?;
        let new = NewFile { bytes: text.clone().into_bytes(), text, mode: None };
        set.before.insert(shown(&path), Some(loaded));
        set.after.insert(path, Some(new));
    }
    set.commit(files)?;
    let updated = set.after.iter().filter_map(|(path, new)| {
        let (new, name) = (new.as_ref()?, shown(path));
        let old = set.old(files, path)?.document(&name).ok();
        let (diff, _) = diff_text(old.as_ref().map(carrel_edit::Document::text), &new.text, &name);
        let hash = set.record(files, path, (new, &diff));
        Some(UpdatedFile { path: name, hash })
    });
    Ok(updated.collect())
}
