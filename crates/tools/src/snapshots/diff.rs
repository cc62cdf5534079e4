//! The tool `snapshot_diff`.

use std::ops::Range;
use std::path::{Path, PathBuf};

use carrel_domain::{Failure, ToolGroup};
use carrel_edit::diff::{Diff, LineChange, Options};
use carrel_edit::{Content, Document};
use carrel_snapshot::{Change, ChangeKind, Comparison, Contents, Node, Renames, Side};
use carrel_wire::SnapshotDiffReply;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::facts;
use super::{MAX_LISTED, inside, listed, reference, some_of, trust};
use crate::blocking::blocking;
use crate::reply_limit::MaxBytes;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// A larger file is only named.
pub(crate) const MAX_COMPARED: u64 = 4 << 20;

/// Texts that do not fit are computed up to this many times the limit of the reply; the other changes are only named.
const MAX_SPENT: usize = 4;

pub(super) struct SnapshotDiff;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The older side: a name, or a number such as `@12`.
    #[schemars(extend("x-brief" = ""))]
    name: String,
    /// The newer side; the present files if there is none.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    to: Option<String>,
    /// Only this file or directory.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    path: Option<String>,
    /// Most bytes of the reply.
    max_bytes: Option<MaxBytes>,
}

impl Tool for SnapshotDiff {
    type Input = Input;
    type Facts = carrel_wire::SnapshotDiff;

    const ABOUT: About = About {
        name: "snapshot_diff",
        title: "Compare with a snapshot",
        group: ToolGroup::Snapshot,
        in_default_set: false,
        description: "Diff from a snapshot to another one, or to the present files.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<carrel_wire::SnapshotDiff> {
        let own = context.clone();
        blocking(move || compare(&own, &input)).await
    }
}

fn compare(context: &ToolContext, input: &Input) -> ToolResult<carrel_wire::SnapshotDiff> {
    let workspace = context.workspace();
    let store = context.toolbox.snapshots.of(workspace)?;
    let old = Side::Snapshot(reference(&input.name)?);
    let new = match &input.to {
        Some(name) => Side::Snapshot(reference(name)?),
        None => Side::Now,
    };
    let path = input.path.as_ref().map(|path| inside(workspace, path)).transpose()?;
    let path = path.map(|path| if path == Path::new(".") { PathBuf::new() } else { path });
    let limit = context.reply_limit(input.max_bytes);
    // Read while the store is held: a collection of garbage drops what was stored only for this.
    let compared = store.compare_and_read(
        &old,
        &new,
        Renames::Joined,
        &trust(context),
        |mut comparison, contents| {
            if let Some(path) = &path {
                comparison.changes.retain(|change| change.path.starts_with(path));
                comparison.incomparable.retain(|(other, _)| other.starts_with(path));
            }
            shown(&comparison, contents, limit)
        },
    );
    let (text, diff) = compared??;
    let shown = text.clone();
    let reply = Reply::text(text, diff);
    Ok(reply.with_data(context.options.interface, |diff| {
        json!(SnapshotDiffReply { diff: diff.clone(), text: shown })
    }))
}

/// Returns the text of a comparison within a limit, and its facts.
fn shown(
    comparison: &Comparison,
    contents: &mut Contents<'_>,
    limit: usize,
) -> Result<(String, carrel_wire::SnapshotDiff), Failure> {
    let mut text = String::new();
    let (mut not_shown, mut not_listed) = (Vec::new(), 0_u64);
    // What did not fit was computed in vain.
    let mut spent = 0;
    for (index, change) in comparison.changes.iter().enumerate() {
        if is_told_by_next(change, comparison.changes.get(index + 1)) {
            continue;
        }
        if text.len() < limit && spent < limit * MAX_SPENT {
            let one = text_of(contents, change)?;
            if text.len() + one.len() <= limit {
                text.push_str(&one);
                continue;
            }
            spent += one.len();
        }
        if not_shown.len() < MAX_LISTED {
            not_shown.push(facts::change(change));
        } else {
            not_listed += 1;
        }
    }
    if comparison.changes.is_empty() {
        line(&mut text, "no differences");
    }
    let not_shown_total = not_shown.len() as u64 + not_listed;
    if !not_shown.is_empty() {
        line(&mut text, &format!("[{not_shown_total} more; name one of them as path:]"));
        for change in &not_shown {
            line(&mut text, &facts::change_line(change));
        }
    }
    let paths = comparison.incomparable.iter().map(|(path, _)| path);
    let (incomparable, incomparable_total) = listed(paths);
    if !incomparable.is_empty() {
        let shown = some_of(&incomparable, incomparable_total);
        line(&mut text, &format!("[not in the snapshot: {shown}]"));
    }
    let diff = carrel_wire::SnapshotDiff {
        changed: comparison.changes.len() as u64,
        changes: comparison.changes.iter().take(MAX_LISTED).map(facts::change).collect(),
        not_shown: not_shown_total,
        incomparable,
        incomparable_total,
    };
    Ok((text, diff))
}

/// Returns whether a directory was made or removed together with what is in it, as the next change says.
fn is_told_by_next(change: &Change, next: Option<&Change>) -> bool {
    let is_directory = |node: &Option<Node>| {
        node.as_ref().is_none_or(|node| matches!(node, Node::Directory { .. }))
    };
    let is_whole = matches!(change.kind, ChangeKind::Added | ChangeKind::Deleted);
    is_whole
        && is_directory(&change.old)
        && is_directory(&change.new)
        && next.is_some_and(|next| next.path.starts_with(&change.path))
}

/// One change in the form of `git diff`, and its size.
#[derive(Debug, Default)]
pub(crate) struct Section {
    pub(crate) text: String,
    /// Added and removed lines, also those that the text leaves out.
    pub(crate) added: u64,
    pub(crate) removed: u64,
    /// Bytes of these lines; of a binary file its new content.
    pub(crate) bytes: u64,
}

fn text_of(contents: &mut Contents<'_>, change: &Change) -> Result<String, Failure> {
    section(contents, change).map(|section| section.text)
}

/// Returns the section of one change.
pub(crate) fn section(contents: &mut Contents<'_>, change: &Change) -> Result<Section, Failure> {
    let new_name = change.path.display().to_string();
    let old_name = match &change.kind {
        ChangeKind::Renamed { from } => from.display().to_string(),
        ChangeKind::Added
        | ChangeKind::Deleted
        | ChangeKind::Modified
        | ChangeKind::Mode
        | ChangeKind::Type => new_name.clone(),
    };
    let (old_mode, new_mode) = (mode(change.old.as_ref()), mode(change.new.as_ref()));
    let mut text = header((&old_name, old_mode), (&new_name, new_mode));
    if let ChangeKind::Renamed { from } = &change.kind {
        let from = from.display();
        line(
            &mut text,
            &format!("similarity index 100%\nrename from {from}\nrename to {new_name}"),
        );
        return Ok(Section { text, ..Section::default() });
    }
    let old = content(contents, change.old.as_ref())?;
    let new = content(contents, change.new.as_ref())?;
    let is_binary = matches!((&old, &new), (Shown::Binary, _) | (_, Shown::Binary));
    let (had, has) = (change.old.is_some(), change.new.is_some());
    let mut section = body(&new_name, (had, old), (has, new));
    section.text.insert_str(0, &text);
    if is_binary && let Some(Node::File { size, .. }) = &change.new {
        section.bytes = *size;
    }
    Ok(section)
}

/// Returns the bytes of ranges of lines, which are in order.
fn bytes_of(text: &str, ranges: &[Range<usize>]) -> u64 {
    let mut lines = text.split_inclusive('\n').enumerate();
    let mut bytes = 0;
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        let in_range = lines.by_ref().skip_while(|(number, _)| *number < range.start);
        bytes += in_range.take(range.len()).map(|(_, line)| line.len() as u64).sum::<u64>();
    }
    bytes
}

/// Returns the first lines of a section, with the modes of entries that are there.
pub(crate) fn header(old: (&str, Option<String>), new: (&str, Option<String>)) -> String {
    let mut text = format!("diff --git a/{} b/{}\n", old.0, new.0);
    match (old.1, new.1) {
        (None, Some(new)) => line(&mut text, &format!("new file mode {new}")),
        (Some(old), None) => line(&mut text, &format!("deleted file mode {old}")),
        (Some(old), Some(new)) if old != new => {
            line(&mut text, &format!("old mode {old}\nnew mode {new}"));
        }
        (None, None) | (Some(_), Some(_)) => {}
    }
    text
}

/// Returns the lines of a section that differ. Each side says whether its entry is there.
pub(crate) fn body(name: &str, old: (bool, Shown), new: (bool, Shown)) -> Section {
    match (old, new) {
        ((_, Shown::Text(old)), (_, Shown::Text(new))) if old == new => Section::default(),
        ((had, Shown::Text(old)), (has, Shown::Text(new))) => {
            let diff = Diff::between(&old, &new, Options::default());
            let sides = |change: &LineChange| (change.old.clone(), change.new.clone());
            let (removed, added): (Vec<_>, Vec<_>) = diff.changes.iter().map(sides).unzip();
            Section {
                text: diff.with_names(had.then_some(name), has.then_some(name)),
                added: diff.added as u64,
                removed: diff.removed as u64,
                bytes: bytes_of(&old, &removed) + bytes_of(&new, &added),
            }
        }
        ((_, Shown::Binary), _) | (_, (_, Shown::Binary)) => Section {
            text: format!("Binary files a/{name} and b/{name} differ\n"),
            ..Section::default()
        },
    }
}

/// The content of one side of a change.
pub(crate) enum Shown {
    Text(String),
    Binary,
}

impl Shown {
    /// Returns the content of a file as text, unless it is none.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        match Content::of(&bytes) {
            Content::Text => Self::Text(Document::decode(bytes).text().to_owned()),
            Content::Image(_) | Content::Binary => Self::Binary,
        }
    }
}

fn content(contents: &mut Contents<'_>, node: Option<&Node>) -> Result<Shown, Failure> {
    match node {
        Some(Node::File { size, .. }) if *size > MAX_COMPARED => Ok(Shown::Binary),
        Some(Node::File { id, .. }) => Ok(Shown::of(contents.get(*id)?)),
        Some(Node::Link { target }) => Ok(Shown::Text(Path::new(target).display().to_string())),
        Some(Node::Directory { .. } | Node::LeftOut(_)) | None => Ok(Shown::Text(String::new())),
    }
}

/// Returns the mode as git writes it.
fn mode(node: Option<&Node>) -> Option<String> {
    match node? {
        Node::File { mode, .. } => Some(format!("100{mode:03o}")),
        Node::Directory { mode, .. } => Some(format!("040{mode:03o}")),
        Node::Link { .. } => Some("120000".to_owned()),
        Node::LeftOut(_) => None,
    }
}
