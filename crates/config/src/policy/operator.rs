//! The resolved policy: defaults applied, ranges checked, paths absolute.

use std::path::{Path, PathBuf};
use std::time::Duration;

use carrel_domain::{Code, Coded, Network, ResourceLimits, Tier};

use super::document::Document;
use super::error::PolicyError;
use super::file;
use super::keys;
use super::paths::Use;
use super::reader::Reader;
use super::toolchain::{self, DetectedToolchains, Toolchain};
use super::uids::UidRange;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;

/// The longest deadline that a request may ask for when the file does not say.
const DEFAULT_WALL_LIMIT: Duration = Duration::from_hours(1);

/// What the operator allows sandboxed commands to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorPolicy {
    /// Which walls must stand.
    pub tier: TierChoice,
    /// What a command reaches when its request does not say.
    pub network: Network,
    /// The most that a request may ask for; at least `network`.
    pub network_limit: Network,
    /// More that commands may read. Absolute; what does not exist is to be skipped.
    pub readable: Vec<PathBuf>,
    /// More that commands may change. Absolute; what does not exist is to be skipped.
    pub writable: Vec<PathBuf>,
    /// More directories for the front of `PATH`, readable too. Absolute and without a
    /// colon; what does not exist is to be skipped.
    pub path: Vec<PathBuf>,
    /// Which toolchains commands may read.
    pub toolchains: ToolchainChoice,
    /// What happens when a command changes files that run later, outside.
    pub trust: Trust,
    /// Variables for every command; none that Carrel sets itself or keeps from commands.
    pub environment: Environment,
    /// What one command may use.
    pub limits: ResourceLimits,
    /// The longest deadline that a request may ask for; at least `limits.wall`.
    pub wall_limit: Duration,
    /// The user ids of commands when Carrel runs as root.
    pub uids: UidRange,
}

/// Which walls must stand around a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TierChoice {
    /// The most that this machine offers.
    #[default]
    Auto,
    /// This tier, or nothing runs.
    Only(Tier),
}

/// Which toolchains commands may read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolchainChoice {
    /// All that are found.
    #[default]
    Auto,
    /// These, as far as they are found.
    Only(Vec<&'static Toolchain>),
}

/// What happens when a command changes a file that would later run outside the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// It is put back, and reported.
    #[default]
    Restore,
    /// It is reported.
    Report,
}

impl Default for OperatorPolicy {
    fn default() -> Self {
        Self {
            tier: TierChoice::Auto,
            network: Network::None,
            network_limit: Network::Full,
            readable: Vec::new(),
            writable: Vec::new(),
            path: Vec::new(),
            toolchains: ToolchainChoice::Auto,
            trust: Trust::Restore,
            environment: Environment::default(),
            limits: ResourceLimits::default(),
            wall_limit: DEFAULT_WALL_LIMIT,
            uids: UidRange::default(),
        }
    }
}

/// A request asked for more of the network than the operator allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "network {asked} is more than the operator allows; ask for {limit}, or set network_limit = \"{asked}\" in policy.toml"
)]
pub struct NetworkLimitExceeded {
    /// What was asked for.
    pub asked: Network,
    /// The most that is allowed.
    pub limit: Network,
}

impl Coded for NetworkLimitExceeded {
    fn code(&self) -> Code {
        Code::NetworkRefused
    }
}

impl OperatorPolicy {
    /// Checks the bytes of a policy file, and returns what it says with what is doubtful about it.
    ///
    /// `file` names the file in messages. The paths that it lists are looked at, never opened.
    pub fn parse(
        bytes: &[u8],
        file: &Path,
        environment: &Environment,
    ) -> Result<(Self, Vec<Diagnostic>), PolicyError> {
        Self::parse_protecting(bytes, file, environment, &[file])
    }

    /// As `parse`; `protected` are the files that no command may change.
    pub(super) fn parse_protecting(
        bytes: &[u8],
        file: &Path,
        environment: &Environment,
        protected: &[&Path],
    ) -> Result<(Self, Vec<Diagnostic>), PolicyError> {
        let faulty = |problems| PolicyError::Faulty { file: file.to_owned(), problems };
        let text = file::decode(bytes).map_err(|diagnostic| faulty(vec![diagnostic]))?;
        let document = Document::parse(text).map_err(faulty)?;
        let mut reader = Reader::new(&document, environment, protected);
        let policy = Self::read(&mut reader);
        let (problems, warnings) = reader.finish();
        if problems.is_empty() { Ok((policy, warnings)) } else { Err(faulty(problems)) }
    }

    /// Reads every setting. The result counts only if the reader has no problem.
    fn read(reader: &mut Reader<'_>) -> Self {
        let default = Self::default();
        let (network, network_limit) = read_networks(reader, &default);
        let (limits, wall_limit) = read_limits(reader, &default);
        Self {
            tier: reader.choice(&keys::TIER, tier).unwrap_or_default(),
            network,
            network_limit,
            readable: reader.paths(&keys::READABLE, Use::Read),
            writable: reader.paths(&keys::WRITABLE, Use::Write),
            path: reader.paths(&keys::PATH, Use::Search),
            toolchains: reader.toolchains(&keys::TOOLCHAINS).unwrap_or_default(),
            trust: reader.choice(&keys::TRUST, trust).unwrap_or_default(),
            environment: reader.variables(&keys::ENVIRONMENT),
            limits,
            wall_limit,
            uids: UidRange::read(reader),
        }
    }

    /// Returns the network of a command whose request asked for this, or for nothing.
    pub fn network_for(&self, asked: Option<Network>) -> Result<Network, NetworkLimitExceeded> {
        let network = asked.unwrap_or(self.network);
        if network > self.network_limit {
            return Err(NetworkLimitExceeded { asked: network, limit: self.network_limit });
        }
        Ok(network)
    }

    /// Looks for the operator's toolchains that the policy shares. Only looks whether they
    /// exist, and never at files that may hold credentials.
    pub fn detect_toolchains(&self, environment: &Environment) -> DetectedToolchains {
        match &self.toolchains {
            ToolchainChoice::Auto => {
                let all: Vec<_> = toolchain::TOOLCHAINS.iter().collect();
                let mut found = toolchain::find(&all, environment);
                // Nobody said that all of them are here.
                found.missing.clear();
                found
            }
            ToolchainChoice::Only(chosen) => toolchain::find(chosen, environment),
        }
    }
}

fn tier(word: &str) -> Option<TierChoice> {
    if word == "auto" {
        return Some(TierChoice::Auto);
    }
    word.parse().ok().map(TierChoice::Only)
}

fn trust(word: &str) -> Option<Trust> {
    match word {
        "restore" => Some(Trust::Restore),
        "report" => Some(Trust::Report),
        _ => None,
    }
}

fn read_networks(reader: &mut Reader<'_>, default: &OperatorPolicy) -> (Network, Network) {
    let network = reader.choice(&keys::NETWORK, |word| word.parse().ok());
    let limit = reader.choice(&keys::NETWORK_LIMIT, |word| word.parse().ok());
    let (network, limit) =
        (network.unwrap_or(default.network), limit.unwrap_or(default.network_limit));
    if network > limit {
        let complaint = format!(
            "is \"{network}\" and more than network_limit, \"{limit}\"; lower the one or raise the other"
        );
        reader.contradiction(&[&keys::NETWORK, &keys::NETWORK_LIMIT], &complaint);
    }
    (network, limit)
}

fn read_limits(reader: &mut Reader<'_>, default: &OperatorPolicy) -> (ResourceLimits, Duration) {
    let OperatorPolicy { limits: default, wall_limit, .. } = default;
    let limits = ResourceLimits {
        wall: reader.time(&keys::LIMIT_WALL).unwrap_or(default.wall),
        cpu: reader.time(&keys::LIMIT_CPU).unwrap_or(default.cpu),
        memory: reader.size(&keys::LIMIT_MEMORY).unwrap_or(default.memory),
        processes: reader.count(&keys::LIMIT_PROCESSES).unwrap_or(default.processes),
        file_size: reader.size(&keys::LIMIT_FILE_SIZE).unwrap_or(default.file_size),
        open_files: reader.count(&keys::LIMIT_OPEN_FILES).unwrap_or(default.open_files),
        log: reader.size(&keys::LIMIT_LOG).unwrap_or(default.log),
    };
    let written = reader.time(&keys::LIMIT_WALL_LIMIT);
    if written.is_some_and(|limit| limit < limits.wall) {
        let complaint = format!(
            "is less than limits.wall, \"{}s\"; raise the one or lower the other",
            limits.wall.as_secs()
        );
        reader.contradiction(&[&keys::LIMIT_WALL_LIMIT], &complaint);
    }
    (limits, written.unwrap_or((*wall_limit).max(limits.wall)))
}
