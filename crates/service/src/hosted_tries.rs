//! Tries in the workspaces on this machine's volume: begun by a request, worked on in the background, and taken up at
//! the start of a server.
//!
//! The forks of a try have rows like other forks, so that a token for the base covers them, and a person can look at
//! them and promote one. The name of such a row says which try it belongs to; no other row is ever removed for a try.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use carrel_config::Environment;
use carrel_domain::{
    Code, Failure, Identifier, MAX_FORKS, NetworkRequest, TrialId, WorkspaceId, sync,
};
use carrel_store::Workspace;
use carrel_tools::{
    NewTry, OpenFork, OtherForks, PromotedFork, SnapshotName, TryHost, TryRunner, TrySession,
    network_of,
};
use carrel_trial::{Spec, Trial, TrialSummary};
use carrel_workspace::Workspaces;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::error::ServiceError;
use crate::hosted_workspaces::{HostedWorkspaces, WeakWorkspaces, identifier};

/// The most tries that a server works on at the same time.
const MAX_RUNNING: usize = 16;

/// The tries that this process works on.
#[derive(Debug, Default)]
pub(crate) struct RunningTries(Mutex<HashMap<TrialId, RunningTry>>);

#[derive(Debug)]
struct RunningTry {
    stop: CancellationToken,
    working: JoinHandle<()>,
}

/// The forks of tries, with rows in the store.
#[derive(Clone, Debug)]
struct ServiceHost {
    workspaces: Workspaces,
    environment: Environment,
    /// Not an owner: open workspaces hold this.
    spaces: WeakWorkspaces,
}

impl HostedWorkspaces {
    /// Begins a try, and works on it in the background.
    pub async fn begin_try(&self, new: NewTry) -> Result<Trial, Failure> {
        if sync::lock(&self.running_tries().0).len() >= MAX_RUNNING {
            let message =
                format!("this server works on {MAX_RUNNING} tries; try again when one is over");
            return Err(Failure::new(Code::Overloaded, message));
        }
        let session = self.tries().begin(new).await?;
        let trial = session.trial().await;
        self.work_on(session);
        Ok(trial)
    }

    /// Takes up the tries that an earlier server left. What goes wrong with one concerns that one alone.
    pub async fn resume_tries(&self) {
        let runner = self.tries();
        let left = match runner.unfinished().await {
            Ok(left) => left,
            Err(failure) => {
                warn!(failure.message, "tries that an earlier server left cannot be listed");
                return;
            }
        };
        for id in left {
            match runner.resume(&id).await {
                Ok(session) => {
                    info!(try_id = %id, "takes up a try");
                    self.work_on(session);
                }
                // Another process of this volume has it.
                Err(failure) => info!(try_id = %id, failure.message, "a try is not taken up"),
            }
        }
    }

    /// Lists the tries of a workspace, the newest first.
    pub async fn tries_of(&self, base: WorkspaceId) -> Result<Vec<TrialSummary>, Failure> {
        self.tries().list(Some(&identifier(base)?)).await
    }

    /// Returns the record of a try of a workspace. That of another workspace is not found.
    pub async fn try_of(&self, base: WorkspaceId, id: &TrialId) -> Result<Trial, Failure> {
        let trial = self.tries().show(id).await?;
        if trial.base != identifier(base)? {
            let root = self.workspaces().path().to_owned();
            return Err(carrel_workspace::Error::TryNotFound { id: id.clone(), root }.into());
        }
        Ok(trial)
    }

    /// Returns the diff of a candidate, if it ran.
    pub async fn try_diff(&self, id: &TrialId, number: u8) -> Result<Option<String>, Failure> {
        self.tries().diff(id, number).await
    }

    /// Ends a try and removes it with its forks. The work of candidates that ran becomes snapshots of the base.
    pub async fn remove_try(&self, base: WorkspaceId, id: &TrialId) -> Result<(), Failure> {
        self.try_of(base, id).await?;
        let running = sync::lock(&self.running_tries().0).remove(id);
        if let Some(RunningTry { stop, working }) = running {
            stop.cancel();
            // It ends with its commands; the record says what is left.
            let _ = working.await;
        }
        self.tries().remove(id).await.map(drop)
    }

    /// Ends the commands of all tries. The next server takes the tries up.
    pub(crate) async fn stop_tries(&self) {
        let all: Vec<_> = sync::lock(&self.running_tries().0).drain().map(|(_, one)| one).collect();
        for running in &all {
            running.stop.cancel();
        }
        for RunningTry { working, .. } in all {
            let _ = working.await;
        }
    }

    /// Returns the maker of the forks of tries, for the toolbox of a workspace.
    pub(crate) fn try_host(&self) -> Arc<dyn TryHost> {
        Arc::new(ServiceHost {
            workspaces: self.workspaces().clone(),
            environment: self.runner().environment().clone(),
            spaces: self.downgrade(),
        })
    }

    fn tries(&self) -> TryRunner {
        TryRunner::new(self.try_host())
    }

    fn work_on(&self, session: TrySession) {
        let (id, stop) = (session.id().clone(), CancellationToken::new());
        let (own, stopped, name) = (self.clone(), stop.clone(), id.clone());
        let mut running = sync::lock(&self.running_tries().0);
        let working = carrel_exec::spawn_task(async move {
            if let Err(failure) = session.run(&stopped).await
                && !stopped.is_cancelled()
            {
                warn!(try_id = %name, failure.message, "a try ended early; the next server takes it up");
            }
            sync::lock(&own.running_tries().0).remove(&name);
        });
        running.insert(id, RunningTry { stop, working });
    }

    async fn end_fork(
        &self,
        fork: WorkspaceId,
        work: OtherForks,
    ) -> Result<Option<SnapshotName>, Failure> {
        let row = self.store().workspace(fork).await.map_err(ServiceError::from)?;
        if row.is_some_and(|row| !is_of_try(&row)) {
            return Ok(None);
        }
        let _removal = self.begin_removal(fork);
        self.close_for_good(fork).await;
        let ended = self.forks().end(&identifier(fork)?, work).await?;
        self.delete_row(fork).await;
        Ok(ended)
    }
}

impl ServiceHost {
    fn spaces(&self) -> Result<HostedWorkspaces, Failure> {
        self.spaces.upgrade().ok_or_else(|| Failure::new(Code::Cancelled, "the server stops"))
    }
}

#[async_trait]
impl TryHost for ServiceHost {
    fn workspaces(&self) -> &Workspaces {
        &self.workspaces
    }

    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn is_server(&self) -> bool {
        true
    }

    async fn check_network(&self, base: &Identifier, spec: &Spec) -> Result<(), Failure> {
        let spaces = self.spaces()?;
        let workspace = spaces.find(workspace_id(base)?).await?.network;
        let own = NetworkRequest { workspace, ..NetworkRequest::default() };
        spaces.runner().decide_network(network_of(spec).within(own))?;
        Ok(())
    }

    async fn names(
        &self,
        base: &Identifier,
        _: &TrialId,
        numbers: &[u8],
    ) -> Result<Vec<Identifier>, Failure> {
        let (spaces, base) = (self.spaces()?, workspace_id(base)?);
        let mut names = Vec::new();
        for fork in (1..=MAX_FORKS).map(|number| base.fork(number)) {
            if names.len() == numbers.len() {
                break;
            }
            if spaces.store().workspace(fork).await.map_err(ServiceError::from)?.is_none() {
                names.push(identifier(fork)?);
            }
        }
        if names.len() < numbers.len() {
            let message =
                format!("workspace {base} can have {MAX_FORKS} forks; promote or remove some");
            return Err(
                Failure::new(Code::ForkRefused, message).with("workspace_id", base.to_string())
            );
        }
        Ok(names)
    }

    async fn make(
        &self,
        base: &Identifier,
        id: &TrialId,
        forks: &[(u8, Identifier)],
    ) -> Result<(), Failure> {
        let (spaces, base_id) = (self.spaces()?, workspace_id(base)?);
        let row = spaces.open_workspace(base_id).await?.workspace.clone();
        let volume = row.volume.or(Some(spaces.volume()));
        let mut added = Vec::new();
        let made = async {
            for (number, fork) in forks {
                let new = Workspace {
                    id: workspace_id(fork)?,
                    name: row_name(&row.name, id, *number),
                    created_at: spaces.now(),
                    volume,
                    ..row.clone()
                };
                let there = spaces.store().add_workspace(new.clone()).await;
                if there.map_err(ServiceError::from)?.is_some() {
                    let message = format!("workspace {} exists already; try again", new.id);
                    return Err(Failure::new(Code::AlreadyExists, message));
                }
                added.push(new.id);
            }
            let names = forks.iter().map(|(_, fork)| Some(fork.clone())).collect();
            spaces.forks().make(base, names, None).await.map(drop)
        };
        let made = made.await;
        if made.is_err() {
            for fork in added {
                spaces.delete_row(fork).await;
            }
        }
        made
    }

    async fn open(&self, fork: &Identifier) -> Result<OpenFork, Failure> {
        let opened = self.spaces()?.open_workspace(workspace_id(fork)?).await?;
        Ok(OpenFork::shared(Arc::clone(opened.toolbox()), opened))
    }

    async fn promote(&self, fork: &Identifier) -> Result<PromotedFork, Failure> {
        self.spaces()?.promote(workspace_id(fork)?, OtherForks::Record).await
    }

    async fn end(
        &self,
        fork: &Identifier,
        work: OtherForks,
    ) -> Result<Option<SnapshotName>, Failure> {
        self.spaces()?.end_fork(workspace_id(fork)?, work).await
    }
}

fn workspace_id(name: &Identifier) -> Result<WorkspaceId, Failure> {
    name.as_str().parse().map_err(|_| {
        let message = format!("{name} is no workspace of this server");
        Failure::new(Code::WorkspaceNotFound, message).with("identifier", name.as_str())
    })
}

/// The middle of the name of a row that a try made.
const OF_TRY: &str = " try ";

fn row_name(base: &str, id: &TrialId, number: u8) -> String {
    format!("{base}{OF_TRY}{id} candidate {number}")
}

fn is_of_try(row: &Workspace) -> bool {
    row.name.rsplit_once(OF_TRY).is_some_and(|(_, rest)| {
        rest.split_once(" candidate ").is_some_and(|(id, _)| id.parse::<TrialId>().is_ok())
    })
}
