//! The recording of one project: its tests, and the lines of each file that they run.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::LineHits;

/// Bounds the tests of one recording.
pub const MAX_RECORDED_TESTS: usize = 20_000;

/// Bounds the files of one recording.
pub const MAX_COVERED_FILES: usize = 5_000;

/// Bounds the ranges of lines of one recording, at twelve bytes each.
const MAX_RUNS: usize = 2_000_000;

/// Bounds the pairs of a test and a file of one recording, at eight bytes each.
const MAX_PAIRS: usize = 1_000_000;

/// Bounds the sentences about tests and files without a recording.
const MAX_GAPS: usize = 20;

/// Bounds the bytes of a name or a sentence.
const MAX_TEXT: usize = 400;

/// The meaning of the counts of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HitCounts {
    /// The tool tells the lines that ran, and not how often.
    #[default]
    Unknown,
    /// The number of times that a line ran.
    Counted,
}

/// A test in the group by which replies list it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TestName {
    /// Package, module or file.
    pub group: String,
    /// Name in the group.
    pub name: String,
}

/// The lines that each test of a project ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    tests: Vec<TestName>,
    files: BTreeMap<String, FileCoverage>,
    counts: HitCounts,
    gaps: Vec<String>,
    /// Number of gaps beyond [`MAX_GAPS`].
    gaps_omitted: usize,
}

/// The lines of one file. Tests mostly run the same ones, so equal sets of lines are kept once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct FileCoverage {
    lines: Vec<LineHits>,
    /// Indexes of a test and of the lines that it ran.
    tests: Vec<(u32, u32)>,
    /// Lines that ran outside of tests, while modules were loaded.
    outside: LineHits,
}

/// A test that runs the file or the line that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the types say it")]
pub struct CoveringTest<'a> {
    pub test: &'a TestName,
    /// Lines of the file that it runs.
    pub lines: &'a LineHits,
}

impl Recording {
    /// Returns the number of tests.
    pub fn tests(&self) -> usize {
        self.tests.len()
    }

    /// Returns the files, relative to the workspace.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Returns the meaning of the counts.
    pub fn counts(&self) -> HitCounts {
        self.counts
    }

    /// Returns sentences about tests and files without a recording, and the number that is left out.
    pub fn gaps(&self) -> (&[String], usize) {
        (&self.gaps, self.gaps_omitted)
    }

    /// Returns the files that a path names: itself, or the ones that end with it after a slash.
    pub fn files_named(&self, path: &str) -> Vec<&str> {
        if let Some((file, _)) = self.files.get_key_value(path) {
            return vec![file];
        }
        let is_suffix = |file: &&str| {
            file.strip_suffix(path).is_some_and(|start| start.ends_with('/') && !path.is_empty())
        };
        self.files().filter(is_suffix).collect()
    }

    /// Returns the tests that run a line of a file, or any line of it, sorted by name.
    pub fn covering(&self, file: &str, line: Option<u32>) -> Vec<CoveringTest<'_>> {
        let Some(covered) = self.files.get(file) else { return Vec::new() };
        let mut found: Vec<CoveringTest<'_>> = covered
            .tests
            .iter()
            .filter_map(|&(test, lines)| {
                let test = self.tests.get(test as usize)?;
                Some(CoveringTest { test, lines: covered.lines.get(lines as usize)? })
            })
            .filter(|found| line.is_none_or(|line| found.lines.hits(line) > 0))
            .collect();
        found.sort_by_key(|found| found.test);
        // A test that ran twice, in two processes for example, is one.
        found.dedup_by_key(|found| found.test);
        found
    }

    /// Returns the lines of a file that ran outside of tests, while modules were loaded.
    pub fn outside(&self, file: &str) -> Option<&LineHits> {
        self.files.get(file).map(|covered| &covered.outside).filter(|lines| !lines.is_empty())
    }

    /// Adds a sentence about tests or files without a recording.
    pub fn add_gap(&mut self, text: &str) {
        if self.gaps.len() < MAX_GAPS {
            self.gaps.push(bounded(text));
        } else {
            self.gaps_omitted += 1;
        }
    }

    /// Adds the tests and lines of another command of the same project.
    pub fn add(&mut self, other: &Self) {
        let mut builder = RecordingBuilder::of(std::mem::take(self));
        builder.recording.counts = other.counts;
        for (file, covered) in &other.files {
            builder.add_outside(file, &covered.outside);
            for &(test, lines) in &covered.tests {
                let pair = (other.tests.get(test as usize), covered.lines.get(lines as usize));
                if let (Some(test), Some(lines)) = pair {
                    builder.add(test, file, lines.clone());
                }
            }
        }
        *self = builder.finish();
        other.gaps.iter().for_each(|gap| self.add_gap(gap));
        self.gaps_omitted += other.gaps_omitted;
    }
}

/// Builds a recording within its bounds.
#[derive(Debug, Default)]
pub(super) struct RecordingBuilder {
    recording: Recording,
    tests: HashMap<TestName, u32>,
    lines: HashMap<(String, LineHits), u32>,
    runs: usize,
    pairs: usize,
    beyond_bounds: usize,
}

impl RecordingBuilder {
    fn of(recording: Recording) -> Self {
        let mut builder = Self::default();
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        builder.tests = recording
            .tests
            .iter()
            .cloned()
            .enumerate()
            .map(|(at, test)| (test, number(at)))
            .collect();
        for (file, covered) in &recording.files {
            builder.pairs += covered.tests.len();
            for (at, lines) in covered.lines.iter().enumerate() {
                builder.runs += lines.runs().len();
                builder.lines.insert((file.clone(), lines.clone()), number(at));
            }
        }
        builder.recording = recording;
        builder
    }

    pub(super) fn set_counted(&mut self) {
        self.recording.counts = HitCounts::Counted;
    }

    pub(super) fn add_gap(&mut self, text: &str) {
        self.recording.add_gap(text);
    }

    /// Adds lines that ran outside of tests to those of other processes.
    pub(super) fn add_outside(&mut self, file: &str, lines: &LineHits) {
        if lines.is_empty() || !self.has_room(file, lines) {
            return;
        }
        self.runs += lines.runs().len();
        let covered = self.recording.files.entry(bounded(file)).or_default();
        let all = covered.outside.runs().iter().chain(lines.runs()).copied();
        covered.outside = LineHits::of(all);
    }

    /// Adds the lines of a file that a test ran.
    pub(super) fn add(&mut self, test: &TestName, file: &str, lines: LineHits) {
        if lines.is_empty() || !self.has_room(file, &lines) {
            return;
        }
        let Some(test) = self.number_of(test) else {
            self.beyond_bounds += 1;
            return;
        };
        let file = bounded(file);
        let covered = self.recording.files.entry(file.clone()).or_default();
        let next = u32::try_from(covered.lines.len()).unwrap_or(u32::MAX);
        let runs = lines.runs().len();
        let number = *self.lines.entry((file, lines.clone())).or_insert(next);
        if number == next {
            covered.lines.push(lines);
            self.runs += runs;
        }
        covered.tests.push((test, number));
        self.pairs += 1;
    }

    fn has_room(&mut self, file: &str, lines: &LineHits) -> bool {
        let is_known = self.recording.files.contains_key(file);
        let has_room = (is_known || self.recording.files.len() < MAX_COVERED_FILES)
            && self.runs + lines.runs().len() <= MAX_RUNS
            && self.pairs < MAX_PAIRS;
        self.beyond_bounds += usize::from(!has_room);
        has_room
    }

    fn number_of(&mut self, test: &TestName) -> Option<u32> {
        let TestName { group, name } = test;
        let test = TestName { group: bounded(group), name: bounded(name) };
        if let Some(number) = self.tests.get(&test) {
            return Some(*number);
        }
        if self.recording.tests.len() >= MAX_RECORDED_TESTS {
            return None;
        }
        let number = u32::try_from(self.recording.tests.len()).ok()?;
        self.recording.tests.push(test.clone());
        self.tests.insert(test, number);
        Some(number)
    }

    pub(super) fn finish(mut self) -> Recording {
        if self.beyond_bounds > 0 {
            let text = format!("{} rows are beyond the bounds of a recording", self.beyond_bounds);
            self.recording.add_gap(&text);
        }
        self.recording
    }
}

/// Returns the beginning of a name or a sentence, without the control characters that a terminal obeys.
fn bounded(text: &str) -> String {
    let start = &text[..text.floor_char_boundary(MAX_TEXT)];
    start.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::coverage::LineRun;

    fn lines(first: u32, last: u32, hits: u32) -> LineHits {
        LineHits::of([LineRun { first, last, hits }])
    }

    fn test(name: &str) -> TestName {
        TestName { group: "a".to_owned(), name: name.to_owned() }
    }

    fn names<'a>(found: &[CoveringTest<'a>]) -> Vec<&'a str> {
        found.iter().map(|found| found.test.name.as_str()).collect()
    }

    #[test]
    fn a_file_is_found_by_its_path_and_by_each_suffix_after_a_slash() {
        let mut builder = RecordingBuilder::default();
        for file in ["src/a/lib.rs", "src/b/lib.rs", "xlib.rs"] {
            builder.add(&test("t"), file, lines(1, 2, 1));
        }
        let recording = builder.finish();
        assert_eq!(recording.files_named("src/a/lib.rs"), ["src/a/lib.rs"]);
        assert_eq!(recording.files_named("a/lib.rs"), ["src/a/lib.rs"]);
        assert_eq!(recording.files_named("lib.rs"), ["src/a/lib.rs", "src/b/lib.rs"]);
        assert_eq!(recording.files_named("ib.rs"), Vec::<&str>::new());
        assert_eq!(recording.files_named(""), Vec::<&str>::new());
    }

    #[test]
    fn a_line_that_did_not_run_is_covered_by_nothing() {
        let mut builder = RecordingBuilder::default();
        builder.add(&test("zero"), "a.rs", lines(1, 9, 0));
        builder.add(&test("b"), "a.rs", lines(4, 6, 3));
        builder.add(&test("a"), "a.rs", lines(6, 6, 1));
        let recording = builder.finish();
        assert_eq!(recording.tests(), 2, "a test that ran nothing of the project is not in it");
        let at = |line| names(&recording.covering("a.rs", line));
        assert_eq!(at(Some(6)), ["a", "b"]);
        assert_eq!(at(Some(4)), ["b"]);
        assert_eq!(at(Some(7)), Vec::<&str>::new());
        assert_eq!(at(None), ["a", "b"]);
    }

    #[test]
    fn equal_lines_are_kept_once_and_a_saved_recording_is_the_same() {
        let mut builder = RecordingBuilder::default();
        for number in 0..100 {
            builder.add(&test(&number.to_string()), "a.rs", lines(1, 5, 1));
        }
        builder.add_outside("a.rs", &lines(8, 8, 1));
        builder.add_gap("x");
        let recording = builder.finish();
        assert_eq!(recording.files["a.rs"].lines.len(), 1);
        let saved = serde_json::to_value(&recording).unwrap();
        assert_eq!(serde_json::from_value::<Recording>(saved).unwrap(), recording);
    }

    #[test]
    fn recordings_of_two_commands_are_joined() {
        let mut first = RecordingBuilder::default();
        first.add(&test("a"), "a.rs", lines(1, 2, 1));
        let mut joined = first.finish();
        let mut second = RecordingBuilder::default();
        second.add(&test("b"), "a.rs", lines(2, 3, 1));
        second.add(&test("b"), "b.rs", lines(7, 7, 1));
        second.add_gap("one");
        joined.add(&second.finish());
        assert_eq!(names(&joined.covering("a.rs", Some(2))), ["a", "b"]);
        assert_eq!(names(&joined.covering("b.rs", None)), ["b"]);
        assert_eq!(joined.gaps(), (&["one".to_owned()][..], 0));
    }

    #[test]
    fn tests_and_gaps_beyond_the_bounds_are_counted() {
        let mut builder = RecordingBuilder::default();
        for number in 0..MAX_RECORDED_TESTS + 3 {
            builder.add(&test(&number.to_string()), "a.rs", lines(1, 1, 1));
        }
        let mut recording = builder.finish();
        assert_eq!(recording.tests(), MAX_RECORDED_TESTS);
        assert_eq!(recording.gaps().0, ["3 rows are beyond the bounds of a recording"]);
        (0..MAX_GAPS + 4).for_each(|_| recording.add_gap("x"));
        assert_eq!((recording.gaps().0.len(), recording.gaps().1), (MAX_GAPS, 5));
    }
}
