//! Messages of real programs, and what is made of them.

mod explain;
mod files;
mod limits;
mod network;
mod syscalls;

use std::path::Path;

use carrel_domain::{Network, ResourceLimits, Tier, WorkspaceAccess};

use super::{Certainty, Denial, DenialContext, explain};
use crate::guarantee::CgroupLimits;
use crate::host::{Host, HostEntry, HostEntryKind};
use crate::plan::Plan;
use crate::policy::{GitDirectory, Owner, Policy, UserRange, WorkspaceSource};

const USER: Owner = Owner { user: 1000, group: 1000 };

fn host() -> Host {
    let seen = |path: &str, kind| HostEntry { path: path.into(), kind };
    Host {
        landlock: 7,
        server: USER,
        system: vec![
            seen("/usr", HostEntryKind::Directory),
            seen("/bin", HostEntryKind::Link("usr/bin".into())),
            seen("/lib", HostEntryKind::Link("usr/lib".into())),
            seen("/opt", HostEntryKind::Directory),
            seen("/etc/ssl/certs", HostEntryKind::Directory),
        ],
        name_files: vec![
            seen("/etc/passwd", HostEntryKind::File),
            seen("/etc/hosts", HostEntryKind::File),
        ],
        resolver: Some(seen("/etc/resolv.conf", HostEntryKind::File)),
    }
}

fn policy(network: Network) -> Policy {
    Policy {
        workspace: "/srv/root/ws".into(),
        owner: USER,
        access: WorkspaceAccess::ReadWrite,
        workspace_source: WorkspaceSource::Directory,
        alias: None,
        git_directory: GitDirectory::WithHooks,
        scratch: "/srv/root/.carrel/scratch/ws".into(),
        home: None,
        readable: vec!["/data/in".into()],
        writable: vec!["/data/cache".into()],
        hidden: vec![],
        network,
        users: UserRange::default(),
    }
}

fn plan(tier: Tier, network: Network) -> Plan {
    Plan::new(&policy(network), &host(), tier).expect("a plan")
}

fn context() -> DenialContext<'static> {
    DenialContext {
        directory: Path::new("sub"),
        root: Some(Path::new("/srv/root")),
        limits: ResourceLimits::default(),
        network_cap: Network::None,
        cgroup: CgroupLimits::default(),
    }
}

/// Says in one line what a denial says.
fn line(denial: &Denial) -> String {
    let Denial { rule, object, errno, allow, .. } = denial;
    let allow = allow.as_deref().unwrap_or("-");
    format!("{rule} | {object} | {errno} | {allow}")
}

/// Returns the denials that are inferred from stderr, one line each.
fn inferred(plan: &Plan, stderr: &str) -> Vec<String> {
    let denials = explain(plan, &[], stderr, context());
    assert!(denials.iter().all(|denial| denial.source == Certainty::Inferred));
    denials.iter().map(line).collect()
}

/// Checks messages, each by itself, with the denials that they lead to.
fn check(plan: &Plan, cases: &[(&str, &[&str])]) {
    for (stderr, expected) in cases {
        let found = inferred(plan, stderr);
        pretty_assertions::assert_eq!(found, *expected, "{stderr}");
    }
}
