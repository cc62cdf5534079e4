//! The limits of a command, by the mechanism that enforces them.
//!
//! A control group limits memory and processes of the whole command exactly. Where the host has none,
//! rlimits hold for each process, and the sum is sampled every so often by the init (see `exec`). The
//! number of processes needs a user of its own: `RLIMIT_NPROC` counts all processes of a user, and
//! would count the operator's as well.

use std::time::Duration;

use carrel_domain::{ByteSize, Tier};
use carrel_exec::{Limits, SampledLimits};

use crate::command_run::CommandRun;

impl CommandRun<'_> {
    pub(crate) fn limits_of_each_process(&self) -> Limits {
        let limits = &self.limits;
        let grouped = self.inner.cgroups().enforced();
        Limits {
            data: (!grouped.memory).then_some(limits.memory),
            // Sessions have none.
            cpu: (limits.cpu < Duration::MAX).then_some(limits.cpu),
            // The whole quota, not the rest: an existing file can be larger than the rest, and changing it in
            // place takes no space.
            file_size: Some(limits.file_size.min(self.quota_bytes())),
            open_files: Some(limits.open_files),
            processes: (self.has_own_user() && !grouped.processes).then_some(limits.processes),
            core: Some(ByteSize::bytes(0)),
        }
    }

    /// Returns the limits for the sum of all processes that only sampling can enforce.
    pub(crate) fn sampled_limits(&self) -> SampledLimits {
        let Self { limits, workspace, .. } = self;
        let grouped = self.inner.cgroups().enforced();
        let quota_left = workspace
            .quota_and_use()
            .map(|(quota, used)| ByteSize::bytes(quota.bytes.as_u64().saturating_sub(used.bytes)));
        SampledLimits {
            disk: quota_left,
            memory: (!grouped.memory).then_some(limits.memory),
            processes: (!grouped.processes && !self.has_own_user()).then_some(limits.processes),
        }
    }

    fn has_own_user(&self) -> bool {
        self.site.plan().is_some_and(|plan| plan.tier == Tier::Full)
    }

    /// Returns the quota in bytes, unlimited without one.
    pub(crate) fn quota_bytes(&self) -> ByteSize {
        self.workspace.quota().map_or(ByteSize::bytes(u64::MAX), |quota| quota.bytes)
    }
}
