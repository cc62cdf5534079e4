//! Folders of files before and after a request.
//!
//! Each folder holds `input`, `request.json` and `expected`. A request is an edit of one file or a
//! patch, given as its lines; when it names an `error`, that is what must be said, and the files
//! stay as they are. A file whose name ends with `.repeat` is a list of texts and how often each is
//! repeated, and stands for the file without that ending.
#![expect(clippy::disallowed_methods, reason = "the files of scenarios are read as they are")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use carrel_edit::Document;
use carrel_edit::patch::{self, Operation};
use carrel_edit::replace::{self, Edit, Limits, Request};
use pretty_assertions::assert_eq;
use serde_json::Value;

/// Every file by its path below the root.
type Tree = BTreeMap<String, Vec<u8>>;

#[test]
fn every_scenario_ends_as_expected() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut folders: Vec<PathBuf> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    assert!(folders.len() >= 25, "the scenarios are missing");
    for folder in folders {
        check(&folder);
    }
}

fn check(folder: &Path) {
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    let request = fs::read_to_string(folder.join("request.json")).unwrap();
    let request: Value = serde_json::from_str(&request).unwrap();
    let input = read_tree(&folder.join("input"));
    let result = if request.get("patch").is_some() {
        patch_tree(&input, &request)
    } else {
        edit_tree(&input, &request)
    };
    match (result, request["error"].as_str()) {
        (Ok((after, report)), None) => {
            compare(&name, &after, &read_tree(&folder.join("expected")));
            if let Some(want) = request.get("report") {
                assert_eq!(&report, want, "{name}");
            }
        }
        (Err(error), Some(want)) => {
            assert_eq!(error, want, "{name}");
            assert!(!folder.join("expected").exists(), "{name}: nothing changes on an error");
        }
        (result, want) => panic!("{name}: {result:?}, but {want:?} was expected"),
    }
}

fn compare(name: &str, after: &Tree, expected: &Tree) {
    let names = |tree: &Tree| tree.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(after), names(expected), "{name}");
    for (path, bytes) in after {
        // Whole files are shown only when they are short enough to read.
        if bytes.len() < 10_000 {
            let show = |bytes: &[u8]| bytes.escape_ascii().to_string();
            assert_eq!(show(bytes), show(&expected[path]), "{name}: {path}");
        }
        assert!(bytes == &expected[path], "{name}: {path}");
    }
}

fn edit_tree(input: &Tree, request: &Value) -> Result<(Tree, Value), String> {
    let path = request["path"].as_str().unwrap();
    let edits: Vec<Edit> = request["edits"].as_array().unwrap().iter().map(edit).collect();
    let limits = if request["limits"] == "strict" { Limits::STRICT } else { Limits::GENEROUS };
    let document = Document::decode(input[path].clone());
    let request = Request { limits, ..Request::new(path, &edits) };
    let outcome = replace::apply(&document, &request).map_err(|error| error.to_string())?;
    let mut after = input.clone();
    after.insert(path.to_owned(), outcome.document.encode().into_owned());
    Ok((after, serde_json::to_value(outcome.applied).unwrap()))
}

fn edit(value: &Value) -> Edit {
    let text = |key: &str| value[key].as_str().unwrap().to_owned();
    let line = |key: &str| usize::try_from(value[key].as_u64().unwrap()).unwrap();
    if value.get("start_line").is_some() {
        Edit::lines(line("start_line"), line("end_line"), text("new"))
    } else if value["all"] == true {
        Edit::everywhere(text("old"), text("new"))
    } else {
        Edit::once(text("old"), text("new"))
    }
}

fn patch_tree(input: &Tree, request: &Value) -> Result<(Tree, Value), String> {
    let lines = request["patch"].as_array().unwrap().iter();
    let text: String = lines.flat_map(|line| [line.as_str().unwrap(), "\n"]).collect();
    let patch = patch::parse(&text).map_err(|error| error.to_string())?;
    let read = |path: &str| input.get(path).map(|bytes| Document::decode(bytes.clone()));
    let changes = patch::apply_all(&patch, read).map_err(|error| error.to_string())?;
    let mut after = input.clone();
    let mut report = Vec::new();
    for change in changes {
        if let Operation::Delete { path } | Operation::Rename { from: path, .. } = &change.operation
        {
            after.remove(path);
        }
        if let (Some(target), Some(document)) = (change.operation.target(), &change.after) {
            after.insert(target.to_owned(), document.encode().into_owned());
        }
        report.push(serde_json::to_value(change.hunks).unwrap());
    }
    Ok((after, report.into()))
}

fn read_tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        // A tree without files has no folder, because git keeps none that are empty.
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            match name.strip_suffix(".repeat") {
                Some(name) => tree.insert(name.to_owned(), repeated(&bytes)),
                None => tree.insert(name, bytes),
            };
        }
    }
    tree
}

fn repeated(recipe: &[u8]) -> Vec<u8> {
    let pieces: Vec<(String, usize)> = serde_json::from_slice(recipe).unwrap();
    pieces.iter().flat_map(|(text, count)| text.repeat(*count).into_bytes()).collect()
}
