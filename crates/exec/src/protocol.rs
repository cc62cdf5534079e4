//! What server, spawner and init say to each other.
//!
//! Both ends are the same binary, so there is no version. Arguments and variables are bytes that
//! need not be text: they follow a JSON header, each after a NUL, which neither side contains.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use carrel_domain::exact_path;
use carrel_sandbox::{DeniedCall, Plan, SetupError};
use serde::{Deserialize, Serialize};

use crate::memory_file;
use crate::outcome::{ExceededLimit, ExitStatus, ResourceUsage};
use crate::socket::Packet;
use crate::spec::{Limits, SampledLimits};
use crate::terminal::TerminalSize;

/// The largest request that travels inside a packet; a larger one travels as a file in memory.
pub(crate) const MAX_INLINE_BYTES: usize = 64 << 10;

/// The largest report or order.
pub(crate) const MAX_CONTROL_BYTES: usize = 4 << 10;

/// The payload of a packet whose request is in its last descriptor. No request looks like this.
const ELSEWHERE: &[u8] = b"@";

/// What the server asks of the spawner.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    /// Start a command.
    Start(Box<Start>),
    /// Make a cell.
    Cell(Box<MakeCell>),
    /// End the init or the cell that was asked for under this number, and its tree.
    End { number: u64 },
}

/// A cell to make.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MakeCell {
    pub(crate) number: u64,
    /// Abridged by the sender, and completed by the receiver.
    pub(crate) plan: Plan,
    /// The number of a cell whose network it shares.
    pub(crate) companion: Option<u64>,
}

/// The descriptors of a cell to make. `T` is owned by a receiver and borrowed by a sender.
#[derive(Debug)]
pub(crate) struct CellDescriptors<T> {
    pub(crate) control: T,
    pub(crate) requests: T,
    pub(crate) workspace: T,
    pub(crate) scratch: T,
}

/// A command to start.
#[derive(Debug, PartialEq)]
pub(crate) struct Start {
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) terms: Terms,
}

/// The terms on which a command is started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Terms {
    pub(crate) number: u64,
    /// Where it starts in a cell; none for a command of the host.
    pub(crate) inside: Option<Inside>,
    pub(crate) grace: Duration,
    pub(crate) limits: Limits,
    pub(crate) watch: SampledLimits,
    /// The size of its terminal, if it is to have one instead of input and output from the server.
    pub(crate) terminal: Option<TerminalSize>,
    /// How many of the descriptors stay with the init.
    pub(crate) held: usize,
    /// How many of the descriptors are files of control groups.
    pub(crate) groups: usize,
}

/// A directory of a cell's workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Inside(#[serde(with = "exact_path")] pub(crate) PathBuf);

/// The descriptors of a command to start. `T` is owned by a receiver and borrowed by a sender.
#[derive(Debug)]
pub(crate) struct Descriptors<T> {
    pub(crate) control: T,
    /// None for a command whose terminal is yet to be opened.
    pub(crate) standard: Option<Standard<T>>,
    /// For a command of a cell it is not sent: the cell opens it, or the command finds it by its path.
    pub(crate) directory: Option<T>,
    pub(crate) inherited: Vec<T>,
    pub(crate) groups: Vec<T>,
    pub(crate) held: Vec<T>,
}

/// What a command reads from and writes to.
#[derive(Debug)]
pub(crate) struct Standard<T> {
    pub(crate) stdin: T,
    pub(crate) stdout: T,
    pub(crate) stderr: T,
}

impl<T> Standard<T> {
    /// Returns the descriptors by their numbers.
    pub(crate) fn in_order(&self) -> [&T; 3] {
        [&self.stdin, &self.stdout, &self.stderr]
    }
}

/// What an init tells the server.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The program runs, under this process id of its own namespace. Both ends of its terminal, the
    /// near one first, come along.
    Started { pid: i32 },
    /// The program does not run.
    Failed { step: Step, errno: i32 },
    /// The program and everything it started is gone.
    Ended {
        end: ExitStatus,
        cost: ResourceUsage,
        left_running: usize,
        refused: Vec<DeniedCall>,
        excess: Option<ExceededLimit>,
    },
    /// The cell is ready for commands.
    CellReady,
    /// There will be no cell.
    CellFailed(SetupError),
}

/// Where starting a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// Making the processes.
    Fork,
    /// Opening a terminal.
    Terminal,
    /// Placing descriptors and signals.
    Prepare,
    /// Entering the working directory.
    Directory,
    /// Taking away what a command must not have.
    Confine,
    /// Executing the program.
    Execute,
}

/// What the server tells an init.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// End the tree: ask, wait for the grace, kill.
    Stop,
    /// Kill the tree.
    Kill,
}

#[derive(Serialize, Deserialize)]
enum Header {
    Start { arguments: usize, terms: Box<Terms> },
    Cell(Box<MakeCell>),
    End { number: u64 },
}

/// A header that borrows what it says.
#[derive(Serialize)]
enum HeaderRef<'a> {
    Start { arguments: usize, terms: &'a Terms },
    Cell(&'a MakeCell),
}

impl Request {
    /// Writes the request as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::End { number } => to_json(&Header::End { number: *number }),
            Self::Cell(cell) => to_json(&HeaderRef::Cell(cell)),
            Self::Start(start) => start.encode(),
        }
    }

    /// Returns the payload to send, and the file that holds the request if it is too long.
    pub(crate) fn into_payload(self) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
        let bytes = self.encode();
        if bytes.len() <= MAX_INLINE_BYTES {
            return Ok((bytes, None));
        }
        Ok((ELSEWHERE.to_vec(), Some(memory_file::holding(&bytes)?)))
    }

    /// Returns whether a packet holds its request itself.
    pub(crate) fn is_inline(packet: &Packet) -> bool {
        packet.payload != ELSEWHERE
    }

    /// Reads the request of a packet and leaves the other descriptors in it.
    pub(crate) fn from_packet(packet: &mut Packet) -> io::Result<Self> {
        if packet.payload != ELSEWHERE {
            return Self::decode(&packet.payload);
        }
        let mut bytes = Vec::new();
        File::from(packet.descriptors.pop().ok_or_else(malformed)?).read_to_end(&mut bytes)?;
        Self::decode(&bytes)
    }

    pub(crate) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let mut parts = bytes.split(|byte| *byte == 0);
        match serde_json::from_slice(parts.next().unwrap_or_default())? {
            Header::End { number } => Ok(Self::End { number }),
            Header::Cell(mut cell) => {
                cell.plan = cell.plan.with_standard_filter();
                Ok(Self::Cell(cell))
            }
            Header::Start { arguments, terms } => {
                let mut strings = parts.map(|part| OsString::from_vec(part.to_vec()));
                let argv = strings.by_ref().take(arguments).collect();
                let mut environment = Vec::new();
                while let (Some(name), Some(value)) = (strings.next(), strings.next()) {
                    environment.push((name, value));
                }
                Ok(Self::Start(Box::new(Start { argv, environment, terms: *terms })))
            }
        }
    }
}

impl Start {
    fn encode(&self) -> Vec<u8> {
        let header = HeaderRef::Start { arguments: self.argv.len(), terms: &self.terms };
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
    pub(crate) fn from_received(received: Vec<OwnedFd>, terms: &Terms) -> io::Result<Self> {
        let mut received = received;
        let held = split_off(&mut received, terms.held)?;
        let groups = split_off(&mut received, terms.groups)?;
        let mut rest = received.into_iter();
        let mut next = || rest.next().ok_or_else(malformed);
        Ok(Self {
            control: next()?,
            standard: match terms.terminal {
                None => Some(Standard { stdin: next()?, stdout: next()?, stderr: next()? }),
                Some(_) => None,
            },
            directory: if terms.inside.is_none() { Some(next()?) } else { None },
            inherited: rest.collect(),
            groups,
            held,
        })
    }

    /// Closes what only the command needs. What is left is the control socket, and what is held
    /// until nothing of the command is left.
    pub(crate) fn into_supervised(self) -> (OwnedFd, Vec<OwnedFd>) {
        let Self { control, standard, directory, inherited, groups, held } = self;
        drop((standard, directory, inherited, groups));
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
            .chain(&self.groups)
            .chain(&self.held)
            .map(AsFd::as_fd)
            .collect()
    }
}

impl CellDescriptors<OwnedFd> {
    /// Takes the descriptors in the order in which [`CellDescriptors::in_order`] sends them.
    pub(crate) fn from_received(received: Vec<OwnedFd>) -> io::Result<Self> {
        let [control, requests, workspace, scratch] =
            received.try_into().map_err(|_| malformed())?;
        Ok(Self { control, requests, workspace, scratch })
    }
}

impl<T: AsFd> CellDescriptors<T> {
    /// Returns the descriptors in the order in which they are sent.
    pub(crate) fn in_order(&self) -> Vec<BorrowedFd<'_>> {
        [&self.control, &self.requests, &self.workspace, &self.scratch].map(AsFd::as_fd).into()
    }
}

/// Writes a message as JSON.
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
            terms: Terms {
                number: 3,
                inside: Some(Inside(OsString::from_vec(b"a\xff".to_vec()).into())),
                grace: Duration::from_millis(500),
                limits: Limits { data: Some(ByteSize::mib(1)), ..Limits::default() },
                watch: SampledLimits { processes: Some(7), ..SampledLimits::default() },
                terminal: Some(TerminalSize::default()),
                held: 2,
                groups: 1,
            },
        }))
    }

    #[test]
    fn requests_survive_the_way_whatever_their_bytes() {
        for request in [start(b"\xff\n{\"@"), Request::End { number: 7 }] {
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
