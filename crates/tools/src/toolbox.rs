//! What all calls share.

use std::sync::Arc;
use std::sync::RwLock;

use carrel_domain::{Network, WorkspaceAccess, sync};
use carrel_exec::{JobLimits, Jobs};
use carrel_runner::Runner;
use carrel_verify::ProfileCache;
use serde_json::Value;

use crate::audit_log::AuditLog;
use crate::git::GitOptions;
use crate::named_workspace::Workspaces;
use crate::redaction::Redactor;
use crate::secrets::Secrets;
use crate::session::Session;

/// What an event repeats of a path or another text.
const MAX_EVENT_TEXT: usize = 512;

/// What a toolbox is made from.
#[derive(Debug)]
pub struct ToolboxOptions {
    /// The workspaces.
    pub workspaces: Workspaces,
    /// What runs commands.
    pub runner: Runner,
    /// The operator's secrets.
    pub secrets: Secrets,
    /// Where events go.
    pub events: AuditLog,
    /// What may be done with the files of every workspace.
    pub access: WorkspaceAccess,
    /// The network that commands get when they do not say; the policy's if none.
    pub network: Option<Network>,
    /// Which machines git may reach, and what they are told.
    pub git: GitOptions,
}

/// What all calls share.
#[derive(Debug)]
pub struct Toolbox {
    /// The workspaces.
    pub workspaces: Arc<Workspaces>,
    /// What runs commands.
    pub runner: Runner,
    /// What runs in the background.
    pub jobs: Jobs,
    /// The operator's secrets.
    pub secrets: Secrets,
    /// Where events go.
    pub events: AuditLog,
    /// What may be done with the files of every workspace.
    pub access: WorkspaceAccess,
    /// The network that commands get when they do not say.
    pub network: Option<Network>,
    /// Which machines git may reach, and what they are told.
    pub git: GitOptions,
    /// What is known about projects.
    pub(crate) profiles: ProfileCache,
    redactor: RwLock<Arc<Redactor>>,
}

impl Toolbox {
    /// Puts everything together.
    pub fn new(options: ToolboxOptions) -> Arc<Self> {
        let ToolboxOptions { workspaces, runner, secrets, events, access, network, git } = options;
        let redactor = RwLock::new(Arc::new(redactor(&secrets, &workspaces, &git)));
        let jobs = Jobs::new(JobLimits::default());
        let workspaces = Arc::new(workspaces);
        let profiles = ProfileCache::new();
        Arc::new(Self {
            workspaces,
            runner,
            jobs,
            secrets,
            events,
            access,
            network,
            git,
            profiles,
            redactor,
        })
    }

    /// Returns the workspaces that a session may see.
    pub(crate) fn workspaces_of(&self, session: &Session) -> Arc<Workspaces> {
        let narrowed = session.state().narrowed.clone();
        narrowed.unwrap_or_else(|| Arc::clone(&self.workspaces))
    }

    /// Returns what masks secrets.
    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&sync::read(&self.redactor))
    }

    /// Masks known secrets in facts that go into events, and shortens them: nobody may fill the file.
    pub(crate) fn for_events(&self, mut detail: Value) -> Value {
        shorten(&mut detail);
        self.redactor().redact_value(&mut detail);
        detail
    }

    /// Reads the secrets again, because one was handed out that may be new.
    pub(crate) fn refresh_redactor(&self) {
        let new = Arc::new(redactor(&self.secrets, &self.workspaces, &self.git));
        *sync::write(&self.redactor) = new;
    }
}

/// Cuts long texts, wherever they are.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => text.truncate(text.floor_char_boundary(MAX_EVENT_TEXT)),
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn redactor(secrets: &Secrets, workspaces: &Workspaces, git: &GitOptions) -> Redactor {
    let mut all = secrets.all(&workspaces.names());
    all.extend(git.credentials.iter().flat_map(|source| source.known()));
    Redactor::new(all.iter().map(|(name, secret)| (name.as_str(), secret)))
}
