//! Ecosystems and package managers, with the names that tools and settings use for them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A language with its package managers and tools. Java includes Kotlin, and Node every project
/// with a `package.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the variants are the names of the ecosystems")]
pub enum Ecosystem {
    Rust,
    Node,
    Python,
    Go,
    Java,
    Deno,
    Ruby,
    Php,
    Dotnet,
    Cpp,
    /// A project that only a `carrel.toml` describes.
    Custom,
}

impl Ecosystem {
    /// All ecosystems, in the order of profiles in a reply.
    pub const ALL: [Self; 11] = [
        Self::Rust,
        Self::Node,
        Self::Python,
        Self::Go,
        Self::Java,
        Self::Deno,
        Self::Ruby,
        Self::Php,
        Self::Dotnet,
        Self::Cpp,
        Self::Custom,
    ];

    /// Returns the name that tools accept as `language`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Node => "node",
            Self::Python => "python",
            Self::Go => "go",
            Self::Java => "java",
            Self::Deno => "deno",
            Self::Ruby => "ruby",
            Self::Php => "php",
            Self::Dotnet => "dotnet",
            Self::Cpp => "cpp",
            Self::Custom => "custom",
        }
    }

    /// Returns the ecosystems of a trimmed, lower-case name or alias, the likelier first.
    pub(crate) fn named(name: &str) -> &'static [Self] {
        match name {
            "rust" | "cargo" => &[Self::Rust],
            "node" | "nodejs" => &[Self::Node],
            "typescript" | "javascript" | "ts" | "js" => &[Self::Node, Self::Deno],
            "python" | "py" => &[Self::Python],
            "go" | "golang" => &[Self::Go],
            "java" | "kotlin" => &[Self::Java],
            "deno" => &[Self::Deno],
            "ruby" => &[Self::Ruby],
            "php" => &[Self::Php],
            "dotnet" | ".net" | "csharp" | "c#" | "f#" => &[Self::Dotnet],
            "cpp" | "c++" | "c" => &[Self::Cpp],
            "custom" => &[Self::Custom],
            _ => &[],
        }
    }

    /// Returns the extensions of source files.
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &["rs"],
            Self::Node | Self::Deno => SCRIPT_EXTENSIONS,
            Self::Python => &["py", "pyi"],
            Self::Go => &["go"],
            Self::Java => &["java", "kt", "kts"],
            Self::Ruby => &["rb", "rake"],
            Self::Php => &["php"],
            Self::Dotnet => &["cs", "fs", "vb"],
            Self::Cpp => &["c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx"],
            Self::Custom => &[],
        }
    }
}

pub(crate) const SCRIPT_EXTENSIONS: &[&str] =
    &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"];

impl fmt::Display for Ecosystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A package manager or build tool that installs dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each variant is the name of the program")]
pub enum PackageManager {
    Cargo,
    Npm,
    Pnpm,
    Yarn,
    Bun,
    Uv,
    Poetry,
    Pipenv,
    Pdm,
    Pip,
    Go,
    Maven,
    Gradle,
    Deno,
    Bundler,
    Composer,
    Dotnet,
    Cmake,
    Make,
}

impl PackageManager {
    /// Returns the name of the program, such as `mvn` for Maven.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
            Self::Bun => "bun",
            Self::Uv => "uv",
            Self::Poetry => "poetry",
            Self::Pipenv => "pipenv",
            Self::Pdm => "pdm",
            Self::Pip => "pip",
            Self::Go => "go",
            Self::Maven => "mvn",
            Self::Gradle => "gradle",
            Self::Deno => "deno",
            Self::Bundler => "bundle",
            Self::Composer => "composer",
            Self::Dotnet => "dotnet",
            Self::Cmake => "cmake",
            Self::Make => "make",
        }
    }
}
