//! Workspaces, workers and sealed credentials, as the store has them.

use std::fmt;

use carrel_domain::{Layout, Network, Timestamp, VolumeId, WorkspaceId};
use serde::Serialize;

use crate::value::from_row;

/// The row of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// The id, which is also the identifier of its directory.
    pub id: WorkspaceId,
    /// A display name. Not unique, and never used to find a workspace.
    pub name: String,
    /// The layout of its directory.
    pub layout: Layout,
    /// The network of commands that name none; that of the operator if absent.
    pub network: Option<Network>,
    /// The quota in bytes.
    pub quota_bytes: u64,
    /// The time of creation. Distinguishes a workspace from a deleted one with the same id.
    pub created_at: Timestamp,
    /// The volume of its directory. `None` until the first task is claimed or the workspace is opened;
    /// never changes after that.
    pub volume: Option<VolumeId>,
}

from_row! { Workspace: id, name, layout, network, quota_bytes, created_at, volume }

/// The name of a worker process. Never used by a second process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct WorkerId(pub String);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The registration of a worker, by which other processes find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerRecord {
    /// The name of the worker.
    pub id: WorkerId,
    /// The volume that it serves.
    pub volume: VolumeId,
    /// The base URL for requests of other processes, `http://host:port`; `None` if it serves none.
    pub address: Option<String>,
    /// The number of tasks that it runs at once.
    pub concurrency: u32,
    /// The time of the last registration. Readers decide the age at which a worker counts as dead.
    pub seen_at: Timestamp,
}

from_row! { WorkerRecord: id, volume, address, concurrency, seen_at }

/// A sealed credential. Cannot be read without a key that is not in the store; its `Debug` form shows the
/// length alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(pub Vec<u8>);

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.0.len())
    }
}
