//! The tool `repo_map`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use carrel_code::{Definition, MapEntry, MapRequest};
use carrel_domain::ToolGroup;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::AnswerFacts;
use super::outline::cut;
use super::source_file::SourceFile;
use super::symbol_indexes::refresh;
use crate::files::{WorkspaceFiles, run_cancellable, shown};
use crate::reply_limit::MaxBytes;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// Bytes of a map unless the call sets a limit: about a thousand tokens.
const MAP_BYTES: usize = 4_000;

/// The most symbols of a map.
const MAX_SYMBOLS: usize = 2_000;

/// Bytes of a signature in a map.
const MAX_SIGNATURE: usize = 100;

pub(super) struct RepoMap;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// Files or directories whose neighbourhood is wanted; the whole repository by default.
    #[serde(default)]
    #[schemars(extend("x-brief" = "map around these"))]
    files: Vec<String>,
    /// Names that matter.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    names: Vec<String>,
    max_bytes: Option<MaxBytes>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    #[serde(flatten)]
    answer: AnswerFacts,
    /// Symbols that are shown.
    shown: usize,
    files: usize,
}

impl Tool for RepoMap {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "repo_map",
        title: "Map of the repository",
        group: ToolGroup::Code,
        in_default_set: false,
        description: "The most used symbols of the repository, or around given files, by file: a \
            first look at unknown code.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        let files = WorkspaceFiles::of(context);
        let own = context.clone();
        let limit = match input.max_bytes {
            None => MAP_BYTES.min(context.reply_limit(None)),
            asked => context.reply_limit(asked),
        };
        let focus = input.files.iter().map(|path| files.workspace.relative_or_top(Some(path)));
        let focus: Vec<PathBuf> = focus.filter(|path| !path.as_os_str().is_empty()).collect();
        let request = MapRequest { focus, mentioned: input.names, limit: MAX_SYMBOLS };
        run_cancellable(context, move |workspace, cancel| {
            for path in &request.focus {
                workspace.files().metadata(path)?;
            }
            let fresh = refresh(&own, workspace, cancel)?;
            let ranked = fresh.view().map(&request);
            let answer = AnswerFacts::of_index(&fresh);
            let mut chosen = Chosen::default();
            for entry in &ranked {
                if !chosen.add(&own, &files, entry, limit) {
                    break;
                }
            }
            let (shown, count) = (chosen.shown, chosen.rows.len());
            let mut text = chosen.text();
            if shown == 0 {
                line(&mut text, "no symbols that other code uses");
            }
            answer.note().iter().for_each(|note| line(&mut text, note));
            Ok(Reply::text(text, Facts { answer, shown, files: count }))
        })
        .await
    }
}

/// The symbols that fit into the map, by file. Files are in the order of their first symbol's rank.
#[derive(Default)]
struct Chosen {
    order: Vec<PathBuf>,
    rows: BTreeMap<PathBuf, BTreeMap<usize, String>>,
    bytes: usize,
    shown: usize,
}

impl Chosen {
    /// Adds a symbol; false if there is no room for it.
    fn add(
        &mut self,
        context: &ToolContext,
        files: &WorkspaceFiles,
        entry: &MapEntry,
        limit: usize,
    ) -> bool {
        let Definition { file, line, .. } = &entry.definition;
        // A file that vanished since is left out.
        let Ok(source) = SourceFile::load(files, &context.toolbox.symbols, file) else {
            return true;
        };
        let signature = cut(&source.signature(&entry.definition), MAX_SIGNATURE);
        let above =
            entry.definition.path.split_last().map_or(String::new(), |(_, above)| above.join("::"));
        let above = if above.is_empty() { above } else { format!("{above}: ") };
        let row = format!("  {line} {above}{signature}");
        let is_new = !self.rows.contains_key(file);
        let more = row.len() + 1 + if is_new { shown(file).len() + 1 } else { 0 };
        if self.bytes + more > limit {
            return false;
        }
        self.bytes += more;
        if is_new {
            self.order.push(file.clone());
        }
        let rows = self.rows.entry(file.clone()).or_default();
        self.shown += usize::from(rows.insert(*line, row).is_none());
        true
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for file in &self.order {
            line(&mut text, &shown(file));
            self.rows[file].values().for_each(|row| line(&mut text, row));
        }
        text
    }
}
