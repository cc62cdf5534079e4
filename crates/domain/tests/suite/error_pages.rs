//! The pages of `docs/errors/` are up to date.
#![expect(clippy::disallowed_methods, reason = "documentation is no workspace file")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pretty_assertions::assert_eq;

const COMMAND: &str = "cargo run -p carrel-domain --example error_pages";

#[test]
fn the_checked_in_pages_are_the_generated_ones() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let mut checked_in = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        checked_in.insert(name, fs::read_to_string(entry.path()).unwrap());
    }
    let generated: BTreeMap<_, _> = carrel_domain::error_pages().into_iter().collect();
    assert_eq!(checked_in, generated, "docs/errors/ is out of date; run `{COMMAND}`");
}
