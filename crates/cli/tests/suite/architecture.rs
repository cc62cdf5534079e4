//! `docs/architecture.md` against the manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use pretty_assertions::assert_eq;

use crate::repository;

type Dependencies = BTreeMap<String, BTreeSet<String>>;

#[test]
fn the_table_of_crates_is_that_of_the_manifests() {
    assert_eq!(documented("| crate | "), declared(|name| name.starts_with("carrel-")));
}

#[test]
fn every_crate_stands_above_the_ones_that_it_uses() {
    let rows = rows("| crate | ");
    for (index, (name, used)) in rows.iter().enumerate() {
        let above =
            used.iter().find(|used| !rows[index + 1..].iter().any(|(below, _)| below == *used));
        assert_eq!(above, None, "`{name}` uses a crate that stands above it");
    }
}

/// Dependencies whose homes the table of edges lists: frameworks that must not spread.
const EDGES: [&str; 9] = [
    "axum",
    "clap",
    "liquid",
    "redis",
    "rmcp",
    "rusqlite",
    "tokio-postgres",
    "tree-sitter",
    "libc",
];

#[test]
fn frameworks_appear_only_where_the_table_of_edges_says() {
    let mut homes = Dependencies::new();
    for (home, names) in declared(|name| EDGES.contains(&name)) {
        for name in names {
            homes.entry(name).or_default().insert(home.clone());
        }
    }
    assert_eq!(documented("| dependency | "), homes);
}

fn documented(header: &str) -> Dependencies {
    rows(header).into_iter().collect()
}

/// Reads the table whose header begins so: the first column, and the code words of the last.
fn rows(header: &str) -> Vec<(String, BTreeSet<String>)> {
    let text = fs::read_to_string(repository().join("docs/architecture.md")).unwrap();
    let rows = text.lines().skip_while(|line| !line.starts_with(header)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').collect();
        let first = code_words(cells[0]).next().expect("the first column is a name");
        (first, code_words(cells.last().unwrap()).collect())
    })
    .collect()
}

fn code_words(cell: &str) -> impl Iterator<Item = String> {
    cell.split('`').skip(1).step_by(2).map(ToOwned::to_owned)
}

/// Reads the ordinary dependencies of every crate, without the prefix `carrel-`.
fn declared(counts: impl Fn(&str) -> bool) -> Dependencies {
    let crates =
        fs::read_dir(repository().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    crates
        .map(|path| {
            let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
            let lines = lines.take_while(|line| !line.starts_with('['));
            let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
            let names = names.filter(|name| counts(name));
            (name, names.map(|name| name.trim_start_matches("carrel-").to_owned()).collect())
        })
        .filter(|(_, names): &(_, BTreeSet<_>)| !names.is_empty() || counts("carrel-"))
        .collect()
}

#[test]
fn the_program_can_be_built_with_all_grammars() {
    let feature = |krate: &str| {
        let path = repository().join("crates").join(krate).join("Cargo.toml");
        let manifest = fs::read_to_string(path).unwrap();
        let line = manifest.lines().find(|line| line.starts_with("all-grammars = "));
        line.unwrap_or_else(|| panic!("{krate} has no such feature")).to_owned()
    };
    assert_eq!(feature("cli"), "all-grammars = [\"carrel-tools/all-grammars\"]");
    assert_eq!(feature("tools"), "all-grammars = [\"carrel-code/all-grammars\"]");
    assert_eq!(feature("code"), "all-grammars = [\"csharp\", \"kotlin\", \"scala\", \"swift\"]");
}
