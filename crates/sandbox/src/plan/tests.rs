use std::path::PathBuf;

use carrel_domain::{Network, Tier, WorkspaceAccess};
use pretty_assertions::assert_eq;

use super::*;
use crate::host::{HostEntry, HostEntryKind};
use crate::policy::{GitDirectory, UserRange, WorkspaceSource};

fn visible(path: &str, kind: HostEntryKind) -> HostEntry {
    HostEntry { path: path.into(), kind }
}

fn host(user: u32, landlock: u32) -> Host {
    Host {
        landlock,
        server: Owner { user, group: user },
        system: vec![
            visible("/usr", HostEntryKind::Directory),
            visible("/bin", HostEntryKind::Link("usr/bin".into())),
            visible("/etc/ssl/certs", HostEntryKind::Directory),
            visible("/etc/localtime", HostEntryKind::Link("/usr/share/zoneinfo/UTC".into())),
        ],
        name_files: vec![
            visible("/etc/passwd", HostEntryKind::File),
            visible("/etc/hosts", HostEntryKind::File),
        ],
        resolver: Some(visible("/etc/resolv.conf", HostEntryKind::File)),
    }
}

fn policy() -> Policy {
    Policy {
        workspace: "/srv/carrel/ABC-1".into(),
        owner: Owner { user: 0, group: 0 },
        access: WorkspaceAccess::ReadWrite,
        workspace_source: WorkspaceSource::Directory,
        alias: None,
        git_directory: GitDirectory::WithHooks,
        scratch: "/srv/carrel/.carrel/scratch/7-0".into(),
        home: Some("/srv/carrel/.carrel/homes/ABC-1".into()),
        readable: vec!["/root/.cargo/bin".into()],
        writable: vec!["/srv/cache".into()],
        hidden: vec!["/srv/carrel/.carrel".into()],
        network: Network::None,
        users: UserRange::default(),
    }
}

/// Everything but the filter, which has snapshots of its own.
fn shown(plan: &Plan) -> String {
    let mut value = serde_json::to_value(plan).unwrap();
    value["seccomp"] = format!("{} entries", plan.seccomp.rules.len()).into();
    serde_json::to_string_pretty(&value).unwrap()
}

#[test]
fn the_plan_of_a_server_that_is_root_maps_a_user_of_its_own() {
    let plan = Plan::new(&policy(), &host(0, 7), Tier::Full).unwrap();
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn the_plan_of_an_ordinary_user_without_namespaces_has_rules_only() {
    let plan = Plan::new(&policy(), &host(1000, 7), Tier::Landlock).unwrap();
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn a_plan_survives_being_sent() {
    for (user, tier) in [(0, Tier::Full), (1000, Tier::Full), (1000, Tier::Landlock)] {
        let plan = Plan::new(&policy(), &host(user, 7), tier).unwrap();
        let sent = serde_json::to_vec(&plan).unwrap();
        assert_eq!(serde_json::from_slice::<Plan>(&sent).unwrap(), plan);
    }
}

#[test]
fn commands_never_run_as_the_administrator() {
    for tier in [Tier::Full, Tier::Landlock] {
        for owner in [0, 33] {
            let policy = Policy { owner: Owner { user: owner, group: owner }, ..policy() };
            let user = match Plan::new(&policy, &host(0, 7), tier).map(|plan| plan.run_as) {
                Ok(CommandUser::Server(who) | CommandUser::WorkspaceOwner(who)) => Some(who.user),
                Ok(CommandUser::Mapped { outside, .. }) => Some(outside.user),
                Err(error) => {
                    assert!(matches!(error, PlanError::OwnedByRoot { .. }), "{error}");
                    None
                }
            };
            assert_ne!(user, Some(0), "{tier}, workspace of {owner}");
        }
    }
}

#[test]
fn what_cannot_be_planned_says_why() {
    let refused = |change: fn(&mut Policy), tier, landlock| {
        let mut policy = policy();
        change(&mut policy);
        Plan::new(&policy, &host(1000, landlock), tier).unwrap_err().to_string()
    };
    let loopback: fn(&mut Policy) = |policy| policy.network = Network::Loopback;
    assert_eq!(
        refused(loopback, Tier::Landlock, 7),
        "network `loopback` needs tier `full`; tier `landlock` has `none` and `full`"
    );
    assert_eq!(
        refused(|_| {}, Tier::Landlock, 0),
        "tier `landlock` needs Landlock, which this kernel does not offer"
    );
    assert_eq!(
        refused(|policy| policy.workspace = "/".into(), Tier::Full, 7),
        "/ cannot be a workspace: commands must be able to run what is below /usr"
    );
    assert_eq!(
        refused(|policy| policy.workspace = "/srv/../etc".into(), Tier::Full, 7),
        "/srv/../etc is not an absolute path without links"
    );
    assert_eq!(
        refused(|policy| policy.readable = vec!["/srv".into()], Tier::Full, 7),
        "commands can see /srv and must not see /srv/carrel/.carrel; \
         keep workspaces and Carrel's records elsewhere, or grant less"
    );
}

#[test]
fn a_read_only_workspace_is_read_only_in_every_layer() {
    let policy = Policy { access: WorkspaceAccess::ReadOnly, ..policy() };
    for tier in [Tier::Full, Tier::Landlock] {
        let plan = Plan::new(&policy, &host(1000, 7), tier).unwrap();
        let ruled = plan.landlock.rules.iter().filter(|rule| rule.path == policy.workspace);
        assert_eq!(ruled.map(|rule| rule.access).collect::<Vec<_>>(), [FileAccess::Read]);
        let inside = |path: &PathBuf| path.starts_with(&policy.workspace);
        let writable = plan.tree.iter().filter(
            |node| matches!(node, RootEntry::Bind { path, access: FileAccess::Change, .. } if inside(path)),
        );
        assert_eq!(writable.count(), 0, "{tier}");
    }
}

#[test]
fn the_home_is_mounted_where_neither_workspace_nor_grants_are() {
    let home = |change: fn(&mut Policy), tier| {
        let mut policy = policy();
        change(&mut policy);
        Plan::new(&policy, &host(1000, 7), tier).unwrap().home
    };
    let usual = Path::new("/home/carrel");
    assert_eq!(home(|_| {}, Tier::Full), usual);
    assert_eq!(home(|policy| policy.workspace = "/home/carrel-2/x".into(), Tier::Full), usual);
    let other = Path::new("/run/home/carrel");
    assert_eq!(home(|policy| policy.workspace = "/home/carrel/x".into(), Tier::Full), other);
    assert_eq!(home(|policy| policy.workspace = "/home".into(), Tier::Full), other);
    assert_eq!(home(|policy| policy.readable = vec!["/home/carrel/sdk".into()], Tier::Full), other);
    let own = home(|policy| policy.home = None, Tier::Full);
    assert_eq!(own, policy().workspace, "the workspace itself without one");
}

#[test]
fn a_second_path_of_the_workspace_is_a_link_unless_a_grant_covers_it() {
    let links = |change: fn(&mut Policy)| {
        let mut policy = Policy { alias: Some("/data/base".into()), ..policy() };
        change(&mut policy);
        let workspace = policy.workspace.clone();
        let plan = Plan::new(&policy, &host(0, 7), Tier::Full).unwrap();
        let is_it = |entry: &&RootEntry| {
            **entry == RootEntry::Link { path: "/data/base".into(), target: workspace.clone() }
        };
        let link = plan.tree.iter().position(|entry| is_it(&entry));
        let tree = plan
            .tree
            .iter()
            .position(|entry| matches!(entry, RootEntry::Bind { path, .. } if *path == workspace));
        assert!(link.is_none() || link < tree, "the directory around it is fixed later");
        link.is_some()
    };
    assert!(links(|_| {}));
    assert!(!links(|policy| policy.alias = None));
    assert!(!links(|policy| policy.readable = vec!["/data".into()]));
    assert!(!links(|policy| policy.writable = vec!["/data/base".into()]));
    assert!(!links(|policy| policy.writable = vec!["/data/base/sub".into()]));
}

#[test]
fn the_tree_of_a_fork_differs_from_a_directory_in_its_source_only() {
    let plain = Plan::new(&policy(), &host(0, 7), Tier::Full).unwrap();
    let policy = Policy { workspace_source: WorkspaceSource::Overlay, ..policy() };
    let mut fork = Plan::new(&policy, &host(0, 7), Tier::Full).unwrap();
    assert!(fork.shows_overlay() && !plain.shows_overlay());
    for entry in &mut fork.tree {
        if let RootEntry::Bind { source: source @ BindSource::Overlay, .. } = entry {
            *source = BindSource::Workspace;
        }
    }
    assert_eq!(fork, plain);
    let refused = Plan::new(&policy, &host(0, 7), Tier::Landlock);
    assert_eq!(refused.unwrap_err(), PlanError::Overlay);
}
