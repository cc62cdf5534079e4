//! The limits of a command, by the mechanism that enforces them.
//!
//! A control group limits memory and processes of the whole command exactly. Where the host has none,
//! rlimits hold for each process, and the sum is sampled every so often by the init (see `exec`). The
//! number of processes needs a user of its own: `RLIMIT_NPROC` counts all processes of a user, and
//! would count the operator's as well.

use carrel_domain::{ByteSize, ResourceLimits, Tier};
use carrel_exec::{Limits, SampledLimits};
use carrel_sandbox::CgroupLimits;

use crate::sandbox_cell::ExecutionSite;
use crate::workspace_handle::WorkspaceHandle;

/// Returns the rlimits of each process.
pub(crate) fn per_process(
    limits: &ResourceLimits,
    workspace: &WorkspaceHandle,
    site: &ExecutionSite,
    grouped: CgroupLimits,
) -> Limits {
    Limits {
        data: (!grouped.memory).then_some(limits.memory),
        cpu: Some(limits.cpu),
        // The whole quota, not the rest: an existing file can be larger than the rest, and changing it in
        // place takes no space.
        file_size: Some(limits.file_size.min(quota_bytes(workspace))),
        open_files: Some(limits.open_files),
        processes: (has_own_user(site) && !grouped.processes).then_some(limits.processes),
        core: Some(ByteSize::bytes(0)),
    }
}

/// Returns the limits for the sum of all processes that only sampling can enforce.
pub(crate) fn sampled(
    limits: &ResourceLimits,
    workspace: &WorkspaceHandle,
    site: &ExecutionSite,
    grouped: CgroupLimits,
) -> SampledLimits {
    SampledLimits {
        disk: workspace.quota().map(|_| remaining_quota(workspace)),
        memory: (!grouped.memory).then_some(limits.memory),
        processes: (!grouped.processes && !has_own_user(site)).then_some(limits.processes),
    }
}

fn has_own_user(site: &ExecutionSite) -> bool {
    site.plan().is_some_and(|plan| plan.tier == Tier::Full)
}

/// Returns the quota in bytes, unlimited without one.
pub(crate) fn quota_bytes(workspace: &WorkspaceHandle) -> ByteSize {
    workspace.quota().map_or(ByteSize::bytes(u64::MAX), |quota| quota.bytes)
}

fn remaining_quota(workspace: &WorkspaceHandle) -> ByteSize {
    workspace.quota_and_use().map_or(ByteSize::bytes(u64::MAX), |(quota, used)| {
        ByteSize::bytes(quota.bytes.as_u64().saturating_sub(used.bytes))
    })
}
