//! The tools `render_mermaid` and `render_dot`.
//!
//! A renderer writes its picture outside of the tree, and only a complete one becomes a file of the workspace, by the
//! rules of `Write`: a failure leaves an existing file as it is, and one that the session has not seen is not replaced.

mod picture_format;
mod renderer;

use std::path::Path;
use std::time::Duration;

use carrel_domain::{Code, Failure, ToolGroup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shown;
use super::workspace_files::{WorkspaceFiles, check_given, is_missing, required_path, show_hash};
use crate::blocking::blocking;
use crate::read_tracker::RequiredExtent;
use crate::response::Reply;
use crate::shell::timeout_seconds;
use crate::tool::{About, Effect, Tool, ToolResult};
use crate::tool_context::ToolContext;
use picture_format::PictureFormat;
use renderer::Renderer;

/// Bounds the text of a diagram.
const MAX_SOURCE: usize = 1 << 20;

/// The time of a renderer in seconds, and the most that a call may ask for.
const TIMEOUT: (u64, u64) = (60, 300);

const ABOUT: About = About {
    group: ToolGroup::Code,
    in_default_set: false,
    effect: Effect { destructive: true, idempotent: true, open_world: false },
    ..About::EXECUTE
};

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The text of the diagram.
    #[schemars(extend("x-brief" = ""))]
    source: String,
    /// The picture: a path that ends in `.svg`, `.png` or `.pdf`. Missing directories are created.
    #[schemars(extend("x-brief" = ".svg, .png or .pdf"))]
    output_path: String,
    /// Timeout in seconds; 60 by default, at most 300.
    #[schemars(extend("x-brief" = false))]
    timeout: Option<u64>,
    /// The `hash` of an earlier reply about the picture, instead of reading it again.
    #[schemars(extend("x-brief" = false))]
    expected_hash: Option<String>,
}

/// The facts about a rendered picture.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PictureFacts {
    /// The picture, relative to the workspace.
    path: String,
    created: bool,
    bytes: usize,
    /// `svg`, `png` or `pdf`.
    format: &'static str,
    hash: String,
}

pub(super) struct RenderMermaid;

impl Tool for RenderMermaid {
    type Input = Input;
    type Facts = PictureFacts;

    const ABOUT: About = About {
        name: "render_mermaid",
        title: "Render a Mermaid diagram",
        description: "Renders a Mermaid diagram to a picture with mermaid-cli.",
        ..ABOUT
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<PictureFacts> {
        render(context, input, Renderer::Mermaid).await
    }
}

pub(super) struct RenderDot;

impl Tool for RenderDot {
    type Input = Input;
    type Facts = PictureFacts;

    const ABOUT: About = About {
        name: "render_dot",
        title: "Render a Graphviz diagram",
        description: "Renders a Graphviz diagram to a picture with dot.",
        ..ABOUT
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<PictureFacts> {
        render(context, input, Renderer::Dot).await
    }
}

async fn render(
    context: &ToolContext,
    input: Input,
    renderer: Renderer,
) -> ToolResult<PictureFacts> {
    let format = check(&input)?;
    let timeout = Duration::from_secs(timeout_seconds(input.timeout, TIMEOUT.0, TIMEOUT.1));
    let Input { source, output_path, expected_hash, .. } = input;
    let files = WorkspaceFiles::of(context);
    let picture = Picture { given: output_path, format, expected: expected_hash };
    // A refusal comes before the work; the picture that is there may change until it is replaced.
    let (files, picture, path, source) = blocking(move || {
        files.check_masks(&source, &picture.given)?;
        let path = required_path(&files, "output_path", &picture.given)?;
        picture.check(&files, &path)?;
        Ok((files, picture, path, source))
    })
    .await?;
    let bytes = renderer.run(context, source, format, timeout).await?;
    let mut reply = blocking(move || picture.write(&files, &path, &bytes)).await?;
    show_hash(context, &mut reply.content, &reply.facts.hash);
    Ok(reply)
}

fn check(input: &Input) -> Result<PictureFormat, Failure> {
    check_given("source", input.source.trim())?;
    let bytes = input.source.len();
    if bytes > MAX_SOURCE {
        let message = format!("source {bytes} bytes exceeds cap {MAX_SOURCE}");
        return Err(Failure::new(Code::TooLarge, message));
    }
    check_given("output_path", &input.output_path)?;
    PictureFormat::of(&input.output_path)
}

/// The file that is to be written.
#[derive(Debug)]
struct Picture {
    /// The path as the caller wrote it.
    given: String,
    format: PictureFormat,
    expected: Option<String>,
}

impl Picture {
    /// Refuses to replace a file that the session has not seen as it is.
    fn check(&self, files: &WorkspaceFiles, path: &Path) -> Result<(), Failure> {
        let expected = self.expected.as_deref();
        if is_missing(files.root(), path)? {
            return WorkspaceFiles::check_not_expected(expected, "overwrite", &self.given);
        }
        let loaded = files.load(path)?;
        files.check(&loaded, expected, RequiredExtent::Whole, ("overwrite", &self.given))
    }

    fn write(self, files: &WorkspaceFiles, path: &Path, bytes: &[u8]) -> ToolResult<PictureFacts> {
        let writing = files.writing()?;
        self.check(files, path)?;
        let created = is_missing(files.root(), path)?;
        if created {
            files.create(path, bytes)?;
        } else {
            files.replace(path, &files.load(path)?, bytes)?;
        }
        let hash = files.record_write(path, bytes)?;
        drop(writing);
        let format = self.format.as_str();
        let text = format!("wrote {} bytes to {} ({format})\n", bytes.len(), self.given);
        let path = shown(path);
        Ok(Reply::text(text, PictureFacts { path, created, bytes: bytes.len(), format, hash }))
    }
}
