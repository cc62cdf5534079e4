//! The choice of projects for a command without a path.
//!
//! The candidates are the projects of the workspace's root directory. If it has none, they are the
//! top-most projects below it, without a project of the same ecosystem above, and outside of
//! directories for documentation, examples, fixtures and copies of other projects: their manifests
//! do not describe the repository. Candidates of one ecosystem are all chosen; candidates of several
//! need a `language`. A `language` that no candidate has is also looked for among all top-most
//! projects, so that a nested project can be named.

use std::collections::BTreeSet;

use crate::paths;
use crate::profile::{Ecosystem, Profile, has_word};

const ALL: &str = "all";

/// Bounds the projects that an error names.
const MAX_NAMED: usize = 5;

/// Names of directories whose projects are not the repository's own.
const STRAY: &str = "doc docs documentation website site example examples sample samples demo demos \
    fixture fixtures __fixtures__ testdata test-data test_data test tests __tests__ spec specs e2e \
    third_party third-party thirdparty 3rdparty external externals extern vendor vendored deps \
    contrib templates template playground benchmark benchmarks";

/// Returns true if a directory is below one whose projects are not the repository's own.
pub(crate) fn is_stray(directory: &str) -> bool {
    directory.split('/').any(|part| has_word(STRAY, &part.to_lowercase()))
}

/// The reason why no project was chosen. The messages are part of the tools' contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum ChoiceError {
    #[error("no supported project detected in workspace root")]
    NoProject,
    #[error(
        "no supported project detected in workspace root; below it: {} — pass `path` or `language`",
        below.join(", ")
    )]
    OnlyStray {
        /// Ecosystems and directories, such as `ruby in docs`.
        below: Vec<String>,
    },
    #[error(
        "polyglot workspace: {} project types detected ({}) — pass `language` to pick one",
        detected.len(),
        names(detected)
    )]
    Polyglot { detected: BTreeSet<&'static str> },
    #[error("language \"{language}\" not detected in workspace; detected: {}", names(detected))]
    NotDetected {
        /// The requested language, trimmed and in lower case.
        language: String,
        detected: BTreeSet<&'static str>,
    },
}

fn names(detected: &BTreeSet<&'static str>) -> String {
    detected.iter().copied().collect::<Vec<_>>().join(", ")
}

/// Chooses among the projects of a workspace, as returned by [`crate::detect_all`]. Names of
/// languages are case-insensitive and have aliases such as `ts`.
pub fn choose_projects<'a>(
    profiles: &'a [Profile],
    language: Option<&str>,
) -> Result<Vec<&'a Profile>, ChoiceError> {
    if profiles.is_empty() {
        return Err(ChoiceError::NoProject);
    }
    let candidates = candidates(profiles);
    let language = language.map(|language| language.trim().to_lowercase());
    match language.as_deref() {
        None | Some("" | ALL) if candidates.is_empty() => Err(only_stray(profiles)),
        None | Some("") => only_kind(candidates),
        Some(ALL) => Ok(candidates),
        Some(language) => of_kind(profiles, &candidates, language),
    }
}

fn only_kind(candidates: Vec<&Profile>) -> Result<Vec<&Profile>, ChoiceError> {
    let detected = kinds(&candidates);
    if detected.len() > 1 { Err(ChoiceError::Polyglot { detected }) } else { Ok(candidates) }
}

fn of_kind<'a>(
    profiles: &'a [Profile],
    candidates: &[&'a Profile],
    language: &str,
) -> Result<Vec<&'a Profile>, ChoiceError> {
    let nested = top_most(profiles);
    for ecosystem in Ecosystem::named(language) {
        for group in [candidates, &nested] {
            let chosen: Vec<&Profile> =
                group.iter().copied().filter(|profile| profile.ecosystem == ecosystem).collect();
            if !chosen.is_empty() {
                return Ok(chosen);
            }
        }
    }
    let everywhere: Vec<&Profile> = profiles.iter().collect();
    Err(ChoiceError::NotDetected { language: language.to_owned(), detected: kinds(&everywhere) })
}

fn candidates(profiles: &[Profile]) -> Vec<&Profile> {
    let own: Vec<&Profile> = profiles.iter().filter(|profile| profile.root == paths::TOP).collect();
    if !own.is_empty() {
        return own;
    }
    let mut nested = top_most(profiles);
    nested.retain(|profile| !is_stray(&profile.root));
    nested
}

fn only_stray(profiles: &[Profile]) -> ChoiceError {
    let name = |profile: &&Profile| format!("{} in {}", profile.ecosystem.as_str(), profile.root);
    let below = top_most(profiles).iter().take(MAX_NAMED).map(name).collect();
    ChoiceError::OnlyStray { below }
}

fn top_most(profiles: &[Profile]) -> Vec<&Profile> {
    let above = |inner: &Profile, outer: &Profile| {
        outer.ecosystem == inner.ecosystem
            && outer.root != inner.root
            && paths::is_within(&inner.root, &outer.root)
    };
    profiles.iter().filter(|inner| !profiles.iter().any(|outer| above(inner, outer))).collect()
}

fn kinds(profiles: &[&Profile]) -> BTreeSet<&'static str> {
    profiles.iter().map(|profile| profile.ecosystem.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(ecosystem: Ecosystem, root: &str) -> Profile {
        Profile::new(ecosystem, root, "marker")
    }

    fn roots(chosen: Result<Vec<&Profile>, ChoiceError>) -> Vec<&str> {
        chosen.unwrap().iter().map(|profile| profile.root.as_str()).collect()
    }

    fn text(chosen: Result<Vec<&Profile>, ChoiceError>) -> String {
        chosen.unwrap_err().to_string()
    }

    #[test]
    fn a_language_is_found_in_any_case_and_with_blanks_around() {
        let profiles = [profile(Ecosystem::Go, "."), profile(Ecosystem::Rust, ".")];
        for language in ["go", "GO", "Go", "  go  ", "golang"] {
            assert_eq!(
                choose_projects(&profiles, Some(language)).unwrap(),
                [&profiles[0]],
                "{language}"
            );
        }
        assert_eq!(roots(choose_projects(&profiles, Some("all"))), [".", "."]);
    }

    #[test]
    fn the_errors_have_the_prescribed_texts() {
        let none: [Profile; 0] = [];
        assert_eq!(
            text(choose_projects(&none, Some("go"))),
            "no supported project detected in workspace root"
        );
        let two = [profile(Ecosystem::Rust, "."), profile(Ecosystem::Go, ".")];
        assert_eq!(
            text(choose_projects(&two, None)),
            "polyglot workspace: 2 project types detected (go, rust) — pass `language` to pick one"
        );
        let go = [profile(Ecosystem::Go, ".")];
        assert_eq!(
            text(choose_projects(&go, Some(" Rust "))),
            "language \"rust\" not detected in workspace; detected: go"
        );
    }

    #[test]
    fn the_workspaces_own_project_comes_before_nested_ones_unless_another_language_is_named() {
        let profiles = [profile(Ecosystem::Node, "."), profile(Ecosystem::Rust, "native")];
        assert_eq!(roots(choose_projects(&profiles, None)), ["."]);
        assert_eq!(roots(choose_projects(&profiles, Some("rust"))), ["native"]);
        assert_eq!(roots(choose_projects(&profiles, Some("all"))), ["."]);
    }

    #[test]
    fn without_a_project_of_its_own_the_top_most_ones_count() {
        let profiles = [
            profile(Ecosystem::Rust, "a"),
            profile(Ecosystem::Rust, "b"),
            profile(Ecosystem::Rust, "a/inner"),
        ];
        assert_eq!(roots(choose_projects(&profiles, None)), ["a", "b"]);
    }

    #[test]
    fn projects_of_documentation_examples_and_fixtures_are_chosen_only_by_name() {
        let profiles =
            [profile(Ecosystem::Ruby, "docs"), profile(Ecosystem::Node, "web/examples/a")];
        assert_eq!(
            text(choose_projects(&profiles, None)),
            "no supported project detected in workspace root; below it: ruby in docs, node in \
             web/examples/a — pass `path` or `language`"
        );
        assert_eq!(roots(choose_projects(&profiles, Some("ruby"))), ["docs"]);
        let beside = [profile(Ecosystem::Ruby, "docs"), profile(Ecosystem::Go, "server")];
        assert_eq!(roots(choose_projects(&beside, None)), ["server"]);
    }

    #[test]
    fn aliases_select_the_likelier_ecosystem() {
        let deno = [profile(Ecosystem::Deno, ".")];
        assert_eq!(roots(choose_projects(&deno, Some("typescript"))), ["."]);
        let both = [profile(Ecosystem::Deno, "."), profile(Ecosystem::Node, ".")];
        assert_eq!(choose_projects(&both, Some("javascript")).unwrap(), [&both[1]]);
        let java = [profile(Ecosystem::Java, ".")];
        assert_eq!(roots(choose_projects(&java, Some("Kotlin"))), ["."]);
    }
}
