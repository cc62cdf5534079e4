//! The messages between server, spawner, cells and inits.
//!
//! ```text
//! server ──Request──► spawner or cell     start a command, make a cell, mount an overlay, kill an init
//! server ──Order────► init                stop, kill
//! init   ──Report───► server              started, failed, ended; also from a new cell: ready, failed;
//!                                         and from a process that mounts an overlay: mounted, failed
//! ```
//!
//! Each message is one packet of a `SOCK_SEQPACKET` socket, with its descriptors in a fixed order. Both
//! ends are the same binary, so there is no version. Reports and orders are JSON. A request is a JSON
//! header followed by arguments and variables, which are bytes and need not be text, each after a NUL,
//! which neither side contains. A request over 64 KiB travels as an anonymous memory file in the last
//! descriptor.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use carrel_domain::exact_path;
use carrel_sandbox::{
    DeniedCall, NetworkNamespace, OverlayDirectories, OverlayNamespaces, OverlayPlan, Plan,
    SetupError, Usage,
};
use serde::{Deserialize, Serialize};

use crate::command_spec::{Limits, SampledLimits};
use crate::memory_file;
use crate::outcome::{ExceededLimit, ExitStatus};
use crate::socket::Packet;
use crate::terminal::TerminalSize;

/// The largest request that travels inside a packet; a larger one travels as a file in memory.
pub(crate) const MAX_INLINE_BYTES: usize = 64 << 10;

pub(crate) const MAX_CONTROL_BYTES: usize = 4 << 10;

/// The payload of a packet whose request is in its last descriptor. No JSON header begins so.
const IN_FILE: &[u8] = b"@";

/// A message from the server to the spawner or a cell.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    Start(Box<Start>),
    Cell(Box<MakeCell>),
    Overlay(Box<MountOverlay>),
    /// Kill the init or the cell of the request with this number.
    Kill {
        number: u64,
    },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MakeCell {
    pub(crate) number: u64,
    /// Sent without the standard seccomp filter, which the receiver adds.
    pub(crate) plan: Plan,
    pub(crate) shares_network: bool,
    pub(crate) shows_overlay: bool,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MountOverlay {
    pub(crate) number: u64,
    pub(crate) plan: OverlayPlan,
}

/// The descriptors of a cell to make. `T` is owned by a receiver and borrowed by a sender.
#[derive(Debug)]
pub(crate) struct CellDescriptors<T> {
    pub(crate) control: T,
    pub(crate) requests: T,
    pub(crate) workspace: T,
    pub(crate) scratch: T,
    /// Sent only if it shares the network of another cell.
    pub(crate) companion: Option<NetworkNamespace<T>>,
    /// Sent only if the workspace is an overlay.
    pub(crate) overlay: Option<CellOverlay<T>>,
}

/// The overlay that a cell shows.
#[derive(Debug)]
pub(crate) struct CellOverlay<T> {
    pub(crate) namespaces: OverlayNamespaces<T>,
    /// The lock of its layers.
    pub(crate) lock: T,
}

/// The descriptors of an overlay to mount.
#[derive(Debug)]
pub(crate) struct OverlayDescriptors<T> {
    pub(crate) control: T,
    pub(crate) directories: OverlayDirectories<T>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Start {
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) options: StartOptions,
}

/// The options of a command in the JSON header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StartOptions {
    pub(crate) number: u64,
    /// The working directory in a cell; none for a command of the host.
    pub(crate) inside: Option<CellPath>,
    pub(crate) grace: Duration,
    pub(crate) limits: Limits,
    pub(crate) sampled: SampledLimits,
    /// The size of its terminal, if it has one instead of pipes.
    pub(crate) terminal: Option<TerminalSize>,
    /// The number of descriptors that stay with the init.
    pub(crate) held: usize,
    /// The number of descriptors that are control group files.
    pub(crate) cgroups: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CellPath(#[serde(with = "exact_path")] pub(crate) PathBuf);

/// The descriptors of a command to start. `T` is owned by a receiver and borrowed by a sender.
#[derive(Debug)]
pub(crate) struct Descriptors<T> {
    pub(crate) control: T,
    /// None until the init has opened the command's terminal.
    pub(crate) standard: Option<Standard<T>>,
    /// Not sent for a command of a cell: the cell opens it, or the command enters it by its path.
    pub(crate) directory: Option<T>,
    pub(crate) inherited: Vec<T>,
    pub(crate) cgroups: Vec<T>,
    pub(crate) held: Vec<T>,
}

#[derive(Debug)]
pub(crate) struct Standard<T> {
    pub(crate) stdin: T,
    pub(crate) stdout: T,
    pub(crate) stderr: T,
}

impl<T> Standard<T> {
    pub(crate) fn in_order(&self) -> [&T; 3] {
        [&self.stdin, &self.stdout, &self.stderr]
    }
}

/// A message from an init or a new cell to the server.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The program runs, under this process id of its own namespace. Carries both ends of its terminal,
    /// the near one first.
    Started {
        pid: i32,
    },
    Failed {
        step: Step,
        errno: i32,
    },
    /// The program and everything it started has ended.
    Ended {
        end: ExitStatus,
        cost: Usage,
        left_running: usize,
        refused: Vec<DeniedCall>,
        excess: Option<ExceededLimit>,
    },
    /// Carries the user and network namespaces of a cell whose network others can share.
    CellReady,
    CellFailed(SetupError),
    /// Carries the root of the merged tree, the user namespace and the mount namespace.
    OverlayMounted,
    OverlayFailed(SetupError),
}

/// The step at which starting a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    Fork,
    Terminal,
    Prepare,
    Directory,
    Confine,
    Execute,
}

/// A message from the server to an init.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// End the tree: `SIGTERM`, the grace period, `SIGKILL`.
    Stop,
    Kill,
}

#[derive(Serialize, Deserialize)]
enum Header {
    Start { arguments: usize, options: Box<StartOptions> },
    Cell(Box<MakeCell>),
    Overlay(Box<MountOverlay>),
    Kill { number: u64 },
}

#[derive(Serialize)]
enum HeaderRef<'a> {
    Start { arguments: usize, options: &'a StartOptions },
    Cell(&'a MakeCell),
    Overlay(&'a MountOverlay),
}

impl Request {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Kill { number } => to_json(&Header::Kill { number: *number }),
            Self::Cell(cell) => to_json(&HeaderRef::Cell(cell)),
            Self::Overlay(overlay) => to_json(&HeaderRef::Overlay(overlay)),
            Self::Start(start) => start.encode(),
        }
    }

    /// Returns the payload, and the file with the request if it is too long for a packet.
    pub(crate) fn into_payload(self) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
        let bytes = self.encode();
        if bytes.len() <= MAX_INLINE_BYTES {
            return Ok((bytes, None));
        }
        Ok((IN_FILE.to_vec(), Some(memory_file::holding(&bytes)?)))
    }

    /// Returns whether the request is in the payload.
    pub(crate) fn is_inline(packet: &Packet) -> bool {
        packet.payload != IN_FILE
    }

    /// Decodes the request of a packet, and leaves the other descriptors in it.
    pub(crate) fn from_packet(packet: &mut Packet) -> io::Result<Self> {
        if packet.payload != IN_FILE {
            return Self::decode(&packet.payload);
        }
        let mut bytes = Vec::new();
        File::from(packet.descriptors.pop().ok_or_else(malformed)?).read_to_end(&mut bytes)?;
        Self::decode(&bytes)
    }

    pub(crate) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let mut parts = bytes.split(|byte| *byte == 0);
        match serde_json::from_slice(parts.next().unwrap_or_default())? {
            Header::Kill { number } => Ok(Self::Kill { number }),
            Header::Cell(mut cell) => {
                cell.plan = cell.plan.with_standard_filter();
                Ok(Self::Cell(cell))
            }
            Header::Overlay(overlay) => Ok(Self::Overlay(overlay)),
            Header::Start { arguments, options } => {
                let mut strings = parts.map(|part| OsString::from_vec(part.to_vec()));
                let argv = strings.by_ref().take(arguments).collect();
                let mut environment = Vec::new();
                while let (Some(name), Some(value)) = (strings.next(), strings.next()) {
                    environment.push((name, value));
                }
                Ok(Self::Start(Box::new(Start { argv, environment, options: *options })))
            }
        }
    }
}

impl Start {
    fn encode(&self) -> Vec<u8> {
        let header = HeaderRef::Start { arguments: self.argv.len(), options: &self.options };
        let mut bytes = to_json(&header);
        let variables = self.environment.iter().flat_map(|(name, value)| [name, value]);
        for string in self.argv.iter().chain(variables) {
            bytes.push(0);
            bytes.extend_from_slice(string.as_bytes());
        }
        bytes
    }
}

impl Descriptors<OwnedFd> {
    /// Takes the descriptors in the order in which [`Descriptors::in_order`] sends them.
    pub(crate) fn from_received(
        received: Vec<OwnedFd>,
        options: &StartOptions,
    ) -> io::Result<Self> {
        let mut received = received;
        let held = split_off(&mut received, options.held)?;
        let cgroups = split_off(&mut received, options.cgroups)?;
        let mut rest = received.into_iter();
        let mut next = || rest.next().ok_or_else(malformed);
        Ok(Self {
            control: next()?,
            standard: match options.terminal {
                None => Some(Standard { stdin: next()?, stdout: next()?, stderr: next()? }),
                Some(_) => None,
            },
            directory: if options.inside.is_none() { Some(next()?) } else { None },
            inherited: rest.collect(),
            cgroups,
            held,
        })
    }

    /// Closes the command's own descriptors. Returns the control socket and the descriptors that
    /// are held until the last process has ended.
    pub(crate) fn into_supervised(self) -> (OwnedFd, Vec<OwnedFd>) {
        let Self { control, standard, directory, inherited, cgroups, held } = self;
        drop((standard, directory, inherited, cgroups));
        (control, held)
    }
}

fn split_off(received: &mut Vec<OwnedFd>, count: usize) -> io::Result<Vec<OwnedFd>> {
    let first = received.len().checked_sub(count).ok_or_else(malformed)?;
    Ok(received.split_off(first))
}

impl<T: AsFd> Descriptors<T> {
    /// Returns the descriptors in the order in which they are sent.
    pub(crate) fn in_order(&self) -> Vec<BorrowedFd<'_>> {
        [&self.control]
            .into_iter()
            .chain(self.standard.iter().flat_map(Standard::in_order))
            .chain(&self.directory)
            .chain(&self.inherited)
            .chain(&self.cgroups)
            .chain(&self.held)
            .map(AsFd::as_fd)
            .collect()
    }
}

impl CellDescriptors<OwnedFd> {
    /// Takes the descriptors in the order in which [`CellDescriptors::in_order`] sends them.
    pub(crate) fn from_received(received: Vec<OwnedFd>, make: &MakeCell) -> io::Result<Self> {
        let mut received = received.into_iter();
        let mut next = || received.next().ok_or_else(malformed);
        let (control, requests, workspace, scratch) = (next()?, next()?, next()?, next()?);
        let companion = if make.shares_network {
            Some(NetworkNamespace { users: next()?, network: next()? })
        } else {
            None
        };
        let overlay = if make.shows_overlay {
            let namespaces = OverlayNamespaces { users: next()?, mounts: next()? };
            Some(CellOverlay { namespaces, lock: next()? })
        } else {
            None
        };
        Ok(Self { control, requests, workspace, scratch, companion, overlay })
    }
}

impl<T: AsFd> CellDescriptors<T> {
    /// Returns the descriptors in the order in which they are sent.
    pub(crate) fn in_order(&self) -> Vec<BorrowedFd<'_>> {
        let companion = self.companion.iter().flat_map(|shared| [&shared.users, &shared.network]);
        let overlay = self.overlay.iter().flat_map(|CellOverlay { namespaces, lock }| {
            [&namespaces.users, &namespaces.mounts, lock]
        });
        [&self.control, &self.requests, &self.workspace, &self.scratch]
            .into_iter()
            .chain(companion)
            .chain(overlay)
            .map(AsFd::as_fd)
            .collect()
    }
}

impl OverlayDescriptors<OwnedFd> {
    /// Takes the descriptors in the order in which [`OverlayDescriptors::in_order`] sends them.
    pub(crate) fn from_received(received: Vec<OwnedFd>) -> io::Result<Self> {
        let [control, lower, layers, target] = received.try_into().map_err(|_| malformed())?;
        Ok(Self { control, directories: OverlayDirectories { lower, layers, target } })
    }
}

impl<T: AsFd> OverlayDescriptors<T> {
    /// Returns the descriptors in the order in which they are sent.
    pub(crate) fn in_order(&self) -> Vec<BorrowedFd<'_>> {
        let OverlayDirectories { lower, layers, target } = &self.directories;
        [&self.control, lower, layers, target].map(AsFd::as_fd).into()
    }
}

pub(crate) fn to_json(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("messages have no map keys or numbers that JSON lacks")
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "malformed request")
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_domain::ByteSize;

    fn start(argument: &[u8]) -> Request {
        Request::Start(Box::new(Start {
            argv: vec!["printf".into(), OsString::from_vec(argument.to_vec()), OsString::new()],
            environment: vec![("A".into(), "1=2".into()), ("EMPTY".into(), OsString::new())],
            options: StartOptions {
                number: 3,
                inside: Some(CellPath(OsString::from_vec(b"a\xff".to_vec()).into())),
                grace: Duration::from_millis(500),
                limits: Limits { data: Some(ByteSize::mib(1)), ..Limits::default() },
                sampled: SampledLimits { processes: Some(7), ..SampledLimits::default() },
                terminal: Some(TerminalSize::default()),
                held: 2,
                cgroups: 1,
            },
        }))
    }

    #[test]
    fn requests_round_trip_with_arbitrary_bytes() {
        for request in [start(b"\xff\n{\"@"), Request::Kill { number: 7 }] {
            let bytes = request.encode();
            assert_eq!(Request::decode(&bytes).unwrap(), request);
        }
    }

    #[test]
    fn a_long_request_travels_as_a_file() {
        let long = vec![b'x'; MAX_INLINE_BYTES];
        let (payload, file) = start(&long).into_payload().unwrap();
        let mut packet = Packet { payload, descriptors: file.into_iter().collect() };
        assert_eq!(packet.descriptors.len(), 1);
        assert_eq!(Request::from_packet(&mut packet).unwrap(), start(&long));
        assert_eq!(packet.descriptors.len(), 0);
    }

    #[test]
    fn a_request_that_is_not_one_is_an_error() {
        assert!(Request::decode(b"").is_err());
        assert!(Request::decode(b"{}").is_err());
    }
}
