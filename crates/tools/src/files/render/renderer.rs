//! Renderers: programs of the machine or the project that turn the text of a diagram into a picture.
//!
//! They run in the sandbox without network, with the tree read-only, and write to the directory of artifacts. Chromium,
//! which draws for mermaid-cli, runs inside of this sandbox without its own, and talks to its parent through a pipe
//! instead of a port. At the timeout the whole process tree is killed.

use std::time::Duration;

use carrel_domain::{ByteSize, Code, Failure, Network, NetworkRequest, WorkspaceAccess};
use carrel_exec::{CaptureLimits, Output, Stdin};
use carrel_runner::{ArtifactRequest, CommandForm, Completed};
use carrel_shell::Preset;

use super::PictureFormat;
use crate::shell::{Launch, exit_code, strip_control};
use crate::tool_context::ToolContext;

/// Stands for the directory of the picture in arguments.
const DIRECTORY: &str = "{artifacts}";

/// The exit status of the scripts for a renderer that is not there, which no renderer has.
const NOT_FOUND: i32 = 121;

/// Bounds the output of a renderer that is kept for its message.
const KEPT: CaptureLimits = CaptureLimits { head: ByteSize::kib(4), tail: ByteSize::kib(4) };

/// The limit of a collected artifact, for the message.
const MAX_PICTURE: &str = "10 MiB";

/// Bytes of a renderer's message in a failure.
const MAX_MESSAGE: usize = 2_000;

/// Arguments: the format, the directory of the picture.
const DOT: &str = "command -v dot >/dev/null || exit 121\n\
    exec dot -T\"$1\" -o \"$2/picture.$1\"";

/// Arguments: the format, the directory of the picture. Chromium is looked for first where Debian keeps the program, since
/// its launcher reads settings that a command does not see.
const MERMAID: &str = r#"
renderer=./node_modules/.bin/mmdc
[ -x "$renderer" ] || renderer=$(command -v mmdc) || exit 121
browser=
for name in /usr/lib/chromium/chromium chromium chromium-browser google-chrome-stable google-chrome; do
  if path=$(command -v "$name"); then browser=",\"executablePath\":\"$path\""; break; fi
done
flags='"--no-sandbox","--no-zygote","--disable-gpu","--disable-dev-shm-usage"'
printf '{"pipe":true,"args":[%s]%s}' "$flags" "$browser" >"$2/browser.json" || exit 1
exec "$renderer" --quiet --puppeteerConfigFile "$2/browser.json" --input - --output "$2/picture.$1"
"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renderer {
    Mermaid,
    Dot,
}

impl Renderer {
    /// Renders a diagram and returns the picture.
    pub(super) async fn run(
        self,
        context: &ToolContext,
        source: String,
        format: PictureFormat,
        timeout: Duration,
    ) -> Result<Vec<u8>, Failure> {
        let shell = self.launch(source, format, timeout).start(context).await?;
        let completed = shell.wait(context).await?;
        let picture = self.picture(context, completed, timeout);
        shell.release_output(context);
        picture
    }

    fn launch(self, source: String, format: PictureFormat, timeout: Duration) -> Launch {
        let script = match self {
            Self::Mermaid => MERMAID,
            Self::Dot => DOT,
        };
        let argv = ["/bin/sh", "-c", script, "sh", format.as_str(), DIRECTORY];
        let argv = argv.iter().map(Into::into).collect();
        let mut launch = Launch::new(CommandForm::Argv(argv), self.program());
        launch.own_environment = true;
        let request = &mut launch.request;
        request.preset = Preset::Open;
        request.stdin = Stdin::Bytes(source.into_bytes());
        request.network = NetworkRequest::fixed(Network::None);
        request.access = WorkspaceAccess::ReadOnly;
        request.limits.wall = Some(timeout);
        request.output = Output::Separate { stdout: KEPT, stderr: KEPT };
        request.artifacts = Some(ArtifactRequest {
            placeholder: DIRECTORY,
            names: vec![format!("picture.{}", format.as_str())],
            ..ArtifactRequest::default()
        });
        launch
    }

    /// Returns the picture of a renderer that has succeeded.
    fn picture(
        self,
        context: &ToolContext,
        completed: &Completed,
        timeout: Duration,
    ) -> Result<Vec<u8>, Failure> {
        let tool = context.tool;
        let program = self.program();
        if completed.outcome.timed_out() {
            let message = format!("{tool}: timed out after {}s", timeout.as_secs());
            return Err(Failure::new(Code::Timeout, message));
        }
        match exit_code(completed) {
            0 => {}
            NOT_FOUND => return Err(self.not_found(tool)),
            status => {
                let said = said(context, completed);
                let message = format!("{tool}: {program}: exit status {status}{said}");
                return Err(Failure::argument("source", message));
            }
        }
        let picture = completed.artifacts.files.first().filter(|file| !file.contents.is_empty());
        match picture {
            Some(file) if file.truncated => {
                let message =
                    format!("{tool}: the picture exceeds {MAX_PICTURE}; nothing was written");
                Err(Failure::new(Code::TooLarge, message))
            }
            Some(file) => Ok(file.contents.clone()),
            None => {
                let message =
                    format!("{tool}: {program} left no picture{}", said(context, completed));
                Err(Failure::argument("source", message))
            }
        }
    }

    fn program(self) -> &'static str {
        match self {
            Self::Mermaid => "mmdc",
            Self::Dot => "dot",
        }
    }

    fn not_found(self, tool: &str) -> Failure {
        let what = match self {
            Self::Mermaid => {
                "mermaid-cli (mmdc) not found on PATH — install it in the project with `npm install \
                 --save-dev @mermaid-js/mermaid-cli`, and chromium on this machine"
            }
            Self::Dot => {
                "graphviz (dot) not found on PATH — install the package `graphviz` on this machine"
            }
        };
        Failure::new(Code::SpawnFailed, format!("{tool}: {what}"))
    }
}

/// Returns the beginning of a renderer's messages, without the stack traces of Node.
fn said(context: &ToolContext, completed: &Completed) -> String {
    let guard = context.cut_guard();
    let [stderr, stdout] = [&completed.outcome.stderr, &completed.outcome.stdout]
        .map(|stream| without_traces(&strip_control(&guard.output(stream, usize::MAX))));
    let text = if stderr.is_empty() { stdout } else { stderr };
    let end = text.floor_char_boundary(MAX_MESSAGE);
    if text.is_empty() { text } else { format!(": {}", &text[..end]) }
}

fn without_traces(text: &str) -> String {
    let is_frame = |line: &str| line.trim_start().starts_with("at ") && line.contains(':');
    let kept: Vec<&str> = text.lines().filter(|line| !is_frame(line)).collect();
    kept.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_no_frames_of_a_stack() {
        let text = "Error: Parse error on line 3:\ngraph TD A -->\n    at async f (file:///a.js:1:2)\n\
                    at the end\n    at new P (file:///b.js:3:4)\n";
        assert_eq!(
            without_traces(text),
            "Error: Parse error on line 3:\ngraph TD A -->\nat the end"
        );
    }
}
