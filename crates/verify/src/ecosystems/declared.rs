//! Ecosystems whose commands follow from the names of files alone, one row for each.
//!
//! A row names its marker files and the commands of the ecosystem's own build tool. A command may
//! also require a settings file, which is then its evidence.

use crate::paths;
use crate::profile::{Ecosystem, PackageManager, Profile, ProfileField, ProjectCommand, words};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

use ProfileField::{Format, FormatCheck, Lint, Test, Typecheck};

#[derive(Debug)]
struct Row {
    ecosystem: Ecosystem,
    manager: PackageManager,
    /// Names of marker files, separated by spaces.
    markers: &'static str,
    /// Suffixes of marker files with variable names.
    suffixes: &'static [&'static str],
    /// Text that the marker must contain; empty for any.
    contains: &'static str,
    install: &'static str,
    commands: &'static [Rule],
}

/// A command of a row.
#[derive(Clone, Copy, Debug)]
struct Rule {
    field: ProfileField,
    tool: ProjectTool,
    argv: &'static str,
    /// Smallest unit, and the paths that stand for the whole project.
    reach: Reach,
    /// Settings files of which one must exist; empty if the marker is evidence enough.
    settings: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Reach {
    Project,
    /// Files are appended; for the whole project these paths are.
    Files(&'static str),
}

const fn rule(field: ProfileField, tool: ProjectTool, argv: &'static str, reach: Reach) -> Rule {
    Rule { field, tool, argv, reach, settings: "" }
}

const fn with_settings(
    field: ProfileField,
    tool: ProjectTool,
    argv: &'static str,
    reach: Reach,
    settings: &'static str,
) -> Rule {
    Rule { field, tool, argv, reach, settings }
}

const FILES: Reach = Reach::Files("");
const TREE: Reach = Reach::Files(".");
const WHOLE: Reach = Reach::Project;

const DART: [Rule; 4] = [
    rule(Lint, ProjectTool::Dart, "dart analyze", FILES),
    rule(Typecheck, ProjectTool::Dart, "dart analyze", FILES),
    rule(Format, ProjectTool::Dart, "dart format", TREE),
    rule(FormatCheck, ProjectTool::Dart, "dart format --output=none --set-exit-if-changed", TREE),
];

/// All rows; the first row of an ecosystem that matches a directory is its profile.
static ROWS: [Row; 9] = [
    Row {
        ecosystem: Ecosystem::Elixir,
        manager: PackageManager::Mix,
        markers: "mix.exs",
        suffixes: &[],
        contains: "",
        install: "mix deps.get",
        commands: &[
            rule(Test, ProjectTool::Mix, "mix test", FILES),
            rule(Typecheck, ProjectTool::Mix, "mix compile", WHOLE),
            with_settings(Lint, ProjectTool::Mix, "mix credo", FILES, ".credo.exs"),
            rule(Format, ProjectTool::Mix, "mix format", FILES),
            rule(FormatCheck, ProjectTool::Mix, "mix format --check-formatted", FILES),
        ],
    },
    Row {
        ecosystem: Ecosystem::Zig,
        manager: PackageManager::Zig,
        markers: "build.zig",
        suffixes: &[],
        contains: "",
        install: "zig build --fetch",
        commands: &[
            rule(Test, ProjectTool::Zig, "zig build test", WHOLE),
            rule(Typecheck, ProjectTool::Zig, "zig build", WHOLE),
            rule(Format, ProjectTool::Zig, "zig fmt", TREE),
            rule(FormatCheck, ProjectTool::Zig, "zig fmt --check", TREE),
        ],
    },
    Row {
        ecosystem: Ecosystem::Swift,
        manager: PackageManager::Swift,
        markers: "Package.swift",
        suffixes: &[],
        contains: "",
        install: "swift package resolve",
        commands: &[
            rule(Test, ProjectTool::Swift, "swift test", WHOLE),
            rule(Typecheck, ProjectTool::Swift, "swift build --build-tests", WHOLE),
            with_settings(
                Lint,
                ProjectTool::Swiftlint,
                "swiftlint lint --quiet",
                FILES,
                ".swiftlint.yml .swiftlint.yaml",
            ),
            with_settings(
                Format,
                ProjectTool::Swift,
                "swift format --in-place --recursive",
                TREE,
                ".swift-format",
            ),
            with_settings(
                FormatCheck,
                ProjectTool::Swift,
                "swift format lint --strict --recursive",
                TREE,
                ".swift-format",
            ),
        ],
    },
    Row {
        ecosystem: Ecosystem::Dart,
        manager: PackageManager::Flutter,
        markers: "pubspec.yaml",
        suffixes: &[],
        contains: "sdk: flutter",
        install: "flutter pub get",
        commands: &[
            rule(Test, ProjectTool::Flutter, "flutter test", FILES),
            DART[0],
            DART[1],
            DART[2],
            DART[3],
        ],
    },
    Row {
        ecosystem: Ecosystem::Dart,
        manager: PackageManager::Dart,
        markers: "pubspec.yaml",
        suffixes: &[],
        contains: "",
        install: "dart pub get",
        commands: &[
            rule(Test, ProjectTool::Dart, "dart test", FILES),
            DART[0],
            DART[1],
            DART[2],
            DART[3],
        ],
    },
    Row {
        ecosystem: Ecosystem::Scala,
        manager: PackageManager::Sbt,
        markers: "build.sbt",
        suffixes: &[],
        contains: "",
        install: "sbt update",
        commands: &[
            rule(Test, ProjectTool::Sbt, "sbt -Dsbt.color=false test", WHOLE),
            rule(Typecheck, ProjectTool::Sbt, "sbt -Dsbt.color=false Test/compile", WHOLE),
            with_settings(
                Format,
                ProjectTool::Sbt,
                "sbt -Dsbt.color=false scalafmtAll",
                WHOLE,
                ".scalafmt.conf",
            ),
            with_settings(
                FormatCheck,
                ProjectTool::Sbt,
                "sbt -Dsbt.color=false scalafmtCheckAll",
                WHOLE,
                ".scalafmt.conf",
            ),
        ],
    },
    Row {
        ecosystem: Ecosystem::Ocaml,
        manager: PackageManager::Opam,
        markers: "dune-project",
        suffixes: &[],
        contains: "",
        install: "opam install . --deps-only --with-test --yes",
        commands: &[
            // Without --force, tests that passed before are not run again.
            rule(Test, ProjectTool::Dune, "dune runtest --force", WHOLE),
            rule(Typecheck, ProjectTool::Dune, "dune build @check", WHOLE),
            with_settings(Format, ProjectTool::Dune, "dune fmt", WHOLE, ".ocamlformat"),
            with_settings(FormatCheck, ProjectTool::Dune, "dune build @fmt", WHOLE, ".ocamlformat"),
        ],
    },
    Row {
        ecosystem: Ecosystem::Haskell,
        manager: PackageManager::Stack,
        markers: "stack.yaml",
        suffixes: &[],
        contains: "",
        install: "stack build --only-dependencies --test",
        commands: &[
            rule(Test, ProjectTool::Stack, "stack test", WHOLE),
            rule(Typecheck, ProjectTool::Stack, "stack build --test --no-run-tests", WHOLE),
            with_settings(Lint, ProjectTool::Hlint, "hlint", TREE, ".hlint.yaml"),
        ],
    },
    Row {
        ecosystem: Ecosystem::Haskell,
        manager: PackageManager::Cabal,
        markers: "cabal.project",
        suffixes: &[".cabal"],
        contains: "",
        install: "cabal build all --only-dependencies --enable-tests",
        commands: &[
            rule(Test, ProjectTool::Cabal, "cabal test all", WHOLE),
            rule(Typecheck, ProjectTool::Cabal, "cabal build all --enable-tests", WHOLE),
            with_settings(Lint, ProjectTool::Hlint, "hlint", TREE, ".hlint.yaml"),
        ],
    },
];

/// Returns the profiles of all rows that match a directory, at most one for each ecosystem.
pub(super) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Vec<Profile> {
    let mut found: Vec<Profile> = Vec::new();
    for row in &ROWS {
        if found.iter().all(|profile| profile.ecosystem != row.ecosystem) {
            found.extend(row.profile(reader, directory));
        }
    }
    found
}

impl Row {
    fn profile(&self, reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
        // Without suffixes there is no name to look for.
        let named = || {
            let suffixes = Some(self.suffixes).filter(|suffixes| !suffixes.is_empty())?;
            let name = reader.files(directory, suffixes).into_iter().next()?;
            Some(paths::join(directory, &name))
        };
        let marker = reader.first(directory, self.markers).or_else(named)?;
        let matches = || reader.text(&marker).is_some_and(|text| text.contains(self.contains));
        if !self.contains.is_empty() && !matches() {
            return None;
        }
        let mut profile = Profile::new(self.ecosystem, directory, &marker);
        profile.set_manager(self.manager, &marker);
        profile.set_install(directory, self.install, &marker);
        for rule in self.commands {
            rule.apply(reader, self.ecosystem, &marker, &mut profile);
        }
        Some(profile)
    }
}

impl Rule {
    fn apply(
        &self,
        reader: &ProjectReader<'_>,
        ecosystem: Ecosystem,
        marker: &str,
        profile: &mut Profile,
    ) {
        let directory = profile.root.clone();
        let evidence = match self.settings {
            "" => Some(marker.to_owned()),
            settings => reader.nearest(&directory, settings),
        };
        let Some(file) = evidence else { return };
        let argv = words(self.argv);
        let extensions = ecosystem.extensions();
        let command = match self.reach {
            Reach::Project => {
                ProjectCommand::new(self.tool, &directory, argv).extensions(extensions)
            }
            Reach::Files(paths) => {
                ProjectCommand::for_files(self.tool, &directory, argv, paths, extensions)
            }
        };
        let command = if self.field == Test { command.with("CI", "1") } else { command };
        profile.set(self.field, command, &file);
    }
}
