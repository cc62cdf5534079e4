//! What a command is given, and how a start fails.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use carrel_domain::{Code, Coded};
use carrel_exec::{CommandSpec, ExitStatus, SpawnError, Stdin};
use pretty_assertions::assert_eq;
use tokio_util::sync::CancellationToken;

use crate::support::{command, directory, run, shell, spawner, stdout, variable};

#[tokio::test]
async fn a_command_without_input_reads_the_end_of_file() {
    let outcome = run(command(&["cat"])).await;
    assert_eq!((outcome.end, outcome.stdout.total_bytes), (ExitStatus::Exited(0), 0));
}

#[tokio::test]
async fn a_command_reads_the_bytes_it_is_given() {
    let stdin = Stdin::Bytes(b"a\0\xff".repeat(100_000));
    let outcome = run(CommandSpec { stdin, ..command(&["wc", "-c"]) }).await;
    assert_eq!(stdout(&outcome), "300000\n");
}

#[tokio::test]
async fn the_working_directory_is_the_descriptor_even_when_it_is_renamed() {
    let root = tempfile::tempdir().unwrap();
    let (before, after) = (root.path().join("before"), root.path().join("after"));
    fs::create_dir(&before).unwrap();
    let spec = CommandSpec { directory: directory(&before).into(), ..command(&["pwd", "-P"]) };
    fs::rename(&before, &after).unwrap();
    let expected = format!("{}\n", after.canonicalize().unwrap().display());
    assert_eq!(stdout(&run(spec).await), expected);
}

#[tokio::test]
async fn the_environment_is_exactly_what_was_given() {
    let environment = vec![variable("PATH", "/usr/bin:/bin"), variable("B", "x=y\nz")];
    let outcome = run(CommandSpec { environment, ..command(&["env", "-0"]) }).await;
    assert_eq!(stdout(&outcome), "PATH=/usr/bin:/bin\0B=x=y\nz\0");
}

#[tokio::test]
async fn a_program_is_looked_up_in_the_path_of_the_command() {
    let tools = tempfile::tempdir().unwrap();
    let program = tools.path().join("greet");
    fs::write(&program, "#!/bin/sh\necho hello\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let environment = vec![variable("PATH", tools.path().to_str().unwrap())];
    let outcome = run(CommandSpec { environment, ..command(&["greet"]) }).await;
    assert_eq!(stdout(&outcome), "hello\n");
}

#[tokio::test]
async fn a_command_inherits_no_descriptor_but_its_own() {
    // `ls` itself opens one to read the directory.
    let outcome = run(command(&["ls", "/proc/self/fd"])).await;
    assert_eq!(stdout(&outcome), "0\n1\n2\n3\n");
    let inherited = vec![directory("/"), directory("/")];
    let outcome = run(CommandSpec { inherited, ..command(&["ls", "/proc/self/fd"]) }).await;
    assert_eq!(stdout(&outcome), "0\n1\n100\n101\n2\n3\n");
}

#[tokio::test]
async fn a_command_starts_with_no_signal_blocked_or_ignored() {
    // The C library keeps 32 and 33 for itself, and ignores them in processes that it starts.
    const OF_THE_C_LIBRARY: u64 = 0b11 << 31;
    let outcome = run(command(&["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"])).await;
    for line in stdout(&outcome).lines() {
        let (_, mask) = line.split_once(":\t").unwrap();
        assert_eq!(u64::from_str_radix(mask, 16).unwrap() & !OF_THE_C_LIBRARY, 0, "{line}");
    }
}

#[tokio::test]
async fn an_argument_of_a_hundred_kibibytes_arrives() {
    let script = format!("echo {}", "x".repeat(100 << 10));
    let outcome = run(shell(&script)).await;
    assert_eq!((outcome.end, outcome.stdout.total_bytes), (ExitStatus::Exited(0), (100 << 10) + 1));
}

#[tokio::test]
async fn a_start_that_fails_says_why() {
    let spawner = spawner();
    let file = tempfile::NamedTempFile::new().unwrap();
    let plain_file = file.path().to_str().unwrap();
    let long = "x".repeat(200 << 10);
    let bad_name = vec![variable("A=B", "")];
    let mut seen = Vec::new();
    for spec in [
        command(&["/no/such/program"]),
        command(&["no-such-program"]),
        command(&[plain_file]),
        command(&["echo", &long]),
        CommandSpec { directory: directory(plain_file).into(), ..command(&["true"]) },
        command(&[]),
        command(&["echo", "a\0b"]),
        CommandSpec { environment: bad_name, ..command(&["true"]) },
    ] {
        let error = spawner.run(spec, &CancellationToken::new()).await.unwrap_err();
        seen.push((error.code(), error.to_string()));
    }
    let expected = [
        (Code::NotFound, "no such program: /no/such/program".to_owned()),
        (Code::NotFound, "no such program: no-such-program".to_owned()),
        (Code::PermissionDenied, format!("program may not be executed: {plain_file}")),
        (Code::SpawnFailed, "could not execute echo".to_owned()),
        (Code::SpawnFailed, "could not enter the working directory".to_owned()),
        (Code::SpawnFailed, "the command is empty".to_owned()),
        (
            Code::SpawnFailed,
            "an argument or the value of a variable contains a NUL byte".to_owned(),
        ),
        (Code::SpawnFailed, "not a name for an environment variable: \"A=B\"".to_owned()),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_command_that_failed_to_start_leaves_the_spawner_usable() {
    let spawner = spawner();
    let cancel = CancellationToken::new();
    let error = spawner.run(command(&["no-such-program"]), &cancel).await.unwrap_err();
    assert!(matches!(error, SpawnError::NotFound { .. }));
    assert!(spawner.run(command(&["true"]), &cancel).await.unwrap().succeeded());
}

#[tokio::test]
async fn a_file_that_is_no_program_is_not_handed_to_a_shell() {
    let tools = tempfile::tempdir().unwrap();
    let script = tools.path().join("script");
    fs::write(&script, "echo ran > ran\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let many = vec![String::from("word"); 30_000];
    let argv: Vec<&str> =
        [script.to_str().unwrap()].into_iter().chain(many.iter().map(String::as_str)).collect();
    let spec = CommandSpec { directory: directory(tools.path()).into(), ..command(&argv) };
    let error = spawner().run(spec, &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error, SpawnError::Execute { .. }), "{error:?}");
    assert!(!tools.path().join("ran").exists());
}

#[tokio::test]
async fn a_command_has_only_so_many_arguments() {
    let many = vec!["x"; CommandSpec::MAX_WORDS + 1];
    let error = spawner().run(command(&many), &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error, SpawnError::TooLong { .. }), "{error:?}");
    let most = vec!["true"; CommandSpec::MAX_WORDS - 8];
    assert!(run(command(&most)).await.succeeded());
}
