//! The tool `tests_covering`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use carrel_domain::{ToolGroup, suggest};
use carrel_verify::coverage::{CoveringTest, HitCounts, LineHits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::coverage_store::ProjectCoverage;
use super::last_test_runs::{age, now};
use super::record_coverage::hashes;
use crate::files::{check_given, shown};
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// Tests in one reply.
const MAX_SHOWN_TESTS: usize = 200;

/// Files in one reply, where a path names several.
const MAX_SHOWN_FILES: usize = 20;

/// Ranges of lines of one test or file in a reply.
const MAX_SHOWN_RANGES: usize = 12;

/// The text before the first recording.
const NO_DATA: &str = "no coverage data yet — run `run_tests` first, with `coverage: true`";

pub(super) struct TestsCovering;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// A source file, by its path or the end of it.
    #[schemars(extend("x-brief" = "a path or the end of one"))]
    file: String,
    /// Only tests that run this line; all lines by default.
    #[schemars(extend("x-brief" = ""))]
    line: Option<u32>,
}

/// The facts about the tests that run a file or a line.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct CoveringFacts {
    /// The file, relative to the workspace; null if the recording has none or several of the name.
    file: Option<String>,
    /// The line that was asked for.
    line: Option<u32>,
    /// Number of tests.
    count: usize,
    /// The first of them, sorted by group and name.
    tests: Vec<CoveringFact>,
    /// First and last line of each range that any of the tests runs.
    lines: Vec<(u32, u32)>,
    /// True if the file has changed since, so that lines may have moved.
    stale: Option<bool>,
    /// Files of the recording that the path may mean.
    candidates: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CoveringFact {
    /// Package, module or file of the test.
    group: String,
    name: String,
    /// Number of times that it runs the line; null where the tool does not count, and without a line.
    hits: Option<u32>,
    /// First and last line of the first ranges that it runs.
    lines: Vec<(u32, u32)>,
}

impl Tool for TestsCovering {
    type Input = Input;
    type Facts = CoveringFacts;

    const ABOUT: About = About {
        name: "tests_covering",
        title: "Find the tests of a line",
        group: ToolGroup::Code,
        in_default_set: false,
        description: "Lists the tests that run a file or a line, as the last run_tests with \
            `coverage: true` recorded.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<CoveringFacts> {
        let recorded = recorded(context);
        if recorded.is_empty() {
            return Ok(Reply::text(NO_DATA, CoveringFacts::default()));
        }
        check_given("file", input.file.trim())?;
        let path = shown(&context.workspace().relative(input.file.trim()));
        let query = Query { path, line: input.line.filter(|line| *line > 0) };
        let files = query.files(&recorded);
        let reply = match files.len() {
            0 => query.nothing(&recorded),
            1 => query.answer(&recorded, &files[0], is_stale(context, &recorded, &files[0]).await?),
            _ => query.ambiguous(files),
        };
        Ok(reply)
    }
}

/// Returns the recordings of the workspace, also the ones that an earlier process saved.
fn recorded(context: &ToolContext) -> Vec<Arc<ProjectCoverage>> {
    let saved = context.session.state().saved_coverage.take();
    if let Some(saved) = saved {
        context.toolbox.coverage.restore(&saved);
    }
    context.toolbox.coverage.of(context.workspace().path())
}

/// Returns true if the file differs from the recorded one, or is gone.
async fn is_stale(
    context: &ToolContext,
    recorded: &[Arc<ProjectCoverage>],
    file: &str,
) -> Result<bool, carrel_domain::Failure> {
    let now = hashes(context, vec![file.to_owned()]).await?;
    Ok(recorded
        .iter()
        .filter(|coverage| coverage.recording.files_named(file) == [file])
        .any(|coverage| coverage.hashes.get(file) != now.get(file) || !now.contains_key(file)))
}

struct Query {
    path: String,
    line: Option<u32>,
}

impl Query {
    /// Returns the files that the path names. A path that is one is no suffix of others.
    fn files(&self, recorded: &[Arc<ProjectCoverage>]) -> Vec<String> {
        let named = |coverage: &'_ Arc<ProjectCoverage>| {
            let files = coverage.recording.files_named(&self.path).into_iter();
            files.map(str::to_owned).collect::<Vec<_>>()
        };
        let all: BTreeSet<String> = recorded.iter().flat_map(named).collect();
        if all.contains(&self.path) {
            return vec![self.path.clone()];
        }
        all.into_iter().collect()
    }

    fn place(&self, file: &str) -> String {
        self.line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
    }

    fn nothing(&self, recorded: &[Arc<ProjectCoverage>]) -> Reply<CoveringFacts> {
        let mut text = format!("no coverage found for {}\n", self.place(&self.path));
        let near = near(&self.path, recorded);
        if !near.is_empty() {
            line(&mut text, &format!("recorded files with a similar name: {}", near.join(", ")));
        }
        add_gaps(&mut text, recorded);
        let facts = CoveringFacts { line: self.line, candidates: near, ..CoveringFacts::default() };
        Reply::text(text, facts)
    }

    fn ambiguous(&self, files: Vec<String>) -> Reply<CoveringFacts> {
        let mut text =
            format!("{} recorded files end with {}; name one:\n\n", files.len(), self.path);
        for file in files.iter().take(MAX_SHOWN_FILES) {
            line(&mut text, file);
        }
        if files.len() > MAX_SHOWN_FILES {
            line(&mut text, &format!("... ({} more truncated)", files.len() - MAX_SHOWN_FILES));
        }
        let candidates = files.into_iter().take(MAX_SHOWN_FILES).collect();
        let facts = CoveringFacts { line: self.line, candidates, ..CoveringFacts::default() };
        Reply::text(text, facts)
    }

    fn answer(
        &self,
        recorded: &[Arc<ProjectCoverage>],
        file: &str,
        stale: bool,
    ) -> Reply<CoveringFacts> {
        let mut covering: Vec<(CoveringTest<'_>, HitCounts)> = Vec::new();
        for coverage in recorded {
            let counts = coverage.recording.counts();
            let found = coverage.recording.covering(file, self.line);
            covering.extend(found.into_iter().map(|found| (found, counts)));
        }
        covering.sort_by_key(|(found, _)| found.test);
        let all = covering.iter().flat_map(|(found, _)| found.lines.runs().iter().copied());
        let lines = LineHits::of(all).ranges();
        let mut text = self.text(file, &covering);
        if covering.is_empty() {
            self.add_outside(&mut text, file, recorded);
            add_gaps(&mut text, recorded);
        } else if self.line.is_none() {
            line(&mut text, &format!("\nlines that tests run: {}", shown_ranges(&lines)));
        }
        add_age(&mut text, file, stale, recorded);
        let shown = covering.iter().take(MAX_SHOWN_TESTS);
        let facts = CoveringFacts {
            file: Some(file.to_owned()),
            line: self.line,
            count: covering.len(),
            tests: shown.map(|(found, counts)| self.fact(found, *counts)).collect(),
            lines,
            stale: Some(stale),
            candidates: Vec::new(),
        };
        Reply::text(text, facts)
    }

    fn text(&self, file: &str, covering: &[(CoveringTest<'_>, HitCounts)]) -> String {
        if covering.is_empty() {
            return format!("no coverage found for {}\n", self.place(file));
        }
        let mut text = format!("{} test(s) cover {}:\n", covering.len(), self.place(file));
        let mut group = None;
        for (found, counts) in covering.iter().take(MAX_SHOWN_TESTS) {
            if group != Some(&found.test.group) {
                group = Some(&found.test.group);
                line(&mut text, &format!("\n{}:", found.test.group));
            }
            line(&mut text, &format!("  {}{}", found.test.name, self.detail(found, *counts)));
        }
        if covering.len() > MAX_SHOWN_TESTS {
            line(&mut text, &format!("... ({} more truncated)", covering.len() - MAX_SHOWN_TESTS));
        }
        text
    }

    /// Returns the count of the line, or the lines of the file.
    fn detail(&self, found: &CoveringTest<'_>, counts: HitCounts) -> String {
        match (self.line, counts) {
            (Some(_), HitCounts::Unknown) => String::new(),
            (Some(line), HitCounts::Counted) => match found.lines.hits(line) {
                1 => " (1 hit)".to_owned(),
                hits => format!(" ({hits} hits)"),
            },
            (None, _) => format!(" (lines {})", shown_ranges(&found.lines.ranges())),
        }
    }

    fn fact(&self, found: &CoveringTest<'_>, counts: HitCounts) -> CoveringFact {
        let counted = self.line.filter(|_| counts == HitCounts::Counted);
        let ranges = found.lines.ranges().into_iter();
        CoveringFact {
            group: found.test.group.clone(),
            name: found.test.name.clone(),
            hits: counted.map(|line| found.lines.hits(line)),
            lines: ranges.take(MAX_SHOWN_RANGES).collect(),
        }
    }

    /// Says that a line runs while modules are loaded, which no test does by itself.
    fn add_outside(&self, text: &mut String, file: &str, recorded: &[Arc<ProjectCoverage>]) {
        let outside = recorded.iter().filter_map(|coverage| coverage.recording.outside(file));
        let is_run = |lines: &LineHits| self.line.is_none_or(|line| lines.hits(line) > 0);
        if outside.into_iter().any(is_run) {
            line(text, "it runs outside of tests, when its module is loaded or initialised");
        }
    }
}

/// Returns the files of the same name, else the one whose name is most like it.
fn near(path: &str, recorded: &[Arc<ProjectCoverage>]) -> Vec<String> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let files: BTreeSet<&str> =
        recorded.iter().flat_map(|coverage| coverage.recording.files()).collect();
    let wanted = name(path);
    let same = files.iter().filter(|file| name(file) == wanted);
    let mut found: Vec<String> =
        same.take(MAX_SHOWN_FILES).map(|file| (*file).to_owned()).collect();
    if found.is_empty() {
        let names: BTreeSet<String> = files.iter().map(|file| name(file)).collect();
        let allowance = |candidate: &str| (candidate.len() / 3).max(1);
        let closest = suggest::closest(&wanted, names.iter().map(String::as_str), allowance);
        let like = files.iter().filter(|file| closest.is_some_and(|closest| name(file) == closest));
        found.extend(like.take(MAX_SHOWN_FILES).map(|file| (*file).to_owned()));
    }
    found
}

fn add_gaps(text: &mut String, recorded: &[Arc<ProjectCoverage>]) {
    for coverage in recorded {
        for gap in coverage.recording.gaps().0.iter().take(3) {
            line(text, &format!("gap of the recording: {gap}"));
        }
    }
}

fn add_age(text: &mut String, file: &str, stale: bool, recorded: &[Arc<ProjectCoverage>]) {
    let own = recorded.iter().filter(|one| one.recording.files_named(file) == [file]);
    for coverage in own {
        let mut said = format!("recorded {}", age(now().saturating_sub(coverage.at)));
        if coverage.is_part {
            said.push_str(", from a run of a part of the tests");
        }
        if stale {
            let _ = write!(said, ", before the last change of {file}: lines may have moved");
        }
        line(text, &format!("\n{said}"));
    }
}

fn shown_ranges(ranges: &[(u32, u32)]) -> String {
    let range = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let shown: Vec<String> = ranges.iter().take(MAX_SHOWN_RANGES).map(range).collect();
    let more = if ranges.len() > MAX_SHOWN_RANGES { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
