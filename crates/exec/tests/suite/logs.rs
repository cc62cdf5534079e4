//! Logs that are read with a cursor.

use std::fs;

use carrel_domain::{ByteSize, Code, Coded};
use carrel_exec::{
    CaptureLimits, Chunk, CommandSpec, Cursor, LogFile, LogReader, MAX_READ_BYTES, Output,
};
use pretty_assertions::assert_eq;
use tempfile::NamedTempFile;
use tokio_util::sync::CancellationToken;

use crate::support::{command, directory, shell, spawner};

/// An odd size, so that parts end anywhere.
const PART: usize = 10_007;

fn logged(log: &NamedTempFile, limit: ByteSize, spec: CommandSpec) -> CommandSpec {
    let file = fs::File::options().read(true).write(true).open(log.path()).unwrap();
    CommandSpec { log: Some(LogFile { file: Some(file), limit }), ..spec }
}

/// Reads from the start until the end, while there may be more to come.
async fn read_all(reader: &LogReader) -> (Vec<u8>, Chunk) {
    let (mut bytes, mut cursor) = (Vec::new(), Cursor::START);
    loop {
        let chunk = reader.read(cursor, PART).await.unwrap();
        bytes.extend(&chunk.bytes);
        cursor = chunk.next;
        if chunk.end {
            return (bytes, chunk);
        }
        if chunk.bytes.is_empty() {
            reader.reaches_beyond(cursor).await.unwrap();
        }
    }
}

#[tokio::test]
async fn parts_read_while_the_command_runs_are_exactly_the_log() {
    let file = NamedTempFile::new().unwrap();
    let output = Output::Separate { stdout: CaptureLimits::STDOUT, stderr: CaptureLimits::STDERR };
    let script = "
        i=0; while [ $i -lt 30 ]; do
            seq 5000; seq 5000 >&2; printf '\\377\\303\\000'; sleep 0.005; i=$((i+1))
        done";
    let spec = logged(&file, ByteSize::mib(64), CommandSpec { output, ..shell(script) });
    let running = spawner().spawn(spec).await.unwrap();
    let reader = running.log_reader().unwrap();
    let cancel = CancellationToken::new();
    let (outcome, (bytes, last)) = tokio::join!(running.wait(&cancel), read_all(&reader));
    let total = outcome.stdout.total_bytes + outcome.stderr.total_bytes;
    assert_eq!((bytes.len() as u64, last.truncated), (total, false));
    assert!(bytes == fs::read(file.path()).unwrap());
    assert_eq!(bytes.windows(3).filter(|three| *three == b"\xff\xc3\0").count(), 30);
    // Each stream is whole and in order, wherever the other comes in between.
    assert_eq!((outcome.stdout.total_bytes, outcome.stderr.total_bytes), (716_880, 716_790));
}

#[tokio::test]
async fn combined_output_is_logged_in_the_order_of_writing() {
    let file = NamedTempFile::new().unwrap();
    let script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done";
    let spec = logged(&file, ByteSize::mib(1), shell(script));
    let running = spawner().spawn(spec).await.unwrap();
    let reader = running.log_reader().unwrap();
    running.wait(&CancellationToken::new()).await;
    let expected = "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n".to_owned();
    let end = Cursor(expected.len() as u64);
    let bytes = expected.into_bytes();
    let whole = Chunk { bytes, next: end, end: true, truncated: false };
    assert_eq!(reader.read(Cursor::START, PART).await.unwrap(), whole);
    let part = Chunk { bytes: b"err".to_vec(), next: Cursor(9), end: false, truncated: false };
    assert_eq!(reader.read(Cursor(6), 3).await.unwrap(), part);
    let nothing = Chunk { bytes: Vec::new(), ..whole };
    assert_eq!(reader.read(end, PART).await.unwrap(), nothing);
    assert!(!reader.reaches_beyond(end).await.unwrap());
}

#[tokio::test]
async fn a_cursor_beyond_the_log_is_refused_with_what_would_be_valid() {
    let file = NamedTempFile::new().unwrap();
    let spec = logged(&file, ByteSize::mib(1), command(&["echo", "hello"]));
    let running = spawner().spawn(spec).await.unwrap();
    let reader = running.log_reader().unwrap();
    running.wait(&CancellationToken::new()).await;
    let error = reader.read(Cursor(7), PART).await.unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (Code::InvalidCursor, "cursor 7 is beyond the log, which has 0 to 6")
    );
    assert_eq!(error.detail(), serde_json::json!({ "cursor": 7, "first": 0, "last": 6 }));
    assert!(reader.reaches_beyond(Cursor(7)).await.is_err());
}

#[tokio::test]
async fn a_log_beyond_its_limit_says_so_in_every_part() {
    let file = NamedTempFile::new().unwrap();
    let spec = logged(&file, ByteSize::kib(100), command(&["head", "-c", "200000", "/dev/zero"]));
    let running = spawner().spawn(spec).await.unwrap();
    let reader = running.log_reader().unwrap();
    running.wait(&CancellationToken::new()).await;
    let (bytes, last) = read_all(&reader).await;
    assert!(bytes == fs::read(file.path()).unwrap() && bytes.len() > 100 << 10);
    assert!(last.truncated && reader.read(Cursor::START, 1).await.unwrap().truncated);
}

#[tokio::test]
async fn one_read_never_returns_more_than_a_fixed_amount() {
    let file = NamedTempFile::new().unwrap();
    let spec = logged(&file, ByteSize::mib(8), command(&["head", "-c", "3000000", "/dev/zero"]));
    let running = spawner().spawn(spec).await.unwrap();
    let reader = running.log_reader().unwrap();
    running.wait(&CancellationToken::new()).await;
    let chunk = reader.read(Cursor::START, usize::MAX).await.unwrap();
    assert_eq!((chunk.bytes.len(), chunk.end), (MAX_READ_BYTES, false));
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_an_error_and_no_empty_part() {
    let file = NamedTempFile::new().unwrap();
    let write_only = fs::File::options().write(true).open(file.path()).unwrap();
    let log = Some(LogFile { file: Some(write_only), limit: ByteSize::mib(1) });
    let running = spawner().spawn(CommandSpec { log, ..shell("echo x") }).await.unwrap();
    let reader = running.log_reader().unwrap();
    running.wait(&CancellationToken::new()).await;
    assert_eq!(reader.read(Cursor::START, PART).await.unwrap_err().code(), Code::Io);
}

#[tokio::test]
async fn the_log_of_a_command_that_was_dropped_has_an_end() {
    let (file, workspace) = (NamedTempFile::new().unwrap(), tempfile::tempdir().unwrap());
    let spec = CommandSpec { directory: directory(workspace.path()).into(), ..shell("sleep 1000") };
    let running = spawner().spawn(logged(&file, ByteSize::mib(1), spec)).await.unwrap();
    let reader = running.log_reader().unwrap();
    assert!(!reader.read(Cursor::START, PART).await.unwrap().end);
    drop(running);
    assert!(reader.read(Cursor::START, PART).await.unwrap().end);
}
