//! Finds defects of a root and its workspaces, each with a remedy. Changes nothing.

use std::path::{Path, PathBuf};

use carrel_domain::{Coded, Identifier, WorkspaceKey, message_of};
use carrel_fsroot::{FileKind, Metadata, Root};
use rustix::process::geteuid;
use serde::Serialize;

use crate::error::Error;
use crate::record::{Record, State};
use crate::root::{metadata_of, who_else_may_write};
use crate::workspaces::{RootInner, RootOptions, Workspaces};

/// The severity of a finding: a fact, a defect that Carrel copes with, or one that prevents or endangers work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the summary defines the variants")]
pub enum Severity {
    Note,
    Warning,
    Error,
}

/// A defect or a fact of a root, with its remedy.
///
/// `check` is a stable name for programs; `message` and `fix` are for people, and `fix` is a command where
/// one suffices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the summary defines the fields")]
pub struct RootFinding {
    pub severity: Severity,
    pub check: &'static str,
    #[serde(with = "carrel_domain::lossy_path")]
    pub path: PathBuf,
    pub message: String,
    pub fix: String,
}

/// Verifies a root, which may be missing or unusable, and everything in it.
pub fn verify(options: &RootOptions) -> Result<Vec<RootFinding>, Error> {
    let mut findings = Vec::new();
    let directory = match Root::open(&options.root) {
        Ok(directory) => directory,
        Err(error) => {
            let fix = "run `carrel workspace create` or correct workspace.root";
            let path = &options.root;
            findings.push(finding(Severity::Error, "root", path, error.to_string(), fix));
            return Ok(findings);
        }
    };
    check_permissions(&directory, &mut findings)?;
    match Workspaces::open_existing(options) {
        Ok(Some(workspaces)) => workspaces.inner.verify(&mut findings)?,
        Ok(None) => {}
        Err(error) => {
            let fix = format!("see docs/errors/{}.md", error.code().name());
            let message = message_of(&error);
            findings.push(finding(Severity::Error, "root", directory.path(), message, fix));
        }
    }
    Ok(findings)
}

fn finding(
    severity: Severity,
    check: &'static str,
    path: &Path,
    message: impl Into<String>,
    fix: impl Into<String>,
) -> RootFinding {
    RootFinding { severity, check, path: path.to_owned(), message: message.into(), fix: fix.into() }
}

/// Checks which users can change the root, or replace it from a directory above.
fn check_permissions(directory: &Root, findings: &mut Vec<RootFinding>) -> Result<(), Error> {
    let user = geteuid().as_raw();
    let metadata = metadata_of(directory)?;
    let path = directory.path();
    findings.push(owner_of(path, &metadata));
    if let Some(who) = who_else_may_write(&metadata, user) {
        let fix = format!("chown {user} {0} && chmod 700 {0}", path.display());
        findings.push(finding(Severity::Error, "permissions", path, who, fix));
    }
    for parent in path.ancestors().skip(1) {
        let Ok(directory) = Root::open(parent) else { continue };
        let metadata = metadata_of(&directory)?;
        findings.push(owner_of(parent, &metadata));
        if let Some(who) = who_may_rename_below(&metadata, user) {
            let fix = format!("chmod go-w {} or move the root elsewhere", parent.display());
            let message = format!("{who}, and so can replace the root by another directory");
            findings.push(finding(Severity::Warning, "parent", parent, message, fix));
        }
    }
    Ok(())
}

fn owner_of(path: &Path, metadata: &Metadata) -> RootFinding {
    let message = format!("owned by user {}, mode {:04o}", metadata.uid, metadata.mode);
    finding(Severity::Note, "owner", path, message, "none needed")
}

/// Returns the user that can rename entries. A sticky directory lets only owners; root is trusted.
fn who_may_rename_below(metadata: &Metadata, user: u32) -> Option<String> {
    let sticky = metadata.mode & 0o1000 != 0;
    if sticky || (metadata.uid == 0 && metadata.mode & 0o022 == 0) {
        return None;
    }
    who_else_may_write(metadata, user)
}

impl RootInner {
    fn verify(&self, findings: &mut Vec<RootFinding>) -> Result<(), Error> {
        if let Some(repository) = &self.root.enclosing_repository {
            let message =
                format!("the root lies inside the git work tree {}", repository.display());
            let fix = "move workspace.root out of the repository, or ignore it there";
            findings.push(finding(Severity::Warning, "repository", self.root.path(), message, fix));
        }
        let keys = self.records().keys()?;
        for key in &keys {
            findings.extend(self.verify_record(key));
        }
        self.verify_entries(&keys, findings)?;
        for name in self.idle_locks(&keys)? {
            let path = self.root.own.path().join("locks").join(format!("{name}.lock"));
            let message = "a lock file that belongs to no workspace";
            findings.push(finding(Severity::Note, "lock", &path, message, "carrel workspace gc"));
        }
        for name in self.trash()? {
            let path = self.root.own.path().join("trash").join(name);
            let message = "a removed workspace that is not deleted yet";
            findings.push(finding(Severity::Note, "trash", &path, message, "carrel workspace gc"));
        }
        for kept in self.kept()? {
            let owner = kept.identifier.as_ref().map_or(kept.key.as_str(), Identifier::as_str);
            let until = kept.until.map_or_else(String::new, |until| format!(" until {until}"));
            let message = format!("unsaved work of {owner}, kept{until}");
            let fix =
                format!("carrel workspace restore {0}, or carrel workspace drop {0}", kept.name);
            findings.push(finding(Severity::Note, "kept", &kept.path, message, fix));
        }
        Ok(())
    }

    fn verify_record(&self, key: &WorkspaceKey) -> Option<RootFinding> {
        let path = self.location(key).workspace;
        let record = match self.records().read(key) {
            Ok(record) => record?,
            Err(error) => {
                let file = self.root.own.path().join("records").join(format!("{key}.json"));
                let fix = "delete the file; the next create adopts the directory";
                return Some(finding(Severity::Error, "record", &file, error.to_string(), fix));
            }
        };
        let root = self.root.path().display();
        let identifier = record.identifier.as_str();
        let recreate = format!("carrel workspace create {identifier:?} --root {root}");
        if record.fork.is_some() {
            return self.verify_fork(&record, &recreate);
        }
        let directory = match self.open_directory(key) {
            Ok(directory) => directory,
            Err(error) => {
                let message = message_of(&error);
                let fix = "move it away by hand, then create the workspace again";
                return Some(finding(Severity::Error, "occupied", &path, message, fix));
            }
        };
        let (check, message, fix) = match (record.state, directory) {
            (State::Ready, Some(_)) => return None,
            (_, None) => ("missing", "has a record and no directory", recreate),
            // A process may be creating or removing it right now.
            _ if self.locks().is_held(key.as_str()) => return None,
            (State::Creating, Some(_)) => ("half_made", "was left half-made", recreate),
            (State::Removing, Some(_)) => {
                ("half_removed", "was left half-removed", "carrel workspace gc".to_owned())
            }
        };
        Some(finding(Severity::Warning, check, &path, message, fix))
    }

    /// A fork keeps its base frozen, so a broken one stops work there.
    fn verify_fork(&self, fork: &Record, recreate: &str) -> Option<RootFinding> {
        let of = fork.fork.as_ref()?;
        let path = self.location(&fork.key).workspace;
        let warning = |check, message: String, fix: String| {
            Some(finding(Severity::Warning, check, &path, message, fix))
        };
        // A process may be creating or removing it right now.
        if self.locks().is_held(fork.key.as_str()) {
            return None;
        }
        if fork.state == State::Removing {
            let message = format!("a fork of {} that was left half-removed", of.base);
            return warning("half_removed", message, "carrel workspace gc".to_owned());
        }
        match self.is_broken(fork) {
            Ok(false) => None,
            Ok(true) => {
                let root = self.root.path().display();
                let remove =
                    format!("carrel workspace rm {:?} --root {root}", fork.identifier.as_str());
                let broken = self.refuse_broken(fork);
                let has_work = matches!(broken, Err(Error::ForkWithoutDirectory { .. }));
                let (message, fix) = if has_work {
                    ("has its work and no directory", format!("{recreate}, or {remove}"))
                } else {
                    ("has lost files that it needs", remove)
                };
                warning(
                    "broken_fork",
                    format!("a fork of {}, which is frozen for it, {message}", of.base),
                    fix,
                )
            }
            Err(error) => {
                let fix = "move it away by hand, then remove the fork";
                let message = message_of(&error);
                Some(finding(Severity::Error, "occupied", &path, message, fix))
            }
        }
    }

    fn verify_entries(
        &self,
        keys: &[WorkspaceKey],
        findings: &mut Vec<RootFinding>,
    ) -> Result<(), Error> {
        for name in self.stray_directories(keys)? {
            let path = self.root.path().join(&name);
            let message = "a directory without a record";
            let fix = format!("carrel workspace create {name} adopts it, gc --orphans removes it");
            findings.push(finding(Severity::Warning, "stray", &path, message, fix));
        }
        for entry in self.entries()?.iter().filter(|entry| entry.kind != FileKind::Directory) {
            let path = self.root.path().join(&entry.name);
            let check = if entry.kind == FileKind::Link { "link" } else { "stray" };
            let message = format!("a {} where only workspaces belong", entry.kind);
            let fix = "move it out of the root";
            findings.push(finding(Severity::Warning, check, &path, message, fix));
        }
        Ok(())
    }
}
