//! The project of a file: the directory that a server takes for its root, and the server's program.
//!
//! Programs are looked for in the project itself, from its directory up to the workspace's top, in directories that are
//! configured, and on the `PATH` of the workspace's commands. A program of the project is the one of its lock file, so
//! it wins over the machine's.

use std::path::{Path, PathBuf};

use carrel_fsroot::{FileKind, Root};
use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::definition::{RootRule, ServerDefinition};

/// Directories of programs in a project.
const PROJECT_PROGRAMS: [&str; 3] = ["node_modules/.bin", ".venv/bin", "venv/bin"];

/// Directories of programs that every command has on its `PATH`.
const SYSTEM_PROGRAMS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// The size of a manifest that is looked into.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// Any of the execution bits.
const EXECUTABLE: u32 = 0o111;

/// Returns the directory of a file's project, relative to the workspace.
pub(crate) fn root_of(files: &Root, file: &Path, rule: RootRule) -> PathBuf {
    let has = |directory: &Path, names: &[&str]| {
        names.iter().any(|name| is_file(files, &directory.join(name)))
    };
    let found = match rule {
        RootRule::Workspace => None,
        RootRule::Nearest(names) => above(file).find(|directory| has(directory, names)),
        RootRule::Outermost(names) => above(file).filter(|directory| has(directory, names)).last(),
        RootRule::Declared { marker, line } => {
            let mut marked = above(file).filter(|directory| has(directory, &[marker])).peekable();
            let nearest = marked.peek().copied();
            marked.find(|directory| declares(files, &directory.join(marker), line)).or(nearest)
        }
    };
    found.unwrap_or(Path::new("")).to_owned()
}

/// Returns whether one of the files of a condition of complete answers is there.
pub(crate) fn has_above(files: &Root, file: &Path, names: &[&str]) -> bool {
    above(file).any(|directory| names.iter().any(|name| is_file(files, &directory.join(name))))
}

/// Returns the directories above a file, the nearest first and the workspace last.
fn above(file: &Path) -> impl Iterator<Item = &Path> {
    file.ancestors().skip(1)
}

fn is_file(files: &Root, path: &Path) -> bool {
    files.metadata(path).is_ok_and(|metadata| metadata.kind == FileKind::File)
}

fn declares(files: &Root, path: &Path, line: &str) -> bool {
    let Ok(bytes) = files.read(path, MAX_MANIFEST_BYTES) else { return false };
    String::from_utf8_lossy(&bytes).lines().any(|found| found.trim_start().starts_with(line))
}

/// Finds the program of a server; `None` if it is not installed.
pub(crate) fn program_of(
    definition: &ServerDefinition,
    files: &Root,
    root: &Path,
    configured: &[PathBuf],
    path: &[PathBuf],
) -> Option<PathBuf> {
    let own = definition.is_of_project.then(|| root.ancestors());
    let in_project = own.into_iter().flatten().flat_map(|directory| {
        let directories = PROJECT_PROGRAMS.iter().map(|programs| directory.join(programs));
        directories
            .flat_map(|directory| definition.programs.iter().map(move |name| directory.join(name)))
    });
    let in_project = in_project.filter(|program| is_own_program(files, program));
    let mut in_project = in_project.map(|program| files.path().join(program));
    let system = SYSTEM_PROGRAMS.iter().map(PathBuf::from);
    let directories = configured.iter().chain(path).cloned().chain(system);
    let on_path = directories
        .flat_map(|directory| definition.programs.iter().map(move |name| directory.join(name)));
    in_project.next().or_else(|| on_path.into_iter().find(|program| is_program(program)))
}

/// Returns whether a program of the project can be started. Links are followed as long as they stay inside.
fn is_own_program(files: &Root, path: &Path) -> bool {
    let found = files.metadata(path);
    found.is_ok_and(|found| found.kind == FileKind::File && found.mode & EXECUTABLE != 0)
}

fn is_program(path: &Path) -> bool {
    path.is_file() && accessat(CWD, path, Access::EXEC_OK, AtFlags::empty()).is_ok()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests build projects")]
mod tests {
    use super::*;
    use crate::definition::DEFINITIONS;
    use pretty_assertions::assert_eq;
    use std::os::unix::fs::PermissionsExt as _;

    const MARKERS: &[&str] = &["Cargo.toml"];

    fn project(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let root = Root::open(directory.path()).unwrap();
        (directory, root)
    }

    #[test]
    fn the_project_is_found_by_its_rule() {
        let (_directory, files) = project(&[
            ("Cargo.toml", "[workspace]\nmembers = ['a']"),
            ("a/Cargo.toml", "[package]"),
            ("a/src/lib.rs", ""),
            ("other/Cargo.toml", "[package]\n[workspace]"),
            ("other/src/lib.rs", ""),
        ]);
        let declared = RootRule::Declared { marker: "Cargo.toml", line: "[workspace" };
        for (file, rule, root) in [
            ("a/src/lib.rs", declared, ""),
            ("other/src/lib.rs", declared, "other"),
            ("a/src/lib.rs", RootRule::Nearest(MARKERS), "a"),
            ("a/src/lib.rs", RootRule::Outermost(MARKERS), ""),
            ("a/src/lib.rs", RootRule::Nearest(&["go.mod"]), ""),
            ("a/src/lib.rs", RootRule::Workspace, ""),
        ] {
            assert_eq!(root_of(&files, Path::new(file), rule), Path::new(root), "{file} {rule:?}");
        }
        assert!(has_above(&files, Path::new("a/src/lib.rs"), &["x", "Cargo.toml"]));
        assert!(!has_above(&files, Path::new("a/src/lib.rs"), &["lib.rs"][..0]));
    }

    #[test]
    fn a_package_without_a_workspace_is_its_own_project() {
        let (_directory, files) = project(&[("a/Cargo.toml", "[package]"), ("a/lib.rs", "")]);
        let rule = RootRule::Declared { marker: "Cargo.toml", line: "[workspace" };
        assert_eq!(root_of(&files, Path::new("a/lib.rs"), rule), Path::new("a"));
    }

    #[test]
    fn a_program_of_the_project_wins_over_one_of_the_machine() {
        let (directory, files) = project(&[
            ("node_modules/.bin/vtsls", ""),
            ("machine/vtsls", ""),
            ("machine/clangd-16", ""),
            ("a/package.json", ""),
        ]);
        let machine = [directory.path().join("machine")];
        let program = |name: &str, path: &[PathBuf]| {
            let definition = DEFINITIONS.iter().find(|known| known.name == name).unwrap();
            program_of(definition, &files, Path::new("a"), &[], path)
        };
        let own = files.path().join("node_modules/.bin/vtsls");
        assert_eq!(program("vtsls", &machine), Some(own));
        assert_eq!(program("lua-language-server", &machine), None);
        std::fs::remove_file(files.path().join("node_modules/.bin/vtsls")).unwrap();
        assert_eq!(program("vtsls", &machine), Some(machine[0].join("vtsls")));
    }
}
