//! The tool `Read`.

use carrel_domain::{Code, Failure};
use carrel_edit::{
    Content as FileContent, DEFAULT_CONTEXT, Document, Selection, Window, WindowBudget,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::workspace_files::{
    LoadedFile, WorkspaceFiles, check_is_text, required_path, show_hash, shown,
};
use crate::blocking::blocking;
use crate::read_tracker::ReadExtent;
use crate::reply_limit::MaxBytes;
use crate::response::{Reply, ToolContent};
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;
use crate::verify::compiler_check;

/// Larger images are refused: they would fill the reply.
const MAX_IMAGE_BYTES: usize = 5 << 20;

pub(super) struct Read;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The file, relative to the workspace or absolute.
    #[schemars(extend("x-brief" = ""))]
    file_path: String,
    /// The first line to show, counted from 1.
    #[schemars(extend("x-brief" = "from 1"))]
    offset: Option<u64>,
    /// Number of lines; 2000 by default.
    #[schemars(extend("x-brief" = ""))]
    limit: Option<u64>,
    /// Show the lines around this one instead.
    #[schemars(extend("x-brief" = false))]
    around_line: Option<u64>,
    /// Number of lines before and after `around_line`; 20 by default.
    #[schemars(extend("x-brief" = false))]
    context_lines: Option<u64>,
    max_bytes: Option<MaxBytes>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Facts {
    /// The file, relative to the workspace.
    path: String,
    /// `text`, or the media type of an image.
    kind: String,
    bytes: usize,
    /// Of the whole file, for `expected_hash`.
    hash: String,
    first_line: Option<usize>,
    last_line: Option<usize>,
    total_lines: Option<usize>,
    /// The offset for the next call; null at the end.
    next_offset: Option<usize>,
    lines_cut: usize,
    encoding: Option<String>,
    /// `lf`, `crlf` or `mixed`; edits keep them.
    line_endings: Option<String>,
}

impl Tool for Read {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "Read",
        title: "Read a file",
        description: "Shows a file with line numbers, or an image; 2000 lines or 30 KB at a \
            time. Edit and Write need the file shown first, again if it changed.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        let files = WorkspaceFiles::of(context);
        let bytes = context.reply_limit(input.max_bytes);
        let budget = WindowBudget { bytes, ..WindowBudget::default() };
        let mut reply = blocking(move || show(&files, &input, budget)).await?;
        show_hash(context, &mut reply.content, &reply.facts.hash);
        compiler_check::warm(context, &reply.facts.path);
        Ok(reply)
    }
}

fn show(files: &WorkspaceFiles, input: &Input, budget: WindowBudget) -> ToolResult<Facts> {
    let selection = selection(input)?;
    let path = required_path(files, "file_path", &input.file_path)?;
    let loaded = files.load(&path)?;
    let name = shown(&path);
    if let FileContent::Image(format) = FileContent::of(&loaded.bytes) {
        return image(files, loaded, name, format.mime_type());
    }
    check_is_text(&loaded.bytes, &name)?;
    let hash = loaded.hash();
    let bytes = loaded.bytes.len();
    let document = Document::decode(loaded.bytes);
    let mut window = Window::within(&document, selection, budget).map_err(|error| {
        Failure::new(Code::InvalidRange, error.to_string()).with("path", name.as_str())
    })?;
    files.record_read(loaded.key, hash, &seen(&window));
    let mut text = std::mem::take(&mut window.text);
    if text.is_empty() {
        line(&mut text, "[the file is empty]");
    }
    if let Some(note) = window.note() {
        line(&mut text, &format!("[{note}]"));
    }
    let facts = Facts {
        path: name,
        kind: "text".into(),
        bytes,
        hash: hash.short(),
        first_line: window.shown.map(|shown| shown.0),
        last_line: window.shown.map(|shown| shown.1),
        total_lines: Some(window.facts.count),
        next_offset: window.next_offset,
        lines_cut: window.lines_cut,
        encoding: Some(document.encoding().to_string()),
        line_endings: Some(endings(&window).into()),
    };
    Ok(Reply::text(text, facts))
}

fn selection(input: &Input) -> Result<Selection, Failure> {
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    match (input.around_line, input.offset.is_some() || input.limit.is_some()) {
        (Some(_), true) => Err(Failure::argument(
            "around_line",
            "around_line and offset or limit exclude each other; give one",
        )),
        (Some(line), false) => Ok(Selection::Around {
            line: number(line),
            context: input.context_lines.map_or(DEFAULT_CONTEXT, number),
        }),
        (None, _) => Ok(Selection::From {
            offset: input.offset.map_or(1, number),
            limit: input.limit.map(number),
        }),
    }
}

fn seen(window: &Window) -> ReadExtent {
    match window.shown {
        None => ReadExtent::Whole,
        Some((1, last)) if last == window.facts.count => ReadExtent::Whole,
        Some((first, last)) => ReadExtent::Lines(first, last, window.facts.count),
    }
}

fn endings(window: &Window) -> &'static str {
    use carrel_edit::EndingStyle;
    match window.facts.style() {
        EndingStyle::None => "none",
        EndingStyle::Lf => "lf",
        EndingStyle::CrLf => "crlf",
        EndingStyle::Mixed => "mixed",
    }
}

fn image(
    files: &WorkspaceFiles,
    loaded: LoadedFile,
    path: String,
    mime: &'static str,
) -> ToolResult<Facts> {
    if loaded.bytes.len() > MAX_IMAGE_BYTES {
        let message = format!(
            "{path} is an image of {} bytes; at most {MAX_IMAGE_BYTES} are returned",
            loaded.bytes.len()
        );
        return Err(Failure::new(Code::TooLarge, message).with("path", path));
    }
    let hash = loaded.hash();
    files.record_read(loaded.key, hash, &ReadExtent::Whole);
    let facts = Facts {
        path,
        kind: mime.into(),
        bytes: loaded.bytes.len(),
        hash: hash.short(),
        ..Facts::default()
    };
    Ok(Reply::new(vec![ToolContent::Image { mime, bytes: loaded.bytes }], facts))
}
