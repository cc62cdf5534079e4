//! What server, spawner and init say to each other.
//!
//! Both ends are the same binary, so there is no version. Arguments and variables are bytes that
//! need not be text: they follow a JSON header, each after a NUL, which neither side contains.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::memory_file;
use crate::outcome::{Cost, End};
use crate::socket::Packet;
use crate::spec::Limits;

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
    Start(Start),
    /// End the init with this process id, and its tree.
    End { init: i32 },
}

/// A command to start.
#[derive(Debug, PartialEq)]
pub(crate) struct Start {
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) grace: Duration,
    pub(crate) limits: Limits,
    /// How many of the descriptors stay with the init.
    pub(crate) held: usize,
}

/// The descriptors of a command to start. `T` is owned by a receiver and borrowed by a sender.
#[derive(Debug)]
pub(crate) struct Descriptors<T> {
    pub(crate) control: T,
    pub(crate) directory: T,
    pub(crate) stdin: T,
    pub(crate) stdout: T,
    pub(crate) stderr: T,
    pub(crate) inherited: Vec<T>,
    pub(crate) held: Vec<T>,
}

/// What an init tells the server.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The program runs.
    Started { init: i32, pid: i32 },
    /// The program does not run.
    Failed { step: Step, errno: i32 },
    /// The program and everything it started is gone.
    Ended { end: End, cost: Cost, left_running: usize },
}

/// Where starting a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// Making the processes.
    Fork,
    /// Placing descriptors and signals.
    Prepare,
    /// Entering the working directory.
    Directory,
    /// Executing the program.
    Execute,
}

/// What the server tells an init.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// End the tree: ask, wait for the grace, kill.
    Stop,
}

#[derive(Serialize, Deserialize)]
enum Header {
    Start { arguments: usize, grace: Duration, limits: Limits, held: usize },
    End { init: i32 },
}

impl Request {
    /// Writes the request as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::End { init } => to_json(&Header::End { init: *init }),
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

    /// Reads the request of a packet and leaves the other descriptors in it.
    pub(crate) fn from_packet(packet: &mut Packet) -> io::Result<Self> {
        if packet.payload != ELSEWHERE {
            return Self::decode(&packet.payload);
        }
        let mut bytes = Vec::new();
        File::from(packet.descriptors.pop().ok_or_else(malformed)?).read_to_end(&mut bytes)?;
        Self::decode(&bytes)
    }

    fn decode(bytes: &[u8]) -> io::Result<Self> {
        let mut parts = bytes.split(|byte| *byte == 0);
        match serde_json::from_slice(parts.next().unwrap_or_default())? {
            Header::End { init } => Ok(Self::End { init }),
            Header::Start { arguments, grace, limits, held } => {
                let mut strings = parts.map(|part| OsString::from_vec(part.to_vec()));
                let argv = strings.by_ref().take(arguments).collect();
                let mut environment = Vec::new();
                while let (Some(name), Some(value)) = (strings.next(), strings.next()) {
                    environment.push((name, value));
                }
                Ok(Self::Start(Start { argv, environment, grace, limits, held }))
            }
        }
    }
}

impl Start {
    fn encode(&self) -> Vec<u8> {
        let Self { argv, grace, limits, held, .. } = self;
        let (arguments, grace, limits, held) = (argv.len(), *grace, *limits, *held);
        let mut bytes = to_json(&Header::Start { arguments, grace, limits, held });
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
    pub(crate) fn from_received(mut descriptors: Vec<OwnedFd>, held: usize) -> io::Result<Self> {
        let first_held = descriptors.len().checked_sub(held).ok_or_else(malformed)?;
        let held = descriptors.split_off(first_held);
        let mut rest = descriptors.into_iter();
        let mut next = || rest.next().ok_or_else(malformed);
        Ok(Self {
            control: next()?,
            directory: next()?,
            stdin: next()?,
            stdout: next()?,
            stderr: next()?,
            inherited: rest.collect(),
            held,
        })
    }

    /// Closes what only the command needs. What is left is the control socket, and what is held
    /// until nothing of the command is left.
    pub(crate) fn into_supervised(self) -> (OwnedFd, Vec<OwnedFd>) {
        let Self { control, directory, stdin, stdout, stderr, inherited, held } = self;
        drop((directory, stdin, stdout, stderr, inherited));
        (control, held)
    }
}

impl<T: AsFd> Descriptors<T> {
    /// Returns the descriptors in the order in which they are sent.
    pub(crate) fn in_order(&self) -> Vec<BorrowedFd<'_>> {
        [&self.control, &self.directory, &self.stdin, &self.stdout, &self.stderr]
            .into_iter()
            .chain(&self.inherited)
            .chain(&self.held)
            .map(AsFd::as_fd)
            .collect()
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
        Request::Start(Start {
            argv: vec!["printf".into(), OsString::from_vec(argument.to_vec()), OsString::new()],
            environment: vec![("A".into(), "1=2".into()), ("EMPTY".into(), OsString::new())],
            grace: Duration::from_millis(500),
            limits: Limits { data: Some(ByteSize::mib(1)), cpu: None },
            held: 2,
        })
    }

    #[test]
    fn requests_survive_the_way_whatever_their_bytes() {
        for request in [start(b"\xff\n{\"@"), Request::End { init: 7 }] {
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
