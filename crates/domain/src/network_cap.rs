//! The network of a command: the caps of all layers, and the one decision about them.
//!
//! Several layers may name a network: `network_limit` of the policy file, `--network` of a command line,
//! `agent.network` of a workflow file, the workspace, the scopes of a token and a task's step. Each is a cap:
//! it narrows the ones above it and never widens them, and a request below all of them may ask for less and
//! never for more. [`NetworkRequest`] collects the layers on the way from an interface to the command;
//! [`NetworkRequest::decide`] is the only place where they become a network or a refusal.
//!
//! | layer | its cap | its default |
//! |---|---|---|
//! | policy file | `network_limit`, if it is written | `network` |
//! | command line | `--network` | the same |
//! | agent | `agent.network` | none |
//! | none of these three | `loopback` in tier `full`, else `none`; at least `network` of the policy | |
//! | workspace | its network, if it has one | the same |
//! | token | `none` without the scope `net` | none |
//! | step | its network, if it names one | the same |
//!
//! The default in the third row opens nothing: the loopback of tier `full` is the workspace's own, and tier
//! `landlock` has none. A default is lowered to the cap; a request above the cap is refused. A run of tests in tier
//! `full` has at least `loopback` as its default, within the cap: tests start servers, and only for themselves. An
//! installation of dependencies has the cap itself, because it is there to download.
//!
//! Transfers of Carrel's own git are no commands of a caller: they reach the hosts that the operator lists,
//! over addresses that were checked. Only the first three layers, which the operator writes, cap them.

use serde::Serialize;
use serde_json::{Value, json};

use crate::code::Code;
use crate::error_envelope::Coded;
use crate::policy::{Network, Tier};

/// The networks of a policy file; those of a machine without one by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkPolicy {
    /// The network of a command that no layer and no request names one for.
    pub default: Network,
    /// The most that any command gets, if the file says it.
    pub limit: Option<Network>,
}

/// The networks that the layers around a command name, and the one that it requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkRequest {
    /// `--network` of the operator's command line.
    pub command_line: Option<Network>,
    /// `agent.network` of the workflow file, for an agent and its tools.
    pub agent: Option<Network>,
    /// The network of the workspace.
    pub workspace: Option<Network>,
    /// The most that the scopes of the caller's token allow.
    pub token: Option<Network>,
    /// The network of the task's step.
    pub step: Option<Network>,
    /// The network that the command asks for.
    pub requested: Option<Network>,
    /// The use of the network.
    pub purpose: NetworkPurpose,
}

/// The use of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkPurpose {
    /// A command of a caller.
    #[default]
    Command,
    /// A run of a project's tests, whose default is the sandbox's own loopback where there is one.
    Tests,
    /// A command whose caller has no argument for the network.
    Fixed,
    /// The installation of a project's dependencies, which gets all that the cap allows.
    Install,
    /// A clone, fetch, pull or push of Carrel's own git.
    GitTransfer,
}

/// A layer that caps the network of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkLayer {
    /// `network_limit` of the policy file.
    Policy,
    /// `--network` of the operator's command line.
    CommandLine,
    /// `agent.network` of the workflow file.
    Agent,
    /// The cap of a server whose operator named none.
    Default,
    /// The network of the workspace.
    Workspace,
    /// The scopes of the token.
    Token,
    /// The network of the task's step.
    Step,
}

/// The network of a command, and the most that the same command could have asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantedNetwork {
    /// The network that it gets.
    pub network: Network,
    /// The cap.
    pub cap: Network,
}

/// A request for more network than a layer allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "network {requested} denied: {} allows {limit} at most; the operator decides",
    layer.subject()
)]
pub struct NetworkDenied {
    /// The network that was requested.
    pub requested: Network,
    /// The cap.
    pub limit: Network,
    /// The layer of the cap.
    pub layer: NetworkLayer,
}

impl Coded for NetworkDenied {
    fn code(&self) -> Code {
        Code::NetworkRefused
    }

    fn detail(&self) -> Value {
        json!({ "requested": self.requested, "limit": self.limit, "layer": self.layer })
    }
}

impl NetworkLayer {
    fn subject(self) -> &'static str {
        match self {
            Self::Policy => "the policy",
            Self::CommandLine => "the command line",
            Self::Agent => "the agent's network",
            Self::Default => "the default",
            Self::Workspace => "the workspace",
            Self::Token => "the token",
            Self::Step => "the step",
        }
    }
}

impl NetworkRequest {
    /// Returns the request of a command that no layer caps but the policy.
    pub fn of(requested: impl Into<Option<Network>>) -> Self {
        Self { requested: requested.into(), ..Self::default() }
    }

    /// Returns the request of an operator, which the policy alone caps.
    pub fn of_operator(typed: Option<Network>) -> Self {
        Self { command_line: typed, ..Self::of(typed) }
    }

    /// Returns the request of a run of tests.
    pub fn of_tests(requested: impl Into<Option<Network>>) -> Self {
        Self { purpose: NetworkPurpose::Tests, ..Self::of(requested) }
    }

    /// Returns the request of a command whose caller has no argument for the network. The layers decide it
    /// if `network` is none.
    pub fn fixed(network: impl Into<Option<Network>>) -> Self {
        Self { purpose: NetworkPurpose::Fixed, ..Self::of(network) }
    }

    /// Returns the request of an installation of dependencies.
    pub fn of_install(requested: impl Into<Option<Network>>) -> Self {
        Self { purpose: NetworkPurpose::Install, ..Self::of(requested) }
    }

    /// Returns the request of a git transfer.
    pub fn of_git_transfer(needed: Network) -> Self {
        Self { purpose: NetworkPurpose::GitTransfer, ..Self::of(needed) }
    }

    /// Adds the layers of `outer`. Where both name a cap, the lower one counts; the own request comes before
    /// that of `outer`.
    #[must_use]
    pub fn within(self, outer: Self) -> Self {
        Self {
            command_line: lower(self.command_line, outer.command_line),
            agent: lower(self.agent, outer.agent),
            workspace: lower(self.workspace, outer.workspace),
            token: lower(self.token, outer.token),
            step: lower(self.step, outer.step),
            requested: self.requested.or(outer.requested),
            purpose: self.purpose,
        }
    }

    /// Decides the network. `tier` is that of the sandbox; none if it is switched off.
    pub fn decide(
        self,
        policy: NetworkPolicy,
        tier: Option<Tier>,
    ) -> Result<GrantedNetwork, NetworkDenied> {
        let (cap, layer) = self.cap(policy, tier);
        let network = match self.requested {
            Some(requested) if requested > cap => {
                return Err(NetworkDenied { requested, limit: cap, layer });
            }
            Some(requested) => requested,
            None => self.unrequested(policy, tier).min(cap),
        };
        let cap = match self.purpose {
            NetworkPurpose::Command | NetworkPurpose::Tests => cap,
            NetworkPurpose::Fixed | NetworkPurpose::Install | NetworkPurpose::GitTransfer => {
                network
            }
        };
        Ok(GrantedNetwork { network, cap })
    }

    /// Returns the lowest cap, and the outermost layer that names it.
    fn cap(self, policy: NetworkPolicy, tier: Option<Tier>) -> (Network, NetworkLayer) {
        let operator = [
            (policy.limit, NetworkLayer::Policy),
            (self.command_line, NetworkLayer::CommandLine),
            (self.agent, NetworkLayer::Agent),
        ];
        let callers = [
            (self.workspace, NetworkLayer::Workspace),
            (self.token, NetworkLayer::Token),
            (self.step, NetworkLayer::Step),
        ];
        let unnamed = match self.purpose {
            NetworkPurpose::Command
            | NetworkPurpose::Tests
            | NetworkPurpose::Fixed
            | NetworkPurpose::Install => unnamed_cap(tier).max(policy.default),
            NetworkPurpose::GitTransfer => Network::Full,
        };
        let outer = lowest(&operator).unwrap_or((unnamed, NetworkLayer::Default));
        let inner = match self.purpose {
            NetworkPurpose::Command
            | NetworkPurpose::Tests
            | NetworkPurpose::Fixed
            | NetworkPurpose::Install => lowest(&callers),
            NetworkPurpose::GitTransfer => None,
        };
        inner.filter(|inner| inner.0 < outer.0).unwrap_or(outer)
    }

    /// Returns the network of a command that requests none, before the cap.
    fn unrequested(self, policy: NetworkPolicy, tier: Option<Tier>) -> Network {
        let named = self.step.or(self.workspace).or(self.command_line).unwrap_or(policy.default);
        match (self.purpose, tier) {
            (NetworkPurpose::Tests, Some(Tier::Full)) => named.max(Network::Loopback),
            (NetworkPurpose::Install, _) => Network::Full,
            _ => named,
        }
    }
}

/// Returns the cap where the operator named none.
fn unnamed_cap(tier: Option<Tier>) -> Network {
    match tier {
        Some(Tier::Full) => Network::Loopback,
        Some(Tier::Landlock) | None => Network::None,
    }
}

fn lowest(caps: &[(Option<Network>, NetworkLayer)]) -> Option<(Network, NetworkLayer)> {
    let named = caps.iter().filter_map(|(cap, layer)| Some(((*cap)?, *layer)));
    named.min_by_key(|(cap, _)| *cap)
}

fn lower(one: Option<Network>, other: Option<Network>) -> Option<Network> {
    [one, other].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Network::{Full, Loopback, None as NoNetwork};

    const NAMED: [Option<Network>; 4] = [None, Some(NoNetwork), Some(Loopback), Some(Full)];
    const TIERS: [Option<Tier>; 3] = [None, Some(Tier::Landlock), Some(Tier::Full)];

    /// Calls `check` with every combination of policy, tier, layers and request.
    fn each(mut check: impl FnMut(NetworkPolicy, Option<Tier>, NetworkRequest)) {
        let policies = NAMED.iter().flat_map(|limit| {
            [NoNetwork, Loopback, Full]
                .map(|default| NetworkPolicy { default, limit: *limit })
                .into_iter()
                // A file with a default above its limit is refused when it is read.
                .filter(|policy| policy.limit.is_none_or(|limit| policy.default <= limit))
        });
        for policy in policies {
            for tier in TIERS {
                for number in 0..NAMED.len().pow(6) {
                    let named = |place: u32| NAMED[number / NAMED.len().pow(place) % NAMED.len()];
                    let request = NetworkRequest {
                        command_line: named(0),
                        agent: named(1),
                        workspace: named(2),
                        token: named(3),
                        step: named(4),
                        requested: named(5),
                        purpose: NetworkPurpose::Command,
                    };
                    check(policy, tier, request);
                }
            }
        }
    }

    #[test]
    fn no_combination_of_layers_gives_more_than_any_of_them() {
        each(|policy, tier, request| {
            let NetworkRequest { command_line, agent, workspace, token, step, .. } = request;
            let operator = [policy.limit, command_line, agent];
            let by_tier = if tier == Some(Tier::Full) { Loopback } else { NoNetwork };
            let unnamed = operator.iter().all(Option::is_none);
            let default = unnamed.then_some(by_tier.max(policy.default));
            let caps = [operator.as_slice(), &[workspace, token, step, default]].concat();
            let cap = caps.into_iter().flatten().min().unwrap();
            let about = format!("{policy:?} {tier:?} {request:?}");
            match request.decide(policy, tier) {
                Ok(granted) => {
                    assert_eq!(granted.cap, cap, "{about}");
                    assert!(granted.network <= cap, "{about}");
                    let asked = request.requested;
                    assert!(asked.is_none_or(|asked| asked == granted.network), "{about}");
                }
                Err(denied) => {
                    assert!(request.requested.is_some_and(|asked| asked > cap), "{about}");
                    assert_eq!((denied.requested, denied.limit), (request.requested.unwrap(), cap));
                }
            }
        });
    }

    #[test]
    fn another_layer_never_raises_what_a_caller_gets() {
        let order = |granted: Result<GrantedNetwork, NetworkDenied>| granted.map(|one| one.cap);
        each(|policy, tier, request| {
            for layer in [NoNetwork, Loopback, Full].map(Some) {
                for narrower in [
                    NetworkRequest { workspace: layer, ..NetworkRequest::default() },
                    NetworkRequest { token: layer, ..NetworkRequest::default() },
                    NetworkRequest { step: layer, ..NetworkRequest::default() },
                ] {
                    let (before, after) = (
                        request.decide(policy, tier),
                        request.within(narrower).decide(policy, tier),
                    );
                    match (order(before), order(after)) {
                        (Ok(before), Ok(after)) => assert!(after <= before),
                        (Err(_), after) => assert!(after.is_err()),
                        (Ok(_), Err(_)) => {}
                    }
                }
            }
        });
    }

    #[test]
    fn the_table_of_layers_holds() {
        let file = |default, limit| NetworkPolicy { default, limit };
        let none = NetworkPolicy::default();
        let typed = |network| NetworkRequest { command_line: Some(network), ..Default::default() };
        let in_workspace =
            |network| NetworkRequest { workspace: Some(network), ..Default::default() };
        let ask =
            |request: NetworkRequest, asked| NetworkRequest { requested: Some(asked), ..request };
        let (full, landlock) = (Some(Tier::Full), Some(Tier::Landlock));
        let nothing = NetworkRequest::default();
        let cases = [
            // Without a policy file and without an option.
            (none, full, nothing, Ok(NoNetwork)),
            (none, full, ask(nothing, Loopback), Ok(Loopback)),
            (none, full, ask(nothing, Full), Err((Loopback, NetworkLayer::Default))),
            (none, landlock, nothing, Ok(NoNetwork)),
            (none, landlock, ask(nothing, Loopback), Err((NoNetwork, NetworkLayer::Default))),
            (none, landlock, ask(nothing, Full), Err((NoNetwork, NetworkLayer::Default))),
            (none, None, ask(nothing, Full), Err((NoNetwork, NetworkLayer::Default))),
            // The operator's command line.
            (none, full, ask(typed(NoNetwork), Full), Err((NoNetwork, NetworkLayer::CommandLine))),
            (none, full, ask(typed(Loopback), Full), Err((Loopback, NetworkLayer::CommandLine))),
            (none, landlock, ask(typed(Full), Full), Ok(Full)),
            (none, full, typed(Full), Ok(Full)),
            (none, full, ask(typed(Full), NoNetwork), Ok(NoNetwork)),
            // A policy file.
            (file(NoNetwork, Some(Full)), full, ask(nothing, Full), Ok(Full)),
            (file(Full, None), landlock, nothing, Ok(Full)),
            (
                file(Loopback, None),
                full,
                ask(nothing, Full),
                Err((Loopback, NetworkLayer::Default)),
            ),
            (
                file(NoNetwork, Some(Loopback)),
                full,
                ask(typed(Full), Full),
                Err((Loopback, NetworkLayer::Policy)),
            ),
            (file(Full, None), full, typed(NoNetwork), Ok(NoNetwork)),
            // A workspace's network narrows, and does not open what the operator did not.
            (none, full, in_workspace(Full), Ok(Loopback)),
            (none, full, ask(in_workspace(Full), Full), Err((Loopback, NetworkLayer::Default))),
            (
                file(NoNetwork, Some(Full)),
                full,
                ask(in_workspace(Loopback), Full),
                Err((Loopback, NetworkLayer::Workspace)),
            ),
        ];
        for (policy, tier, request, expected) in cases {
            let decided = request.decide(policy, tier);
            let decided = decided.map(|granted| granted.network);
            let decided = decided.map_err(|denied| (denied.limit, denied.layer));
            assert_eq!(decided, expected, "{policy:?} {tier:?} {request:?}");
        }
    }

    #[test]
    fn tests_have_the_loopback_of_tier_full_by_default_and_never_more_than_the_cap() {
        each(|policy, tier, request| {
            let tests = NetworkRequest { purpose: NetworkPurpose::Tests, ..request };
            let (command, tests) = (request.decide(policy, tier), tests.decide(policy, tier));
            let expected = command.map(|granted| match (request.requested, tier) {
                (None, Some(Tier::Full)) => GrantedNetwork {
                    network: granted.network.max(Loopback.min(granted.cap)),
                    ..granted
                },
                _ => granted,
            });
            assert_eq!(tests, expected, "{policy:?} {tier:?} {request:?}");
        });
        let full = Some(Tier::Full);
        let of = |request: NetworkRequest| request.decide(NetworkPolicy::default(), full);
        let network = |request| of(request).map(|granted| granted.network);
        let typed = |network| NetworkRequest { command_line: network, ..Default::default() };
        let tests = NetworkRequest::of_tests(None);
        assert_eq!(network(tests), Ok(Loopback));
        assert_eq!(network(tests.within(typed(Some(NoNetwork)))), Ok(NoNetwork));
        assert_eq!(network(tests.within(typed(Some(Full)))), Ok(Full));
        assert_eq!(network(NetworkRequest::of_tests(NoNetwork)), Ok(NoNetwork));
    }

    #[test]
    fn an_installation_gets_the_cap_and_never_more() {
        each(|policy, tier, request| {
            let install = NetworkRequest { purpose: NetworkPurpose::Install, ..request };
            let expected = request.decide(policy, tier).map(|granted| {
                let network = request.requested.unwrap_or(granted.cap);
                GrantedNetwork { network, cap: network }
            });
            assert_eq!(install.decide(policy, tier), expected, "{policy:?} {tier:?} {request:?}");
        });
    }

    #[test]
    fn a_command_without_an_argument_for_the_network_could_not_have_had_more() {
        each(|policy, tier, request| {
            let fixed = NetworkRequest { purpose: NetworkPurpose::Fixed, ..request };
            let expected = request
                .decide(policy, tier)
                .map(|granted| GrantedNetwork { cap: granted.network, ..granted });
            assert_eq!(fixed.decide(policy, tier), expected, "{policy:?} {tier:?} {request:?}");
        });
    }

    #[test]
    fn a_git_transfer_is_capped_by_the_operator_alone() {
        let transfer = NetworkRequest::of_git_transfer(Full);
        let narrow = NetworkRequest {
            workspace: Some(NoNetwork),
            token: Some(NoNetwork),
            step: Some(NoNetwork),
            ..NetworkRequest::default()
        };
        let allowed = transfer.within(narrow).decide(NetworkPolicy::default(), Some(Tier::Full));
        assert_eq!(allowed.map(|granted| granted.network), Ok(Full));
        let limited = NetworkPolicy { limit: Some(Loopback), ..NetworkPolicy::default() };
        let caps = [
            (NetworkPolicy::default(), NetworkRequest::of_operator(Some(NoNetwork))),
            (
                NetworkPolicy::default(),
                NetworkRequest { agent: Some(Loopback), ..Default::default() },
            ),
            (limited, NetworkRequest::default()),
        ];
        for (policy, outer) in caps {
            let denied = transfer.within(outer).decide(policy, Some(Tier::Full));
            assert!(denied.is_err(), "{policy:?} {outer:?}");
        }
    }

    #[test]
    fn a_denial_says_that_the_operator_decides_and_suggests_nothing() {
        let request = NetworkRequest::of(Full);
        let denied = request.decide(NetworkPolicy::default(), Some(Tier::Full)).unwrap_err();
        assert_eq!(
            denied.to_string(),
            "network full denied: the default allows loopback at most; the operator decides"
        );
        assert_eq!(
            denied.detail(),
            json!({ "requested": "full", "limit": "loopback", "layer": "default" })
        );
    }
}
