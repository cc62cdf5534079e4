//! Exit, deadline, cancellation, and what a command leaves behind.

use std::time::Duration;

use carrel_exec::{CommandSpec, ExitStatus, Stop};
use pretty_assertions::assert_eq;
use rustix::process::Signal;
use tokio_util::sync::CancellationToken;

use crate::processes::Mark;
use crate::support::{command, run, shell, spawner, stdout, until};

/// Starts a process in a session of its own, a daemon that was forked twice, both deaf to `TERM`,
/// and an ordinary one, and waits for them.
const STUBBORN_TREE: &str = "
    setsid sh -c 'trap \"\" TERM; sleep 1000; sleep 1000' &
    ( ( trap '' TERM; exec setsid sleep 1000 ) & )
    sleep 1000 &
    echo started
    wait";

/// The processes of [`STUBBORN_TREE`]: two shells and three times `sleep`.
const STUBBORN_COUNT: usize = 5;

/// What a stop may take beyond deadline and grace on a busy machine.
const MARGIN: Duration = Duration::from_secs(3);

#[tokio::test]
async fn the_exit_status_is_reported() {
    for code in [0, 1, 126, 255] {
        let outcome = run(shell(&format!("exit {code}"))).await;
        assert_eq!((outcome.end, outcome.stop), (ExitStatus::Exited(code), None));
    }
}

#[tokio::test]
async fn the_signal_that_ended_a_command_is_reported() {
    for signal in [Signal::KILL, Signal::TERM, Signal::SEGV] {
        let outcome = run(shell(&format!("kill -{} $$", signal.as_raw()))).await;
        assert_eq!((outcome.end, outcome.stop), (ExitStatus::Signaled(signal.as_raw()), None));
    }
}

#[tokio::test]
async fn the_cost_covers_every_process_of_the_command() {
    let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let outcome = run(shell(&format!("( {busy} ) & ( {busy} ) & wait"))).await;
    assert!(outcome.cost.user > Duration::from_millis(10), "{:?}", outcome.cost);
    assert!(outcome.cost.peak_memory.as_u64() > 100 << 10, "{:?}", outcome.cost);
}

#[tokio::test]
async fn the_deadline_ends_the_whole_tree_and_keeps_the_output() {
    let mark = Mark::new();
    let deadline = Duration::from_secs(1);
    let spec = CommandSpec { deadline: Some(deadline), ..shell(STUBBORN_TREE) };
    let outcome = run(mark.put_on(spec)).await;
    assert_eq!(mark.alive(), [0; 0]);
    assert_eq!((outcome.stop, stdout(&outcome).as_str()), (Some(Stop::Deadline), "started\n"));
    assert_eq!(outcome.end, ExitStatus::Signaled(Signal::TERM.as_raw()));
    assert!(outcome.wall < deadline + CommandSpec::DEFAULT_GRACE + MARGIN, "{:?}", outcome.wall);
}

#[tokio::test]
async fn a_command_that_ends_when_asked_is_not_kept_waiting_for_the_grace() {
    let script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do :; done";
    let spec = CommandSpec {
        deadline: Some(Duration::from_millis(300)),
        grace: Duration::from_mins(1),
        ..shell(script)
    };
    let outcome = run(spec).await;
    assert_eq!((outcome.end, stdout(&outcome).as_str()), (ExitStatus::Exited(7), "ready\nbye\n"));
    assert!(outcome.timed_out() && outcome.wall < Duration::from_secs(30));
}

#[tokio::test]
async fn cancelling_ends_the_whole_tree() {
    let (mark, cancel) = (Mark::new(), CancellationToken::new());
    let spawner = spawner();
    let running = spawner.run(mark.put_on(shell(STUBBORN_TREE)), &cancel);
    let cancelling = async {
        mark.until_alive(STUBBORN_COUNT).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(running, cancelling);
    assert_eq!(mark.alive(), [0; 0]);
    assert_eq!(outcome.unwrap().stop, Some(Stop::Cancelled));
}

#[tokio::test]
async fn dropping_a_running_command_kills_its_tree() {
    let mark = Mark::new();
    let spawner = spawner();
    let running = spawner.spawn(mark.put_on(shell(STUBBORN_TREE))).await.unwrap();
    mark.until_alive(STUBBORN_COUNT).await;
    drop(running);
    mark.until_gone().await;
}

#[tokio::test]
async fn processes_left_in_the_background_are_reported_and_ended() {
    let mark = Mark::new();
    let script = "sleep 1000 & setsid sleep 1000 & echo ok";
    let outcome = run(mark.put_on(shell(script))).await;
    assert_eq!(mark.alive(), [0; 0]);
    assert_eq!((outcome.end, outcome.left_running), (ExitStatus::Exited(0), 2));
    assert_eq!(stdout(&outcome), "ok\n");
    assert!(outcome.wall < MARGIN, "{:?}", outcome.wall);
}

#[tokio::test]
async fn a_filter_that_outlives_the_shell_finishes_its_work() {
    // The time that it has is short; on a busy machine it may need another try.
    let mut tries = 0..5;
    let finishes = async || {
        let outcome = run(command(&["bash", "-c", "seq 1000 > >(sleep 0.01; tail -n 1)"])).await;
        (stdout(&outcome).as_str(), outcome.left_running) == ("1000\n", 0)
    };
    while !finishes().await {
        tries.next().expect("it has finished in none of five tries");
    }
}

#[tokio::test]
async fn a_stopped_command_is_asked_to_end_like_any_other() {
    let spec = CommandSpec {
        deadline: Some(Duration::from_millis(300)),
        grace: Duration::from_mins(1),
        ..shell("kill -STOP $$")
    };
    let outcome = run(spec).await;
    assert_eq!(outcome.end, ExitStatus::Signaled(Signal::TERM.as_raw()));
    assert!(outcome.timed_out() && outcome.wall < Duration::from_secs(30));
}

#[tokio::test]
async fn a_command_that_signals_its_own_group_does_not_reach_its_supervisor() {
    let outcome = run(shell("kill -KILL 0")).await;
    assert_eq!(outcome.end, ExitStatus::Signaled(Signal::KILL.as_raw()));
}

#[tokio::test]
async fn a_spawner_ends_when_its_last_handle_is_dropped() {
    let spawner = spawner();
    let gone = spawner.gone();
    drop(spawner);
    gone.await;
    let no_children = || crate::processes::children_of(crate::processes::this_process()).is_empty();
    until("no child is left", no_children).await;
}

/// A program whose first thread ends while another goes on: in the process table it is a zombie.
const HEADLESS: &str = "
import ctypes, os, threading, time
threading.Thread(target=lambda: time.sleep(1000)).start()
open('PID', 'w').write(str(os.getpid()))
ctypes.CDLL(None).syscall(60, 0)
";

#[tokio::test]
async fn a_process_whose_first_thread_is_gone_ends_like_all_others() {
    let scratch = tempfile::tempdir().unwrap();
    let pid_file = scratch.path().join("pid");
    let program = HEADLESS.replace("PID", pid_file.to_str().unwrap());
    std::fs::write(scratch.path().join("program"), program).unwrap();
    let script = format!("setsid python3 {}/program & sleep 1000", scratch.path().display());
    let running = spawner().spawn(shell(&script)).await.unwrap();
    let zombie = || {
        let number = std::fs::read_to_string(&pid_file).unwrap_or_default();
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        stat.contains(") Z ")
    };
    until("the first thread is gone", zombie).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    running.wait(&cancel).await;
    let number = std::fs::read_to_string(pid_file).unwrap().parse().unwrap();
    let process = rustix::process::Pid::from_raw(number).unwrap();
    assert!(rustix::process::test_kill_process(process).is_err(), "{number} survived");
}

#[tokio::test]
async fn an_init_keeps_open_only_what_it_needs() {
    let spawner = spawner();
    let (lock, _other) = rustix::pipe::pipe().unwrap();
    let held = vec![lock.try_clone().unwrap()];
    let running = spawner.spawn(CommandSpec { held, ..shell("sleep 1000") }).await.unwrap();
    let init = crate::processes::parent_of(running.pid()).unwrap();
    let open = |process: i32| std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    // The standard streams, signals, control, the main process and the one that is held.
    assert_eq!(open(init), 7);
    until("the shell has read its script", || open(running.pid()) == 3).await;
}

#[tokio::test]
async fn limits_hold_for_each_process() {
    let data = Some(carrel_domain::ByteSize::mib(64));
    let limits =
        carrel_exec::Limits { data, cpu: Some(Duration::from_secs(1)), ..Default::default() };
    let spinning = CommandSpec { limits, ..shell("while :; do :; done") };
    assert_eq!(run(spinning).await.end, ExitStatus::Signaled(24));
    let script = "x=xxxxxxxxxxxxxxxx; while :; do x=$x$x$x$x; done";
    let growing = CommandSpec { limits, ..shell(script) };
    assert_ne!(run(growing).await.end, ExitStatus::Exited(0));
}
