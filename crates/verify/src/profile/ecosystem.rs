//! Ecosystems and package managers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A language with its tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ecosystem {
    /// Rust with cargo.
    Rust,
    /// JavaScript and TypeScript with a `package.json`.
    Node,
    /// Python.
    Python,
    /// Go modules.
    Go,
    /// Java and Kotlin with maven or gradle.
    Java,
    /// Deno.
    Deno,
    /// Ruby.
    Ruby,
    /// PHP with composer.
    Php,
    /// .NET.
    Dotnet,
    /// C and C++ with cmake or make.
    Cpp,
    /// Something that only its `carrel.toml` describes.
    Custom,
}

impl Ecosystem {
    /// Every ecosystem, in the order in which profiles of one directory are listed.
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

    /// Returns the name used for the `language` of a tool.
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

    /// Returns the ecosystems that a trimmed, lower-case name stands for, the likelier first.
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

    /// Returns the endings of the files that belong to the ecosystem.
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

/// What JavaScript tools read as code.
pub(crate) const SCRIPT_EXTENSIONS: &[&str] =
    &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"];

impl fmt::Display for Ecosystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What installs a project's dependencies.
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
    /// Returns the name of the program.
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
