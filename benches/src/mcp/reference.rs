//! The file server that the protocol's own project offers, an npm package.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Fault;
use crate::corpus::Corpus;
use crate::sandbox::installed;

/// The package, installed.
#[derive(Debug)]
pub(crate) struct Reference {
    node: PathBuf,
    script: PathBuf,
}

/// What the rows call it.
pub(crate) const REFERENCE: &str = "npm's server-filesystem";

/// The release that is measured.
const VERSION: &str = "2026.8.31";
const PACKAGE: &str = "@modelcontextprotocol/server-filesystem";

/// Where it is installed. Not with the scratch files: it is fetched once.
const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench-clients");

impl Reference {
    /// Finds it, or installs it. The error says why there is none.
    pub(crate) fn find() -> Result<Self, String> {
        let missing = |name: &str| format!("{name} is not installed");
        let node = installed("node").ok_or_else(|| missing("node"))?;
        let package = Path::new(CLIENTS).join("node_modules").join(PACKAGE);
        if version_of(&package).as_deref() != Some(VERSION) {
            let npm = installed("npm").ok_or_else(|| missing("npm"))?;
            install(&npm).map_err(|fault| format!("npm could not install {PACKAGE}: {fault}"))?;
        }
        Ok(Self { node, script: package.join("dist/index.js") })
    }

    pub(crate) fn command(&self, corpus: &Corpus) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.script).arg(&corpus.path);
        command
    }
}

fn version_of(package: &Path) -> Option<String> {
    let text = std::fs::read(package.join("package.json")).ok()?;
    let manifest: serde_json::Value = serde_json::from_slice(&text).ok()?;
    Some(manifest["version"].as_str()?.to_owned())
}

fn install(npm: &Path) -> Result<(), Fault> {
    std::fs::create_dir_all(CLIENTS)?;
    // Without a manifest of its own, npm would look for one in the directories above.
    std::fs::write(Path::new(CLIENTS).join("package.json"), "{\"private\":true}\n")?;
    let mut command = Command::new(npm);
    command.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]);
    command.arg(format!("{PACKAGE}@{VERSION}")).current_dir(CLIENTS);
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
}
