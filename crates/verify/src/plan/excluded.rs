//! Directories that are never linted: environments, dependencies, build output and fixtures.
//!
//! They are excluded by the options of each tool, unless the project configures exclusions itself.
//! A file or directory that a request names is checked anyway.

use crate::tool::ProjectTool;

const DIRECTORIES: [&str; 15] = [
    ".venv",
    "venv",
    "env",
    "node_modules",
    "build",
    "dist",
    "out",
    "target",
    "coverage",
    "vendor",
    "third_party",
    "fixtures",
    "__fixtures__",
    "testdata",
    "test_data",
];

/// Returns the options that keep a tool out of the directories; empty if it has none.
pub(super) fn options(tool: ProjectTool) -> Vec<String> {
    match tool {
        ProjectTool::Ruff => vec!["--extend-exclude".to_owned(), DIRECTORIES.join(",")],
        ProjectTool::Flake8 => vec![format!("--extend-exclude={}", DIRECTORIES.join(","))],
        ProjectTool::Pylint => vec![format!("--ignore={}", DIRECTORIES.join(","))],
        ProjectTool::Mypy => {
            let names = DIRECTORIES.map(|name| name.replace('.', "\\."));
            vec!["--exclude".to_owned(), format!("(^|/)({})/", names.join("|"))]
        }
        ProjectTool::Eslint | ProjectTool::Oxlint => DIRECTORIES
            .iter()
            .flat_map(|name| ["--ignore-pattern".to_owned(), format!("**/{name}/**")])
            .collect(),
        _ => vec![],
    }
}
