//! Ecosystems and package managers, with the names that tools and settings use for them.

use serde::{Deserialize, Serialize};

use super::command::has_word;
use crate::named::named_enum;

named_enum! {
    /// A language with its package managers and tools. Java includes Kotlin, and Node every project
    /// with a `package.json`. Profiles in a reply are in this order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[expect(missing_docs, reason = "the variants are the names of the ecosystems")]
    pub enum Ecosystem {
        Rust = "rust",
        Node = "node",
        Python = "python",
        Go = "go",
        Java = "java",
        Deno = "deno",
        Ruby = "ruby",
        Php = "php",
        Dotnet = "dotnet",
        Cpp = "cpp",
        Elixir = "elixir",
        Zig = "zig",
        Swift = "swift",
        Dart = "dart",
        Scala = "scala",
        Ocaml = "ocaml",
        Haskell = "haskell",
        /// A project of no known language, described by a `carrel.toml` or by a build tool alone:
        /// make, just, Task, Bazel.
        Custom = "custom",
    }
}

pub(crate) const SCRIPT_EXTENSIONS: &str = "js jsx mjs cjs ts tsx mts cts";

/// The names and files of an ecosystem; lists are separated by spaces.
struct EcosystemFacts {
    aliases: &'static str,
    extensions: &'static str,
    /// File that defines scripts.
    scripts: Option<&'static str>,
}

impl Ecosystem {
    fn facts(self) -> EcosystemFacts {
        let (aliases, extensions, scripts) = match self {
            Self::Rust => ("cargo", "rs", Some(".cargo/config.toml")),
            Self::Node => {
                ("nodejs typescript javascript ts js", SCRIPT_EXTENSIONS, Some("package.json"))
            }
            Self::Python => ("py", "py pyi", Some("pyproject.toml")),
            Self::Go => ("golang", "go", None),
            Self::Java => ("kotlin", "java kt kts", None),
            Self::Deno => ("typescript javascript ts js", SCRIPT_EXTENSIONS, Some("deno.json")),
            Self::Ruby => ("", "rb rake", None),
            Self::Php => ("", "php", Some("composer.json")),
            Self::Dotnet => (".net csharp c# f#", "cs fs vb", None),
            Self::Cpp => ("c++ c", "c cc cpp cxx h hh hpp hxx", Some("Makefile")),
            Self::Elixir => ("mix", "ex exs", None),
            Self::Zig => ("", "zig", None),
            Self::Swift => ("", "swift", None),
            Self::Dart => ("flutter", "dart", None),
            Self::Scala => ("sbt", "scala sbt sc", None),
            Self::Ocaml => ("dune", "ml mli", None),
            Self::Haskell => ("cabal stack", "hs lhs", None),
            Self::Custom => ("make", "", None),
        };
        EcosystemFacts { aliases, extensions, scripts }
    }

    /// Returns the ecosystems of a trimmed, lower-case name or alias, the likelier first.
    pub(crate) fn named(name: &str) -> impl Iterator<Item = Self> {
        let has_name =
            move |one: &Self| one.as_str() == name || has_word(one.facts().aliases, name);
        Self::ALL.iter().copied().filter(has_name)
    }

    /// Returns the extensions of source files, separated by spaces.
    pub(crate) fn extensions(self) -> &'static str {
        self.facts().extensions
    }

    /// Returns the file that defines scripts.
    pub(crate) fn script_file(self) -> Option<&'static str> {
        self.facts().scripts
    }
}

named_enum! {
    /// A package manager or build tool that installs dependencies, named after its program.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[expect(missing_docs, reason = "each variant is the name of the program")]
    pub enum PackageManager {
        Cargo = "cargo",
        Npm = "npm",
        Pnpm = "pnpm",
        Yarn = "yarn",
        Bun = "bun",
        Uv = "uv",
        Poetry = "poetry",
        Pipenv = "pipenv",
        Pdm = "pdm",
        Pip = "pip",
        Go = "go",
        Maven = "mvn",
        Gradle = "gradle",
        Deno = "deno",
        Bundler = "bundle",
        Composer = "composer",
        Dotnet = "dotnet",
        Cmake = "cmake",
        Make = "make",
        Meson = "meson",
        Mix = "mix",
        Zig = "zig",
        Swift = "swift",
        Dart = "dart",
        Flutter = "flutter",
        Sbt = "sbt",
        Opam = "opam",
        Cabal = "cabal",
        Stack = "stack",
        Bazel = "bazel",
        Just = "just",
        Task = "task",
    }
}
