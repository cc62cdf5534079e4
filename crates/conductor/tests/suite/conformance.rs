//! The table of `docs/conformance.md`.

use std::collections::BTreeSet;
use std::path::Path;

/// Items of the list.
const ITEMS: u32 = 134;

/// Those that no test shows: the table says why.
const WITHOUT_A_TEST: [u32; 3] = [115, 116, 117];

fn collect(directory: &Path, names: &mut BTreeSet<String>) {
    for claimed in std::fs::read_dir(directory).unwrap() {
        let path = claimed.unwrap().path();
        if path.is_dir() {
            collect(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let functions = text.split("fn ").skip(1);
            names.extend(functions.filter_map(|rest| rest.split('(').next()).map(str::to_owned));
        }
    }
}

/// Returns the items that a test is named by: `item_057_to_059_and_102_` are four.
fn numbers(test: &str) -> BTreeSet<u32> {
    let (mut numbers, mut up_to) = (BTreeSet::new(), false);
    for word in test.strip_prefix("item_").unwrap_or_default().split('_') {
        match (word, word.parse::<u32>()) {
            ("and", _) => {}
            ("to", _) => up_to = true,
            (_, Ok(number)) => {
                let first = numbers.last().copied().filter(|_| up_to).unwrap_or(number);
                numbers.extend(first..=number);
                up_to = false;
            }
            _ => break,
        }
    }
    numbers
}

#[test]
fn a_test_carries_the_numbers_of_its_items() {
    assert_eq!(numbers("item_057_to_059_and_102_it_holds_7_s"), [57, 58, 59, 102].into());
    assert_eq!(numbers("item_005_it_holds"), [5].into());
    assert_eq!(numbers("it_holds_5"), BTreeSet::new());
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
        let mut carried = false;
        for test in tests {
            assert!(names.contains(test), "item {number} names {test}, which is no test");
            carried |= numbers(test).contains(&number);
        }
        let needed = !WITHOUT_A_TEST.contains(&number);
        assert_eq!(carried, needed, "item {number} has a test that carries its number");
        assert!(shown.trim_end_matches(" |").len() > 10, "item {number} is not shown");
        assert!(items.insert(number), "item {number} is there twice");
    }
    assert!(items.iter().copied().eq(1..=ITEMS), "some are missing: {items:?}");
}
