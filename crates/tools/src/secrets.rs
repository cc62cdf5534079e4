//! The operator's secrets, for the tool `secret` and for redaction.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use carrel_config::Environment;
use carrel_domain::{Code, Failure, Secret};

const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// The operator's secrets: variables `CARREL_SECRET_<NAME>`, and files of a directory. A variable takes
/// precedence over a file of the same name, and `<workspace>/NAME` over `NAME` in that workspace. Files are
/// read at each request, so that a secret can be replaced while the server runs.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    variables: BTreeMap<String, Secret>,
    directory: Option<PathBuf>,
}

impl Secrets {
    /// Reads the variables of an environment, and names the directory.
    pub fn new(environment: &Environment, directory: Option<PathBuf>) -> Self {
        let variables = environment.secrets().map(|(name, value)| (name.to_lowercase(), value));
        Self { variables: variables.collect(), directory }
    }

    pub(crate) fn names(&self, workspace: Option<&str>) -> Vec<String> {
        let mut names: Vec<_> = self.variables.keys().cloned().collect();
        names.extend(self.directory.iter().flat_map(|top| names_in(top)));
        let own = workspace.zip(self.directory.as_ref());
        names.extend(own.into_iter().flat_map(|(name, top)| names_in(&top.join(name))));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns a secret with its source, `env` or `file`; the workspace's own takes precedence.
    pub(crate) fn find(
        &self,
        workspace: Option<&str>,
        name: &str,
    ) -> Result<(Secret, &'static str), Failure> {
        check_name(name)?;
        let own = workspace.zip(self.directory.as_ref()).map(|(name, top)| top.join(name));
        if let Some(secret) = own.and_then(|own| read(&own, name)) {
            return Ok((secret, "file"));
        }
        if let Some(secret) = self.variables.get(&name.to_lowercase()) {
            return Ok((secret.clone(), "env"));
        }
        if let Some(secret) = self.directory.as_ref().and_then(|top| read(top, name)) {
            return Ok((secret, "file"));
        }
        let names = self.names(workspace);
        let message = format!("unknown secret: {name} (available: {})", names.join(", "));
        Err(Failure::new(Code::SecretUnknown, message).with("name", name))
    }

    /// Returns every value that must not go out, with its name.
    pub(crate) fn all(&self, workspaces: &[&str]) -> Vec<(String, Secret)> {
        let mut all: Vec<_> =
            self.variables.iter().map(|(name, secret)| (name.clone(), secret.clone())).collect();
        let Some(top) = &self.directory else { return all };
        let owns = workspaces.iter().map(|name| top.join(name));
        for directory in std::iter::once(top.clone()).chain(owns) {
            let found = names_in(&directory).into_iter();
            all.extend(found.filter_map(|name| Some((name.clone(), read(&directory, &name)?))));
        }
        all
    }
}

fn check_name(name: &str) -> Result<(), Failure> {
    if is_name(name) {
        return Ok(());
    }
    let message = format!("invalid secret name: {name}");
    Err(Failure::argument("name", message).with("name", name))
}

fn is_name(name: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(safe)
}

/// Lists the files of a directory that can be asked for.
#[expect(clippy::disallowed_methods, reason = "an operator's directory, in no workspace")]
fn names_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    // A mounted secret is often a link, so it is followed.
    let files = entries.flatten().filter(|entry| entry.path().is_file());
    let names = files.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_name(name)).collect()
}

#[expect(clippy::disallowed_methods, reason = "an operator's directory, in no workspace")]
fn read(directory: &Path, name: &str) -> Option<Secret> {
    let path = directory.join(name);
    if !path.is_file() {
        return None;
    }
    let mut value = String::new();
    std::fs::File::open(path).ok()?.take(MAX_SECRET_BYTES).read_to_string(&mut value).ok()?;
    Some(Secret::new(value.trim_end_matches(['\n', '\r'])))
}
