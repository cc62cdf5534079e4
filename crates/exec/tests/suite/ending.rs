//! Exit, deadline, cancellation, and what a command leaves behind.

use std::time::Duration;

use carrel_exec::{CommandSpec, End, Stop};
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
        assert_eq!((outcome.end, outcome.stop), (End::Exited(code), None));
    }
}

#[tokio::test]
async fn the_signal_that_ended_a_command_is_reported() {
    for signal in [Signal::KILL, Signal::TERM, Signal::SEGV] {
        let outcome = run(shell(&format!("kill -{} $$", signal.as_raw()))).await;
        assert_eq!((outcome.end, outcome.stop), (End::Signaled(signal.as_raw()), None));
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
    assert_eq!(outcome.end, End::Signaled(Signal::TERM.as_raw()));
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
    assert_eq!((outcome.end, stdout(&outcome).as_str()), (End::Exited(7), "ready\nbye\n"));
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
    assert_eq!((outcome.end, outcome.left_running), (End::Exited(0), 2));
    assert_eq!(stdout(&outcome), "ok\n");
    assert!(outcome.wall < MARGIN, "{:?}", outcome.wall);
}

#[tokio::test]
async fn a_filter_that_outlives_the_shell_finishes_its_work() {
    let outcome = run(command(&["bash", "-c", "seq 1000 > >(sleep 0.01; tail -n 1)"])).await;
    assert_eq!((stdout(&outcome).as_str(), outcome.left_running), ("1000\n", 0));
}

#[tokio::test]
async fn a_stopped_command_is_asked_to_end_like_any_other() {
    let spec = CommandSpec {
        deadline: Some(Duration::from_millis(300)),
        grace: Duration::from_mins(1),
        ..shell("kill -STOP $$")
    };
    let outcome = run(spec).await;
    assert_eq!(outcome.end, End::Signaled(Signal::TERM.as_raw()));
    assert!(outcome.timed_out() && outcome.wall < Duration::from_secs(30));
}

#[tokio::test]
async fn a_command_that_signals_its_own_group_does_not_reach_its_supervisor() {
    let outcome = run(shell("kill -KILL 0")).await;
    assert_eq!(outcome.end, End::Signaled(Signal::KILL.as_raw()));
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
