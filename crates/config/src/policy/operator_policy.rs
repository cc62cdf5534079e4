//! The operator's policy: defaults applied, ranges checked, paths absolute.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use carrel_domain::{Network, NetworkPolicy, ResourceLimits, Tier, UnknownPolicyValue};

use super::language_servers::LanguageServerPolicy;
use super::policy_error::PolicyError;
use super::policy_file;
use super::policy_keys as keys;
use super::policy_paths::PathUse;
use super::policy_reader::PolicyReader;
use super::snapshot_policy::SnapshotPolicy;
use super::toolchain::{self, DetectedToolchains, Toolchain};
use super::uid_range::UidRange;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use crate::settings::choices;
use crate::toml_tree;

const DEFAULT_WALL_LIMIT: Duration = Duration::from_hours(1);

const DEFAULT_FORK_IDLE: Duration = Duration::from_hours(1);

/// The operator's limits for sandboxed commands, documented key by key in `docs/policy.md`.
///
/// `network` is at most `network_limit` where that is written, and `limits.wall` at most `wall_limit`. Paths are absolute, and their links
/// were checked against the directories that no command may have; a path that does not exist is to be skipped when a
/// command starts. The default is the policy of a machine without a file.
#[expect(missing_docs, reason = "the fields are keys of the reference page")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorPolicy {
    pub tier: TierChoice,
    pub network: Network,
    pub network_limit: Option<Network>,
    pub readable: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    /// Directories for the front of `PATH`, readable too; without a colon.
    pub path: Vec<PathBuf>,
    pub toolchains: ToolchainChoice,
    pub trust: Trust,
    /// Variables for every command; never one that Carrel sets itself or withholds.
    pub environment: Environment,
    pub limits: ResourceLimits,
    pub wall_limit: Duration,
    pub uids: UidRange,
    pub language_servers: LanguageServerPolicy,
    pub snapshots: SnapshotPolicy,
    /// The time without a use after which a fork is ended; zero for never.
    pub fork_idle: Duration,
}

/// The required strength of the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TierChoice {
    /// The strongest tier that this machine supports.
    #[default]
    Auto,
    /// This tier; where it is not supported, no command runs.
    Only(Tier),
}

impl FromStr for TierChoice {
    type Err = UnknownPolicyValue;

    fn from_str(text: &str) -> Result<Self, UnknownPolicyValue> {
        if text == "auto" { Ok(Self::Auto) } else { text.parse().map(Self::Only) }
    }
}

/// The toolchains that commands may read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolchainChoice {
    #[default]
    /// Every toolchain of the table that is detected.
    Auto,
    /// These, as far as they are detected.
    Only(Vec<&'static Toolchain>),
}

choices! {
    /// The reaction of the trust check to a file that would later run outside the sandbox and was changed by a
    /// command.
    #[derive(Default)]
    Trust {
        #[default]
        Restore = "restore",
        Report = "report",
    }
}

impl Default for OperatorPolicy {
    fn default() -> Self {
        Self {
            tier: TierChoice::Auto,
            network: Network::None,
            network_limit: None,
            readable: Vec::new(),
            writable: Vec::new(),
            path: Vec::new(),
            toolchains: ToolchainChoice::Auto,
            trust: Trust::Restore,
            environment: Environment::default(),
            limits: ResourceLimits::default(),
            wall_limit: DEFAULT_WALL_LIMIT,
            uids: UidRange::default(),
            language_servers: LanguageServerPolicy::default(),
            snapshots: SnapshotPolicy::default(),
            fork_idle: DEFAULT_FORK_IDLE,
        }
    }
}

impl OperatorPolicy {
    /// Parses the bytes of a policy file and returns the policy with its warnings. `file` names the file in
    /// messages. The paths that the policy lists are resolved, never opened.
    pub fn parse(
        bytes: &[u8],
        file: &Path,
        environment: &Environment,
    ) -> Result<(Self, Vec<Diagnostic>), PolicyError> {
        Self::parse_protecting(bytes, file, environment, &[file])
    }

    /// As `parse`, with the files that no command may change.
    pub(super) fn parse_protecting(
        bytes: &[u8],
        file: &Path,
        environment: &Environment,
        protected: &[&Path],
    ) -> Result<(Self, Vec<Diagnostic>), PolicyError> {
        let faulty = |problems| PolicyError::Faulty { file: file.to_owned(), problems };
        let text = policy_file::decode(bytes).map_err(|diagnostic| faulty(vec![diagnostic]))?;
        let map = toml_tree::parse(text).map_err(faulty)?;
        let mut reader = PolicyReader::new(&map, environment, protected);
        let policy = Self::read(&mut reader);
        let (problems, warnings) = reader.finish();
        if problems.is_empty() { Ok((policy, warnings)) } else { Err(faulty(problems)) }
    }

    /// Reads every setting. The result is valid only if the reader has no problems.
    fn read(reader: &mut PolicyReader<'_>) -> Self {
        let default = Self::default();
        let (network, network_limit) = read_networks(reader, &default);
        let (limits, wall_limit) = read_limits(reader, &default);
        let language_servers = LanguageServerPolicy::read(reader);
        let mut readable = reader.paths(&keys::READABLE, PathUse::Read);
        readable.extend(language_servers.programs.iter().cloned());
        Self {
            tier: reader.settings.choice(&keys::TIER, |word| word.parse().ok()).unwrap_or_default(),
            network,
            network_limit,
            readable,
            writable: reader.paths(&keys::WRITABLE, PathUse::Write),
            path: reader.paths(&keys::PATH, PathUse::Search),
            toolchains: reader.toolchains(&keys::TOOLCHAINS).unwrap_or_default(),
            trust: reader.settings.choice(&keys::TRUST, Trust::parse).unwrap_or_default(),
            environment: reader.variables(&keys::ENVIRONMENT),
            limits,
            wall_limit,
            uids: UidRange::read(reader),
            language_servers,
            snapshots: SnapshotPolicy::read(reader),
            fork_idle: reader.settings.time_or_off(&keys::FORKS_IDLE),
        }
    }

    /// Returns the settings about networks.
    pub fn networks(&self) -> NetworkPolicy {
        NetworkPolicy { default: self.network, limit: self.network_limit }
    }

    /// Detects the operator's toolchains that the policy shares, by the existence of their directories. Files
    /// that may hold credentials are not opened.
    pub fn detect_toolchains(&self, environment: &Environment) -> DetectedToolchains {
        match &self.toolchains {
            ToolchainChoice::Auto => {
                let all: Vec<_> = toolchain::TOOLCHAINS.iter().collect();
                let mut detected = toolchain::detect(&all, environment);
                // `auto` promises none of them, so none is missing.
                detected.missing.clear();
                detected
            }
            ToolchainChoice::Only(chosen) => toolchain::detect(chosen, environment),
        }
    }
}

fn read_networks(
    reader: &mut PolicyReader<'_>,
    default: &OperatorPolicy,
) -> (Network, Option<Network>) {
    let network = reader.settings.choice(&keys::NETWORK, |word| word.parse().ok());
    let limit = reader.settings.choice(&keys::NETWORK_LIMIT, |word| word.parse().ok());
    let network = network.unwrap_or(default.network);
    if let Some(limit) = limit.filter(|limit| network > *limit) {
        let complaint = format!(
            "is \"{network}\" and more than network_limit, \"{limit}\"; lower the one or raise the other"
        );
        reader.contradiction(&[&keys::NETWORK, &keys::NETWORK_LIMIT], &complaint);
    }
    (network, limit)
}

fn read_limits(
    reader: &mut PolicyReader<'_>,
    default: &OperatorPolicy,
) -> (ResourceLimits, Duration) {
    let OperatorPolicy { limits: default, wall_limit, .. } = default;
    let limits = ResourceLimits {
        wall: reader.settings.time(&keys::LIMIT_WALL).unwrap_or(default.wall),
        cpu: reader.settings.time(&keys::LIMIT_CPU).unwrap_or(default.cpu),
        memory: reader.settings.size(&keys::LIMIT_MEMORY).unwrap_or(default.memory),
        session_memory: reader
            .settings
            .size(&keys::LIMIT_SESSION_MEMORY)
            .unwrap_or(default.session_memory),
        processes: reader.settings.count(&keys::LIMIT_PROCESSES).unwrap_or(default.processes),
        file_size: reader.settings.size(&keys::LIMIT_FILE_SIZE).unwrap_or(default.file_size),
        open_files: reader.settings.count(&keys::LIMIT_OPEN_FILES).unwrap_or(default.open_files),
        log: reader.settings.size(&keys::LIMIT_LOG).unwrap_or(default.log),
    };
    let is_written = reader.settings.written(&keys::LIMIT_WALL_LIMIT).is_some();
    let written = reader.settings.time(&keys::LIMIT_WALL_LIMIT).filter(|_| is_written);
    if written.is_some_and(|limit| limit < limits.wall) {
        let complaint = format!(
            "is less than limits.wall, \"{}s\"; raise the one or lower the other",
            limits.wall.as_secs()
        );
        reader.contradiction(&[&keys::LIMIT_WALL_LIMIT], &complaint);
    }
    (limits, written.unwrap_or((*wall_limit).max(limits.wall)))
}
