//! Output while it arrives, and readers that are slow.

use std::time::{Duration, Instant};

use carrel_domain::ByteSize;
use carrel_exec::{
    CaptureLimits, CommandSpec, LiveOutput, LogEnd, LogFile, Outcome, Output, Piece,
    RunningCommand, StreamName,
};
use pretty_assertions::assert_eq;
use tokio_util::sync::CancellationToken;

use crate::support::{command, directory, peak_memory, shell, spawner, stdout, until};

const SEPARATE: Output =
    Output::Separate { stdout: CaptureLimits::STDOUT, stderr: CaptureLimits::STDERR };

/// What a stop may take beyond deadline and grace on a busy machine.
const MARGIN: Duration = Duration::from_secs(5);

fn piece(stream: StreamName, text: &str) -> Piece {
    Piece { stream, bytes: text.as_bytes().to_vec() }
}

/// Takes everything, with a pause after each piece, and returns how many bytes there were.
async fn take_slowly(mut live: LiveOutput, pause: Duration) -> u64 {
    let mut total = 0;
    while let Some(piece) = live.next().await {
        total += piece.bytes.len() as u64;
        tokio::time::sleep(pause).await;
    }
    total
}

/// Waits for a command and shows each piece of its output to a sink.
async fn wait_with(mut running: RunningCommand, mut sink: impl FnMut(Piece)) -> Outcome {
    let mut live = running.live();
    let cancel = CancellationToken::new();
    let showing = async {
        while let Some(piece) = live.next().await {
            sink(piece);
        }
    };
    tokio::join!(running.wait(&cancel), showing).0
}

#[tokio::test]
async fn output_is_seen_before_the_command_goes_on() {
    let workspace = tempfile::tempdir().unwrap();
    let script = "
        echo one; until [ -e 1 ]; do sleep 0.01; done
        echo two >&2; until [ -e 2 ]; do sleep 0.01; done
        echo three";
    let directory = directory(workspace.path()).into();
    let spec = CommandSpec { output: SEPARATE, directory, ..shell(script) };
    let running = spawner().spawn(spec).await.unwrap();
    let mut seen = Vec::new();
    let sink = |piece| {
        seen.push(piece);
        std::fs::write(workspace.path().join(seen.len().to_string()), "").unwrap();
    };
    let outcome = wait_with(running, sink).await;
    let expected = [
        piece(StreamName::Stdout, "one\n"),
        piece(StreamName::Stderr, "two\n"),
        piece(StreamName::Stdout, "three\n"),
    ];
    assert_eq!(seen, expected);
    assert_eq!((outcome.succeeded(), stdout(&outcome).as_str()), (true, "one\nthree\n"));
}

#[tokio::test]
async fn a_sink_sees_exactly_what_the_command_prints() {
    let running = spawner().spawn(shell("seq 200000; printf 'a\\377b'")).await.unwrap();
    let mut seen = Vec::new();
    let sink = |piece: Piece| seen.extend(piece.bytes);
    let outcome = wait_with(running, sink).await;
    let mut expected: Vec<u8> =
        (1..=200_000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
    expected.extend(b"a\xffb");
    assert_eq!(outcome.stdout.total_bytes, seen.len() as u64);
    assert!(seen == expected);
    assert!(outcome.stdout.truncated() && outcome.stdout.head == expected[..50 << 10]);
}

#[tokio::test]
async fn fifty_megabytes_into_a_slow_reader_cost_a_fixed_amount_of_memory() {
    const TOTAL: u64 = 50_000_000;
    let log = tempfile::tempfile().unwrap();
    let spec = CommandSpec {
        log: Some(LogFile { file: Some(log), limit: ByteSize::mib(64) }),
        ..command(&["head", "-c", &TOTAL.to_string(), "/dev/zero"])
    };
    let mut running = spawner().spawn(spec).await.unwrap();
    let live = running.live();
    let (before, cancel) = (peak_memory(), CancellationToken::new());
    let slowly = take_slowly(live, Duration::from_millis(1));
    let (outcome, taken) = tokio::join!(running.wait(&cancel), slowly);
    let growth = peak_memory() - before;
    assert!(growth < 16 << 10, "memory grew by {growth} KiB");
    assert_eq!((taken, outcome.stdout.total_bytes), (TOTAL, TOTAL));
    assert_eq!((outcome.succeeded(), outcome.log), (true, Some(LogEnd::Complete)));
}

/// Holds the output of a command without taking any, until the command has ended.
async fn take_nothing(live: LiveOutput, pid: i32) {
    let process = format!("/proc/{pid}");
    until("the command has ended", || !std::path::Path::new(&process).exists()).await;
    drop(live);
}

#[tokio::test]
async fn a_reader_that_takes_nothing_suspends_neither_deadline_nor_cancellation() {
    let deadline = Duration::from_millis(500);
    let begun = Instant::now();
    let spec = CommandSpec { deadline: Some(deadline), ..shell("exec yes") };
    let spawner = spawner();
    let mut running = spawner.spawn(spec).await.unwrap();
    let nothing = take_nothing(running.live(), running.pid());
    let cancel = CancellationToken::new();
    let (outcome, ()) = tokio::join!(running.wait(&cancel), nothing);
    assert!(outcome.timed_out(), "{outcome:?}");
    assert!(begun.elapsed() < deadline + MARGIN, "{:?}", begun.elapsed());
    // The command was held up, so what it printed is what fits between it and the reader.
    assert!(outcome.stdout.total_bytes < 4 << 20, "{}", outcome.stdout.total_bytes);

    let mut running = spawner.spawn(shell("exec yes")).await.unwrap();
    let nothing = take_nothing(running.live(), running.pid());
    let cancel = CancellationToken::new();
    let cancelling = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
    };
    let begun = Instant::now();
    let (outcome, (), ()) = tokio::join!(running.wait(&cancel), nothing, cancelling);
    assert_eq!(outcome.stop, Some(carrel_exec::Stop::Cancelled));
    assert!(begun.elapsed() < MARGIN, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_reader_that_goes_away_lets_the_command_go_on() {
    let mut running = spawner().spawn(command(&["seq", "500000"])).await.unwrap();
    let mut live = running.live();
    let cancel = CancellationToken::new();
    let leaving = async move { live.next().await.map(|piece| piece.stream) };
    let (outcome, first) = tokio::join!(running.wait(&cancel), leaving);
    assert_eq!((outcome.succeeded(), first), (true, Some(StreamName::Stdout)));
    assert_eq!(outcome.stdout.total_bytes, 3_388_895);
}
