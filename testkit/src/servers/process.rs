//! A server process that ends with the test, also if that is killed.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// The time for a server to become ready on a busy machine.
pub(super) const READY: Duration = Duration::from_mins(1);

/// Returns the path of a program: the newest version in Debian's directory of versions, or in `/usr`.
#[expect(clippy::disallowed_methods, reason = "looks where programs are installed")]
pub(super) fn program(name: &str, versions: &str) -> PathBuf {
    let versioned = std::fs::read_dir(versions).into_iter().flatten().flatten();
    let mut found: Vec<_> = versioned.map(|entry| entry.path().join("bin").join(name)).collect();
    found.sort();
    found.reverse();
    found.extend(["/usr/local/bin", "/usr/bin"].map(|directory| Path::new(directory).join(name)));
    found
        .into_iter()
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("no {name} here; run scripts/install-test-tools"))
}

/// Returns a command that runs as a user and gets SIGQUIT when this process ends.
#[expect(clippy::disallowed_methods, reason = "tests start servers by themselves")]
pub(super) fn command(program: &Path, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    if let Some((user, group)) = user {
        command.args([format!("--reuid={user}"), format!("--regid={group}")]);
        command.arg("--clear-groups");
    }
    command.arg("--").arg(program).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Starts a server. The kernel signals it when the thread that started it ends, so that thread is kept.
pub(super) fn start(mut command: Command) -> Child {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        sender.send(command.spawn()).expect("the test waits");
        loop {
            std::thread::park();
        }
    });
    receiver.recv().unwrap().expect("setpriv is installed")
}

/// Waits until the server listens. Returns false if it has ended.
pub(super) fn listens(child: &mut Child, port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let until = Instant::now() + READY;
    while Instant::now() < until {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Sends SIGQUIT to a process and waits for its end.
pub(super) fn quit(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::QUIT);
    }
    let _ = child.wait();
}

/// Removes a directory, and retries while ending processes still write to it.
#[expect(clippy::disallowed_methods, reason = "a directory of the test's own")]
pub(super) fn remove(directory: &Path) {
    for _ in 0..40 {
        match std::fs::remove_dir_all(directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                std::thread::sleep(Duration::from_millis(50));
            }
            _ => return,
        }
    }
}

/// Kills a server and the processes that it started, and waits for all of them. The workers of a killed PostgreSQL
/// notice its end by themselves only after a while, and answer on their connections until then.
pub(super) fn kill(child: &mut Child) {
    let workers = children(child.id());
    // They may have ended by themselves.
    let _ = child.kill();
    let _ = child.wait();
    for worker in &workers {
        let _ = pidfd_send_signal(worker, Signal::KILL);
    }
    for worker in &workers {
        let _ = poll(&mut [PollFd::new(worker, PollFlags::IN)], None);
    }
}

/// Holds the children of a process, so that none of their numbers is given to another process.
#[expect(clippy::disallowed_methods, reason = "asks the kernel")]
fn children(parent: u32) -> Vec<OwnedFd> {
    let listed = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))
        .unwrap_or_default();
    let pids = listed.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
    pids.filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()).collect()
}
