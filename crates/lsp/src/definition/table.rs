//! One row for each server, in the order in which they are tried.

use std::time::Duration;

use carrel_code::Language;

use super::{
    ChangeRule, ChangeRules, Completeness, DiagnosticSource, Readiness, RootRule, ServerDefinition,
    settings,
};
use crate::position::LineBreaks;

/// Servers that take a change of sources in at once, by notification.
const PROMPT: ChangeRules = ChangeRules { deleted: ChangeRule::Notify, ..BY_RESTART };

/// Servers that look at the project when they start.
const BY_RESTART: ChangeRules = ChangeRules {
    deleted: ChangeRule::Restart,
    project: ChangeRule::Restart,
    targets: &[],
    is_indexed_before_push: false,
};

/// Cargo takes such files for targets without a word about them in the manifest.
const CARGO_TARGETS: &[&str] =
    &["lib.rs", "main.rs", "build.rs", "bin", "tests", "examples", "benches"];

/// Pushes of servers whose protocol has no version for them.
const QUIET: DiagnosticSource = DiagnosticSource::QuietPush(Duration::from_millis(1500));

const PYTHON_ROOTS: &[&str] = &[
    "pyproject.toml",
    "ty.toml",
    "pyrightconfig.json",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
];
const SCRIPTS: &[Language] = &[Language::TypeScript, Language::Tsx, Language::JavaScript];
const SCRIPT_FILES: &[&str] = &["tsconfig.json", "jsconfig.json", "package.json"];

/// All servers. For a language the first that is installed is used.
pub(crate) static DEFINITIONS: &[ServerDefinition] = &[
    ServerDefinition {
        name: "rust-analyzer",
        languages: &[Language::Rust],
        programs: &["rust-analyzer"],
        arguments: &[],
        // Without a network, cargo would try to reach the registry for half a minute. The tree is read-only, so build
        // scripts are built elsewhere.
        environment: &[
            ("CARGO_NET_OFFLINE", "true"),
            ("CARGO_TARGET_DIR", "{carrel:cache}/rust-analyzer"),
        ],
        options: settings::rust_analyzer,
        settings: settings::rust_analyzer_sections,
        root: RootRule::Declared { marker: "Cargo.toml", line: "[workspace" },
        project_files: &[
            "Cargo.toml",
            "Cargo.lock",
            "rust-toolchain",
            "rust-toolchain.toml",
            "rust-project.json",
        ],
        readiness: Readiness::QuiescentStatus,
        changes: ChangeRules {
            deleted: ChangeRule::AwaitRefusal("rust-analyzer/viewFileText"),
            targets: CARGO_TARGETS,
            ..BY_RESTART
        },
        diagnostics: DiagnosticSource::VersionedPush,
        unchecked: Some("only what rust-analyzer checks by itself; cargo check finds more"),
        line_breaks: LineBreaks::Newline,
        completeness: None,
        installation: "rustup component add rust-analyzer",
    },
    ServerDefinition {
        name: "gopls",
        languages: &[Language::Go],
        programs: &["gopls"],
        arguments: &["serve"],
        environment: &[
            ("GOPROXY", "off"),
            ("GOSUMDB", "off"),
            ("GOTOOLCHAIN", "local"),
            ("GOTELEMETRY", "off"),
        ],
        options: settings::gopls,
        settings: settings::gopls_sections,
        root: RootRule::Nearest(&["go.work", "go.mod"]),
        project_files: &["go.mod", "go.sum", "go.work", "go.work.sum"],
        readiness: Readiness::Requests,
        changes: PROMPT,
        diagnostics: DiagnosticSource::VersionedPush,
        unchecked: None,
        line_breaks: LineBreaks::Newline,
        completeness: Some(Completeness {
            files: &["go.work", "go.mod"],
            otherwise: "there is no go.mod: only the package of the file is known",
        }),
        installation: "go install golang.org/x/tools/gopls@latest, or the Debian package gopls",
    },
    ServerDefinition {
        name: "ty",
        languages: &[Language::Python],
        programs: &["ty"],
        arguments: &["server"],
        environment: &[],
        options: settings::ty,
        settings: settings::ty_sections,
        root: RootRule::Nearest(PYTHON_ROOTS),
        project_files: PYTHON_ROOTS,
        readiness: Readiness::Requests,
        changes: BY_RESTART,
        diagnostics: DiagnosticSource::VersionedPush,
        unchecked: None,
        line_breaks: LineBreaks::CarriageReturn,
        completeness: None,
        installation: "pip install ty",
    },
    ServerDefinition {
        name: "basedpyright",
        languages: &[Language::Python],
        programs: &["basedpyright-langserver", "pyright-langserver"],
        arguments: &["--stdio"],
        environment: &[],
        options: settings::none,
        settings: settings::pyright_sections,
        root: RootRule::Nearest(PYTHON_ROOTS),
        project_files: PYTHON_ROOTS,
        // References are searched in the files that it has found.
        readiness: Readiness::Logged("ource file"),
        changes: BY_RESTART,
        diagnostics: DiagnosticSource::VersionedPush,
        unchecked: None,
        line_breaks: LineBreaks::CarriageReturn,
        completeness: None,
        installation: "pip install basedpyright",
    },
    ServerDefinition {
        name: "typescript-language-server",
        languages: SCRIPTS,
        programs: &["typescript-language-server"],
        arguments: &["--stdio"],
        environment: &[],
        options: settings::typescript,
        settings: settings::none,
        root: RootRule::Outermost(SCRIPT_FILES),
        project_files: SCRIPT_FILES,
        readiness: Readiness::Requests,
        changes: BY_RESTART,
        diagnostics: DiagnosticSource::TypeScriptCommand,
        unchecked: None,
        line_breaks: LineBreaks::JavaScript,
        completeness: Some(Completeness {
            files: &["tsconfig.json", "jsconfig.json"],
            otherwise: "there is no tsconfig.json or jsconfig.json: only files that were asked about and their imports are known",
        }),
        installation: "npm install --save-dev typescript-language-server typescript@5",
    },
    ServerDefinition {
        name: "vtsls",
        languages: SCRIPTS,
        programs: &["vtsls"],
        arguments: &["--stdio"],
        environment: &[],
        options: settings::none,
        settings: settings::vtsls_sections,
        root: RootRule::Outermost(SCRIPT_FILES),
        project_files: SCRIPT_FILES,
        readiness: Readiness::Requests,
        changes: BY_RESTART,
        diagnostics: DiagnosticSource::TypeScriptCommand,
        unchecked: None,
        line_breaks: LineBreaks::JavaScript,
        completeness: Some(Completeness {
            files: &["tsconfig.json", "jsconfig.json"],
            otherwise: "there is no tsconfig.json or jsconfig.json: only files that were asked about and their imports are known",
        }),
        installation: "npm install --save-dev @vtsls/language-server",
    },
    ServerDefinition {
        name: "clangd",
        languages: &[Language::C, Language::Cpp],
        programs: &[
            "clangd",
            "clangd-22",
            "clangd-21",
            "clangd-20",
            "clangd-19",
            "clangd-18",
            "clangd-17",
            "clangd-16",
            "clangd-15",
            "clangd-14",
        ],
        arguments: &[
            "--background-index",
            "--log=error",
            "--pch-storage=memory",
            "--limit-references=0",
            "--limit-results=0",
        ],
        environment: &[],
        options: settings::none,
        settings: settings::none,
        root: RootRule::Workspace,
        project_files: &["compile_commands.json", "compile_flags.txt", ".clangd"],
        readiness: Readiness::WorkReported,
        changes: ChangeRules { is_indexed_before_push: true, ..BY_RESTART },
        diagnostics: DiagnosticSource::VersionedPush,
        unchecked: None,
        line_breaks: LineBreaks::Newline,
        completeness: Some(Completeness {
            files: &["compile_commands.json", "build/compile_commands.json"],
            otherwise: "there is no compile_commands.json: only files that were asked about and their headers are \
                        known. CMake writes it with CMAKE_EXPORT_COMPILE_COMMANDS=ON, and `bear -- make` for other builds",
        }),
        installation: "the Debian package clangd",
    },
    ServerDefinition {
        name: "jdtls",
        languages: &[Language::Java],
        programs: &["jdtls"],
        arguments: &["-data", "{carrel:cache}/jdtls"],
        environment: &[],
        options: settings::none,
        settings: settings::none,
        root: RootRule::Outermost(&[
            "pom.xml",
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
        ]),
        project_files: &["pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle"],
        readiness: Readiness::Notified { method: "language/status", kind: Some("ServiceReady") },
        changes: BY_RESTART,
        diagnostics: QUIET,
        unchecked: None,
        line_breaks: LineBreaks::CarriageReturn,
        completeness: None,
        installation: "https://github.com/eclipse-jdtls/eclipse.jdt.ls, with its script jdtls on PATH",
    },
    ServerDefinition {
        name: "intelephense",
        languages: &[Language::Php],
        programs: &["intelephense"],
        arguments: &["--stdio"],
        environment: &[],
        options: settings::intelephense,
        settings: settings::none,
        root: RootRule::Outermost(&["composer.json"]),
        project_files: &["composer.json"],
        readiness: Readiness::Logged("Indexing finished"),
        changes: BY_RESTART,
        diagnostics: QUIET,
        unchecked: None,
        line_breaks: LineBreaks::CarriageReturn,
        completeness: None,
        installation: "npm install --global intelephense",
    },
    ServerDefinition {
        name: "ruby-lsp",
        languages: &[Language::Ruby],
        programs: &["ruby-lsp"],
        arguments: &[],
        environment: &[],
        options: settings::none,
        settings: settings::none,
        root: RootRule::Nearest(&["Gemfile"]),
        project_files: &["Gemfile", "Gemfile.lock"],
        readiness: Readiness::Settled(SETTLING),
        changes: BY_RESTART,
        diagnostics: QUIET,
        unchecked: None,
        line_breaks: LineBreaks::Newline,
        completeness: Some(UNCERTAIN),
        installation: "gem install ruby-lsp",
    },
    ServerDefinition {
        name: "bash-language-server",
        languages: &[Language::Bash],
        programs: &["bash-language-server"],
        arguments: &["start"],
        environment: &[],
        options: settings::none,
        settings: settings::none,
        root: RootRule::Workspace,
        project_files: &[],
        readiness: Readiness::Settled(SETTLING),
        changes: BY_RESTART,
        diagnostics: QUIET,
        unchecked: None,
        line_breaks: LineBreaks::CarriageReturn,
        completeness: Some(UNCERTAIN),
        installation: "npm install --global bash-language-server",
    },
    ServerDefinition {
        name: "lua-language-server",
        languages: &[Language::Lua],
        programs: &["lua-language-server"],
        arguments: &[],
        environment: &[],
        options: settings::none,
        settings: settings::none,
        root: RootRule::Nearest(&[".luarc.json", ".luarc.jsonc"]),
        project_files: &[".luarc.json", ".luarc.jsonc"],
        readiness: Readiness::Settled(SETTLING),
        changes: BY_RESTART,
        diagnostics: QUIET,
        unchecked: None,
        line_breaks: LineBreaks::CarriageReturn,
        completeness: Some(UNCERTAIN),
        installation: "https://luals.github.io, with lua-language-server on PATH",
    },
];

/// The time between two equal answers of a server that does not say when it is ready.
const SETTLING: Duration = Duration::from_secs(1);

/// The reason of servers that do not say when they have read the project.
const UNCERTAIN: Completeness = Completeness {
    files: &[],
    otherwise: "this server does not say when it has read the whole project",
};
