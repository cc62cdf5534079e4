//! The table of real projects in the documentation, against the list that `scripts/verify-projects` runs.

use std::collections::BTreeSet;
use std::path::Path;

use carrel_fsroot::{MAX_READ_BYTES, Root};
use pretty_assertions::assert_eq;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const LEAST_PROJECTS: usize = 15;
const LEAST_LANGUAGES: usize = 7;

fn read(name: &str) -> String {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bytes = Root::open(&top).unwrap().read(name.as_ref(), MAX_READ_BYTES).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn string<'a>(value: &'a DeValue<'_>, key: &str) -> Option<&'a str> {
    value.get(key)?.get_ref().as_str()
}

/// Returns the row of a check.
fn row(project: &DeValue<'_>, check: &str) -> Option<String> {
    let table = project.get(check)?.get_ref();
    let said = |side: &str| string(table, side).or_else(|| string(table, "expected"));
    let added = string(project, "with").map_or_else(String::new, |text| format!(", with {text}"));
    Some(format!(
        "| {} {}{added} | {} | {check} | `{}`: {} | {} | {} |",
        string(project, "title").or_else(|| string(project, "name"))?,
        string(project, "version")?,
        string(project, "language")?,
        string(table, "command")?,
        said("outside")?,
        said("inside")?,
        string(table, "reason").unwrap_or("equal")
    ))
}

#[test]
fn every_check_of_a_pinned_project_has_a_row_with_its_numbers() {
    let text = read("benches/projects.toml");
    let list = DeTable::parse(&text).unwrap().into_inner();
    let document = read("docs/projects.md");
    let (_, table) = document.split_once("<!-- projects: begin -->\n").unwrap();
    let (table, _) = table.split_once("<!-- projects: end -->").unwrap();
    let mut languages = BTreeSet::new();
    let mut archives = BTreeSet::new();
    let mut rows = Vec::new();
    for project in list["project"].get_ref().as_array().unwrap().iter().map(Spanned::get_ref) {
        languages.insert(string(project, "language").unwrap());
        archives.insert(string(project, "sha256").unwrap());
        rows.extend(["test", "lint", "typecheck"].iter().filter_map(|check| row(project, check)));
    }
    assert_eq!(table.lines().skip(2).collect::<Vec<_>>(), rows);
    assert!(archives.len() >= LEAST_PROJECTS && languages.len() >= LEAST_LANGUAGES);
    assert!(archives.iter().all(|hash| hash.len() == 64));
}
