//! Nothing outlives a helper or the server, whichever process is killed.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use carrel_exec::{CommandSpec, ExitStatus, SpawnError, Stop};
use pretty_assertions::assert_eq;
use rustix::process::Signal;
use tokio_util::sync::CancellationToken;

use crate::processes::{Mark, children_of, parent_of, send, this_process};
use crate::support::{command, shell, spawner};

/// A command with a process that has left its session, deaf to everything but `KILL`.
const TREE: &str = "trap '' TERM HUP INT USR1; setsid sleep 1000 & sleep 1000 & wait; sleep 1000";

/// The processes of [`TREE`].
const TREE_COUNT: usize = 3;

/// The promise is a second; the rest is for a busy machine.
const PROMPTLY: Duration = Duration::from_secs(5);

async fn gone_promptly(mark: &Mark) {
    let begun = Instant::now();
    mark.until_gone().await;
    assert!(begun.elapsed() < PROMPTLY, "took {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_killed_init_takes_its_tree_along_and_spares_the_others() {
    let (mark, other_mark, cancel) = (Mark::new(), Mark::new(), CancellationToken::new());
    let spawner = spawner();
    let other = spawner.spawn(other_mark.put_on(shell(TREE))).await.unwrap();
    let running = spawner.spawn(mark.put_on(shell(TREE))).await.unwrap();
    mark.until_alive(TREE_COUNT).await;
    other_mark.until_alive(TREE_COUNT).await;
    send(parent_of(running.pid()).unwrap(), Signal::KILL);
    gone_promptly(&mark).await;
    let outcome = running.wait(&cancel).await;
    assert_eq!((outcome.end, outcome.stop), (ExitStatus::Lost, None));
    assert_eq!(other_mark.alive().len(), TREE_COUNT);
    drop(other);
    assert!(spawner.run(command(&["true"]), &cancel).await.unwrap().succeeded());
}

#[tokio::test]
async fn an_init_that_is_stopped_cannot_keep_a_command_alive() {
    let mark = Mark::new();
    let deadline = Some(Duration::from_millis(500));
    let spec = mark.put_on(CommandSpec { deadline, ..shell(TREE) });
    let running = spawner().spawn(spec).await.unwrap();
    send(parent_of(running.pid()).unwrap(), Signal::STOP);
    let outcome = running.wait(&CancellationToken::new()).await;
    assert_eq!((outcome.end, outcome.stop), (ExitStatus::Lost, Some(Stop::Deadline)));
    gone_promptly(&mark).await;
}

#[tokio::test]
async fn a_command_that_could_not_begin_before_its_deadline_ran_too_long() {
    let spawner = spawner();
    let helper = children_of(this_process())[0];
    send(helper, Signal::STOP);
    let spec = CommandSpec { deadline: Some(Duration::from_millis(50)), ..shell(TREE) };
    let cancel = CancellationToken::new();
    let later = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        send(helper, Signal::CONT);
    };
    let (outcome, ()) = tokio::join!(spawner.run(spec, &cancel), later);
    assert_eq!(outcome.unwrap().stop, Some(Stop::Deadline));
}

#[tokio::test]
async fn a_killed_spawner_takes_every_tree_along_and_is_noticed() {
    let (mark, cancel) = (Mark::new(), CancellationToken::new());
    let spawner = spawner();
    let running = spawner.spawn(mark.put_on(shell(TREE))).await.unwrap();
    mark.until_alive(TREE_COUNT).await;
    send(children_of(this_process())[0], Signal::KILL);
    gone_promptly(&mark).await;
    assert_eq!(running.wait(&cancel).await.end, ExitStatus::Lost);
    spawner.gone().await;
    let error = spawner.run(command(&["true"]), &cancel).await.unwrap_err();
    assert!(matches!(error, SpawnError::SpawnerGone), "{error:?}");
}

#[tokio::test]
async fn a_killed_server_takes_every_tree_along_even_that_of_a_stopped_init() {
    let mark = Mark::new();
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "survival::stand_in_for_a_server"])
        .env("STAND_IN_MARK", mark.name())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    mark.until_alive(2 * TREE_COUNT).await;
    let commands = mark.alive();
    let mut parents = commands.iter().filter_map(|pid| parent_of(*pid));
    send(parents.find(|parent| !commands.contains(parent)).unwrap(), Signal::STOP);
    server.kill().unwrap();
    server.wait().unwrap();
    gone_promptly(&mark).await;
}

#[tokio::test]
#[ignore = "the process that another test starts and kills"]
async fn stand_in_for_a_server() {
    let Ok(name) = std::env::var("STAND_IN_MARK") else { return };
    let (mark, spawner, cancel) = (Mark::named(&name), spawner(), CancellationToken::new());
    let first = spawner.run(mark.put_on(shell(TREE)), &cancel);
    let second = spawner.run(mark.put_on(shell(TREE)), &cancel);
    let _ = tokio::join!(first, second);
}
