//! What real callers get. A filter binds one thread and what it starts, so each test puts it on a
//! thread of its own and listens from another.

use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread;

use carrel_domain::{Network, Tier};
use pretty_assertions::assert_eq;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, FallocateFlags, FileType, Mode};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use tempfile::TempDir;

use crate::seccomp::{DeniedCall, Listener, Reporting, SeccompFilter};

/// Puts the filter on the calling thread.
fn confine(filter: &SeccompFilter, reporting: Reporting) -> Option<Listener> {
    rustix::thread::set_no_new_privs(true).unwrap();
    filter.assemble(reporting).install().unwrap()
}

/// Waits until a call is reported; returns false once no process is left that could call.
fn wait(listener: &Listener) -> bool {
    let mut descriptors = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut descriptors, None).unwrap();
    descriptors[0].revents().contains(PollFlags::IN)
}

/// Runs something under a filter, and returns what came of it and what was reported.
fn watched<T: Send>(
    filter: &SeccompFilter,
    run: impl FnOnce() -> T + Send,
) -> (T, Vec<DeniedCall>) {
    thread::scope(|scope| {
        let (sender, listeners) = mpsc::channel();
        let confined = scope.spawn(move || {
            sender.send(confine(filter, Reporting::Supervisor).unwrap()).unwrap();
            run()
        });
        let mut listener = listeners.recv().unwrap();
        let mut refused = vec![];
        while wait(&listener) {
            refused.extend(listener.deny_pending(filter).unwrap());
        }
        (confined.join().unwrap(), refused)
    })
}

fn refused(call: &str, detail: Option<&str>, errno: Errno, pid: u32) -> DeniedCall {
    let (call, detail) = (call.to_owned(), detail.map(str::to_owned));
    DeniedCall { call, detail, errno: errno.raw_os_error(), pid, count: 1 }
}

fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_pid().cast_unsigned()
}

fn socket(family: AddressFamily, kind: SocketType) -> Errno {
    rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap_err()
}

#[expect(clippy::disallowed_methods, reason = "the callers here are programs of the system")]
fn chmod_program(file: &Path) -> Child {
    Command::new("chmod").arg("4755").arg(file).spawn().unwrap()
}

fn scratch_file() -> (TempDir, std::path::PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("file");
    rustix::fs::open(&path, rustix::fs::OFlags::CREATE, Mode::from_raw_mode(0o644)).unwrap();
    (directory, path)
}

#[test]
fn explained_refusals_are_reported_exactly_and_plain_ones_are_not() {
    let (_directory, file) = scratch_file();
    let filter = SeccompFilter::standard(Tier::Full, Network::None);
    let ((errnos, pid), reports) = watched(&filter, || {
        let open = rustix::fs::open(&file, rustix::fs::OFlags::RDWR, Mode::empty()).unwrap();
        let node = file.with_extension("null");
        let device = rustix::fs::makedev(1, 3);
        let errnos = [
            socket(AddressFamily::INET, SocketType::STREAM),
            socket(AddressFamily::VSOCK, SocketType::STREAM),
            rustix::process::chroot("/").unwrap_err(),
            rustix::fs::chmod(&file, Mode::from_raw_mode(0o4755)).unwrap_err(),
            rustix::fs::mknodat(CWD, &node, FileType::CharacterDevice, 0o666.into(), device)
                .unwrap_err(),
            rustix::fs::fallocate(&open, FallocateFlags::empty(), 0, 4096).unwrap_err(),
        ];
        // Threads start although the newest way to start them does not exist.
        thread::spawn(|| ()).join().unwrap();
        rustix::fs::chmod(&file, Mode::from_raw_mode(0o755)).unwrap();
        (errnos, own_thread())
    });
    assert_eq!(
        errnos,
        [
            Errno::ACCESS,
            Errno::AFNOSUPPORT,
            Errno::PERM,
            Errno::PERM,
            Errno::PERM,
            Errno::OPNOTSUPP
        ]
    );
    assert_eq!(
        reports,
        [
            refused("socket", Some("AF_INET"), Errno::ACCESS, pid),
            refused("socket", Some("AF_VSOCK"), Errno::AFNOSUPPORT, pid),
            refused("chroot", None, Errno::PERM, pid),
            refused("fchmodat", Some("mode 4755"), Errno::PERM, pid),
            refused("mknodat", Some("S_IFCHR"), Errno::PERM, pid),
        ]
    );
}

#[test]
fn without_a_listener_the_caller_is_told_the_same() {
    let filter = SeccompFilter::standard(Tier::Landlock, Network::None);
    let confined = thread::spawn(move || {
        assert!(confine(&filter, Reporting::Silent).is_none());
        (socket(AddressFamily::UNIX, SocketType::STREAM), rustix::process::chroot("/").unwrap_err())
    });
    assert_eq!(confined.join().unwrap(), (Errno::ACCESS, Errno::PERM));
}

#[test]
fn a_thread_that_kept_its_privileges_is_told_to_give_them_up() {
    if rustix::thread::no_new_privs().unwrap() {
        return carrel_skip::unavailable("privileges that were not given up");
    }
    let program = SeccompFilter::standard(Tier::Full, Network::None).assemble(Reporting::Silent);
    let error = thread::spawn(move || program.install().unwrap_err()).join().unwrap();
    assert_eq!(error.to_string(), "a system call filter needs no_new_privs to be set first");
}

#[test]
fn programs_that_a_confined_thread_starts_are_confined() {
    let (_directory, file) = scratch_file();
    let filter = SeccompFilter::standard(Tier::Full, Network::None);
    let ((pid, status), reports) = watched(&filter, || {
        let mut child = chmod_program(&file);
        (child.id(), child.wait().unwrap())
    });
    assert_eq!(status.code(), Some(1));
    // Which of the calls for modes the program uses depends on its version.
    let call = reports[0].call.clone();
    assert_eq!(reports, [refused(&call, Some("mode 4755"), Errno::PERM, pid)]);
}

/// Starts a program that waits for an answer under the standard filter, and hands over its
/// listener. The thread that started it stays, confined, until `act` is done.
fn with_a_waiting_caller(act: impl FnOnce(&mut Listener, &SeccompFilter, Child)) {
    let (_directory, file) = scratch_file();
    let filter = SeccompFilter::standard(Tier::Full, Network::None);
    thread::scope(|scope| {
        let (sender, started) = mpsc::channel();
        let (finish, finished) = mpsc::channel::<()>();
        scope.spawn({
            let (filter, file) = (&filter, &file);
            move || {
                let listener = confine(filter, Reporting::Supervisor).unwrap();
                sender.send((listener, chmod_program(file))).unwrap();
                let _ = finished.recv();
            }
        });
        let (mut listener, child) = started.recv().unwrap();
        assert!(wait(&listener));
        act(&mut listener, &filter, child);
        drop(finish);
    });
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_killed_caller_is_no_refusal_and_does_not_block() {
    with_a_waiting_caller(|listener, filter, child| {
        kill(child);
        assert_eq!(listener.deny_pending(filter).unwrap(), None);
        assert_eq!(listener.deny_pending(filter).unwrap(), None);
    });
}

#[test]
fn receiving_from_a_caller_killed_since_it_was_seen_does_not_block() {
    with_a_waiting_caller(|listener, _, child| {
        kill(child);
        assert!(listener.receive().unwrap().is_none());
    });
}

#[test]
fn answering_a_caller_killed_since_it_was_heard_is_no_error() {
    with_a_waiting_caller(|listener, _, child| {
        let report = listener.receive().unwrap().unwrap();
        assert_eq!(report.pid, child.id());
        kill(child);
        assert!(!listener.send(report.id, libc::EPERM).unwrap());
    });
}

#[test]
fn a_listener_can_be_sent_as_a_descriptor() {
    with_a_waiting_caller(|listener, filter, mut child| {
        let descriptor = listener.as_fd().try_clone_to_owned().unwrap();
        let mut received = Listener::from(descriptor);
        let refused = received.deny_pending(filter).unwrap().unwrap();
        assert_eq!(refused.detail.as_deref(), Some("mode 4755"));
        assert_eq!(child.wait().unwrap().code(), Some(1));
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the callers here are programs of the system")]
fn copying_and_unpacking_work_under_the_filter() {
    let (directory, file) = scratch_file();
    let script = r#"set -e; cd "$1"; mkdir -p a/b; echo text > a/b/c; chmod 755 a/b/c; ln -s c a/b/d
        cp -a a copy; tar cf a.tar a; mkdir out; tar xpf a.tar -C out; diff -r a out/a"#;
    let filter = SeccompFilter::standard(Tier::Full, Network::None);
    let (status, reports) = watched(&filter, || {
        let words = ["-c", script, "sh", file.parent().unwrap().to_str().unwrap()];
        Command::new("sh").args(words).status().unwrap()
    });
    assert!(status.success(), "in {}", directory.path().display());
    assert_eq!(reports, []);
}
