//! The operator's settings for language servers.
//!
//! A server runs programs, so only the operator names them: nothing of a workspace is read here. An entry changes the
//! built-in server of its name, or adds one; what it leaves out is that of the built-in one.

use std::path::PathBuf;
use std::time::Duration;

use carrel_domain::ByteSize;
use serde_json::Value as Json;

use super::policy_keys as keys;
use super::policy_paths::PathUse;
use super::policy_reader::PolicyReader;
use crate::diagnostic::Diagnostic;
use crate::suggest;
use crate::value_tree::{MapEntry, Node, quoted};

/// The languages that a server can be added for, by their names in Carrel.
pub const SERVER_LANGUAGES: [&str; 23] = [
    "bash",
    "c",
    "cpp",
    "csharp",
    "css",
    "go",
    "html",
    "java",
    "javascript",
    "json",
    "kotlin",
    "lua",
    "markdown",
    "php",
    "python",
    "ruby",
    "rust",
    "scala",
    "swift",
    "toml",
    "tsx",
    "typescript",
    "yaml",
];

/// The servers of the crate `lsp`, in the order in which they are tried.
pub const BUILT_IN_SERVERS: [&str; 12] = [
    "rust-analyzer",
    "gopls",
    "ty",
    "basedpyright",
    "typescript-language-server",
    "vtsls",
    "clangd",
    "jdtls",
    "intelephense",
    "ruby-lsp",
    "bash-language-server",
    "lua-language-server",
];

/// The words for the sign that a server's answers are complete.
const READINESS: [&str; 3] = ["requests", "progress", "unknown"];

/// The keys of a server.
const KEYS: [&str; 8] = [
    "command",
    "environment",
    "languages",
    "options",
    "readiness",
    "ready_when_logged",
    "roots",
    "settings",
];

/// The choices about language servers, all of which have defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanguageServerPolicy {
    /// Servers that run at a time, in the whole process.
    pub most: usize,
    /// The memory that they are expected to use together.
    pub memory: ByteSize,
    /// The time without a question after which a server is ended.
    pub idle: Duration,
    /// Directories of programs, searched before all others.
    pub programs: Vec<PathBuf>,
    /// Further servers, and changes of built-in ones.
    pub servers: Vec<ServerEntry>,
}

/// A server that an operator adds or changes. What is none is that of the built-in server of this name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerEntry {
    /// The name in answers.
    pub name: String,
    /// Of [`SERVER_LANGUAGES`].
    pub languages: Option<Vec<String>>,
    /// The program, by its name or absolute path, and its arguments.
    pub command: Option<Vec<String>>,
    /// Variables in addition to those of every command.
    pub environment: Option<Vec<(String, String)>>,
    /// `initializationOptions`.
    pub options: Option<Json>,
    /// The answers to `workspace/configuration`.
    pub settings: Option<Json>,
    /// Names of files that mark the directory of a project.
    pub roots: Option<Vec<String>>,
    /// The sign that answers are complete.
    pub readiness: Option<ServerReadiness>,
}

/// The sign that a server's answers are complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerReadiness {
    /// Requests wait in the server for what they need.
    Requests,
    /// Work with a progress report has begun and ended.
    Progress,
    /// A message with this text was logged.
    Logged(String),
    /// There is none: answers say that they may lack something.
    Unknown,
}

impl Default for LanguageServerPolicy {
    fn default() -> Self {
        Self {
            most: 8,
            memory: ByteSize::gib(8),
            idle: Duration::from_mins(10),
            programs: Vec::new(),
            servers: Vec::new(),
        }
    }
}

impl LanguageServerPolicy {
    pub(super) fn read(reader: &mut PolicyReader<'_>) -> Self {
        let default = Self::default();
        let most = reader.settings.count(&keys::SERVERS_MOST);
        Self {
            most: most.and_then(|most| usize::try_from(most).ok()).unwrap_or(default.most),
            memory: reader.settings.size(&keys::SERVERS_MEMORY).unwrap_or(default.memory),
            idle: reader.settings.time(&keys::SERVERS_IDLE).unwrap_or(default.idle),
            programs: reader.paths(&keys::SERVERS_PROGRAMS, PathUse::Search),
            servers: servers(reader),
        }
    }
}

fn servers(reader: &mut PolicyReader<'_>) -> Vec<ServerEntry> {
    let key = &keys::SERVERS_TABLE;
    let Some(node) = reader.settings.written(key) else { return Vec::new() };
    let Some(map) = node.as_map() else {
        reader.settings.reject(key, node);
        return Vec::new();
    };
    let mut servers = Vec::new();
    for entry in &map.0 {
        let path = format!("{}.{}", key.path, entry.key);
        match server(entry) {
            Ok(server) => servers.push(server),
            Err((position, complaint)) => {
                let message = format!("{path}{complaint}");
                let diagnostic = Diagnostic::about(path, Some(position), message);
                reader.settings.record_invalid(diagnostic);
            }
        }
    }
    servers
}

/// The position of a value, and the rest of a message that begins with the path of the server.
type Complaint = (crate::diagnostic::Position, String);

fn server(entry: &MapEntry) -> Result<ServerEntry, Complaint> {
    let Some(map) = entry.value.as_map() else {
        return Err((entry.position, " must be a table of settings of a server".to_owned()));
    };
    let mut server = ServerEntry { name: entry.key.clone(), ..ServerEntry::default() };
    for MapEntry { key, position, value } in &map.0 {
        server.set(key, value).map_err(|complaint| (*position, format!(".{key} {complaint}")))?;
    }
    let is_whole = server.languages.is_some() && server.command.is_some();
    if !is_whole && !BUILT_IN_SERVERS.contains(&server.name.as_str()) {
        let complaint = " needs languages and command: no built-in server has this name";
        return Err((entry.position, complaint.to_owned()));
    }
    Ok(server)
}

impl ServerEntry {
    /// Reads a setting. The error says what is wrong with it.
    fn set(&mut self, key: &str, value: &Node) -> Result<(), String> {
        let must = |rule: &str| format!("must be {rule}");
        let texts = || texts(value).ok_or_else(|| must("a list of texts"));
        match key {
            "command" => {
                let rule = "a program, by its name or absolute path, and its arguments";
                self.command = Some(command(texts()?).ok_or_else(|| must(rule))?);
            }
            "environment" => {
                self.environment = Some(variables(value).ok_or_else(|| must("a table of texts"))?);
            }
            "languages" => self.languages = Some(languages(texts()?)?),
            "options" => self.options = Some(value.to_json()),
            "settings" => self.settings = Some(value.to_json()),
            "roots" => self.roots = Some(texts()?),
            "readiness" => self.readiness = Some(readiness(value)?),
            "ready_when_logged" => {
                let text = value.as_text().filter(|text| !text.trim().is_empty());
                let text = text.ok_or_else(|| must("text that is not blank"))?;
                self.readiness = Some(ServerReadiness::Logged(text.to_owned()));
            }
            unknown => {
                let hint = match suggest::nearest(unknown, KEYS) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("there are {}", KEYS.join(", ")),
                };
                return Err(format!("is no setting of a server; {hint}"));
            }
        }
        Ok(())
    }
}

fn languages(names: Vec<String>) -> Result<Vec<String>, String> {
    let is_unknown = |name: &&String| !SERVER_LANGUAGES.contains(&name.as_str());
    let Some(unknown) = names.iter().find(is_unknown) else { return Ok(names) };
    let hint = match suggest::nearest(unknown, SERVER_LANGUAGES) {
        Some(near) => format!("did you mean {}?", quoted(near)),
        None => format!("there are {}", SERVER_LANGUAGES.join(", ")),
    };
    Err(format!("cannot hold {}: there is no such language; {hint}", quoted(unknown)))
}

fn readiness(value: &Node) -> Result<ServerReadiness, String> {
    match value.as_text() {
        Some("requests") => Ok(ServerReadiness::Requests),
        Some("progress") => Ok(ServerReadiness::Progress),
        Some("unknown") => Ok(ServerReadiness::Unknown),
        Some(_) | None => Err(format!("must be one of {}", READINESS.map(quoted).join(", "))),
    }
}

fn command(words: Vec<String>) -> Option<Vec<String>> {
    let program = words.first()?;
    let is_program = !program.is_empty() && (program.starts_with('/') || !program.contains('/'));
    is_program.then_some(words)
}

fn texts(node: &Node) -> Option<Vec<String>> {
    node.as_list()?.iter().map(|item| item.as_text().map(str::to_owned)).collect()
}

fn variables(node: &Node) -> Option<Vec<(String, String)>> {
    let entries = node.as_map()?.0.iter();
    let pairs = entries.map(|entry| {
        let text = entry.value.as_text().filter(|text| !text.contains('\0'))?;
        crate::environment::is_variable_name(&entry.key)
            .then(|| (entry.key.clone(), text.to_owned()))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::policy::{OperatorPolicy, PolicyError};
    use pretty_assertions::assert_eq;
    use std::path::Path;

    fn parsed(text: &str) -> Result<LanguageServerPolicy, Vec<String>> {
        let parsed =
            OperatorPolicy::parse(text.as_bytes(), Path::new("p"), &Environment::default());
        match parsed {
            Ok((policy, _)) => Ok(policy.language_servers),
            Err(PolicyError::Faulty { problems, .. }) => {
                Err(problems.into_iter().map(|problem| problem.message).collect())
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn an_operator_adds_servers_and_changes_built_in_ones() {
        let policy = parsed(
            "[language_servers]\nmost = 2\nmemory = \"1GiB\"\nidle = \"5m\"\n\
             [language_servers.servers.pyrefly]\nlanguages = [\"python\"]\ncommand = [\"pyrefly\", \"lsp\"]\n\
             environment = { A = \"1\" }\noptions = { a = 1 }\nroots = [\"pyproject.toml\"]\nreadiness = \"unknown\"\n\
             [language_servers.servers.gopls]\nsettings = { gopls = { staticcheck = true } }\nready_when_logged = \"done\"\n",
        );
        let pyrefly = ServerEntry {
            name: "pyrefly".into(),
            languages: Some(vec!["python".into()]),
            command: Some(vec!["pyrefly".into(), "lsp".into()]),
            environment: Some(vec![("A".into(), "1".into())]),
            options: Some(serde_json::json!({ "a": 1 })),
            settings: None,
            roots: Some(vec!["pyproject.toml".into()]),
            readiness: Some(ServerReadiness::Unknown),
        };
        let gopls = ServerEntry {
            name: "gopls".into(),
            settings: Some(serde_json::json!({ "gopls": { "staticcheck": true } })),
            readiness: Some(ServerReadiness::Logged("done".into())),
            ..ServerEntry::default()
        };
        let expected = LanguageServerPolicy {
            most: 2,
            memory: ByteSize::gib(1),
            idle: Duration::from_mins(5),
            programs: Vec::new(),
            // Tables come in the order of their names.
            servers: vec![gopls, pyrefly],
        };
        assert_eq!(policy, Ok(expected));
    }

    #[test]
    fn mistakes_are_named_with_what_to_write() {
        let start = "language_servers.servers";
        for (text, complaint) in [
            ("x = 1", format!("{start}.x must be a table of settings of a server")),
            (
                "x = { comand = [\"a\"] }",
                format!("{start}.x.comand is no setting of a server; did you mean command?"),
            ),
            ("x = { command = \"a\" }", format!("{start}.x.command must be a list of texts")),
            (
                "x = { command = [\"./a\"] }",
                format!(
                    "{start}.x.command must be a program, by its name or absolute path, and its arguments"
                ),
            ),
            (
                "x = { languages = [\"pyton\"] }",
                format!(
                    "{start}.x.languages cannot hold \"pyton\": there is no such language; did you mean \"python\"?"
                ),
            ),
            (
                "x = { command = [\"a\"] }",
                format!("{start}.x needs languages and command: no built-in server has this name"),
            ),
            (
                "x = { readiness = \"soon\" }",
                format!(
                    "{start}.x.readiness must be one of \"requests\", \"progress\", \"unknown\""
                ),
            ),
        ] {
            let text = format!("[language_servers.servers]\n{text}\n");
            assert_eq!(parsed(&text), Err(vec![complaint]), "{text}");
        }
    }
}
