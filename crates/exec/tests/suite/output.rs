//! What is kept of what a command prints.

use std::fs;
use std::fs::{File, OpenOptions};

use carrel_domain::ByteSize;
use carrel_exec::{CaptureLimits, Captured, CommandSpec, LogEnd, LogFile, Output};
use pretty_assertions::assert_eq;
use tokio_util::sync::CancellationToken;

use crate::support::{command, directory, peak_memory, run, shell, spawner, stdout};

const SMALL: CaptureLimits = CaptureLimits { head: ByteSize::kib(4), tail: ByteSize::kib(4) };

#[tokio::test]
async fn combined_output_keeps_the_order_of_both_streams() {
    let outcome = run(shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2")).await;
    assert_eq!(stdout(&outcome), "1\n2\n3\n4\n");
    assert_eq!(outcome.stderr, Captured::default());
}

#[tokio::test]
async fn separate_output_keeps_the_streams_apart() {
    let output = Output::Separate { stdout: SMALL, stderr: SMALL };
    let spec = CommandSpec { output, ..shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2") };
    let outcome = run(spec).await;
    assert_eq!(
        (outcome.stdout.to_text(100).as_str(), outcome.stderr.to_text(100).as_str()),
        ("1\n3\n", "2\n4\n")
    );
}

#[tokio::test]
async fn output_that_is_not_text_survives() {
    let outcome = run(command(&["printf", r"a\377\000\303b"])).await;
    assert_eq!(outcome.stdout.head, b"a\xff\0\xc3b");
}

#[tokio::test]
async fn a_command_that_prints_a_hundred_megabytes_costs_a_fixed_amount_of_memory() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let limit = ByteSize::mib(1);
    let spec = CommandSpec {
        output: Output::Combined(SMALL),
        log: Some(LogFile { file: Some(log.reopen().unwrap()), limit }),
        ..command(&["head", "-c", "100000000", "/dev/zero"])
    };
    let spawner = spawner();
    let before = peak_memory();
    let outcome = spawner.run(spec, &CancellationToken::new()).await.unwrap();
    let growth = peak_memory() - before;
    assert!(growth < 16 << 10, "memory grew by {growth} KiB");
    assert_eq!((outcome.stdout.total_bytes, outcome.stdout.omitted()), (100_000_000, 99_991_808));
    assert_eq!(outcome.log, Some(LogEnd::Truncated));
    let logged = fs::read(log.path()).unwrap();
    let (kept, notice) = logged.split_at(1 << 20);
    assert!(kept.iter().all(|byte| *byte == 0));
    assert_eq!(notice, "\n… log limit of 1.0 MiB reached …\n".as_bytes());
}

#[tokio::test]
async fn a_log_has_all_output_of_both_streams() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let spec = CommandSpec {
        output: Output::Separate { stdout: SMALL, stderr: SMALL },
        log: Some(LogFile { file: Some(log.reopen().unwrap()), limit: ByteSize::mib(1) }),
        ..shell("seq 20000; seq 20000 >&2")
    };
    let outcome = run(spec).await;
    let total = outcome.stdout.total_bytes + outcome.stderr.total_bytes;
    assert_eq!((outcome.log, total), (Some(LogEnd::Complete), 2 * 108_894));
    assert_eq!(fs::metadata(log.path()).unwrap().len(), total);
}

#[tokio::test]
async fn a_log_that_cannot_be_written_does_not_stop_the_command() {
    let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let log = Some(LogFile { file: Some(file), limit: ByteSize::mib(1) });
    let outcome = run(CommandSpec { log, ..command(&["seq", "100000"]) }).await;
    assert_eq!((outcome.succeeded(), outcome.log), (true, Some(LogEnd::Failed)));
    assert_eq!(outcome.stdout.total_bytes, 588_895);
}

#[tokio::test]
async fn a_log_that_takes_nothing_does_not_suspend_the_deadline() {
    // A pipe that nobody reads stands for a disk that does not answer.
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let log = Some(LogFile { file: Some(File::from(writer)), limit: ByteSize::mib(64) });
    let deadline = Some(std::time::Duration::from_millis(500));
    let begun = std::time::Instant::now();
    let outcome = run(CommandSpec { log, deadline, ..shell("yes") }).await;
    assert!(outcome.timed_out(), "{outcome:?}");
    assert_eq!(outcome.log, Some(LogEnd::Failed));
    assert!(begun.elapsed() < std::time::Duration::from_secs(15), "{:?}", begun.elapsed());
    drop(reader);
}

#[tokio::test]
async fn a_pipe_that_another_process_holds_open_does_not_delay_the_end() {
    let workspace = tempfile::tempdir().unwrap();
    let script = "echo before; until [ -e go ]; do sleep 0.01; done; echo after";
    let spec = CommandSpec { directory: directory(workspace.path()).into(), ..shell(script) };
    let running = spawner().spawn(spec).await.unwrap();
    let path = format!("/proc/{}/fd/1", running.pid());
    let held = OpenOptions::new().write(true).open(path).unwrap();
    File::create(workspace.path().join("go")).unwrap();
    let outcome = running.wait(&CancellationToken::new()).await;
    assert_eq!(stdout(&outcome), "before\nafter\n");
    drop(held);
}
