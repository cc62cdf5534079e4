//! Commands with a terminal.

use std::time::Duration;

use carrel_domain::ByteSize;
use carrel_exec::{
    CaptureLimits, CommandSpec, ExitStatus, LogEnd, LogFile, Output, SpawnError, Spawner, Stdin,
    Stop, TerminalError, TerminalSize,
};
use pretty_assertions::assert_eq;
use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::processes::{Mark, children_of, descriptors_of, parent_of, this_process};
use crate::support::{command, peak_memory, run, shell, spawner, stdout, until, variable};
use crate::typist::{SIZE, Typist, at_terminal};

/// What a stop may take beyond deadline and grace on a busy machine.
const MARGIN: Duration = Duration::from_secs(3);

fn bash(script: &str) -> CommandSpec {
    command(&["bash", "-c", script])
}

#[tokio::test]
async fn input_and_output_are_one_terminal_that_controls_the_session() {
    let script = "
import os
name = os.ttyname(0)
assert name.startswith('/dev/pts/') and name == os.ttyname(1) == os.ttyname(2), name
own = os.open('/dev/tty', os.O_RDWR)
assert os.getpid() == os.getsid(0) == os.tcgetpgrp(0) == os.tcgetpgrp(own)
os.write(own, b'fine')
";
    let outcome = run(at_terminal(command(&["python3", "-c", script]))).await;
    assert_eq!((stdout(&outcome).as_str(), outcome.end), ("fine", ExitStatus::Exited(0)));
}

#[tokio::test]
async fn both_streams_arrive_in_the_order_of_writing() {
    let outcome = run(at_terminal(shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2"))).await;
    assert_eq!(stdout(&outcome), "1\r\n2\r\n3\r\n4\r\n");
    assert_eq!(outcome.stderr.total_bytes, 0);
}

#[tokio::test]
async fn the_size_is_what_was_asked_for_and_can_be_changed() {
    let script = "trap 'exit 3' INT; trap 'stty size' WINCH; stty size
        while :; do sleep 0.02; done";
    let mut typist = Typist::sit_down(&spawner(), bash(script)).await;
    typist.see("30 100\r\n").await;
    typist.terminal.resize(TerminalSize { rows: 50, columns: 132 }).unwrap();
    typist.see("50 132\r\n").await;
    typist.enter("\x03").await;
    assert_eq!(typist.leave().await.end, ExitStatus::Exited(3));
}

#[tokio::test]
async fn what_is_typed_is_shown_and_read() {
    let script = "read line; echo \"read <$line>\"";
    let mut typist = Typist::sit_down(&spawner(), shell(script)).await;
    // The second character takes two bytes, and one key to erase.
    typist.enter("aÅ\x7fb\n").await;
    typist.see("read <ab>\r\n").await;
    let outcome = typist.leave().await;
    assert_eq!(stdout(&outcome), "aÅ\x08 \x08b\r\nread <ab>\r\n");
}

/// Puts a child into the foreground, as a shell does, and waits for it.
const FOREGROUND: &str = "
import os, signal
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    print('ready', flush=True)
    signal.pause()
print('ended by', os.WTERMSIG(os.waitpid(child, 0)[1]))
";

#[tokio::test]
async fn the_interrupt_key_reaches_the_foreground_processes_and_no_others() {
    let typist = Typist::sit_down(&spawner(), command(&["sleep", "1000"])).await;
    typist.enter("\x03").await;
    assert_eq!(typist.leave().await.end, ExitStatus::Signaled(Signal::INT.as_raw()));

    let program = command(&["python3", "-c", FOREGROUND]);
    let mut typist = Typist::sit_down(&spawner(), program).await;
    typist.see("ready").await;
    typist.enter("\x03").await;
    typist.see("ended by 2").await;
    assert!(typist.leave().await.succeeded());
}

#[tokio::test]
async fn the_end_key_ends_the_input() {
    let typist = Typist::sit_down(&spawner(), command(&["cat"])).await;
    typist.enter("one\n\x04").await;
    let outcome = typist.leave().await;
    assert_eq!((stdout(&outcome).as_str(), outcome.succeeded()), ("one\r\none\r\n", true));
}

#[tokio::test]
async fn much_input_arrives_whole_however_slowly_it_is_read() {
    let script = "stty raw -echo; echo ready; sleep 0.2; head -c 1000000 | cksum";
    let mut typist = Typist::sit_down(&spawner(), bash(script)).await;
    typist.see("ready").await;
    typist.enter(&"x".repeat(1_000_000)).await;
    // What `head -c 1000000 /dev/zero | tr '\0' x | cksum` says.
    typist.see("1459561774 1000000").await;
    assert!(typist.leave().await.succeeded());
}

#[tokio::test]
async fn megabytes_of_output_cost_a_fixed_amount_of_memory() {
    const TOTAL: u64 = 5_000_000;
    let small = CaptureLimits { head: ByteSize::kib(4), tail: ByteSize::kib(4) };
    let file = tempfile::tempfile().unwrap();
    let spec = CommandSpec {
        output: Output::Terminal { size: SIZE, limits: small },
        log: Some(LogFile { file: Some(file), limit: ByteSize::mib(8) }),
        ..command(&["head", "-c", &TOTAL.to_string(), "/dev/zero"])
    };
    let running = spawner().spawn(spec).await.unwrap();
    let (before, log) = (peak_memory(), running.log_reader().unwrap());
    let outcome = running.wait(&CancellationToken::new()).await;
    let growth = peak_memory() - before;
    assert!(growth < 4 << 10, "memory grew by {growth} KiB");
    assert_eq!((outcome.stdout.total_bytes, log.end().0), (TOTAL, TOTAL));
    assert_eq!((outcome.stdout.omitted(), outcome.log), (TOTAL - 8192, Some(LogEnd::Complete)));
}

#[tokio::test]
async fn the_last_output_is_never_lost() {
    let spawner = spawner();
    let cancel = CancellationToken::new();
    for _ in 0..50 {
        let outcome = spawner.run(at_terminal(shell("seq 2000")), &cancel).await.unwrap();
        assert_eq!(outcome.stdout.total_bytes, 8893 + 2000);
        assert!(outcome.stdout.head.ends_with(b"\r\n2000\r\n"));
    }
}

#[tokio::test]
async fn a_command_that_does_not_read_holds_up_neither_output_nor_deadline() {
    let script = "stty raw -echo; echo ready; for i in 1 2 3; do sleep 0.1; echo tick $i; done
        trap '' TERM HUP; sleep 1000; sleep 1000";
    let deadline = Duration::from_secs(1);
    let spec = CommandSpec { deadline: Some(deadline), ..bash(script) };
    let mut typist = Typist::sit_down(&spawner(), spec).await;
    typist.see("ready").await;
    let terminal = typist.terminal.clone();
    let typing = tokio::spawn(async move { terminal.write(&vec![b'x'; 1 << 20]).await });
    typist.see("tick 3").await;
    assert!(!typing.is_finished());
    let terminal = typist.terminal.clone();
    let outcome = typist.leave().await;
    assert_eq!(outcome.stop, Some(Stop::Deadline));
    assert!(outcome.wall < deadline + CommandSpec::DEFAULT_GRACE + MARGIN, "{:?}", outcome.wall);
    assert!(matches!(typing.await.unwrap(), Err(TerminalError::Over)));
    assert!(matches!(terminal.write(b"x").await, Err(TerminalError::Over)));
    assert!(matches!(terminal.resize(SIZE), Err(TerminalError::Over)));
}

#[tokio::test]
async fn processes_left_with_the_terminal_do_not_delay_the_end() {
    let mark = Mark::new();
    let script = "( trap '' HUP; exec sleep 1000 ) & setsid sleep 1000 & sleep 0.1; echo ok";
    let outcome = run(mark.put_on(at_terminal(shell(script)))).await;
    assert_eq!(mark.alive(), [0; 0]);
    assert_eq!((outcome.end, outcome.left_running), (ExitStatus::Exited(0), 2));
    assert_eq!(stdout(&outcome), "ok\r\n");
    assert!(outcome.wall < MARGIN, "{:?}", outcome.wall);
}

#[tokio::test]
async fn dropping_a_running_command_kills_it_while_input_is_written() {
    let mark = Mark::new();
    let spec = mark.put_on(at_terminal(shell("trap '' HUP TERM; sleep 1000; sleep 1000")));
    let running = spawner().spawn(spec).await.unwrap();
    let terminal = running.terminal().unwrap();
    mark.until_alive(2).await;
    drop(running);
    mark.until_gone().await;
    assert!(matches!(terminal.write(b"x").await, Err(TerminalError::Over)));
}

#[tokio::test]
async fn a_terminal_that_was_closed_can_be_opened_again() {
    let script = "exec <&- >&- 2>&-; sleep 0.2; seq 20000 >/dev/tty";
    let deadline = Some(Duration::from_secs(20));
    let outcome = run(at_terminal(CommandSpec { deadline, ..bash(script) })).await;
    assert_eq!((outcome.stdout.total_bytes, outcome.succeeded()), (108_894 + 20_000, true));
}

#[tokio::test]
async fn a_command_without_a_terminal_has_none_even_if_the_server_does() {
    let server = std::env::current_exe().unwrap();
    let test = ["terminals::stand_in_for_a_server_in_a_terminal", "--exact", "--ignored"];
    let argv = [&[server.to_str().unwrap()], &test[..]].concat();
    let mut spec = at_terminal(command(&argv));
    spec.environment.push(variable("STAND_IN", "1"));
    let outcome = run(spec).await;
    assert!(outcome.succeeded() && stdout(&outcome).contains("1 passed"), "{}", stdout(&outcome));
}

#[tokio::test]
#[ignore = "the process that another test starts in a terminal"]
async fn stand_in_for_a_server_in_a_terminal() {
    if std::env::var_os("STAND_IN").is_none() {
        return;
    }
    std::fs::File::open("/dev/tty").unwrap();
    let outcome = run(shell(": < /dev/tty")).await;
    assert_ne!(outcome.end, ExitStatus::Exited(0));
    let own = std::fs::read_link("/proc/self/fd/0").unwrap();
    let outcome = run(at_terminal(command(&["tty"]))).await;
    assert_ne!(stdout(&outcome).trim_end(), own.to_str().unwrap());
    let outcome = run(at_terminal(shell("echo mine > /dev/tty"))).await;
    assert_eq!(stdout(&outcome), "mine\r\n");
}

#[tokio::test]
async fn other_input_is_refused() {
    for stdin in [Stdin::Bytes(b"x".to_vec()), Stdin::Opened(crate::support::directory("/"))] {
        let spec = CommandSpec { stdin, ..at_terminal(command(&["true"])) };
        let error = spawner().spawn(spec).await.unwrap_err();
        assert!(matches!(error, SpawnError::TerminalInput), "{error:?}");
    }
    let running = spawner().spawn(command(&["true"])).await.unwrap();
    assert!(running.terminal().is_none());
}

#[tokio::test]
async fn an_init_keeps_no_end_of_the_terminal() {
    let running = spawner().spawn(at_terminal(shell("sleep 1000"))).await.unwrap();
    let init = parent_of(running.pid()).unwrap();
    // The standard streams, signals, control and the main process. An ordinary user may not count them.
    let handed_over = || descriptors_of(init).is_none_or(|count| count == 6);
    until("the terminal is handed over", handed_over).await;
    until("the shell has read its script", || descriptors_of(running.pid()) == Some(3)).await;
}

async fn run_at_terminal(spawner: Spawner) {
    let spec = at_terminal(shell("echo fine"));
    let outcome = spawner.run(spec, &CancellationToken::new()).await.unwrap();
    assert_eq!(stdout(&outcome), "fine\r\n");
}

#[tokio::test]
async fn a_hundred_terminals_leave_no_descriptor() {
    let spawner = spawner();
    run_at_terminal(spawner.clone()).await;
    let process = children_of(this_process())[0];
    let descriptors = || (descriptors_of(this_process()), descriptors_of(process));
    until("the first init is gone", || children_of(process).is_empty()).await;
    let before = descriptors();
    for _ in 0..10 {
        let ten = (0..10).map(|_| run_at_terminal(spawner.clone())).collect::<JoinSet<_>>();
        ten.join_all().await;
        // One that fails to start, after its terminal was opened.
        spawner.spawn(at_terminal(command(&["no-such-program"]))).await.unwrap_err();
    }
    until("the last init is gone", || children_of(process).is_empty()).await;
    assert_eq!(descriptors(), before);
}
