//! The tool `Write`.

use std::path::{Path, PathBuf};

use carrel_domain::Failure;
use carrel_edit::{Document, EndingStyle};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

use super::workspace_files::{
    ChangeFacts, LoadedFile, WorkspaceFiles, diff_text, is_missing, required_path, show_hash, shown,
};
use crate::blocking::blocking;
use crate::read_tracker::RequiredExtent;
use crate::response::Reply;
use crate::tool::{About, Effect, Tool, ToolResult};
use crate::tool_context::ToolContext;
use crate::verify::{compiler_check, edit_feedback};

pub(super) struct Write;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The file, relative to the workspace or absolute. Missing directories are created.
    #[schemars(extend("x-brief" = ""))]
    file_path: String,
    /// The whole text; may be empty.
    #[schemars(extend("x-brief" = ""))]
    content: String,
    /// The `hash` of an earlier reply, instead of reading the file again.
    #[schemars(extend("x-brief" = false))]
    expected_hash: Option<String>,
}

impl Tool for Write {
    type Input = Input;
    type Facts = ChangeFacts;

    const ABOUT: About = About {
        name: "Write",
        title: "Write a file",
        effect: Effect { destructive: true, idempotent: true, open_world: false },
        description: "Creates a file, or replaces one that was shown whole.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<ChangeFacts> {
        let files = WorkspaceFiles::of(context);
        let mut reply = blocking(move || write(&files, &input)).await?;
        let deadline = Instant::now() + edit_feedback::BUDGET;
        let path = PathBuf::from(&reply.facts.path);
        let feedback = edit_feedback::of(context, &path).await;
        feedback.add_to(&mut reply.content, &mut reply.facts.hash);
        compiler_check::add_feedback(context, &[path], &mut reply.content, deadline).await;
        show_hash(context, &mut reply.content, &reply.facts.hash);
        Ok(reply)
    }
}

fn write(files: &WorkspaceFiles, input: &Input) -> ToolResult<ChangeFacts> {
    let path = required_path(files, "file_path", &input.file_path)?;
    files.check_masks(&input.content, &input.file_path)?;
    let writing = files.writing()?;
    let (old, bytes) = if is_missing(files.root(), &path)? {
        let expected = input.expected_hash.as_deref();
        WorkspaceFiles::check_not_expected(expected, "overwrite", &input.file_path)?;
        let bytes = input.content.clone().into_bytes();
        files.create(&path, &bytes)?;
        (None, bytes)
    } else {
        let (old, bytes) = overwrite(files, &path, input)?;
        (Some(old), bytes)
    };
    let hash = files.record_write(&path, &bytes)?;
    drop(writing);
    let name = shown(&path);
    let (diff, text) = diff_text(old.as_deref(), &input.content, &name);
    let mut reply = format!("wrote {} bytes to {}\n", bytes.len(), input.file_path);
    // The diff of a new file would repeat the input.
    if old.is_some() && !text.is_empty() {
        reply.push('\n');
        reply.push_str(&text);
    }
    let created = old.is_none();
    Ok(Reply::text(reply, ChangeFacts::new(name, created, bytes.len(), hash, &diff)))
}

/// Replaces a file, and returns its old text and its new bytes.
fn overwrite(
    files: &WorkspaceFiles,
    path: &Path,
    input: &Input,
) -> Result<(String, Vec<u8>), Failure> {
    let loaded = files.load(path)?;
    let expected = input.expected_hash.as_deref();
    files.check(&loaded, expected, RequiredExtent::Whole, ("overwrite", &input.file_path))?;
    let (old, bytes) = stored(&loaded, &input.content);
    files.replace(path, &loaded, &bytes)?;
    Ok((old, bytes))
}

/// Encodes the new text as the old one was: encoding, byte order mark, line endings.
fn stored(loaded: &LoadedFile, content: &str) -> (String, Vec<u8>) {
    let Ok(document) = loaded.document("") else {
        return (String::new(), content.as_bytes().to_vec());
    };
    let crlf = document.line_facts().style() == EndingStyle::CrLf && !content.contains('\r');
    let text = if crlf { content.replace('\n', "\r\n") } else { content.to_owned() };
    let new = document.with_text(text).unwrap_or_else(|_| Document::from_text(content));
    (document.text().to_owned(), new.encode().into_owned())
}
