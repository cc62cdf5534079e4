//! Plans that record which tests run which lines.
//!
//! Each language has a recorder, a small program that runs in the sandbox and leaves the rows that
//! [`crate::coverage`] reads. Its files lie in the directory of caches, and the recording in that of reports, so
//! nothing is written to the tree:
//!
//! | tests | recorder | unit |
//! |---|---|---|
//! | pytest, unittest | a plugin with coverage.py, in the test run itself | test |
//! | `go test` | after the run: each package compiled once, one process for each test | test |
//! | cargo, nextest | after the run: test binaries with instrumentation, one process for each test | test |
//! | `node --test` | V8's own counts of the processes of the run, read after it | test file |
//!
//! Other runners have none, which [`NoCoverage`] says.

use std::time::Duration;

use crate::plan::{Artifact, Invocation, KEPT_CACHE, ReportFormat, TreeAccess};
use crate::profile::{Profile, ProfileField, args, has_word, words};
use crate::tool::ProjectTool;

/// Names of the files of a recording, in order; each has at most 8 MiB.
pub const COVERAGE_PIECES: [&str; 8] = [
    "coverage.a",
    "coverage.b",
    "coverage.c",
    "coverage.d",
    "coverage.e",
    "coverage.f",
    "coverage.g",
    "coverage.h",
];

const PYTHON: &str = include_str!("coverage/carrel_coverage.py");
const GO: &str = include_str!("coverage/go.sh");
const RUST: &str = include_str!("coverage/rust.sh");
const NODE_MAIN: &str = include_str!("coverage/node_main.cjs");
const NODE_EXPORT: &str = include_str!("coverage/node_export.cjs");

/// Bounds one test that runs in a process of its own.
const MAX_TEST_TIME: Duration = Duration::from_mins(1);

/// Bounds the tests that run in a process of their own.
const MAX_PROCESSES: usize = 5_000;

/// Time of the limit that is kept for joining the profiles.
const RESERVED: Duration = Duration::from_secs(10);

/// Writes a file: directory, name, text.
const WRITE_FILE: &str = "mkdir -p \"$1\" && printf %s \"$3\" >\"$1/$2\"";

/// Writes a file and clears the directory of an earlier run: directory, name, text, other directory.
const WRITE_FILE_AND_CLEAR: &str =
    "rm -rf \"$4\"; mkdir -p \"$1\" \"$4\" && printf %s \"$3\" >\"$1/$2\"";

/// The commands of a run that records coverage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveragePlan {
    /// Writes the files of the recorder.
    pub before: Option<Invocation>,
    /// The run of the tests, which may leave [`COVERAGE_PIECES`].
    pub tests: Invocation,
    /// Leaves [`COVERAGE_PIECES`].
    pub after: Option<Invocation>,
    /// Removes the files of the recorder, without which the workspace would stay over its quota.
    pub removal: Invocation,
}

/// Bounds of the commands that run after the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoverageLimits {
    /// Time for all of them.
    pub time: Duration,
}

/// The reason why a run cannot be recorded. Its tests run all the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCoverage {
    /// The runner has no recorder.
    #[error(
        "recording is not supported for {} yet; it is for pytest, unittest, go test, cargo test, \
         cargo nextest and node --test",
        .0.name()
    )]
    Unsupported(ProjectTool),
}

/// Plans the recording of a run.
pub fn plan_coverage(
    profile: &Profile,
    invocation: &Invocation,
    limits: CoverageLimits,
) -> Result<CoveragePlan, NoCoverage> {
    match invocation.tool {
        ProjectTool::Pytest => Ok(pytest(invocation)),
        ProjectTool::Unittest => Ok(unittest(invocation)),
        ProjectTool::GoTest => Ok(go(profile, invocation, limits)),
        ProjectTool::CargoTest | ProjectTool::Nextest => Ok(rust(invocation, limits)),
        ProjectTool::NodeTest => Ok(node(invocation)),
        tool => Err(NoCoverage::Unsupported(tool)),
    }
}

fn pytest(invocation: &Invocation) -> CoveragePlan {
    let mut plan = python(invocation);
    set(&mut plan.tests, "PYTEST_PLUGINS", "carrel_coverage", ",");
    plan
}

fn unittest(invocation: &Invocation) -> CoveragePlan {
    let mut plan = python(invocation);
    if let Some(module) = plan.tests.argv.iter_mut().find(|word| *word == "unittest") {
        "carrel_coverage".clone_into(module);
    }
    plan
}

fn python(invocation: &Invocation) -> CoveragePlan {
    let directory = format!("{KEPT_CACHE}/coverage/python");
    let write = ["sh", "-c", WRITE_FILE, "sh", &directory, "carrel_coverage.py", PYTHON];
    let mut tests = with_pieces(invocation.clone());
    set(&mut tests, "PYTHONPATH", &directory, ":");
    set(&mut tests, "CARREL_COVERAGE", super::ARTIFACTS, "");
    let before = Some(command(invocation, args(&write)));
    CoveragePlan { before, tests, after: None, removal: removal(invocation) }
}

fn node(invocation: &Invocation) -> CoveragePlan {
    let directory = format!("{KEPT_CACHE}/coverage/node");
    let raw = format!("{directory}/v8");
    let write = ["sh", "-c", WRITE_FILE_AND_CLEAR, "sh", &directory, "main.cjs", NODE_MAIN, &raw];
    let mut tests = invocation.clone();
    set(&mut tests, "NODE_V8_COVERAGE", &raw, "");
    set(&mut tests, "NODE_OPTIONS", &format!("--require={directory}/main.cjs"), " ");
    let export = "exec node -e \"$1\" -- \"$2\" \"$3\" \"$PWD\"";
    let export = ["sh", "-c", export, "sh", NODE_EXPORT, super::ARTIFACTS, &raw];
    CoveragePlan {
        before: Some(command(invocation, args(&write))),
        tests,
        after: Some(with_pieces(command(invocation, args(&export)))),
        removal: removal(invocation),
    }
}

fn go(profile: &Profile, invocation: &Invocation, limits: CoverageLimits) -> CoveragePlan {
    let GoWords { flags, names, packages } = go_words(&invocation.argv);
    let measured = match profile.command(ProfileField::Test) {
        Some(command) => go_words(&command.argv).packages,
        None => packages.clone(),
    };
    let own = vec![names, flags.join(" "), measured.join(",")];
    one_process_each(invocation, limits, (GO, "go"), [own, packages].concat())
}

fn rust(invocation: &Invocation, limits: CoverageLimits) -> CoveragePlan {
    let CargoWords { build, names } = cargo_words(&invocation.argv);
    one_process_each(invocation, limits, (RUST, "rust"), [vec![names], build].concat())
}

/// Plans a script that runs after the tests, each of them in a process of its own.
fn one_process_each(
    invocation: &Invocation,
    limits: CoverageLimits,
    (script, language): (&str, &str),
    own: Vec<String>,
) -> CoveragePlan {
    let seconds = |time: Duration| time.as_secs().max(1).to_string();
    let work = format!("{KEPT_CACHE}/coverage/{language}");
    let time = seconds(limits.time.saturating_sub(RESERVED));
    let each = seconds(MAX_TEST_TIME.min(limits.time));
    let most = MAX_PROCESSES.to_string();
    let argv = args(&["sh", "-c", script, "sh", super::ARTIFACTS, &work, &time, &each, &most]);
    let after = Some(with_pieces(command(invocation, [argv, own].concat())));
    CoveragePlan { before: None, tests: invocation.clone(), after, removal: removal(invocation) }
}

/// The parts of a `cargo test` or `cargo nextest run` command that its recorder needs.
#[derive(Debug, PartialEq, Eq)]
struct CargoWords {
    /// The command that builds the test binaries.
    build: Vec<String>,
    /// Part of the names of tests; empty for all.
    names: String,
}

/// Options of cargo that choose packages, targets and features.
const CARGO_OPTIONS: &str = "--workspace --all --lib --bins --tests --examples --benches --all-targets \
    --all-features --no-default-features --release --locked --offline --frozen";

/// The same, with a value as the next word or after `=`.
const CARGO_VALUES: &str =
    "-p --package --exclude --test --bin --example --bench -F --features --manifest-path --target";

/// Other options whose value is the next word.
const OTHER_VALUES: &str = "-E --filterset --profile -P --message-format --color -j --jobs";

fn cargo_words(argv: &[String]) -> CargoWords {
    let toolchain = argv.get(1).filter(|word| word.starts_with('+')).cloned();
    let mut build: Vec<String> = words("cargo").into_iter().chain(toolchain).collect();
    build.push("test".to_owned());
    let mut names = String::new();
    let mut rest = argv.iter().skip_while(|word| *word != "test" && *word != "run").skip(1);
    while let Some(word) = rest.next() {
        let option = word.split('=').next().unwrap_or(word);
        if has_word(CARGO_OPTIONS, word) {
            build.push(word.clone());
        } else if has_word(CARGO_VALUES, option) {
            build.push(word.clone());
            if !word.contains('=') {
                build.extend(rest.next().cloned());
            }
        } else if has_word(OTHER_VALUES, word) {
            rest.next();
        } else if !word.starts_with('-') && names.is_empty() {
            word.clone_into(&mut names);
        }
    }
    CargoWords { build, names }
}

/// The parts of a `go test` command that its recorder needs.
#[derive(Debug, PartialEq, Eq)]
struct GoWords {
    /// Flags that change the build.
    flags: Vec<String>,
    /// Pattern of the names of tests.
    names: String,
    packages: Vec<String>,
}

/// Flags of `go test` that change the build; those with a value are given as one word or as two.
const GO_BUILD_FLAGS: [&str; 4] = ["-race", "-tags", "-mod", "-modfile"];

/// Flags of `go test` whose value may be the next word.
const GO_VALUES: [&str; 12] = [
    "-run",
    "-skip",
    "-tags",
    "-mod",
    "-modfile",
    "-timeout",
    "-count",
    "-p",
    "-parallel",
    "-cpu",
    "-bench",
    "-ldflags",
];

fn go_words(argv: &[String]) -> GoWords {
    let mut found = GoWords { flags: Vec::new(), names: ".".to_owned(), packages: Vec::new() };
    let mut rest = argv.iter().skip_while(|word| *word != "test").skip(1);
    while let Some(word) = rest.next() {
        let (flag, mut value) = match word.split_once('=') {
            Some((flag, value)) if flag.starts_with('-') => (flag, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        if !flag.starts_with('-') {
            found.packages.push(word.clone());
            continue;
        }
        if value.is_none() && GO_VALUES.contains(&flag) {
            value = rest.next().cloned();
        }
        match (flag, value) {
            // Below the first slash are names of subtests, which run with their parent.
            ("-run", Some(value)) => {
                value.split('/').next().unwrap_or_default().clone_into(&mut found.names);
            }
            (flag, value) if GO_BUILD_FLAGS.contains(&flag) => {
                found.flags.push(value.map_or(flag.to_owned(), |value| format!("{flag}={value}")));
            }
            _ => {}
        }
    }
    if found.packages.is_empty() {
        found.packages.push(".".to_owned());
    }
    found
}

fn removal(invocation: &Invocation) -> Invocation {
    command(invocation, args(&["rm", "-rf", &format!("{KEPT_CACHE}/coverage")]))
}

/// Returns a command in the directory and environment of a test run.
fn command(invocation: &Invocation, argv: Vec<String>) -> Invocation {
    Invocation {
        argv,
        report: ReportFormat::Text,
        artifacts: Vec::new(),
        tool: ProjectTool::Other,
        access: TreeAccess::ReadWrite,
        ..invocation.clone()
    }
}

fn with_pieces(mut invocation: Invocation) -> Invocation {
    let pieces = COVERAGE_PIECES.map(|name| Artifact::Private { name: name.to_owned() });
    invocation.artifacts.extend(pieces);
    invocation
}

/// Sets a variable, before the value that the project's own command gives it.
fn set(invocation: &mut Invocation, name: &str, value: &str, separator: &str) {
    match invocation.environment.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) if !separator.is_empty() => *known = format!("{value}{separator}{known}"),
        Some((_, known)) => value.clone_into(known),
        None => invocation.environment.push((name.to_owned(), value.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorder_of_go_gets_build_flags_names_and_packages() {
        let cases = [
            ("go test -json -count=1 ./...", (words(""), ".", words("./..."))),
            (
                "go test -tags a,b -race -run ^TestA/b$ -timeout 5m ./x ./y/...",
                (words("-tags=a,b -race"), "^TestA", words("./x ./y/...")),
            ),
            ("go test -mod=vendor -v", (words("-mod=vendor"), ".", words("."))),
        ];
        for (line, (flags, names, packages)) in cases {
            let expected = GoWords { flags, names: names.to_owned(), packages };
            assert_eq!(go_words(&words(line)), expected, "{line}");
        }
    }

    #[test]
    fn the_recorder_of_rust_gets_packages_targets_features_and_a_name() {
        let cases = [
            (
                "cargo test --workspace --no-fail-fast --message-format=json",
                "cargo test --workspace",
                "",
            ),
            (
                "cargo +nightly test -p a --test it --features=x --no-fail-fast --message-format=json -- adds",
                "cargo +nightly test -p a --test it --features=x",
                "adds",
            ),
            (
                "cargo nextest run -p a --lib b::c --no-fail-fast --message-format libtest-json-plus -E test(=x)",
                "cargo test -p a --lib",
                "b::c",
            ),
            ("cargo test -p a -- --test-threads=1 --nocapture", "cargo test -p a", ""),
        ];
        for (line, build, names) in cases {
            let expected = CargoWords { build: words(build), names: names.to_owned() };
            assert_eq!(cargo_words(&words(line)), expected, "{line}");
        }
    }
}
