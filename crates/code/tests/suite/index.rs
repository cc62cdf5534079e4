//! The symbol index over real directories: questions, changes, and the index on disk.

use std::path::Path;
use std::time::{Duration, Instant};

use carrel_code::{
    MapRequest, NamePath, SearchRequest, SkipReason, StoredIndexError, SymbolIndex, SymbolKind,
};
use carrel_fsroot::Root;
use carrel_search::{Cancel, TreeWatch};
use pretty_assertions::assert_eq;
use tempfile::TempDir;

struct Project {
    directory: TempDir,
    root: Root,
    watch: TreeWatch,
    index: SymbolIndex,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::open(&directory.path().canonicalize().unwrap()).unwrap();
        let project = Self { directory, root, watch: TreeWatch::new(), index: SymbolIndex::new() };
        for (path, text) in files {
            project.write(path, text);
        }
        project
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn remove(&self, path: &str) {
        std::fs::remove_file(self.directory.path().join(path)).unwrap();
    }

    fn refresh(&self) -> usize {
        let until = Instant::now() + Duration::from_mins(1);
        let (root, watch) = (&self.root, &self.watch);
        self.index.refresh_watched(root, watch, until, &Cancel::new()).unwrap().parsed
    }

    /// Does something to the project in another process.
    fn shell(&self, script: &str) {
        let mut command = std::process::Command::new("sh");
        let command = command.args(["-ec", script]).current_dir(self.root.path());
        let command = command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("HOME", "/nonexistent");
        assert!(command.status().unwrap().success(), "{script}");
    }

    fn definitions(&self, path: &str) -> Vec<String> {
        let found = self.index.view().definitions(&NamePath::parse(path).unwrap());
        let shown = |definition: &carrel_code::Definition| {
            let (file, line) = (definition.file.display(), definition.line);
            format!("{file}:{line} {} {}", definition.kind, definition.path.join("::"))
        };
        found.iter().map(shown).collect()
    }

    fn uses(&self, name: &str) -> Vec<String> {
        let mut shown = Vec::new();
        for file in self.index.view().uses(name) {
            for line in file.lines {
                let defined = if line.is_definition { " defined" } else { "" };
                let symbol = line.symbol.join("::");
                shown.push(format!("{}:{} {symbol}{defined}", file.file.display(), line.line));
            }
        }
        shown
    }

    fn search(&self, query: &str) -> Vec<String> {
        let request = SearchRequest { query: query.into(), limit: 20, ..SearchRequest::default() };
        names(&self.index, &request)
    }
}

fn names(index: &SymbolIndex, request: &SearchRequest) -> Vec<String> {
    let hits = index.view().search(request);
    hits.iter().map(|hit| hit.definition.path.join("::")).collect()
}

fn refresh(index: &SymbolIndex, root: &Root) -> carrel_code::Refreshed {
    let deadline = Instant::now() + Duration::from_mins(1);
    index.refresh(root, deadline, &Cancel::new()).unwrap()
}

const LIB: &str = "\
/// Limits the rate of requests.
pub struct Bucket {
    level: u32,
}

impl Bucket {
    /// Takes a token, or says when to come back.
    pub fn take(&mut self) -> bool {
        self.level > 0
    }
}

pub fn parse_header(text: &str) -> Bucket {
    Bucket { level: text.len() as u32 }
}
";

const MAIN: &str = "\
fn main() {
    // parse_header in a comment is no use
    let mut bucket = parse_header(\"parse_header\");
    bucket.take();
}
";

#[test]
fn definitions_and_uses_are_found_by_name_over_all_files() {
    let project = Project::new(&[("src/lib.rs", LIB), ("src/main.rs", MAIN)]);
    assert_eq!(project.refresh(), 2);
    assert_eq!(project.definitions("Bucket::take"), ["src/lib.rs:8 method Bucket::take"]);
    assert_eq!(
        project.definitions("Bucket"),
        ["src/lib.rs:2 struct Bucket", "src/lib.rs:6 impl Bucket"]
    );
    assert_eq!(project.definitions("Other::take"), Vec::<String>::new());
    assert_eq!(
        project.uses("parse_header"),
        ["src/lib.rs:13 parse_header defined", "src/main.rs:3 main"]
    );
    assert_eq!(project.uses("nothing"), Vec::<String>::new());
}

#[test]
fn an_answer_is_never_older_than_the_last_write() {
    let project = Project::new(&[("a.rs", "fn one() {}\n"), ("b.rs", "fn two() {}\n")]);
    for is_watched in [true, false] {
        let refresh = || {
            if is_watched {
                project.refresh()
            } else {
                refresh(&project.index, &project.root).parsed
            }
        };
        refresh();
        for round in 0..200 {
            // The same size, in the same moment, again and again.
            let (name, other) = if round % 2 == 0 { ("abc", "xyz") } else { ("xyz", "abc") };
            project.write("a.rs", &format!("fn {name}() {{}}\n"));
            assert_eq!(refresh(), 1);
            assert_eq!(project.definitions(name).len(), 1, "round {round}");
            assert_eq!(project.definitions(other).len(), 0, "round {round}");
        }
    }
    project.remove("b.rs");
    project.refresh();
    assert_eq!(project.definitions("two"), Vec::<String>::new());
}

#[test]
fn whoever_writes_the_next_answer_has_it() {
    let project = Project::new(&[("src/a.rs", "fn one() {}\n"), ("b.rs", "fn two() {}\n")]);
    project.refresh();
    let map = "import mmap,sys
f = open('src/a.rs', 'r+b'); m = mmap.mmap(f.fileno(), 0); f.close()
m[3:6] = sys.argv[1].encode(); m.flush()";
    let python = format!("python3 -c \"{map}\"");
    project.shell("git init -q -b one; printf 'fn one() {}\\n' > src/a.rs; git add -A");
    let commit = "git -c user.name=a -c user.email=a@example.com commit -qam";
    project.shell(&format!("{commit} one; git checkout -qb two"));
    project.shell(&format!("printf 'fn co2() {{}}\\n' > src/a.rs; {commit} two"));
    let scripts = [
        ("printf 'fn N() {}\\n' > src/a.rs", "sh"),
        ("printf 'fn N() {}\\n' > new; mv new src/a.rs", "mv"),
        ("sed -i 's/fn .*(/fn N(/' src/a.rs", "sed"),
        ("cp -r src made; rm -r src; printf 'fn N() {}\\n' > made/a.rs; mv made src", "dir"),
        ("cp b.rs src/c.rs; printf 'fn N() {}\\n' | dd of=src/a.rs conv=notrunc status=none", "dd"),
        (&format!("git checkout -qf two; {python} N"), "map"),
    ];
    for round in 0..10 {
        for (script, how) in &scripts {
            let name: String = format!("{how}{round}zz").chars().take(3).collect();
            let name = name.replace(' ', "z");
            project.shell(&script.replace('N', &name));
            project.refresh();
            let found = project.definitions(&name);
            assert_eq!(found, [format!("src/a.rs:1 function {name}")], "{script}");
        }
        for (branch, name) in [("one", "one"), ("two", "co2")] {
            project.shell(&format!("git checkout -qf {branch}"));
            project.refresh();
            assert_eq!(project.definitions(name).len(), 1, "{branch} in round {round}");
        }
    }
}

#[test]
fn a_file_that_a_caller_read_before_it_changed_is_not_kept() {
    let project = Project::new(&[("a.rs", "fn old() {}\n"), ("b.rs", "fn two() {}\n")]);
    project.refresh();
    let before = project.root.metadata(Path::new("a.rs")).unwrap();
    project.write("a.rs", "fn newer() {}\n");
    project.refresh();
    let late = project.index.definitions_of(Path::new("a.rs"), &before, "fn old() {}\n");
    assert_eq!(late.unwrap().definitions[0].path, ["old"]);
    project.refresh();
    assert_eq!(project.definitions("newer").len(), 1);
    assert_eq!(project.definitions("old").len(), 0);
}

#[test]
fn files_that_are_pending_are_parsed_although_nothing_happens_to_them() {
    let files: Vec<_> = (0..30).map(|n| (format!("f{n}.rs"), format!("fn f{n}() {{}}"))).collect();
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let project = Project::new(&files);
    let now = Instant::now();
    let (root, watch) = (&project.root, &project.watch);
    let first = project.index.refresh_watched(root, watch, now, &Cancel::new()).unwrap();
    assert_eq!((first.parsed, first.pending), (0, 30));
    project.remove("f29.rs");
    project.write("f28.rs", "fn other() {}");
    let again = project.index.refresh_watched(root, watch, now, &Cancel::new()).unwrap();
    assert_eq!((again.parsed, again.pending), (0, 29));
    assert_eq!(project.refresh(), 29);
    assert_eq!(
        ["f27", "f28", "f29", "other"].map(|name| project.definitions(name).len()),
        [1, 0, 0, 1]
    );
}

#[test]
fn a_file_that_did_not_change_is_not_parsed_again() {
    let project = Project::new(&[("a.rs", "fn one() {}\n"), ("b.rs", "fn two() {}\n")]);
    assert_eq!(project.refresh(), 2);
    std::thread::sleep(Duration::from_millis(30));
    // The first of these compares the content of files that changed just before they were read.
    project.refresh();
    assert_eq!(project.refresh(), 0);
    project.write("b.rs", "fn three() {}\n");
    assert_eq!(project.refresh(), 1);
}

#[test]
fn ignored_files_and_files_of_other_kinds_are_not_in_the_index() {
    let project = Project::new(&[
        (".gitignore", "generated/\n"),
        ("generated/a.rs", "fn hidden() {}\n"),
        ("node_modules/a.js", "function hidden() {}\n"),
        ("notes.txt", "fn hidden() {}\n"),
        ("b.rs", "fn shown() {}\n"),
    ]);
    assert_eq!(project.refresh(), 1);
    assert_eq!(project.definitions("hidden"), Vec::<String>::new());
}

#[test]
fn files_that_are_not_utf8_or_lack_a_grammar_are_named() {
    let project = Project::new(&[("a.rs", "fn one() {}\n")]);
    std::fs::write(project.directory.path().join("latin.py"), b"x = '\xe9'\n").unwrap();
    let large = "x".repeat(carrel_code::MAX_SOURCE_BYTES + 1);
    project.write("large.json", &large);
    project.refresh();
    let skipped = project.index.view().skipped();
    assert_eq!(
        skipped,
        [("large.json".into(), SkipReason::TooLarge), ("latin.py".into(), SkipReason::NotUtf8)]
    );
}

#[test]
fn a_search_finds_words_in_names_comments_signatures_and_bodies() {
    let project = Project::new(&[("src/lib.rs", LIB), ("src/main.rs", MAIN)]);
    project.refresh();
    assert_eq!(project.search("rate of requests")[0], "Bucket");
    assert_eq!(project.search("header")[0], "parse_header");
    assert_eq!(project.search("Bucket::take")[0], "Bucket::take");
    assert_eq!(project.search("come back")[0], "Bucket::take");
    assert_eq!(project.search("zebra"), Vec::<String>::new());
    assert_eq!(project.search("  "), Vec::<String>::new());
    let only = SearchRequest {
        query: "bucket".into(),
        kinds: vec![SymbolKind::Function],
        below: "src/main.rs".into(),
        limit: 5,
        ..SearchRequest::default()
    };
    assert_eq!(names(&project.index, &only), ["main"]);
}

#[test]
fn a_comment_with_all_words_outranks_names_that_have_one_of_them() {
    let source = "\
/// Keeps a token bucket for each client.
fn throttle() {}
fn token_kind() {}
fn bucket_list() {}
";
    let project = Project::new(&[("a.rs", source)]);
    project.refresh();
    assert_eq!(project.search("token bucket client")[0], "throttle");
    assert_eq!(project.search("token_kind")[0], "token_kind", "an exact name is the first");
}

#[test]
fn a_search_has_as_many_hits_as_it_may() {
    let source = (0..150).map(|n| format!("fn take_{n}() {{}}")).collect::<Vec<_>>().join("\n");
    let project = Project::new(&[("a.rs", source.as_str())]);
    project.refresh();
    let found = |limit: usize| {
        let request = SearchRequest { query: "take".into(), limit, ..SearchRequest::default() };
        names(&project.index, &request)
    };
    assert_eq!(found(3).len(), 3);
    assert_eq!(found(7)[..3], found(3), "more hits come behind the others");
    assert_eq!(found(1_000).len(), carrel_code::MAX_HITS);
}

#[test]
fn a_rebuilt_index_gives_the_same_answers_as_one_that_followed_each_change() {
    let project = Project::new(&[("src/lib.rs", LIB)]);
    project.refresh();
    project.write("src/main.rs", MAIN);
    project.refresh();
    project.write("src/lib.rs", &LIB.replace("Bucket", "Pail"));
    project.refresh();
    project.write("src/lib.rs", LIB);
    project.refresh();
    let rebuilt = SymbolIndex::new();
    refresh(&rebuilt, &project.root);
    for query in ["bucket", "take a token", "rate", "header level", "main"] {
        let request = SearchRequest { query: query.into(), limit: 50, ..SearchRequest::default() };
        assert_eq!(
            project.index.view().search(&request),
            rebuilt.view().search(&request),
            "{query}"
        );
    }
    let request = MapRequest { limit: 50, ..MapRequest::default() };
    assert_eq!(project.index.view().map(&request), rebuilt.view().map(&request));
}

#[test]
fn a_stored_index_gives_the_same_answers_and_parses_nothing() {
    let project = Project::new(&[("src/lib.rs", LIB), ("src/main.rs", MAIN)]);
    project.refresh();
    std::thread::sleep(Duration::from_millis(30));
    refresh(&project.index, &project.root);
    let bytes = project.index.to_bytes();
    let loaded = SymbolIndex::of_bytes(&bytes).unwrap();
    assert_eq!(refresh(&loaded, &project.root).parsed, 0);
    let request = SearchRequest { query: "bucket".into(), limit: 50, ..SearchRequest::default() };
    assert_eq!(loaded.view().search(&request), project.index.view().search(&request));
    assert_eq!(loaded.view().uses("Bucket"), project.index.view().uses("Bucket"));
    assert_eq!(loaded.view().statistics(), project.index.view().statistics());
    project.write("src/main.rs", "fn other() {}\n");
    assert_eq!(refresh(&loaded, &project.root).parsed, 1);
}

#[test]
fn damaged_bytes_of_an_index_are_void() {
    let project = Project::new(&[("src/lib.rs", LIB)]);
    project.refresh();
    let bytes = project.index.to_bytes();
    let void = |bytes: &[u8]| SymbolIndex::of_bytes(bytes).unwrap_err();
    assert_eq!(void(b""), StoredIndexError::Version);
    assert_eq!(void(b"carrel-symbols-0 and more"), StoredIndexError::Version);
    assert_eq!(void(&bytes[..20]), StoredIndexError::Damaged);
    for place in 16..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 0x55;
        assert_eq!(void(&changed), StoredIndexError::Damaged, "byte {place}");
        assert_eq!(void(&bytes[..place]), StoredIndexError::Damaged, "cut at {place}");
    }
}

#[test]
fn a_deadline_leaves_files_pending_and_the_next_refresh_goes_on() {
    let files: Vec<_> =
        (0..50).map(|n| (format!("f{n}.rs"), format!("fn f{n}() {{}}\n"))).collect();
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let project = Project::new(&files);
    let now = Instant::now();
    let first = project.index.refresh(&project.root, now, &Cancel::new()).unwrap();
    assert_eq!((first.parsed, first.pending), (0, 50));
    assert_eq!(refresh(&project.index, &project.root).pending, 0);
    assert_eq!(project.definitions("f49").len(), 1);
}

#[test]
fn a_map_ranks_the_symbols_that_other_files_use() {
    let user =
        |n: usize| format!("use crate::Engine;\nfn u{n}(e: &Engine) {{ start_engine(e); }}\n");
    let users: Vec<_> = (0..6).map(|n| (format!("src/u{n}.rs"), user(n))).collect();
    let mut files = vec![(
        "src/lib.rs",
        "pub struct Engine;\npub fn start_engine(e: &Engine) {}\npub fn unused_thing() {}\n",
    )];
    files.extend(users.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let project = Project::new(&files);
    project.refresh();
    let map = project.index.view().map(&MapRequest { limit: 2, ..MapRequest::default() });
    let mut names: Vec<_> = map.iter().map(|entry| entry.definition.path.join("::")).collect();
    names.sort();
    assert_eq!(names, ["Engine", "start_engine"]);
    assert!(map.iter().all(|entry| entry.used_by == 6), "{map:?}");
    let around = MapRequest { focus: vec!["src/u1.rs".into()], limit: 3, ..MapRequest::default() };
    assert!(!project.index.view().map(&around).is_empty());
}

#[test]
fn a_name_that_is_not_there_is_answered_with_near_ones() {
    let project = Project::new(&[("src/lib.rs", LIB)]);
    project.refresh();
    let view = project.index.view();
    assert_eq!(view.near("parse_heder")[0], "parse_header");
    assert_eq!(view.near("bucket")[0], "Bucket");
    assert_eq!(view.near("completely_different"), Vec::<String>::new());
}

#[test]
fn many_threads_ask_while_files_change() {
    let project = Project::new(&[("src/lib.rs", LIB), ("src/main.rs", MAIN)]);
    project.refresh();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for _ in 0..50 {
                    project.refresh();
                    assert_eq!(project.definitions("Bucket").len(), 2);
                    assert!(!project.search("bucket").is_empty());
                }
            });
        }
        for round in 0..100 {
            project.write("src/other.rs", &format!("fn other{round}() {{}}\n"));
        }
    });
    assert!(project.index.view().of_file(Path::new("src/lib.rs")).is_some());
}

#[test]
fn a_file_is_asked_about_while_a_view_is_held_and_the_index_wants_to_change() {
    let project = Project::new(&[("a.rs", "fn one() {}\n")]);
    project.refresh();
    let view = project.index.view();
    // A refresh on another thread waits for the view, and this thread must not wait for the refresh.
    std::thread::scope(|threads| {
        threads.spawn(|| {
            project.write("b.rs", "fn two() {}\n");
            project.refresh();
        });
        for round in 0..50 {
            let source = format!("fn three{round}() {{}}\n");
            project.write("c.rs", &source);
            let metadata = project.root.metadata(Path::new("c.rs")).unwrap();
            let found = project.index.definitions_of(Path::new("c.rs"), &metadata, &source);
            assert_eq!(found.unwrap().definitions[0].path, [format!("three{round}")]);
        }
        drop(view);
    });
    assert_eq!(project.definitions("two").len(), 1);
}

/// A module with so many functions, whose names begin with a word of their own.
fn functions(word: &str, count: usize) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for number in 0..count {
        writeln!(text, "fn {word}_{number}() {{}}").unwrap();
    }
    text
}

#[test]
fn a_full_index_names_the_files_it_leaves_out_and_takes_them_in_when_there_is_room() {
    const CAPACITY: usize = 200_000;
    let mut project = Project::new(&[]);
    project.index = SymbolIndex::with_capacity(CAPACITY);
    for file in 0..8 {
        project.write(&format!("f{file}.rs"), &functions(&format!("word{file}"), 250));
    }
    project.refresh();
    let skipped = |project: &Project| project.index.view().skipped();
    let left_out = skipped(&project).len();
    assert!((1..8).contains(&left_out), "{left_out}");
    assert!(skipped(&project).iter().all(|(_, reason)| *reason == SkipReason::NoRoom));
    assert!(project.index.memory() <= CAPACITY, "{}", project.index.memory());
    assert_eq!(project.index.view().statistics().files, 8 - left_out);

    // What does not fit is not parsed again and again.
    std::thread::sleep(Duration::from_millis(30));
    project.refresh();
    assert_eq!(project.refresh(), 0);

    // A file that is left out has definitions when it is asked for by its path.
    let (path, _) = skipped(&project)[0].clone();
    let source = std::fs::read_to_string(project.directory.path().join(&path)).unwrap();
    let metadata = project.root.metadata(&path).unwrap();
    let found = project.index.definitions_of(&path, &metadata, &source).unwrap();
    assert_eq!(found.definitions.len(), 250);
    assert!(project.index.memory() <= CAPACITY, "{}", project.index.memory());

    let kept: Vec<_> = (0..8)
        .map(|file| format!("f{file}.rs"))
        .filter(|name| project.index.view().of_file(Path::new(name)).is_some())
        .collect();
    for name in &kept {
        project.remove(name);
    }
    project.refresh();
    project.refresh();
    assert_eq!(skipped(&project), []);
    assert_eq!(project.index.view().statistics().files, left_out);
}

#[test]
fn names_that_no_file_has_any_more_take_no_memory() {
    let project = Project::new(&[("src/lib.rs", LIB)]);
    let mut most = 0;
    for round in 0..60 {
        project.write("a.rs", &functions(&format!("round{round}"), 500));
        project.write("b.rs", &functions(&format!("other{round}"), 10));
        project.refresh();
        if round < 20 {
            most = most.max(project.index.view().statistics().names);
        }
    }
    let view = project.index.view();
    // All names of all rounds would be three times as many.
    assert!(view.statistics().names < most + most / 2, "{} and {most}", view.statistics().names);
    let rebuilt = SymbolIndex::new();
    refresh(&rebuilt, &project.root);
    assert!(view.statistics().names >= rebuilt.view().statistics().names);
    drop(view);
    for query in ["round59 7", "other59", "bucket", "take a token", "round3"] {
        let request = SearchRequest { query: query.into(), limit: 50, ..SearchRequest::default() };
        let (ours, theirs) =
            (project.index.view().search(&request), rebuilt.view().search(&request));
        assert_eq!(ours, theirs, "{query}");
    }
    for name in ["Bucket", "round59_499", "round3_1", "other59_9"] {
        assert_eq!(project.index.view().uses(name), rebuilt.view().uses(name), "{name}");
    }
    let bytes = project.index.to_bytes();
    let loaded = SymbolIndex::of_bytes(&bytes).unwrap();
    assert_eq!(loaded.view().uses("round59_499"), rebuilt.view().uses("round59_499"));
}

#[test]
fn a_file_with_syntax_errors_says_so() {
    let project = Project::new(&[("a/good.rs", "fn good() {}\n"), ("b/bad.rs", "fn bad( {}\n")]);
    project.refresh();
    let view = project.index.view();
    assert_eq!(view.with_errors(Path::new("")), [Path::new("b/bad.rs")]);
    assert_eq!(view.with_errors(Path::new("a")), Vec::<std::path::PathBuf>::new());
    assert_eq!(view.statistics().files_with_errors, 1);
    drop(view);
    let has_error = |path: &str| {
        let metadata = project.root.metadata(Path::new(path)).unwrap();
        let source = std::fs::read_to_string(project.directory.path().join(path)).unwrap();
        project.index.definitions_of(Path::new(path), &metadata, &source).unwrap().has_error
    };
    assert_eq!([has_error("a/good.rs"), has_error("b/bad.rs")], [false, true]);
}
