//! Problems of a file: asked for where the server can be asked, and otherwise the ones that it pushes.
//!
//! A push belongs to the state before it was made. One counts when it came after the last change of any file, for the
//! present version of the document: a change of a header or an imported module changes what is wrong with a file that
//! is as it was. So when another file has changed since the text was sent, the text is sent again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::locations::read_list;
use super::{Finding, Query};
use crate::definition::{DiagnosticSource, ServerDefinition};
use crate::fault::Fault;
use crate::observed::{Observed, Pushed};
use crate::position::TextRange;
use crate::protocol::{self, Lenient, markup_text};
use crate::server::LanguageServer;

/// The method by which diagnostics are asked for.
const PULL: &str = "textDocument/diagnostic";

/// The command that passes requests through to TypeScript's own server.
const TYPESCRIPT_REQUEST: &str = "typescript.tsserverRequest";

/// A problem that a server reports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    /// The part of the file.
    pub range: TextRange,
    /// Its weight.
    pub severity: Severity,
    /// The rule or error number; empty if there is none.
    pub code: String,
    /// The checker, such as `rustc`; empty if it is not named.
    pub source: String,
    /// The text.
    pub message: String,
}

/// The weight of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "these are the four words of the protocol")]
pub enum Severity {
    Error,
    Warning,
    Information,
    Hint,
}

/// The problems of a file.
#[derive(Clone, Debug)]
pub(crate) struct Diagnose<'q> {
    pub(crate) path: &'q Path,
}

impl Severity {
    /// Reads the number of the protocol. A server that leaves it out means an error.
    fn of(number: Option<u8>) -> Self {
        match number {
            Some(2) => Self::Warning,
            Some(3) => Self::Information,
            Some(4) => Self::Hint,
            Some(_) | None => Self::Error,
        }
    }
}

impl Query for Diagnose<'_> {
    type Answer = Vec<Diagnostic>;

    fn file(&self) -> &Path {
        self.path
    }

    fn concerns_other_files(&self, _definition: &ServerDefinition) -> bool {
        false
    }

    async fn ask(
        &self,
        server: &mut LanguageServer,
        until: Instant,
    ) -> Result<Finding<Vec<Diagnostic>>, Fault> {
        let is_asked =
            server.capabilities.has("diagnosticProvider") || server.observed.has_registered(PULL);
        let raw = match server.definition.diagnostics {
            _ if is_asked => self.pull(server, until).await?,
            DiagnosticSource::VersionedPush => self.versioned_push(server, until).await?,
            DiagnosticSource::QuietPush(quiet) => self.quiet_push(server, quiet, until).await?,
            DiagnosticSource::TypeScriptCommand => self.by_command(server, until).await?,
        };
        let mut found = self.convert(server, raw)?;
        found.incomplete = found.incomplete.or(server.definition.unchecked.map(str::to_owned));
        Ok(found)
    }
}

impl Diagnose<'_> {
    async fn pull(&self, server: &LanguageServer, until: Instant) -> Result<Value, Fault> {
        let document = json!({ "uri": server.documents.uri(self.path) });
        let params = json!({ "textDocument": document });
        let mut report = server.request(PULL, &params, until).await?;
        match report["kind"].as_str() {
            Some("full") => Ok(report["items"].take()),
            _ => {
                Err(server.malformed("a report of diagnostics that is not full".to_owned()).into())
            }
        }
    }

    async fn versioned_push(
        &self,
        server: &mut LanguageServer,
        until: Instant,
    ) -> Result<Value, Fault> {
        let (version, sent) = self.sent(server, until).await?;
        let uri = server.documents.uri(self.path);
        let is_wanted = |pushed: &Pushed| {
            pushed.at >= sent && pushed.version.is_none_or(|pushed| pushed == version)
        };
        let pushed = push(server, &uri, until, is_wanted).await?;
        Ok(pushed.diagnostics.clone())
    }

    async fn quiet_push(
        &self,
        server: &mut LanguageServer,
        quiet: Duration,
        until: Instant,
    ) -> Result<Value, Fault> {
        let (_, sent) = self.sent(server, until).await?;
        let uri = server.documents.uri(self.path);
        let mut last = push(server, &uri, until, |pushed| pushed.at >= sent).await?;
        loop {
            let (at, rest) = (last.at, last.at + quiet);
            match push(server, &uri, rest.min(until), |pushed| pushed.at > at).await {
                Ok(pushed) => last = pushed,
                Err(Fault::TimedOut) if rest <= until => return Ok(last.diagnostics.clone()),
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Returns the version of the document and the time at which it was sent, after the last change of any file.
    async fn sent(
        &self,
        server: &mut LanguageServer,
        until: Instant,
    ) -> Result<(i64, Instant), Fault> {
        if server.has_changed_since_sending(self.path)? {
            server.send_again(self.path, until).await?;
        }
        let document = server.document(self.path)?;
        Ok((document.version, document.sent))
    }

    /// Asks TypeScript's own server, through a command of the language server.
    async fn by_command(&self, server: &LanguageServer, until: Instant) -> Result<Value, Fault> {
        let mut found = Vec::new();
        for request in ["syntacticDiagnosticsSync", "semanticDiagnosticsSync"] {
            let Some(diagnostics) = self.ask_typescript(server, request, until).await? else {
                let reason = format!("{request} without diagnostics");
                return Err(server.malformed(reason).into());
            };
            found.extend(diagnostics.iter().map(of_typescript));
        }
        Ok(found.into())
    }

    /// Passes a request through. One of the language servers takes the file by its URI, the other by its path.
    async fn ask_typescript(
        &self,
        server: &LanguageServer,
        request: &str,
        until: Instant,
    ) -> Result<Option<Vec<Value>>, Fault> {
        for file in [server.documents.uri(self.path), server.documents.absolute(self.path)] {
            let arguments = json!([request, { "file": file }]);
            let params = json!({ "command": TYPESCRIPT_REQUEST, "arguments": arguments });
            let mut answer = server.request("workspace/executeCommand", &params, until).await?;
            if let Value::Array(diagnostics) = answer["body"].take() {
                return Ok(Some(diagnostics));
            }
        }
        Ok(None)
    }

    fn convert(
        &self,
        server: &LanguageServer,
        raw: Value,
    ) -> Result<Finding<Vec<Diagnostic>>, Fault> {
        let Lenient { items, mut malformed } = read_list::<protocol::Diagnostic>(raw);
        let index = server.index(&server.document(self.path)?.text);
        let mut diagnostics = Vec::with_capacity(items.len());
        for item in items {
            let Some(range) = index.text_range(item.range) else {
                malformed += 1;
                continue;
            };
            diagnostics.push(Diagnostic {
                range,
                severity: Severity::of(item.severity),
                code: code_text(&item.code),
                source: item.source.unwrap_or_default(),
                message: markup_text(&item.message),
            });
        }
        diagnostics.sort();
        Ok(Finding::without(diagnostics, malformed))
    }
}

/// Waits for diagnostics of a document that satisfy a condition. A server that registers meanwhile that it can be asked
/// will push none.
async fn push(
    server: &LanguageServer,
    uri: &str,
    until: Instant,
    is_wanted: impl Fn(&Pushed) -> bool,
) -> Result<Arc<Pushed>, Fault> {
    let found = |observed: &Observed| match observed.pushed(uri).filter(|push| is_wanted(push)) {
        Some(pushed) => Some(Ok(pushed)),
        None => observed.has_registered(PULL).then_some(Err(Fault::Stale)),
    };
    server.observe(until, found).await?
}

/// Converts a diagnostic of TypeScript's own server, which counts lines and columns from 1.
fn of_typescript(raw: &Value) -> Value {
    let position = |place: &Value| {
        let from_zero = |number: &Value| number.as_u64().map(|number| number.saturating_sub(1));
        json!({ "line": from_zero(&place["line"]), "character": from_zero(&place["offset"]) })
    };
    let severity = match raw["category"].as_str() {
        Some("warning") => 2,
        Some("suggestion") => 4,
        Some("message") => 3,
        Some(_) | None => 1,
    };
    json!({
        "range": { "start": position(&raw["start"]), "end": position(&raw["end"]) },
        "severity": severity,
        "code": raw["code"],
        "source": "typescript",
        "message": raw["text"],
    })
}

/// Returns a code, which is a number or a text.
fn code_text(code: &Value) -> String {
    match code {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn numbers_of_severity_and_codes_of_either_kind_are_read() {
        let severities = [Some(1), Some(2), Some(3), Some(4), Some(9), None].map(Severity::of);
        let error = Severity::Error;
        let rest = [Severity::Warning, Severity::Information, Severity::Hint];
        assert_eq!(severities, [error, rest[0], rest[1], rest[2], error, error]);
        let codes = [json!(2304), json!("E0308"), Value::Null].map(|code| code_text(&code));
        assert_eq!(codes, ["2304", "E0308", ""]);
    }
}
