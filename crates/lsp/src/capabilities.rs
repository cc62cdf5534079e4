//! The capabilities of client and server, as `initialize` exchanges them.

use serde_json::{Value, json};

use crate::definition::ServerDefinition;
use crate::position::PositionEncoding;

/// Returns the parameters of `initialize` for a project.
pub(crate) fn initialize_params(definition: &ServerDefinition, root: &str, path: &str) -> Value {
    json!({
        // Inside the sandbox no process of the client exists that a server could watch.
        "processId": null,
        "clientInfo": { "name": "carrel", "version": env!("CARGO_PKG_VERSION") },
        "locale": "en",
        "rootPath": path,
        "rootUri": root,
        "workspaceFolders": [{ "uri": root, "name": "workspace" }],
        "initializationOptions": definition.options.value(),
        "capabilities": client_capabilities(),
        "trace": "off",
    })
}

fn client_capabilities() -> Value {
    json!({
        "general": {
            "positionEncodings": PositionEncoding::NAMES,
            "staleRequestSupport": { "cancel": true, "retryOnContentModified": [] },
        },
        // The extension of clangd that came before `positionEncodings`.
        "offsetEncoding": PositionEncoding::NAMES,
        "experimental": { "serverStatusNotification": true },
        "window": { "workDoneProgress": true },
        "workspace": {
            "applyEdit": false,
            "configuration": true,
            "diagnostics": { "refreshSupport": true },
            "didChangeConfiguration": { "dynamicRegistration": true },
            "didChangeWatchedFiles": { "dynamicRegistration": true, "relativePatternSupport": true },
            "fileOperations": { "willRename": true },
            "workspaceEdit": {
                "documentChanges": true,
                "failureHandling": "abort",
                "resourceOperations": ["create", "rename", "delete"],
            },
            "workspaceFolders": true,
        },
        "textDocument": {
            "callHierarchy": { "dynamicRegistration": false },
            "definition": { "linkSupport": true },
            "diagnostic": { "dynamicRegistration": true, "relatedDocumentSupport": false },
            "hover": { "contentFormat": ["plaintext", "markdown"] },
            "implementation": { "linkSupport": true },
            "publishDiagnostics": { "relatedInformation": false, "versionSupport": true },
            "references": {},
            "rename": { "prepareSupport": true, "prepareSupportDefaultBehavior": 1 },
            "synchronization": { "didSave": false, "dynamicRegistration": false },
        },
    })
}

/// The capabilities of a server.
#[derive(Clone, Debug)]
pub(crate) struct ServerCapabilities {
    raw: Value,
    pub(crate) encoding: PositionEncoding,
}

impl ServerCapabilities {
    pub(crate) fn of_initialize_result(mut result: Value) -> Self {
        let encoding = PositionEncoding::of_initialize_result(&result);
        Self { raw: result["capabilities"].take(), encoding }
    }

    /// Returns whether a capability is there: `true`, or an object of options.
    pub(crate) fn has(&self, name: &str) -> bool {
        is_given(&self.raw[name])
    }

    pub(crate) fn prepares_renames(&self) -> bool {
        is_given(&self.raw["renameProvider"]["prepareProvider"])
    }

    pub(crate) fn renames_files(&self) -> bool {
        is_given(&self.raw["workspace"]["fileOperations"]["willRename"])
    }
}

fn is_given(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_capability_is_there_as_true_or_as_options() {
        let capabilities = ServerCapabilities::of_initialize_result(json!({ "capabilities": {
            "definitionProvider": true,
            "hoverProvider": {},
            "referencesProvider": false,
            "renameProvider": { "prepareProvider": true },
            "workspace": { "fileOperations": { "willRename": { "filters": [] } } },
            "positionEncoding": "utf-32",
        } }));
        let names =
            ["definitionProvider", "hoverProvider", "referencesProvider", "implementationProvider"];
        assert_eq!(names.map(|name| capabilities.has(name)), [true, true, false, false]);
        assert!(capabilities.prepares_renames() && capabilities.renames_files());
        assert_eq!(capabilities.encoding, PositionEncoding::Utf32);
        let plain = json!({ "capabilities": { "renameProvider": true } });
        assert!(!ServerCapabilities::of_initialize_result(plain).prepares_renames());
    }
}
