//! Settings of the servers. What only serves an editor is off, and nothing runs that was not asked for.

use serde_json::{Value, json};

/// The memory of TypeScript's server in MiB, below the limit of its sandbox, so that it says itself what it lacks.
const TYPESCRIPT_MEMORY: u32 = 2560;

pub(super) fn none() -> Value {
    Value::Null
}

pub(super) fn rust_analyzer() -> Value {
    json!({
        "cachePriming": { "enable": false },
        "cargo": { "buildScripts": { "enable": true } },
        "checkOnSave": false,
        "diagnostics": { "enable": true },
        "files": { "watcher": "client" },
        "lens": { "enable": false },
        "procMacro": { "enable": true },
    })
}

pub(super) fn rust_analyzer_sections() -> Value {
    json!({ "rust-analyzer": rust_analyzer() })
}

pub(super) fn gopls() -> Value {
    json!({ "hoverKind": "FullDocumentation", "linksInHover": false, "pullDiagnostics": true })
}

pub(super) fn gopls_sections() -> Value {
    json!({ "gopls": gopls() })
}

pub(super) fn ty() -> Value {
    json!({ "diagnosticMode": "openFilesOnly" })
}

pub(super) fn ty_sections() -> Value {
    json!({ "ty": ty() })
}

pub(super) fn pyright_sections() -> Value {
    let analysis = json!({
        "autoImportCompletions": false,
        "autoSearchPaths": true,
        "diagnosticMode": "openFilesOnly",
        "useLibraryCodeForTypes": true,
    });
    json!({
        "python": { "analysis": analysis },
        "basedpyright": { "analysis": analysis },
    })
}

/// The second process that answers by syntax alone while the project loads is off: its answers are wrong. A rename
/// changes the name everywhere, instead of importing it under the old one.
pub(super) fn typescript() -> Value {
    json!({
        "disableAutomaticTypingAcquisition": true,
        "hostInfo": "carrel",
        "maxTsServerMemory": TYPESCRIPT_MEMORY,
        "preferences": { "providePrefixAndSuffixTextForRename": false },
        "tsserver": { "logVerbosity": "off", "useClientFileWatcher": true, "useSyntaxServer": "never" },
    })
}

pub(super) fn vtsls_sections() -> Value {
    let tsserver = json!({ "maxTsServerMemory": TYPESCRIPT_MEMORY, "useSyntaxServer": "never" });
    let language = json!({
        "disableAutomaticTypeAcquisition": true,
        "preferences": { "useAliasesForRenames": false },
        "tsserver": tsserver,
    });
    json!({ "typescript": language, "javascript": language, "vtsls": {} })
}

pub(super) fn intelephense() -> Value {
    json!({ "storagePath": "/tmp/intelephense" })
}

/// It analyses 500 files unless it is told more.
pub(super) fn bash_sections() -> Value {
    json!({ "bashIde": { "backgroundAnalysisMaxFiles": 20_000, "shellcheckPath": "" } })
}
