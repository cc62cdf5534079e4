//! Recordings of coverage that the recorders left in `/w`, and the plans that leave them.

use std::fmt::Write as _;
use std::time::Duration;

use carrel_fsroot::Root;
use carrel_verify::coverage::{
    HitCounts, MAX_RECORDED_TESTS, Recording, RecordingPlace, read_recording,
};
use carrel_verify::parse::ArtifactFile;
use carrel_verify::plan::{
    ARTIFACTS, COVERAGE_PIECES, CoverageLimits, CoveragePlan, KEPT_CACHE, Target, TreeAccess,
    plan_coverage, plan_tests,
};
use carrel_verify::{Profile, detect};
use pretty_assertions::assert_eq;

use crate::fixture::lay_out;
use crate::recorded::WORKSPACE;

const LIMITS: CoverageLimits = CoverageLimits { time: Duration::from_mins(5) };

fn place(directory: &str) -> RecordingPlace<'_> {
    RecordingPlace { workspace: WORKSPACE, directory }
}

fn read(text: &str) -> Recording {
    let piece = ArtifactFile { name: COVERAGE_PIECES[0].to_owned(), contents: text.into() };
    read_recording(&[piece], place(".")).unwrap()
}

/// Reads `tests/recordings/NAME.txt`.
fn recorded(name: &str, directory: &str) -> Recording {
    let root = Root::open(format!("{}/tests/recordings", env!("CARGO_MANIFEST_DIR")).as_ref());
    let contents = root.unwrap().read(format!("{name}.txt").as_ref(), 1 << 20).unwrap();
    let piece = ArtifactFile { name: COVERAGE_PIECES[0].to_owned(), contents };
    read_recording(&[piece], place(directory)).unwrap()
}

/// Returns the tests that run a line, each with the count.
fn tests(recording: &Recording, file: &str, line: u32) -> Vec<(String, u32)> {
    let found = recording.covering(file, Some(line)).into_iter();
    found
        .map(|one| (format!("{} {}", one.test.group, one.test.name), one.lines.hits(line)))
        .collect()
}

fn owned(tests: &[(&str, u32)]) -> Vec<(String, u32)> {
    tests.iter().map(|(test, hits)| ((*test).to_owned(), *hits)).collect()
}

fn gaps(recording: &Recording) -> Vec<&str> {
    recording.gaps().0.iter().map(String::as_str).collect()
}

#[test]
fn pytest_tells_the_lines_of_each_test_and_of_the_import() {
    let recording = recorded("pytest", "py");
    let at = |line| tests(&recording, "py/probe/sums.py", line);
    let each = "py/tests/test_sums.py TestMore::test_each";
    let (low, high) = (format!("{each}[0]"), format!("{each}[5]"));
    let (adds, unit) = ("py/tests/test_sums.py test_adds", "py/tests/test_u.py A::test_a");
    assert_eq!(at(5), owned(&[(&low, 1), (&high, 1), (adds, 1), (unit, 1)]));
    assert_eq!(at(6), owned(&[(&high, 1), (unit, 1)]));
    assert_eq!(at(7), owned(&[(&low, 1), (adds, 1)]));
    assert_eq!(at(11), [], "a line that did not run");
    assert_eq!(at(1), [], "a line that runs at the import");
    let outside = recording.outside("py/probe/sums.py").unwrap();
    assert_eq!(outside.ranges(), [(1, 1), (4, 4), (10, 10)]);
    assert_eq!((recording.tests(), recording.counts()), (4, HitCounts::Unknown));
    assert_eq!(gaps(&recording), [""; 0]);
}

#[test]
fn unittest_tells_the_lines_of_each_test() {
    let recording = recorded("unittest", "py");
    assert_eq!(tests(&recording, "py/probe/sums.py", 6), owned(&[("tests.test_u A.test_a", 1)]));
    assert_eq!(recording.tests(), 1);
}

#[test]
fn go_tells_counts_of_each_test_across_packages_without_those_of_initialisation() {
    let recording = recorded("go", ".");
    let at = |line| tests(&recording, "add.go", line);
    let probe = "example.com/probe TestAdds";
    let (big, twice) = ("example.com/probe TestBig", "example.com/probe/sub TestTwice");
    assert_eq!(at(10), owned(&[(probe, 4), (big, 1), (twice, 1)]));
    assert_eq!(at(12), owned(&[(big, 1)]));
    assert_eq!(at(14), owned(&[(probe, 4), (twice, 1)]));
    assert_eq!(at(6), [], "a function that only initialisation calls");
    assert_eq!(recording.outside("add.go").unwrap().ranges(), [(5, 7)]);
    assert_eq!((recording.tests(), recording.counts()), (3, HitCounts::Counted));
    let lost = "TestHangs of example.com/probe/sub left no profile: it took too long, or its process ended";
    assert_eq!(gaps(&recording), [lost]);
}

#[test]
fn node_tells_counts_of_each_test_file() {
    let recording = recorded("node", "web");
    let at = |line| tests(&recording, "web/lib/sum.js", line);
    let name = "(all tests of the file)";
    let (big, sum) =
        (format!("web/test/big.test.js {name}"), format!("web/test/sum.test.js {name}"));
    assert_eq!(at(3), owned(&[(&big, 1), (&sum, 2)]));
    assert_eq!(at(4), owned(&[(&big, 1)]));
    assert_eq!(at(6), owned(&[(&sum, 2)]));
    assert_eq!(at(10), [], "a function that is never called");
    assert_eq!(recording.files().collect::<Vec<_>>().len(), 3);
}

#[test]
fn the_boundaries_of_a_go_block_belong_to_it_and_zero_counts_do_not_cover() {
    let recording = read(
        "D\texample.com/a\t/w\nT\texample.com/a\tTestA\nP\texample.com/a/x.go:4.2,6.3 1 2\n\
         P\texample.com/a/x.go:8.2,9.3 1 0\nP\texample.com/b/x.go:1.1,2.2 1 1\nE\n",
    );
    let counts: Vec<u32> = (3..=9)
        .map(|line| tests(&recording, "x.go", line).first().map_or(0, |one| one.1))
        .collect();
    assert_eq!(counts, [0, 2, 2, 2, 0, 0, 0]);
    assert_eq!(recording.files().collect::<Vec<_>>(), ["x.go"], "an unknown package is ignored");
}

#[test]
fn rows_of_any_other_form_are_skipped() {
    let rows = "T\tg\tt\nF\ta.py\nL\t3-1,x-2,2,1-,-,4-4\nH\t5-5,6-6:x,7-7:99999999999\nL\nQ\tx\n\nF\t../../b.py\nL\t1-1\n\
                F\t/elsewhere/c.py\nL\t1-1\nF\tnode_modules/d.js\nL\t1-1\nF\t\nL\t1-1\n\
                D\tonly\nP\tx\nP\ta.go:1,2 x y\nE\n";
    let recording = read(rows);
    assert_eq!(recording.files().collect::<Vec<_>>(), ["a.py"]);
    let covering = recording.covering("a.py", None);
    assert_eq!(covering[0].lines.ranges(), [(4, 4), (7, 7)]);
    assert_eq!(covering[0].lines.hits(7), u32::MAX);
    assert_eq!(gaps(&recording), [""; 0]);
}

#[test]
fn control_characters_of_names_and_gaps_reach_no_terminal() {
    let recording = read("T\tg\u{1b}[31m\tt\u{7}\nF\ta\u{1b}.py\nL\t1-1\n!\t\u{1b}[2J\nE\n");
    assert_eq!(tests(&recording, "a?.py", 1), owned(&[("g?[31m t?", 1)]));
    assert_eq!(gaps(&recording), ["?[2J"]);
}

#[test]
fn a_recording_without_its_end_is_cut_and_pieces_are_joined_in_order() {
    let piece = |at: usize, text: &str| ArtifactFile {
        name: COVERAGE_PIECES[at].to_owned(),
        contents: text.into(),
    };
    let whole = [piece(1, "y\nL\t3-3\nE\n"), piece(0, "T\tg\tt\nF\ta.p")];
    let recording = read_recording(&whole, place(".")).unwrap();
    assert_eq!(tests(&recording, "a.py", 3), owned(&[("g t", 1)]));
    let cut = read_recording(&whole[1..], place(".")).unwrap();
    assert_eq!(gaps(&cut), ["the recording is cut: it is too large, or its recorder was ended"]);
    assert_eq!(read_recording(&[], place(".")), None);
}

#[test]
fn hostile_rows_cost_no_more_than_the_bounds() {
    let mut rows = String::new();
    for number in 0..MAX_RECORDED_TESTS + 100 {
        write!(rows, "T\tg\t{number}\nF\tf{number}.py\nL\t1-9999999\n").unwrap();
    }
    write!(rows, "T\t{0}\t{0}\nF\t{0}\nL\t1-1\n", "x".repeat(1 << 20)).unwrap();
    let recording = read(&rows);
    assert!(recording.tests() <= MAX_RECORDED_TESTS);
    assert_eq!(recording.files().count(), carrel_verify::coverage::MAX_COVERED_FILES);
    let beyond = "rows are beyond the bounds of a recording";
    assert!(gaps(&recording).iter().any(|gap| gap.ends_with(beyond)), "{:?}", gaps(&recording));
    assert!(recording.files().all(|file| file.len() <= 400));
}

fn planned(files: &str, tool_line: &str) -> (Profile, CoveragePlan) {
    let workspace = lay_out(files);
    let profile = detect(&workspace.root, ".".as_ref()).profiles[0].clone();
    let invocation = plan_tests(&profile, &Target::default()).unwrap().remove(0);
    assert!(invocation.argv.join(" ").starts_with(tool_line), "{:?}", invocation.argv);
    let plan = plan_coverage(&profile, &invocation, LIMITS).unwrap();
    (profile, plan)
}

fn variable<'a>(plan: &'a CoveragePlan, name: &str) -> &'a str {
    let found = plan.tests.environment.iter().find(|(known, _)| known == name);
    &found.unwrap_or_else(|| panic!("{name} is not set")).1
}

#[test]
fn the_run_of_pytest_and_unittest_records_itself() {
    let (_, plan) = planned("-- conftest.py --\n-- test_a.py --\ndef test_a(): pass\n", "pytest ");
    assert_eq!(variable(&plan, "PYTEST_PLUGINS"), "carrel_coverage");
    assert_eq!(variable(&plan, "PYTHONPATH"), format!("{KEPT_CACHE}/coverage/python"));
    assert_eq!(variable(&plan, "CARREL_COVERAGE"), ARTIFACTS);
    assert_eq!(plan.tests.artifacts.len(), 1 + COVERAGE_PIECES.len());
    assert_eq!(plan.after, None);
    let (_, plan) =
        planned("-- setup.py --\n-- tests/test_a.py --\nimport unittest\n", "python3 -m unittest");
    assert!(plan.tests.argv.join(" ").starts_with("python3 -m carrel_coverage discover"));
}

#[test]
fn go_and_node_are_recorded_after_or_beside_the_usual_run() {
    let (profile, plan) = planned("-- go.mod --\nmodule example.com/a\n", "go test ");
    let usual = plan_tests(&profile, &Target::default()).unwrap().remove(0);
    assert_eq!((plan.before, plan.tests), (None, usual));
    let after = plan.after.unwrap();
    assert_eq!(after.argv[3..5], ["sh", ARTIFACTS]);
    assert_eq!(after.argv[6..], ["290", "60", "5000", ".", "", "./...", "./..."]);
    assert_eq!(after.access, TreeAccess::ReadWrite);
    let manifest = "-- package.json --\n{\"scripts\":{\"test\":\"node --test\"}}\n";
    let (_, plan) = planned(manifest, "node --test ");
    assert_eq!(variable(&plan, "NODE_V8_COVERAGE"), format!("{KEPT_CACHE}/coverage/node/v8"));
    assert_eq!(plan.after.unwrap().artifacts.len(), COVERAGE_PIECES.len());
}

#[test]
fn rust_tests_are_recorded_after_the_usual_run() {
    let (profile, plan) =
        planned("-- Cargo.toml --\n[package]\nname = \"a\"\n-- src/lib.rs --\n", "cargo test ");
    let usual = plan_tests(&profile, &Target::default()).unwrap().remove(0);
    assert_eq!((plan.before, plan.tests), (None, usual));
    let after = plan.after.unwrap();
    assert_eq!(after.argv[5], format!("{KEPT_CACHE}/coverage/rust"));
    assert_eq!(after.argv[6..], ["290", "60", "5000", "", "cargo", "test", "-p", "a"]);
}

#[test]
fn cargo_tells_counts_of_each_test() {
    let recording = recorded("rust", ".");
    let at = |line| tests(&recording, "src/lib.rs", line);
    let (adds, big, it) = ("lib probe tests::adds", "lib probe tests::big", "test it outside");
    assert_eq!(at(4), owned(&[(adds, 4), (big, 1), (it, 1)]));
    assert_eq!(at(6), owned(&[(big, 1)]));
    assert_eq!(at(8), owned(&[(adds, 4), (it, 1)]));
    assert_eq!(at(12), [], "a function that is never called");
    assert_eq!((recording.tests(), recording.counts()), (3, HitCounts::Counted));
}

#[test]
fn a_runner_without_a_recorder_is_named() {
    let manifest = "-- package.json --\n{\"scripts\":{\"test\":\"jest\"},\"devDependencies\":{\"jest\":\"1\"}}\n";
    let workspace = lay_out(manifest);
    let profile = detect(&workspace.root, ".".as_ref()).profiles[0].clone();
    let invocation = plan_tests(&profile, &Target::default()).unwrap().remove(0);
    let refused = plan_coverage(&profile, &invocation, LIMITS).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "recording is not supported for jest yet; it is for pytest, unittest, go test, cargo test, \
         cargo nextest and node --test"
    );
}
