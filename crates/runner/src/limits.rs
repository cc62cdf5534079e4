//! Limits that hold for each process, where there is no group that holds them for all.

use carrel_domain::{ByteSize, ResourceLimits, Tier};
use carrel_exec::{Limits, SampledLimits};
use carrel_sandbox::CgroupLimits;

use crate::sandbox_cell::Walled;
use crate::workspace_handle::WorkspaceHandle;

/// Returns what each process of a command may use.
pub(crate) fn per_process(
    limits: &ResourceLimits,
    workspace: &WorkspaceHandle,
    walled: &Walled,
    grouped: CgroupLimits,
) -> Limits {
    Limits {
        data: (!grouped.memory).then_some(limits.memory),
        cpu: Some(limits.cpu),
        // Not what is left of the quota: a file that is there can be longer than that, and changing
        // it in place takes no room.
        file_size: Some(limits.file_size.min(whole(workspace))),
        open_files: Some(limits.open_files),
        // The kernel counts by user: elsewhere it would count the operator's processes as well.
        processes: (has_own_user(walled) && !grouped.processes).then_some(limits.processes),
        core: Some(ByteSize::bytes(0)),
    }
}

/// Returns what is looked at from time to time, because nothing holds it all the time.
pub(crate) fn together(
    limits: &ResourceLimits,
    workspace: &WorkspaceHandle,
    walled: &Walled,
    grouped: CgroupLimits,
) -> SampledLimits {
    SampledLimits {
        disk: workspace.quota().map(|_| room(workspace)),
        memory: (!grouped.memory).then_some(limits.memory),
        processes: (!grouped.processes && !has_own_user(walled)).then_some(limits.processes),
    }
}

fn has_own_user(walled: &Walled) -> bool {
    walled.plan().is_some_and(|plan| plan.tier == Tier::Full)
}

/// Returns the whole quota, which no file can exceed.
pub(crate) fn whole(workspace: &WorkspaceHandle) -> ByteSize {
    workspace.quota().map_or(ByteSize::bytes(u64::MAX), |quota| quota.bytes)
}

/// Returns what the quota leaves.
fn room(workspace: &WorkspaceHandle) -> ByteSize {
    workspace.quota_and_use().map_or(ByteSize::bytes(u64::MAX), |(quota, used)| {
        ByteSize::bytes(quota.bytes.as_u64().saturating_sub(used.bytes))
    })
}
