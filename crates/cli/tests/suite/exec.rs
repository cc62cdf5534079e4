//! `carrel exec` as its users meet it: statuses, streams, arguments, refusals.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, symlink};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::eventually;
use crate::test_environment::{Caller, Done, Mark, Process, TestEnvironment, descendants, is_soak};

/// Long enough for a busy machine, and much less than any command here would run by itself.
const DEADLINE: Duration = Duration::from_secs(10);

#[test]
fn the_status_is_that_of_the_command() {
    for test_env in TestEnvironment::all() {
        for status in [0, 1, 2, 42, 124, 125, 126, 127, 128, 255] {
            let done = test_env.line(&format!("exit {status}"));
            assert_eq!(
                (done.code, &done.json["exit_code"]),
                (status, &status.into()),
                "{test_env}"
            );
            assert_eq!(
                (&done.json["signal"], &done.json["timed_out"]),
                (&json!(null), &json!(false))
            );
        }
    }
}

#[test]
fn every_status_there_is_comes_back() {
    let test_env = TestEnvironment::usual();
    let step = if is_soak() { 1 } else { 15 };
    for status in (0..=255).step_by(step) {
        let mut command = test_env.exec(&["--", "sh", "-c", "exit $0"]);
        let output = command.arg(status.to_string()).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{output:?}");
    }
}

#[test]
fn a_signal_is_told_apart_from_a_status() {
    for test_env in TestEnvironment::all() {
        for signal in [1, 2, 6, 9, 11, 13, 15] {
            let done = test_env.line(&format!("kill -{signal} $$"));
            assert_eq!(done.code, 128 + signal, "{test_env}");
            let json = (&done.json["exit_code"], &done.json["signal"], &done.json["limit"]);
            assert_eq!(json, (&json!(null), &json!(signal), &json!(null)), "{test_env}");
        }
    }
}

#[test]
fn what_cannot_start_is_not_mistaken_for_a_command_that_failed() {
    for test_env in TestEnvironment::all() {
        test_env.write("plain", "not a program");
        for (program, code) in [
            ("no-such-program", "E_NOT_FOUND"),
            ("./no-such-program", "E_NOT_FOUND"),
            ("./plain", "E_PERMISSION_DENIED"),
            (".", "E_PERMISSION_DENIED"),
        ] {
            let done = test_env.run(&["--", program]);
            assert_eq!(done.code, 125, "{test_env} {program}: {done:?}");
            assert_eq!(done.error()["code"], code, "{test_env} {program}: {done:?}");
        }
    }
}

#[test]
fn a_deadline_keeps_what_was_printed_before() {
    TestEnvironment::each(|test_env| {
        let done =
            test_env.run(&["--timeout", "1", "-c", "echo early; echo error >&2; sleep 1000"]);
        assert_eq!((done.code, done.stdout()), (124, "early\n"), "{test_env}");
        assert_eq!(
            (&done.json["stderr"], &done.json["timed_out"]),
            (&json!("error\n"), &json!(true))
        );
        let wall = done.json["cost"]["wall_ms"].as_f64().unwrap();
        assert!((1000.0..5000.0).contains(&wall), "{test_env}: {wall}");
    });
}

#[test]
fn input_comes_from_a_pipe_a_file_or_nowhere() {
    for test_env in TestEnvironment::all() {
        let count = || test_env.exec(&["--json", "--", "wc", "-c"]);
        let nothing = Done::of(count());
        assert_eq!((nothing.code, nothing.stdout()), (0, "0\n"), "{test_env}");

        let path = test_env.path("input");
        std::fs::write(&path, vec![b'x'; 3_000_000]).unwrap();
        let mut command = count();
        command.stdin(std::fs::File::open(&path).unwrap());
        assert_eq!(Done::of(command).stdout(), "3000000\n", "{test_env}");

        let mut command = count();
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        child.stdin.take().unwrap().write_all(&vec![b'x'; 1_000_000]).unwrap();
        let done = Done::from_output(&child.wait_with_output().unwrap(), Duration::ZERO);
        assert_eq!(done.stdout(), "1000000\n", "{test_env}");
    }
}

#[test]
fn a_pipe_that_nobody_writes_to_holds_up_neither_end_nor_deadline() {
    TestEnvironment::each(|test_env| {
        for (options, code) in [(&["--", "true"][..], 0), (&["--timeout", "1", "--", "cat"], 124)] {
            let mut command = test_env.exec(&[&["--json"][..], options].concat());
            let pipes = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            let begun = Instant::now();
            let mut child = pipes.spawn().unwrap();
            let _open = child.stdin.take();
            assert_eq!(child.wait().unwrap().code(), Some(code), "{test_env}");
            assert!(begun.elapsed() < DEADLINE, "{test_env}: {:?}", begun.elapsed());
        }
    });
}

#[test]
fn a_program_that_does_not_read_its_input_ends_all_the_same() {
    let test_env = TestEnvironment::usual();
    let mut command = test_env.exec(&["--", "head", "-c", "3"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // More than a pipe holds: this end breaks when nobody reads any more.
    let _ = child.stdin.take().unwrap().write_all(&vec![b'x'; 1 << 20]);
    assert_eq!(child.wait_with_output().unwrap().stdout, b"xxx");
}

#[test]
fn bytes_that_are_no_text_pass_as_they_are() {
    for test_env in TestEnvironment::all() {
        let line = r"printf '\377\376a\0b\200'; printf '\303' >&2";
        let output = test_env.exec(&["-c", line]).output().unwrap();
        assert_eq!(output.stdout, b"\xff\xfea\0b\x80", "{test_env}");
        assert_eq!(output.stderr, b"\xc3", "{test_env}");
        let done = test_env.line(line);
        assert_eq!((done.code, done.stdout()), (0, "\u{fffd}\u{fffd}a\0b\u{fffd}"), "{test_env}");
        assert_eq!(done.json["stdout_bytes"], 6, "{test_env}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_nothing_and_hangs_nobody() {
    for test_env in TestEnvironment::all() {
        let mut command =
            test_env.exec(&["-c", "for i in $(seq 20000); do echo line $i; done; touch done"]);
        let begun = Instant::now();
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 4];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        assert_eq!((&first, child.wait().unwrap().code()), (b"line", Some(0)), "{test_env}");
        assert!(test_env.workspace().join("done").exists(), "{test_env}");
        assert!(begun.elapsed() < DEADLINE, "{test_env}: {:?}", begun.elapsed());
        // With `--json` there is nothing to write to before the end.
        let mut command = test_env.exec(&["--json", "--", "true"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{test_env}");
    }
}

#[test]
fn a_reader_that_stops_reading_does_not_hold_up_the_deadline() {
    TestEnvironment::each(|test_env| {
        let mark = Mark::new();
        let line = format!("sleep {} & yes", mark.0);
        let mut command = test_env.exec(&["--timeout", "1", "-c", &line]);
        let begun = Instant::now();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        eventually("the command runs", || !mark.alive().is_empty());
        // Its reader is there and reads nothing.
        while !mark.alive().is_empty() && begun.elapsed() < DEADLINE {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(mark.alive(), [0; 0], "{test_env}: still running after {:?}", begun.elapsed());
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(124), "{test_env}");
    });
}

#[test]
fn a_request_to_end_ends_the_command_first() {
    for test_env in TestEnvironment::all() {
        let mark = Mark::new();
        let line =
            format!("trap 'echo asked; exit 3' TERM; setsid sleep {0} & sleep {0} & wait", mark.0);
        let mut command = test_env.exec(&["--json", "-c", &line]);
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        eventually("the command runs", || mark.alive().len() >= 3);
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let done = Done::from_output(&child.wait_with_output().unwrap(), Duration::ZERO);
        assert_eq!((done.code, done.stdout(), mark.alive()), (3, "asked\n", vec![]), "{test_env}");
    }
}

#[test]
fn a_line_that_needs_no_shell_runs_as_if_there_had_been_one() {
    for test_env in TestEnvironment::all() {
        let variables = |done: Done| {
            let text = done.json["stdout"].as_str().unwrap().to_owned();
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            // Each command has a directory of its own for temporary files and settings.
            let own = ["TMPDIR=", "GIT_CONFIG_GLOBAL="];
            lines.retain(|line| own.iter().all(|name| !line.starts_with(name)));
            lines.sort();
            lines
        };
        // A comment is something that only a shell leaves out.
        assert_eq!(
            variables(test_env.line("env")),
            variables(test_env.line("env # plainly")),
            "{test_env}"
        );
        test_env.write("real/file", "");
        symlink("real", test_env.workspace().join("link")).unwrap();
        for directory in ["real", "./real/", "real/../real", "link"] {
            let [plain, by_shell] = ["env", "env # plainly"]
                .map(|line| variables(test_env.run(&["--cwd", directory, "-c", line])));
            assert_eq!(plain, by_shell, "{test_env} in {directory}");
        }
        let missing = test_env.line("no-such-program");
        assert_eq!(missing.code, 127, "{test_env}");
        let said = missing.json["stderr"].as_str().unwrap();
        assert!(said.contains("no-such-program: command not found"), "{test_env}: {said}");
    }
}

#[test]
fn arguments_arrive_as_they_are() {
    for test_env in TestEnvironment::all() {
        let script = r"import os, sys; print([os.fsencode(a) for a in sys.argv[1:]])";
        let mut command = test_env.exec(&["--json", "--", "/usr/bin/python3", "-c", script]);
        command.args(["", " ", "*", "$HOME", "a\nb", "--json", "--"]);
        command.arg(OsString::from_vec(vec![b'x', 0xff]));
        let done = Done::of(command);
        let expected = r"[b'', b' ', b'*', b'$HOME', b'a\nb', b'--json', b'--', b'x\xff']";
        assert_eq!(done.stdout().trim_end(), expected, "{test_env}");
    }
}

#[test]
fn a_huge_command_line_works_and_one_that_no_kernel_takes_is_refused() {
    for test_env in TestEnvironment::all() {
        let mut command = test_env.exec(&["--json", "--", "/usr/bin/python3", "-c"]);
        command.arg("import sys; print(len(sys.argv), sum(map(len, sys.argv)))");
        let long = "x".repeat(100_000);
        command.args(std::iter::repeat_n(&long, 15));
        let done = Done::of(command);
        assert_eq!((done.code, done.stdout()), (0, "16 1500002\n"), "{test_env}: {}", done.stderr);
    }
}

#[test]
fn a_command_of_nothing_is_an_error_of_use() {
    let test_env = TestEnvironment::usual();
    for options in [&[][..], &["--"], &["-c", "true", "--", "true"]] {
        let done = test_env.run(options);
        assert_eq!(done.code, 2, "{options:?}: {done:?}");
        assert_eq!(done.error()["code"], "E_USAGE", "{done:?}");
    }
    for argv in [&["--", ""][..], &["--", "", "x"]] {
        let done = test_env.run(argv);
        assert_eq!(done.code, 125, "{argv:?}: {done:?}");
    }
    assert_eq!(test_env.run(&["-c", ""]).code, 0);
}

#[test]
fn a_command_starts_in_a_directory_of_the_workspace_or_not_at_all() {
    for test_env in TestEnvironment::all() {
        test_env.write("inner/file", "");
        symlink("/usr", test_env.workspace().join("out")).unwrap();
        symlink("inner", test_env.workspace().join("in")).unwrap();
        for (directory, expected) in
            [("inner", "inner"), ("in", "inner"), (".", ""), ("inner/..", "")]
        {
            let done = test_env.run(&["--cwd", directory, "--", "pwd", "-P"]);
            let expected = std::fs::canonicalize(test_env.workspace().join(expected)).unwrap();
            assert_eq!(
                done.stdout().trim_end(),
                expected.to_str().unwrap(),
                "{test_env} {directory}"
            );
        }
        for (directory, code) in [
            ("missing", "E_NOT_FOUND"),
            ("inner/file", "E_NOT_A_DIRECTORY"),
            ("out", "E_SANDBOX_VIOLATION"),
            ("..", "E_SANDBOX_VIOLATION"),
            ("inner/../..", "E_SANDBOX_VIOLATION"),
            ("/usr", "E_SANDBOX_VIOLATION"),
        ] {
            let done = test_env.run(&["--cwd", directory, "--", "touch", "ran"]);
            assert_eq!(done.code, 125, "{test_env} {directory}: {done:?}");
            assert_eq!(done.error()["code"], code, "{test_env} {directory}: {done:?}");
        }
        assert!(!test_env.workspace().join("ran").exists(), "{test_env}");
    }
}

#[test]
fn a_workspace_that_is_to_be_read_only_is() {
    for test_env in TestEnvironment::all() {
        test_env.write("file", "old");
        let line = "cat file; echo new > file; rm -f file; touch other; mkdir d; \
                    echo fine > $TMPDIR/t && cat $TMPDIR/t";
        let done = test_env.run(&["--read-only", "-c", line]);
        assert_eq!(done.stdout(), "oldfine\n", "{test_env}: {done:?}");
        let names = std::fs::read_dir(test_env.workspace()).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["file"], "{test_env}");
        assert_eq!(
            std::fs::read_to_string(test_env.workspace().join("file")).unwrap(),
            "old",
            "{test_env}"
        );
    }
}

#[test]
fn variables_come_from_the_request_and_from_nobody_else() {
    for test_env in TestEnvironment::all() {
        let mut command =
            test_env.exec(&["--json", "--env", "A=1", "--env", "B=x=y z", "--", "env"]);
        command.env("AWS_SECRET_ACCESS_KEY", "s3cret").env("DATABASE_URL", "postgres://s3cret");
        let done = Done::of(command);
        let text = done.stdout();
        assert!(text.contains("A=1\n") && text.contains("B=x=y z\n"), "{test_env}: {text}");
        assert!(!text.contains("s3cret"), "{test_env}: {text}");
        let names: Vec<_> = text.lines().filter_map(|line| line.split_once('=')).collect();
        let mut names: Vec<_> = names.into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        let expected = ["A", "B", "GIT_CONFIG_GLOBAL", "HOME", "LANG", "PATH", "TERM", "TMPDIR"];
        assert_eq!(names, expected, "{test_env}");
        for wrong in ["A", "=1", "A B=1", "1A=2"] {
            assert_eq!(test_env.run(&["--env", wrong, "--", "true"]).code, 2, "{test_env} {wrong}");
        }
    }
}

#[test]
fn a_preset_refuses_before_anything_starts() {
    let test_env = TestEnvironment::usual();
    for (preset, line) in [
        ("allowlist", "touch ran && sudo true"),
        ("allowlist", "touch ran; rm -rf /"),
        ("denylist", "touch ran; reboot"),
    ] {
        let done = test_env.run(&["--preset", preset, "-c", line]);
        assert_eq!(done.code, 125, "{line}: {done:?}");
        let error = done.error();
        assert_eq!(error["code"], "E_COMMAND_REFUSED", "{line}: {done:?}");
        assert!(error["detail"]["rule"].is_string(), "{line}: {done:?}");
    }
    assert!(!test_env.workspace().join("ran").exists());
    assert_eq!(test_env.run(&["--preset", "allowlist", "-c", "echo 'sudo; mount' && ls"]).code, 0);
}

#[test]
fn an_argument_that_leads_out_is_refused_with_its_number() {
    let test_env = TestEnvironment::usual();
    for (argv, index, value) in [
        (&["cat", "x", "/etc/passwd"][..], 2, "/etc/passwd"),
        (&["ls", "../.."], 1, "../.."),
        (&["cat", "--file=/etc/shadow"], 1, "/etc/shadow"),
    ] {
        let done = test_env.run(&[&["--preset", "allowlist", "--"][..], argv].concat());
        assert_eq!(done.code, 125, "{argv:?}: {done:?}");
        let error = done.error();
        assert_eq!(error["code"], "E_SANDBOX_VIOLATION", "{argv:?}: {done:?}");
        let detail = error["detail"].to_string();
        assert!(
            detail.contains(value) && detail.contains(&format!(":{index}")),
            "{argv:?}: {detail}"
        );
    }
    test_env.write("inside", "text");
    let inside = test_env.workspace().join("inside").display().to_string();
    for argv in [&["cat", "inside"][..], &["cat", "./inside", &inside], &["cat", "/dev/null"]] {
        let done = test_env.run(&[&["--preset", "allowlist", "--"][..], argv].concat());
        assert_eq!(done.code, 0, "{argv:?}: {done:?}");
    }
}

#[test]
fn without_a_sandbox_a_command_runs_on_the_host_and_the_answer_says_so() {
    let test_env = TestEnvironment::usual();
    let run = |options: &[&str]| {
        let mut command = test_env.carrel();
        command
            .args(["exec", "--json", "--sandbox", "off", "--workspace"])
            .arg(test_env.workspace());
        Done::of({
            command.args(options);
            command
        })
    };
    let done = run(&["-c", "pwd; id -u; exit 7"]);
    let workspace = std::fs::canonicalize(test_env.workspace()).unwrap();
    let user = rustix::process::geteuid().as_raw();
    let expected = format!("{}\n{user}\n", workspace.display());
    assert_eq!((done.code, done.stdout()), (7, expected.as_str()), "{done:?}");
    assert_eq!(done.json["sandbox"]["tier"], "off");
    assert_eq!(done.json["sandbox"]["enforced"], json!([]));
    let mark = Mark::new();
    let done = run(&["--timeout", "1", "-c", &format!("setsid sleep {0} & sleep {0}", mark.0)]);
    assert_eq!((done.code, mark.alive()), (124, vec![]));
    let both = test_env.run(&["--sandbox", "off", "--", "true"]);
    assert_eq!(both.code, 2, "a tier and none at once: {both:?}");
}

#[test]
fn a_policy_that_its_own_workspace_could_change_is_refused() {
    for test_env in TestEnvironment::all() {
        test_env.write("policy.toml", "network = \"full\"\n");
        let path = test_env.workspace().join("policy.toml").display().to_string();
        let done = test_env.run(&["--policy", &path, "--", "touch", "ran"]);
        assert_eq!(done.code, 125, "{test_env}: {done:?}");
        assert_eq!(done.error()["code"], "E_POLICY_UNSAFE", "{test_env}: {done:?}");
        // Through a link the file is the same.
        let link = test_env.path("link.toml");
        symlink(&path, &link).unwrap();
        let done = test_env.run(&["--policy", link.to_str().unwrap(), "--", "touch", "ran"]);
        assert_eq!(
            (done.code, &done.error()["code"]),
            (125, &json!("E_POLICY_UNSAFE")),
            "{test_env}"
        );
        assert!(!test_env.workspace().join("ran").exists(), "{test_env}");
    }
}

/// Returns whether memory that a process can write holds these bytes anywhere.
fn memory_holds(pid: i32, bytes: &[u8]) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let range = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
    };
    maps.lines().filter(|line| line.contains(" rw")).filter_map(range).any(|(start, end)| {
        let mut found = vec![0; usize::try_from(end - start).unwrap()];
        // Some of what the kernel maps cannot be read.
        let read = memory.read_at(&mut found, start).unwrap_or(0);
        found[..read].windows(bytes.len()).any(|window| window == bytes)
    })
}

#[test]
fn the_processes_around_a_command_hold_nothing_of_whoever_started_it() {
    let test_env = TestEnvironment::usual();
    if !rustix::process::geteuid().is_root() {
        eprintln!("only root can look into the memory of helpers; not tested");
        return;
    }
    let secret = format!("secret-of-the-operator-{}", Mark::new().0);
    // Without the option the process that becomes the cell starts before arguments are read.
    for tier in [&["--tier", "full"][..], &["--tier", "landlock"], &[]] {
        let test_env = if tier.contains(&"landlock") {
            &TestEnvironment::new(Caller::Root, "landlock")
        } else {
            &test_env
        };
        // An open descriptor that a careless caller passes on.
        let (passed_on, _kept) = rustix::pipe::pipe().unwrap();
        let pipe = std::fs::read_link(format!("/proc/self/fd/{}", passed_on.as_raw_fd())).unwrap();
        let mark = Mark::new();
        let mut command = test_env.carrel();
        command.arg("exec").args(tier).arg("--workspace").arg(test_env.workspace());
        let mut server = command
            .args(["--", "sleep", &mark.0])
            .env("TOKEN", &secret)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        eventually("the command runs", || mark.alive().len() == 1);
        let pid = server.id().cast_signed();
        let is_helper = |process: &Process| {
            let name = std::fs::read_to_string(format!("/proc/{}/comm", process.pid));
            name.is_ok_and(|name| name.trim_end() == "carrel")
        };
        let helpers: Vec<_> = descendants(pid).into_iter().filter(is_helper).collect();
        assert_eq!(helpers.len(), 2, "a cell and an init: {helpers:?}");
        let holds_pipe = |pid: i32| {
            let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
            entries.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|at| at == pipe)
        };
        assert!(memory_holds(pid, secret.as_bytes()) && holds_pipe(pid), "nothing was looked at");
        for Process { pid, .. } in helpers {
            let shown = |name| std::fs::read(format!("/proc/{pid}/{name}")).unwrap();
            assert!(!memory_holds(pid, secret.as_bytes()), "{tier:?}");
            assert!(!holds_pipe(pid), "{tier:?}");
            for name in ["cmdline", "environ"] {
                assert!(shown(name).iter().all(|byte| *byte == 0), "{tier:?}: {name}");
            }
        }
        server.kill().unwrap();
        server.wait().unwrap();
        eventually("nothing is left", || mark.alive().is_empty());
    }
}
