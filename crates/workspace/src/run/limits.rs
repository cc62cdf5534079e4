//! Limits that hold for each process, where there is no group that holds them for all.

use carrel_domain::{ByteSize, ResourceLimits, Tier};
use carrel_exec::{Limits, Watch};
use carrel_sandbox::Grouped;

use super::cells::Walled;
use super::desk::Desk;

/// Returns what each process of a command may use.
pub(super) fn per_process(
    limits: &ResourceLimits,
    desk: &Desk,
    walled: &Walled,
    grouped: Grouped,
) -> Limits {
    Limits {
        data: (!grouped.memory).then_some(limits.memory),
        cpu: Some(limits.cpu),
        file_size: Some(limits.file_size.min(room(desk))),
        open_files: Some(limits.open_files),
        // The kernel counts by user: elsewhere it would count the operator's processes as well.
        processes: (has_own_user(walled) && !grouped.processes).then_some(limits.processes),
        core: Some(ByteSize::bytes(0)),
    }
}

/// Returns what is looked at from time to time, because nothing holds it all the time.
pub(super) fn together(limits: &ResourceLimits, walled: &Walled, grouped: Grouped) -> Watch {
    Watch {
        memory: (!grouped.memory).then_some(limits.memory),
        processes: (!grouped.processes && !has_own_user(walled)).then_some(limits.processes),
    }
}

fn has_own_user(walled: &Walled) -> bool {
    walled.plan().is_some_and(|plan| plan.tier == Tier::Full)
}

/// Returns what the quota leaves.
pub(super) fn room(desk: &Desk) -> ByteSize {
    desk.quota.map_or(ByteSize::bytes(u64::MAX), |(quota, used)| {
        ByteSize::bytes(quota.bytes.as_u64().saturating_sub(used.bytes))
    })
}
