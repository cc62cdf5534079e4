//! The rows of a recording, as the recorders of all languages write them.
//!
//! A row is a letter and fields, with tabs between them:
//!
//! ```text
//! T  GROUP  NAME        the test of the rows that follow; without a name, the time outside of tests
//! U  PATH   NAME        the same, for a test in a file of the project
//! F  PATH               the file of the rows that follow, absolute or relative to the project
//! L  1-3,7-7            lines that ran, without counts
//! H  1-3:2,7-7:1        lines with the number of times that each ran
//! D  IMPORTPATH  PATH   the directory of a Go package
//! P  ROW                a row of a Go profile: IMPORTPATH/file.go:4.24,6.2 1 3
//! !  TEXT               a gap
//! E                     the end
//! ```
//!
//! Rows of any other form are skipped. Files outside of the workspace and those of dependencies are left out.

use std::collections::{BTreeMap, HashMap};

use super::recording::RecordingBuilder;
use super::{LineHits, LineRun, Recording, TestName};
use crate::parse::{ArtifactFile, ParseContext};
use crate::paths;

/// The places that names of files in a recording are relative to.
#[derive(Clone, Copy, Debug)]
pub struct RecordingPlace<'a> {
    /// Absolute path of the workspace inside of the sandbox.
    pub workspace: &'a str,
    /// Directory of the project, relative to the workspace.
    pub directory: &'a str,
}

/// Reads the files that a recorder left, which are pieces of one text. `None` if there are none.
pub fn read_recording(pieces: &[ArtifactFile], place: RecordingPlace<'_>) -> Option<Recording> {
    if pieces.is_empty() {
        return None;
    }
    let mut pieces: Vec<&ArtifactFile> = pieces.iter().collect();
    pieces.sort_by(|a, b| a.name.cmp(&b.name));
    let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.contents.iter().copied()).collect();
    let text = String::from_utf8_lossy(&bytes);
    let mut reader = RowReader::new(place);
    text.lines().for_each(|row| reader.row(row));
    Some(reader.finish())
}

struct RowReader<'a> {
    place: RecordingPlace<'a>,
    builder: RecordingBuilder,
    test: Option<TestName>,
    /// The file of the next lines, if it belongs to the project.
    file: Option<String>,
    /// Lines of the test so far.
    lines: BTreeMap<String, Vec<LineRun>>,
    /// Directories of Go packages.
    packages: HashMap<String, String>,
    ended: bool,
}

impl<'a> RowReader<'a> {
    fn new(place: RecordingPlace<'a>) -> Self {
        Self {
            place,
            builder: RecordingBuilder::default(),
            test: None,
            file: None,
            lines: BTreeMap::new(),
            packages: HashMap::new(),
            ended: false,
        }
    }

    fn row(&mut self, row: &str) {
        let (letter, rest) = row.split_once('\t').unwrap_or((row, ""));
        match letter {
            "T" => self.begin_test(rest, str::to_owned),
            "U" => {
                let place = self.place;
                let in_workspace = |file: &str| paths::resolve(place.directory, file);
                self.begin_test(rest, |file| in_workspace(file).unwrap_or_else(|| file.to_owned()));
            }
            "F" => self.file = self.file_named(rest),
            "L" => self.add_runs(rest.split(',').filter_map(plain_run)),
            "H" => {
                self.builder.set_counted();
                self.add_runs(rest.split(',').filter_map(counted_run));
            }
            "D" => self.add_package(rest),
            "P" => {
                self.builder.set_counted();
                self.add_profile_row(rest);
            }
            "!" => self.builder.add_gap(rest),
            "E" => self.ended = true,
            _ => {}
        }
    }

    fn begin_test(&mut self, rest: &str, group_of: impl Fn(&str) -> String) {
        self.end_test();
        let (group, name) = rest.split_once('\t').unwrap_or(("", rest));
        self.test = Some(TestName { group: group_of(group), name: name.to_owned() });
    }

    fn end_test(&mut self) {
        self.file = None;
        let lines = std::mem::take(&mut self.lines);
        let Some(test) = self.test.take() else { return };
        for (file, runs) in lines {
            let lines = LineHits::of(runs);
            if test.name.is_empty() {
                self.builder.add_outside(&file, &lines);
            } else {
                self.builder.add(&test, &file, lines);
            }
        }
    }

    fn add_runs(&mut self, runs: impl Iterator<Item = LineRun>) {
        let Some(file) = self.file.clone() else { return };
        self.lines.entry(file).or_default().extend(runs.filter(|run| run.hits > 0));
    }

    fn add_package(&mut self, rest: &str) {
        let Some((package, directory)) = rest.split_once('\t') else { return };
        if let Some(directory) = self.inside(directory) {
            self.packages.insert(package.to_owned(), directory);
        }
    }

    fn add_profile_row(&mut self, row: &str) {
        let Some((name, run)) = profile_row(row) else { return };
        let Some((package, file)) = name.rsplit_once('/') else { return };
        let Some(directory) = self.packages.get(package) else { return };
        if run.hits > 0 {
            let file = paths::join(directory, file);
            self.lines.entry(file).or_default().push(run);
        }
    }

    fn file_named(&self, name: &str) -> Option<String> {
        self.inside(name).filter(|file| ParseContext::is_user_code(file))
    }

    /// Returns a path relative to the workspace; `None` outside of it.
    fn inside(&self, name: &str) -> Option<String> {
        let workspace = self.place.workspace.trim_end_matches('/');
        match name.strip_prefix(workspace) {
            Some("") => Some(paths::TOP.to_owned()),
            Some(rest) if rest.starts_with('/') => paths::resolve(paths::TOP, &rest[1..]),
            _ if name.starts_with('/') || name.is_empty() => None,
            _ => paths::resolve(self.place.directory, name),
        }
    }

    fn finish(mut self) -> Recording {
        self.end_test();
        if !self.ended {
            self.builder
                .add_gap("the recording is cut: it is too large, or its recorder was ended");
        }
        self.builder.finish()
    }
}

fn plain_run(text: &str) -> Option<LineRun> {
    let (first, last) = text.split_once('-')?;
    Some(LineRun { first: first.parse().ok()?, last: last.parse().ok()?, hits: 1 })
}

fn counted_run(text: &str) -> Option<LineRun> {
    let (lines, hits) = text.split_once(':')?;
    Some(LineRun { hits: count(hits)?, ..plain_run(lines)? })
}

/// Reads `NAME:LINE.COLUMN,LINE.COLUMN STATEMENTS COUNT`.
fn profile_row(row: &str) -> Option<(&str, LineRun)> {
    let (name, rest) = row.rsplit_once(':')?;
    let mut fields = rest.split(' ');
    let (begin, end) = fields.next()?.split_once(',')?;
    let line = |place: &str| place.split_once('.')?.0.parse().ok();
    fields.next()?.parse::<u64>().ok()?;
    let hits = count(fields.next()?)?;
    let run = LineRun { first: line(begin)?, last: line(end)?, hits };
    fields.next().is_none().then_some((name, run))
}

/// Counts beyond 32 bits stay at the highest that fits.
fn count(text: &str) -> Option<u32> {
    Some(u32::try_from(text.parse::<u64>().ok()?).unwrap_or(u32::MAX))
}
