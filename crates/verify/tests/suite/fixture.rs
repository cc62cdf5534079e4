//! Lays a fixture out as a real workspace.
//!
//! A fixture is one text file: `-- path --` begins a file, and what stands before the first
//! is a remark. That way it may hold `.gitignore`, `node_modules` and broken manifests
//! without any tool of this repository noticing.

use std::fs;
use std::path::Path;

use carrel_fsroot::Root;
use tempfile::TempDir;

/// A workspace on disk that ends with the test.
pub(crate) struct Workspace {
    pub(crate) directory: TempDir,
    pub(crate) root: Root,
}

/// Lays out `tests/fixtures/NAME.txt`.
pub(crate) fn load(name: &str) -> Workspace {
    let path = format!("{}/tests/fixtures/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    lay_out(&fs::read_to_string(&path).expect(&path))
}

/// Lays out the files of a text.
pub(crate) fn lay_out(text: &str) -> Workspace {
    let directory = tempfile::tempdir().unwrap();
    let mut file: Option<(String, String)> = None;
    for line in text.lines() {
        match line.strip_prefix("-- ").and_then(|rest| rest.strip_suffix(" --")) {
            Some(path) => {
                finish(directory.path(), file.take());
                file = Some((path.to_owned(), String::new()));
            }
            None => {
                if let Some((_, contents)) = &mut file {
                    contents.push_str(line);
                    contents.push('\n');
                }
            }
        }
    }
    finish(directory.path(), file);
    let root = Root::open(directory.path()).unwrap();
    Workspace { directory, root }
}

fn finish(directory: &Path, file: Option<(String, String)>) {
    if let Some((path, contents)) = file {
        write(directory, &path, contents);
    }
}

/// Writes a file, making directories as needed.
pub(crate) fn write(directory: &Path, path: &str, contents: impl AsRef<[u8]>) {
    let path = directory.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

/// Removes a file.
pub(crate) fn remove(directory: &Path, path: &str) {
    fs::remove_file(directory.join(path)).unwrap();
}
