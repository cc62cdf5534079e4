//! The toolbox: state that all sessions of a server share.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, RwLock};

use carrel_domain::{Failure, NetworkRequest, WorkspaceAccess, sync};
use carrel_exec::{JobLimits, Jobs};
use carrel_lsp::LanguageServers;
use carrel_runner::Runner;
use carrel_verify::ProfileCache;

use crate::client_roots::WorkspaceView;
use crate::code::SymbolIndexes;
use crate::fork_tools::{ForkHost, ForkTable};
use crate::git::GitOptions;
use crate::named_workspace::Workspaces;
use crate::redaction::{CutGuard, Redactor};
use crate::secrets::Secrets;
use crate::session::Session;
use crate::shell::{JobRecords, ShellTable};
use crate::snapshots::SnapshotStores;
use crate::tool_context::CommandSettings;
use crate::tries::TryHost;
use crate::verify::{CompilerChecks, CoverageStore, ServerChecks};
use carrel_audit::{AuditLog, Mask};

/// The parts of a toolbox.
#[derive(Debug)]
pub struct ToolboxOptions {
    /// The workspaces.
    pub workspaces: Workspaces,
    /// Runs commands in the sandbox.
    pub runner: Runner,
    /// The operator's secrets.
    pub secrets: Secrets,
    /// Read-only for a server that changes nothing.
    pub access: WorkspaceAccess,
    /// The caps of the server's command line and of the workspace.
    pub network: NetworkRequest,
    /// Hosts and credentials for git.
    pub git: GitOptions,
    /// Bytes of text in a reply, where the call sets no limit of its own.
    pub reply_bytes: usize,
    /// The symbol indexes, which several toolboxes of a server share.
    pub symbols: Arc<SymbolIndexes>,
    /// The snapshot stores, which several toolboxes of a server share.
    pub snapshots: Arc<SnapshotStores>,
}

/// The state that all sessions of a server share.
#[derive(Debug)]
pub struct Toolbox {
    /// The workspaces.
    pub workspaces: Arc<Workspaces>,
    /// Runs commands in the sandbox.
    pub runner: Runner,
    /// Background commands of all sessions.
    pub jobs: Jobs,
    /// The operator's secrets.
    pub secrets: Secrets,
    /// The audit log, that of the runner.
    pub events: AuditLog,
    /// Read-only for a server that changes nothing.
    pub access: WorkspaceAccess,
    /// The caps of the server's command line and of the workspace.
    pub network: NetworkRequest,
    /// Hosts and credentials for git.
    pub git: GitOptions,
    /// Bytes of text in a reply, where the call sets no limit of its own.
    pub reply_bytes: usize,
    pub(crate) symbols: Arc<SymbolIndexes>,
    pub(crate) snapshots: Arc<SnapshotStores>,
    pub(crate) language_servers: LanguageServers,
    /// Commands of all sessions, by the ids of their jobs.
    pub(crate) shells: ShellTable,
    pub(crate) profiles: ProfileCache,
    job_records: OnceLock<Arc<JobRecords>>,
    /// Makes the forks of tries; none where they are made in the root alone.
    try_host: OnceLock<Arc<dyn TryHost>>,
    pub(crate) compiler_checks: CompilerChecks,
    pub(crate) server_checks: ServerChecks,
    pub(crate) coverage: CoverageStore,
    redactor: RwLock<Arc<Redactor>>,
    pub(crate) forks: ForkTable,
}

impl Toolbox {
    /// Makes a toolbox.
    pub fn new(options: ToolboxOptions) -> Arc<Self> {
        let ToolboxOptions {
            workspaces,
            runner,
            secrets,
            access,
            network,
            git,
            reply_bytes,
            symbols,
            snapshots,
        } = options;
        let events = runner.events().clone();
        let language_servers = LanguageServers::new(runner.policy().language_servers.clone());
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
            reply_bytes,
            symbols,
            snapshots,
            language_servers,
            shells: ShellTable::default(),
            profiles,
            job_records: OnceLock::new(),
            try_host: OnceLock::new(),
            compiler_checks: CompilerChecks::default(),
            server_checks: ServerChecks::default(),
            coverage: CoverageStore::default(),
            redactor,
            forks: ForkTable::default(),
        })
    }

    /// Keeps records and logs of background jobs in this directory, where they outlive the server. The first
    /// call counts.
    pub fn keep_jobs(&self, directory: PathBuf) {
        let _ = self.job_records.set(Arc::new(JobRecords::new(directory)));
    }

    /// Returns the snapshot stores.
    pub fn snapshots(&self) -> &Arc<SnapshotStores> {
        &self.snapshots
    }

    pub(crate) fn job_records(&self) -> Option<&Arc<JobRecords>> {
        self.job_records.get()
    }

    /// Has the forks of tries made by a service. The first call counts.
    pub fn make_tries_by(&self, host: Arc<dyn TryHost>) {
        let _ = self.try_host.set(host);
    }

    pub(crate) fn try_host(&self) -> Option<&Arc<dyn TryHost>> {
        self.try_host.get()
    }

    /// Ends every running job and language server because the server stops, and returns the number of jobs.
    pub async fn stop_jobs(&self) -> usize {
        self.shells.end_with_server();
        self.end_processes().await
    }

    /// Ends every running job and language server, and returns the number of jobs.
    pub async fn end_processes(&self) -> usize {
        let (jobs, ()) = tokio::join!(self.jobs.stop_all(), self.language_servers.close());
        jobs.len()
    }

    /// Returns the workspaces that a session may use; a failure if its client's roots leave it none.
    pub(crate) fn workspaces_of(&self, session: &Session) -> Result<Arc<Workspaces>, Failure> {
        let workspaces = match &session.state().view {
            WorkspaceView::Operator => Arc::clone(&self.workspaces),
            WorkspaceView::Narrowed(workspaces) => Arc::clone(workspaces),
            WorkspaceView::Nothing(failure) => return Err(Failure::clone(failure)),
        };
        Ok(self.forks.added_to(workspaces))
    }

    /// Lets a service make and end the forks of the workspace, which has more to do for them. The first call counts.
    pub fn host_forks(&self, host: Arc<dyn ForkHost>) {
        self.forks.set_host(host);
    }

    /// Masks known secrets in a text that is no reply, such as progress.
    pub fn mask(&self, text: &mut String) {
        self.redactor().redact_text(text);
    }

    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&sync::read(&self.redactor))
    }

    /// Returns the guard of cut texts for the secrets of the server alone.
    pub(crate) fn cut_guard(&self) -> CutGuard {
        CutGuard::new([self.redactor(), Arc::default()])
    }

    /// Returns the mask of audit events: the secrets of one call, and those of the server.
    pub(crate) fn event_mask(self: &Arc<Self>, settings: &CommandSettings) -> Mask {
        let (toolbox, own) = (Arc::clone(self), settings.redactor());
        Mask::new(move |detail| {
            own.redact_value(detail);
            toolbox.redactor().redact_value(detail);
        })
    }

    /// Reads the secrets again after one was returned that may be newer than the redactor.
    pub(crate) fn refresh_redactor(&self) {
        let new = Arc::new(redactor(&self.secrets, &self.workspaces, &self.git));
        *sync::write(&self.redactor) = new;
    }
}

fn redactor(secrets: &Secrets, workspaces: &Workspaces, git: &GitOptions) -> Redactor {
    let mut all = secrets.all(&workspaces.names());
    all.extend(git.credentials.iter().flat_map(|source| source.known()));
    Redactor::new(all.iter().map(|(name, secret)| (name.as_str(), secret)))
}
