//! Commands that take whatever they can get: processes, memory, disk, time, output.
//!
//! Each runs as the administrator and as an ordinary user, in both tiers. `CARREL_SOAK=1` asks for
//! ten times the output.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::eventually;
use crate::test_environment::{
    Caller, Done, Mark, TestEnvironment, allocated, descendants, is_soak, peak_memory,
};

/// What a stop may take on a busy machine: the grace of 500 ms, and some more.
const DEADLINE: Duration = Duration::from_secs(10);

const MIB: u64 = 1 << 20;

/// A process that forks as fast as it can, as all its children do, and complains when it cannot.
const BOMB: &str =
    "while (1) { defined fork or do { print STDERR \"cannot fork: $!\\n\"; sleep 1 } }";

#[test]
fn a_fork_bomb_ends_at_its_limit_while_others_go_on() {
    for test_env in TestEnvironment::all() {
        if !test_env.enforces("process_limit") {
            assert_eq!(
                (test_env.caller, test_env.tier),
                (Caller::User, "landlock"),
                "no limit {test_env}"
            );
            eprintln!("{test_env}: there is no limit for processes, and `not_enforced` says so");
            many_processes_end_at_the_deadline(&test_env);
            continue;
        }
        let mark = Mark::new();
        let bomb = format!("{BOMB} # {}", mark.0);
        let options = ["--json", "--timeout", "2", "--processes", "64", "--", "perl", "-e", &bomb];
        let mut command = test_env.exec(&options);
        let begun = Instant::now();
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        eventually("the bomb has gone off", || mark.alive().len() >= 40);
        let other = test_env.run(&["--", "true"]);
        assert_eq!(other.code, 0, "{test_env}: {other:?}");
        assert!(other.took < DEADLINE, "{test_env}: another command took {:?}", other.took);
        let most = mark.alive().len();
        assert!((40..=64).contains(&most), "{test_env}: {most} processes");
        let done = Done::from_output(&child.wait_with_output().unwrap(), begun.elapsed());
        eprintln!("{test_env}: {most} processes, another command in {:?}", other.took);
        assert_eq!(
            (done.code, &done.json["timed_out"]),
            (124, &true.into()),
            "{test_env}: {done:?}"
        );
        assert!(done.names_limit("processes"), "{test_env}: {done:?}");
        assert_eq!(mark.alive(), [0; 0], "{test_env}");
    }
}

fn many_processes_end_at_the_deadline(test_env: &TestEnvironment) {
    let mark = Mark::new();
    let line = format!("for i in $(seq 150); do setsid sleep {} & done; wait; sleep 9", mark.0);
    let done = test_env.run(&["--timeout", "2", "-c", &line]);
    assert_eq!((done.code, mark.alive()), (124, vec![]), "{test_env}: {done:?}");
    assert!(done.took < Duration::from_secs(2) + DEADLINE, "{test_env}: {:?}", done.took);
}

#[test]
fn endless_output_costs_no_memory() {
    let first = TestEnvironment::usual().caller;
    for test_env in TestEnvironment::all() {
        // As much as is promised for one of them; the others share the code that counts.
        let share = if (test_env.tier, test_env.caller) == ("full", first) { 1 } else { 10 };
        let bytes: u64 = if is_soak() { 10_000_000_000 } else { 1_000_000_000 } / share;
        let line = format!("yes abcdefg | head -c {bytes}; echo over >&2");
        let mut command = test_env.exec(&["--json", "--timeout", "300", "-c", &line]);
        let begun = Instant::now();
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let server = child.id().cast_signed();
        let output = std::thread::spawn(move || child.wait_with_output().unwrap());
        let mut peak = 0;
        while !output.is_finished() {
            let own = descendants(server).into_iter().map(|process| process.pid);
            let own = own.chain([server]).filter(|pid| is_carrel(*pid));
            peak = own.filter_map(peak_memory).chain([peak]).max().unwrap();
            std::thread::sleep(Duration::from_millis(10));
        }
        let done = Done::from_output(&output.join().unwrap(), begun.elapsed());
        assert_eq!(
            (done.code, &done.json["truncated"]),
            (0, &true.into()),
            "{test_env}: {}",
            done.stderr
        );
        assert_eq!(done.json["stdout_bytes"], bytes, "{test_env}");
        assert_eq!(done.json["stderr"], "over\n", "{test_env}");
        assert!(done.stdout().len() <= 101 << 10, "{test_env}: {}", done.stdout().len());
        assert!((1..64 << 10).contains(&peak), "{test_env}: {peak} KiB");
        eprintln!("{test_env}: {bytes} bytes in {:?}, at most {peak} KiB", done.took);
    }
}

fn is_carrel(pid: i32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end() == "carrel"
}

#[test]
fn a_program_that_wants_too_much_memory_does_not_get_it() {
    for test_env in TestEnvironment::all() {
        let hog = "x = bytearray(1 << 30); print(len(x))";
        let options = ["--memory", "128M", "--", "/usr/bin/python3", "-c", hog];
        let done = test_env.run(&options);
        assert!(done.names_limit("memory"), "{test_env}: {done:?}");
        assert_eq!(done.json["stdout"], "", "{test_env}");
        let peak = done.json["cost"]["peak_memory_bytes"].as_u64().unwrap();
        assert!(peak <= 128 * MIB, "{test_env}: {peak}");
        if test_env.enforces("memory_limit") {
            let ended = (done.code, &done.json["limit"], &done.json["signal"]);
            assert_eq!(ended, (137, &"memory".into(), &9.into()), "{test_env}");
        } else {
            assert!(
                done.json["stderr"].as_str().unwrap().contains("MemoryError"),
                "{test_env}: {done:?}"
            );
            assert_eq!(test_env.caller, Caller::User, "{test_env} has no control group");
        }
    }
}

#[test]
fn many_processes_share_one_limit_of_memory_where_there_are_groups() {
    for test_env in
        TestEnvironment::all().into_iter().filter(|test_env| test_env.enforces("memory_limit"))
    {
        let hog = "import time; x = b'x' * (60 << 20); time.sleep(9)";
        let line = format!("for i in 1 2 3 4; do /usr/bin/python3 -c \"{hog}\" & done; wait -n");
        let done = test_env.run(&["--memory", "128M", "--timeout", "9", "-c", &line]);
        assert_eq!(
            (&done.json["limit"], &done.json["timed_out"]),
            (&"memory".into(), &false.into())
        );
        assert!(done.took < DEADLINE, "{test_env}: {:?}", done.took);
    }
}

/// Runs something that fills a workspace of 20 MiB, and returns what it wrote in all.
fn fill(test_env: &TestEnvironment, line: &str) -> (Done, PathBuf) {
    let workspace = test_env.managed("20M");
    let done = test_env.line_in(&workspace, line);
    let written = done.json["cost"]["written_bytes"].as_u64().unwrap_or(0);
    eprintln!(
        "{test_env}: {} MiB written, {} MiB left in the workspace, {:?}",
        written / MIB,
        allocated(&workspace) / MIB,
        done.took
    );
    (done, workspace)
}

fn assert_ended_by_quota(test_env: &TestEnvironment, done: &Done, at_most: u64) {
    assert_eq!(done.json["limit"], "quota", "{test_env}: {done:?}");
    let written = done.json["cost"]["written_bytes"].as_u64().unwrap();
    assert!(written < at_most, "{test_env}: {} MiB written", written / MIB);
}

/// What a filler of 5 MiB files may write beyond its 20 MiB before it is caught. It is looked at
/// every 50 ms; this is what the disk of a large machine takes in a few times that.
const OVERSHOOT: u64 = 400 * MIB;

#[test]
fn a_disk_filler_is_ended_by_the_quota() {
    for test_env in TestEnvironment::all() {
        let line =
            "for i in $(seq 1000); do dd if=/dev/zero of=f$i bs=1M count=5 status=none; done";
        let (done, workspace) = fill(&test_env, line);
        assert_ended_by_quota(&test_env, &done, 20 * MIB + OVERSHOOT);
        assert!(allocated(&workspace) < 20 * MIB + OVERSHOOT, "{test_env}");
        // The next one does not even start.
        let next = test_env.line_in(&workspace, "true");
        assert_eq!(
            (next.code, &next.error()["code"]),
            (125, &"E_QUOTA_EXCEEDED".into()),
            "{test_env}"
        );
    }
}

#[test]
fn a_disk_filler_that_is_deaf_to_term_is_ended_by_the_quota_too() {
    for test_env in TestEnvironment::all() {
        let line = "trap '' TERM; for i in $(seq 1000); do head -c 5M /dev/zero > f$i; done";
        let (done, _) = fill(&test_env, line);
        assert_ended_by_quota(&test_env, &done, 20 * MIB + 2 * OVERSHOOT);
    }
}

#[test]
fn temporary_files_count_towards_the_quota_and_are_gone_afterwards() {
    for test_env in TestEnvironment::all() {
        let line = "cd $TMPDIR; for i in $(seq 1000); do head -c 5M /dev/zero > f$i; done";
        let (done, workspace) = fill(&test_env, line);
        assert_ended_by_quota(&test_env, &done, 20 * MIB + OVERSHOOT);
        assert_eq!(allocated(&workspace), 0, "{test_env}");
        let scratch = test_env.path("root/.carrel/scratch");
        assert_eq!(std::fs::read_dir(scratch).map_or(0, Iterator::count), 0, "{test_env}");
        assert_eq!(test_env.line_in(&workspace, "true").code, 0, "{test_env}");
    }
}

#[test]
fn many_small_files_count_towards_the_quota() {
    TestEnvironment::each(|test_env| {
        let line = "for d in $(seq 1000); do mkdir $d && cd $d; \
                    for i in $(seq 1000); do echo x > $i; done; cd ..; done";
        let (done, _) = fill(test_env, line);
        assert_ended_by_quota(test_env, &done, 20 * MIB + OVERSHOOT);
    });
}

#[test]
fn space_cannot_be_reserved_faster_than_anybody_can_look() {
    for test_env in TestEnvironment::all() {
        let (done, workspace) = fill(&test_env, "fallocate -l 10M f");
        assert_ne!(done.code, 0, "{test_env}");
        let complaint = done.json["stderr"].as_str().unwrap();
        assert!(complaint.contains("not supported"), "{test_env}: {complaint}");
        assert_eq!(allocated(&workspace), 0, "{test_env}");
    }
}

#[test]
fn one_file_beyond_the_quota_is_ended_by_the_quota() {
    for test_env in TestEnvironment::all() {
        let (done, workspace) =
            fill(&test_env, "exec dd if=/dev/zero of=f bs=1M count=1000 status=none");
        assert!(allocated(&workspace) <= 21 * MIB, "{test_env}");
        assert_ended_by_quota(&test_env, &done, 22 * MIB);
    }
}

#[test]
fn a_file_that_is_there_can_be_changed_in_place_however_full_the_workspace_is() {
    for test_env in TestEnvironment::all() {
        let workspace = test_env.managed("20M");
        let done = test_env.line_in(&workspace, "head -c 15M /dev/zero > f");
        assert_eq!(done.code, 0, "{test_env}: {done:?}");
        let change = "printf x | dd of=f bs=1 seek=14000000 conv=notrunc status=none";
        let done = test_env.line_in(&workspace, change);
        assert_eq!(done.code, 0, "{test_env}: {done:?}");
    }
}

#[test]
fn a_file_that_grows_too_large_ends_its_writer() {
    for test_env in TestEnvironment::all() {
        let policy = test_env.policy("[limits]\nfile_size = \"1MiB\"\n");
        let size = || std::fs::metadata(test_env.workspace().join("f")).unwrap().len();
        // A program of its own, a shell that tells of it, and one that survives it.
        for command in [
            &["--", "dd", "if=/dev/zero", "of=f", "bs=4k", "status=none"][..],
            &["-c", "dd if=/dev/zero of=f bs=4k status=none; exit $?"],
        ] {
            let done =
                test_env.run(&[&policy.each_ref().map(String::as_str)[..], command].concat());
            let ended = (done.code, &done.json["limit"]);
            assert_eq!(ended, (153, &"file_size".into()), "{test_env}: {done:?}");
            assert_eq!(size(), MIB, "{test_env}");
        }
        let deaf = "trap '' XFSZ; dd if=/dev/zero of=f bs=4k status=none";
        let done =
            test_env.run(&[&policy.each_ref().map(String::as_str)[..], &["-c", deaf]].concat());
        assert_eq!((done.code, size()), (1, MIB), "{test_env}: {done:?}");
        assert!(done.names_limit("file_size"), "{test_env}: {done:?}");
    }
}

#[test]
fn a_sparse_file_counts_what_it_holds() {
    for test_env in TestEnvironment::all() {
        let workspace = test_env.managed("1G");
        let line = "truncate -s 500M a && truncate -s 500M b && truncate -s 500M c && sleep 0.2";
        let done = test_env.line_in(&workspace, line);
        assert_eq!((done.code, &done.json["limit"]), (0, &().into()), "{test_env}: {done:?}");
        assert_eq!(allocated(&workspace), 0, "{test_env}");
        let done = test_env.line_in(&workspace, "exec truncate -s 100G d");
        assert_eq!(
            (done.code, &done.json["limit"]),
            (153, &"file_size".into()),
            "{test_env}: {done:?}"
        );
        assert_eq!(std::fs::metadata(workspace.join("d")).unwrap().len(), 0, "{test_env}");
    }
}

#[test]
fn time_on_a_processor_is_limited() {
    TestEnvironment::each(|test_env| {
        let policy = test_env.policy("[limits]\ncpu = \"1s\"\n");
        let spin = ["-c", "while :; do :; done"];
        let done = test_env.run(&[&policy.each_ref().map(String::as_str)[..], &spin].concat());
        assert_eq!(done.json["limit"], "cpu", "{test_env}: {done:?}");
        assert_eq!((done.code, &done.json["signal"]), (152, &24.into()), "{test_env}: {done:?}");
        let spent = done.json["cost"]["cpu_ms"].as_f64().unwrap();
        assert!((500.0..2500.0).contains(&spent), "{test_env}: {spent} ms");
    });
}

#[test]
fn ignoring_the_signal_of_the_processor_limit_helps_nobody() {
    let test_env = TestEnvironment::usual();
    let policy = test_env.policy("[limits]\ncpu = \"1s\"\n");
    let spin = ["--timeout", "20", "-c", "trap '' XCPU; while :; do :; done"];
    let done = test_env.run(&[&policy.each_ref().map(String::as_str)[..], &spin].concat());
    assert_eq!((done.code, &done.json["limit"]), (137, &"cpu".into()), "{done:?}");
}

#[test]
fn open_files_are_limited() {
    for test_env in TestEnvironment::all() {
        let policy = test_env.policy("[limits]\nopen_files = 32\n");
        let open = "f = [open('/dev/null') for _ in range(100)]";
        let python = ["--", "/usr/bin/python3", "-c", open];
        let done = test_env.run(&[&policy.each_ref().map(String::as_str)[..], &python].concat());
        assert_eq!(done.code, 1, "{test_env}: {done:?}");
        assert!(done.names_limit("open_files"), "{test_env}: {done:?}");
    }
}

#[test]
fn nothing_outlives_a_deadline() {
    // A session of its own, an orphan, one deaf to everything, and all of it together.
    let trees = [
        "setsid sleep MARK & sleep 1000",
        "(setsid setsid sleep MARK &) ; (sleep MARK &) ; sleep 1000",
        "trap '' TERM HUP INT; sleep MARK; sleep MARK",
        "setsid bash -c 'trap \"\" TERM; (sleep MARK &); sleep MARK; sleep MARK' & \
         exec >/dev/null 2>&1 </dev/null; trap '' TERM; sleep MARK; sleep MARK",
        "kill -STOP $$; sleep MARK",
    ];
    TestEnvironment::each(|test_env| {
        let end = |tree: &str| {
            let mark = Mark::new();
            let done = test_env.run(&["--timeout", "1", "-c", &tree.replace("MARK", &mark.0)]);
            assert_eq!(mark.alive(), [0; 0], "{test_env}: {tree}");
            assert_eq!(
                (done.code, &done.json["timed_out"]),
                (124, &true.into()),
                "{test_env}: {done:?}"
            );
            assert!(
                done.took < Duration::from_secs(1) + DEADLINE,
                "{test_env}: {tree}: {:?}",
                done.took
            );
        };
        std::thread::scope(|scope| trees.map(|tree| scope.spawn(move || end(tree))).map(drop));
        assert_eq!(test_env.scratch(), Vec::<PathBuf>::new(), "{test_env}");
    });
}

#[test]
fn what_a_command_leaves_running_is_told_and_ended_at_once() {
    for test_env in TestEnvironment::all() {
        let mark = Mark::new();
        let done = test_env.line(&format!("setsid sleep {0} & sleep {0} & echo ok", mark.0));
        assert_eq!((done.code, done.stdout(), mark.alive()), (0, "ok\n", vec![]), "{test_env}");
        assert_eq!(done.json["left_running"], 2, "{test_env}: {done:?}");
        assert!(done.took < DEADLINE, "{test_env}: {:?}", done.took);
    }
}

#[test]
fn a_command_that_closes_its_output_goes_on() {
    for test_env in TestEnvironment::all() {
        let done = test_env.line("echo before; exec >&- 2>&-; sleep 0.2; touch after");
        assert_eq!((done.code, done.stdout()), (0, "before\n"), "{test_env}: {done:?}");
        assert!(Path::new(&test_env.workspace().join("after")).exists(), "{test_env}");
    }
}
