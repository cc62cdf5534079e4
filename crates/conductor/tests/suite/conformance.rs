//! The table of `docs/conformance.md`.

use std::collections::BTreeSet;
use std::path::Path;

/// Items of the list.
const ITEMS: u32 = 134;

fn collect(directory: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let functions = text.split("fn ").skip(1);
            names.extend(functions.filter_map(|rest| rest.split('(').next()).map(str::to_owned));
        }
    }
}

#[test]
fn the_table_is_whole_and_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut names = BTreeSet::new();
    for directory in ["crates", "testkit"] {
        collect(&root.join(directory), &mut names);
    }
    let table = std::fs::read_to_string(root.join("docs/conformance.md")).unwrap();
    let mut items = BTreeSet::new();
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<_> = line.split(" | ").collect();
        let [number, _, shown] = cells[..] else { continue };
        let Ok(number) = number.trim_start_matches("| ").parse::<u32>() else { continue };
        let tests: Vec<_> = shown.split('`').skip(1).step_by(2).collect();
        let tests = tests.into_iter().filter(|name| name.contains('_') && !name.contains('/'));
        for test in tests {
            assert!(names.contains(test), "item {number} names {test}, which is no test");
        }
        assert!(shown.trim_end_matches(" |").len() > 10, "item {number} is not shown");
        assert!(items.insert(number), "item {number} is there twice");
    }
    assert!(items.iter().copied().eq(1..=ITEMS), "some are missing: {items:?}");
}
