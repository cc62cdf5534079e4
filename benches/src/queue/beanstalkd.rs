//! beanstalkd, which writes each job to its log and waits for the disk.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Measured, SUBMITTERS};
use crate::Fault;
use crate::measure::{alone, timed};
use crate::sandbox::installed;

const JOB: &str = "{\"steps\":[{\"action\":\"shell\",\"command\":\"true\"}]}";
const DEADLINE: Duration = Duration::from_secs(10);

/// A server of its own, gone with this.
struct Beanstalkd {
    child: Child,
    address: SocketAddr,
}

impl Drop for Beanstalkd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Beanstalkd {
    fn start(program: &Path, directory: &Path) -> Result<Self, Fault> {
        std::fs::create_dir(directory)?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut command = Command::new(program);
        command.args(["-l", "127.0.0.1", "-f", "0", "-p", &address.port().to_string(), "-b"]);
        let child = command.arg(directory).stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let server = Self { child, address };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if begun.elapsed() > DEADLINE {
                return Err("beanstalkd does not listen".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }
}

/// Measures it: one job after the other, then as many at once as `all`.
pub(super) fn measure(
    directory: &Path,
    rounds: usize,
    all: usize,
) -> Result<Option<Measured>, Fault> {
    let Some(program) = installed("beanstalkd") else { return Ok(None) };
    let server = Beanstalkd::start(&program, &directory.join("beanstalkd"))?;
    let mut client = Client::connect(server.address)?;
    let times = alone(rounds, || {
        timed(|| {
            client.put()?;
            client.work()
        })
    })?;
    let each = all / SUBMITTERS;
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let submit = || {
            let mut client = Client::connect(server.address)?;
            (0..each).try_for_each(|_| client.put())
        };
        let work = || {
            let mut client = Client::connect(server.address)?;
            (0..each).try_for_each(|_| client.work())
        };
        let submitters = (0..SUBMITTERS).map(|_| scope.spawn(submit)).collect::<Vec<_>>();
        let workers = (0..SUBMITTERS).map(|_| scope.spawn(work)).collect::<Vec<_>>();
        let threads = submitters.into_iter().chain(workers);
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "it panicked")?)
    })?;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand jobs")]
    let per_second = (SUBMITTERS * each) as f64 / begun.elapsed().as_secs_f64();
    Ok(Some(Measured { times, per_second }))
}

struct Client {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
}

impl Client {
    fn connect(address: SocketAddr) -> Result<Self, Fault> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        Ok(Self { answers: BufReader::new(stream.try_clone()?), stream })
    }

    fn put(&mut self) -> Result<(), Fault> {
        let put = format!("put 0 0 60 {}\r\n{JOB}\r\n", JOB.len());
        self.ask(&put, "INSERTED").map(|_| ())
    }

    /// Takes a job and says that it is done.
    fn work(&mut self) -> Result<(), Fault> {
        let answer = self.ask("reserve\r\n", "RESERVED")?;
        let mut words = answer.split_whitespace().skip(1);
        let id = words.next().ok_or("a job without an id")?.to_owned();
        let length: usize = words.next().ok_or("a job without a length")?.parse()?;
        let mut job = vec![0; length + 2];
        self.answers.read_exact(&mut job)?;
        self.ask(&format!("delete {id}\r\n"), "DELETED").map(|_| ())
    }

    fn ask(&mut self, question: &str, expected: &str) -> Result<String, Fault> {
        self.stream.write_all(question.as_bytes())?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        if line.starts_with(expected) {
            Ok(line)
        } else {
            Err(format!("beanstalkd: {line}").into())
        }
    }
}
