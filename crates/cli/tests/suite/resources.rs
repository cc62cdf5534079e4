//! Commands that take whatever they can get: processes, memory, disk, time, output.
//!
//! Each runs as the administrator and as an ordinary user, in both tiers. `CARREL_SOAK=1` asks for
//! ten times the output.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::eventually;
use crate::lab::{Caller, Done, Lab, Mark, allocated, descendants, is_soak, peak_memory};

/// What a stop may take on a busy machine: the grace of 500 ms, and some more.
const SOON: Duration = Duration::from_secs(10);

const MIB: u64 = 1 << 20;

/// A process that forks as fast as it can, as all its children do, and complains when it cannot.
const BOMB: &str =
    "while (1) { defined fork or do { print STDERR \"cannot fork: $!\\n\"; sleep 1 } }";

#[test]
fn a_fork_bomb_ends_at_its_limit_while_others_go_on() {
    for lab in Lab::all() {
        if !lab.enforces("process_limit") {
            assert_eq!((lab.caller, lab.tier), (Caller::User, "landlock"), "no limit {lab}");
            eprintln!("{lab}: there is no limit for processes, and `not_enforced` says so");
            many_processes_end_at_the_deadline(&lab);
            continue;
        }
        let mark = Mark::new();
        let bomb = format!("{BOMB} # {}", mark.0);
        let options = ["--json", "--timeout", "2", "--processes", "64", "--", "perl", "-e", &bomb];
        let mut command = lab.exec(&options);
        let begun = Instant::now();
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        eventually("the bomb has gone off", || mark.alive().len() >= 40);
        let other = lab.run(&["--", "true"]);
        assert_eq!(other.code, 0, "{lab}: {other:?}");
        assert!(other.took < SOON, "{lab}: another command took {:?}", other.took);
        let most = mark.alive().len();
        assert!((40..=64).contains(&most), "{lab}: {most} processes");
        let done = Done::from_output(&child.wait_with_output().unwrap(), begun.elapsed());
        eprintln!("{lab}: {most} processes, another command in {:?}", other.took);
        assert_eq!((done.code, &done.json["timed_out"]), (124, &true.into()), "{lab}: {done:?}");
        assert!(done.names_limit("processes"), "{lab}: {done:?}");
        assert_eq!(mark.alive(), [0; 0], "{lab}");
    }
}

fn many_processes_end_at_the_deadline(lab: &Lab) {
    let mark = Mark::new();
    let line = format!("for i in $(seq 150); do setsid sleep {} & done; wait; sleep 9", mark.0);
    let done = lab.run(&["--timeout", "2", "-c", &line]);
    assert_eq!((done.code, mark.alive()), (124, vec![]), "{lab}: {done:?}");
    assert!(done.took < Duration::from_secs(2) + SOON, "{lab}: {:?}", done.took);
}

#[test]
fn endless_output_costs_no_memory() {
    let first = Lab::usual().caller;
    for lab in Lab::all() {
        // As much as is promised for one of them; the others share the code that counts.
        let share = if (lab.tier, lab.caller) == ("full", first) { 1 } else { 10 };
        let bytes: u64 = if is_soak() { 10_000_000_000 } else { 1_000_000_000 } / share;
        let line = format!("yes abcdefg | head -c {bytes}; echo over >&2");
        let mut command = lab.exec(&["--json", "--timeout", "300", "-c", &line]);
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
            "{lab}: {}",
            done.stderr
        );
        assert_eq!(done.json["stdout_bytes"], bytes, "{lab}");
        assert_eq!(done.json["stderr"], "over\n", "{lab}");
        assert!(done.stdout().len() <= 101 << 10, "{lab}: {}", done.stdout().len());
        assert!((1..64 << 10).contains(&peak), "{lab}: {peak} KiB");
        eprintln!("{lab}: {bytes} bytes in {:?}, at most {peak} KiB", done.took);
    }
}

fn is_carrel(pid: i32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end() == "carrel"
}

#[test]
fn a_program_that_wants_too_much_memory_does_not_get_it() {
    for lab in Lab::all() {
        let hog = "x = bytearray(1 << 30); print(len(x))";
        let options = ["--memory", "128M", "--", "/usr/bin/python3", "-c", hog];
        let done = lab.run(&options);
        assert!(done.names_limit("memory"), "{lab}: {done:?}");
        assert_eq!(done.json["stdout"], "", "{lab}");
        let peak = done.json["cost"]["peak_memory_bytes"].as_u64().unwrap();
        assert!(peak <= 128 * MIB, "{lab}: {peak}");
        if lab.enforces("memory_limit") {
            let ended = (done.code, &done.json["limit"], &done.json["signal"]);
            assert_eq!(ended, (137, &"memory".into(), &9.into()), "{lab}");
        } else {
            assert!(
                done.json["stderr"].as_str().unwrap().contains("MemoryError"),
                "{lab}: {done:?}"
            );
            assert_eq!(lab.caller, Caller::User, "{lab} has no control group");
        }
    }
}

#[test]
fn many_processes_share_one_limit_of_memory_where_there_are_groups() {
    for lab in Lab::all().into_iter().filter(|lab| lab.enforces("memory_limit")) {
        let hog = "import time; x = b'x' * (60 << 20); time.sleep(9)";
        let line = format!("for i in 1 2 3 4; do /usr/bin/python3 -c \"{hog}\" & done; wait -n");
        let done = lab.run(&["--memory", "128M", "--timeout", "9", "-c", &line]);
        assert_eq!(
            (&done.json["limit"], &done.json["timed_out"]),
            (&"memory".into(), &false.into())
        );
        assert!(done.took < SOON, "{lab}: {:?}", done.took);
    }
}

/// Runs something that fills a workspace of 20 MiB, and returns what it wrote in all.
fn fill(lab: &Lab, line: &str) -> (Done, PathBuf) {
    let workspace = lab.managed("20M");
    let done = lab.line_in(&workspace, line);
    let written = done.json["cost"]["written_bytes"].as_u64().unwrap_or(0);
    eprintln!(
        "{lab}: {} MiB written, {} MiB left in the workspace, {:?}",
        written / MIB,
        allocated(&workspace) / MIB,
        done.took
    );
    (done, workspace)
}

fn assert_ended_by_quota(lab: &Lab, done: &Done, at_most: u64) {
    assert_eq!(done.json["limit"], "quota", "{lab}: {done:?}");
    let written = done.json["cost"]["written_bytes"].as_u64().unwrap();
    assert!(written < at_most, "{lab}: {} MiB written", written / MIB);
}

/// What a filler of 5 MiB files may write beyond its 20 MiB before it is caught. It is looked at
/// every 50 ms; this is what the disk of a large machine takes in a few times that.
const OVERSHOOT: u64 = 400 * MIB;

#[test]
fn a_disk_filler_is_ended_by_the_quota() {
    for lab in Lab::all() {
        let line =
            "for i in $(seq 1000); do dd if=/dev/zero of=f$i bs=1M count=5 status=none; done";
        let (done, workspace) = fill(&lab, line);
        assert_ended_by_quota(&lab, &done, 20 * MIB + OVERSHOOT);
        assert!(allocated(&workspace) < 20 * MIB + OVERSHOOT, "{lab}");
        // The next one does not even start.
        let next = lab.line_in(&workspace, "true");
        assert_eq!((next.code, &next.error()["code"]), (125, &"E_QUOTA_EXCEEDED".into()), "{lab}");
    }
}

#[test]
fn a_disk_filler_that_is_deaf_to_term_is_ended_by_the_quota_too() {
    for lab in Lab::all() {
        let line = "trap '' TERM; for i in $(seq 1000); do head -c 5M /dev/zero > f$i; done";
        let (done, _) = fill(&lab, line);
        assert_ended_by_quota(&lab, &done, 20 * MIB + 2 * OVERSHOOT);
    }
}

#[test]
fn temporary_files_count_towards_the_quota_and_are_gone_afterwards() {
    for lab in Lab::all() {
        let line = "cd $TMPDIR; for i in $(seq 1000); do head -c 5M /dev/zero > f$i; done";
        let (done, workspace) = fill(&lab, line);
        assert_ended_by_quota(&lab, &done, 20 * MIB + OVERSHOOT);
        assert_eq!(allocated(&workspace), 0, "{lab}");
        let scratch = lab.path("root/.carrel/scratch");
        assert_eq!(std::fs::read_dir(scratch).map_or(0, Iterator::count), 0, "{lab}");
        assert_eq!(lab.line_in(&workspace, "true").code, 0, "{lab}");
    }
}

#[test]
fn many_small_files_count_towards_the_quota() {
    Lab::each(|lab| {
        let line = "for d in $(seq 1000); do mkdir $d && cd $d; \
                    for i in $(seq 1000); do echo x > $i; done; cd ..; done";
        let (done, _) = fill(lab, line);
        assert_ended_by_quota(lab, &done, 20 * MIB + OVERSHOOT);
    });
}

#[test]
fn space_cannot_be_reserved_faster_than_anybody_can_look() {
    for lab in Lab::all() {
        let (done, workspace) = fill(&lab, "fallocate -l 10M f");
        assert_ne!(done.code, 0, "{lab}");
        let complaint = done.json["stderr"].as_str().unwrap();
        assert!(complaint.contains("not supported"), "{lab}: {complaint}");
        assert_eq!(allocated(&workspace), 0, "{lab}");
    }
}

#[test]
fn one_file_beyond_the_quota_is_ended_by_the_quota() {
    for lab in Lab::all() {
        let (done, workspace) =
            fill(&lab, "exec dd if=/dev/zero of=f bs=1M count=1000 status=none");
        assert!(allocated(&workspace) <= 21 * MIB, "{lab}");
        assert_ended_by_quota(&lab, &done, 22 * MIB);
    }
}

#[test]
fn a_file_that_is_there_can_be_changed_in_place_however_full_the_workspace_is() {
    for lab in Lab::all() {
        let workspace = lab.managed("20M");
        let done = lab.line_in(&workspace, "head -c 15M /dev/zero > f");
        assert_eq!(done.code, 0, "{lab}: {done:?}");
        let change = "printf x | dd of=f bs=1 seek=14000000 conv=notrunc status=none";
        let done = lab.line_in(&workspace, change);
        assert_eq!(done.code, 0, "{lab}: {done:?}");
    }
}

#[test]
fn a_file_that_grows_too_large_ends_its_writer() {
    for lab in Lab::all() {
        let policy = lab.policy("[limits]\nfile_size = \"1MiB\"\n");
        let size = || std::fs::metadata(lab.workspace().join("f")).unwrap().len();
        // A program of its own, a shell that tells of it, and one that survives it.
        for command in [
            &["--", "dd", "if=/dev/zero", "of=f", "bs=4k", "status=none"][..],
            &["-c", "dd if=/dev/zero of=f bs=4k status=none; exit $?"],
        ] {
            let done = lab.run(&[&policy.each_ref().map(String::as_str)[..], command].concat());
            let ended = (done.code, &done.json["limit"]);
            assert_eq!(ended, (153, &"file_size".into()), "{lab}: {done:?}");
            assert_eq!(size(), MIB, "{lab}");
        }
        let deaf = "trap '' XFSZ; dd if=/dev/zero of=f bs=4k status=none";
        let done = lab.run(&[&policy.each_ref().map(String::as_str)[..], &["-c", deaf]].concat());
        assert_eq!((done.code, size()), (1, MIB), "{lab}: {done:?}");
        assert!(done.names_limit("file_size"), "{lab}: {done:?}");
    }
}

#[test]
fn a_sparse_file_counts_what_it_holds() {
    for lab in Lab::all() {
        let workspace = lab.managed("1G");
        let line = "truncate -s 500M a && truncate -s 500M b && truncate -s 500M c && sleep 0.2";
        let done = lab.line_in(&workspace, line);
        assert_eq!((done.code, &done.json["limit"]), (0, &().into()), "{lab}: {done:?}");
        assert_eq!(allocated(&workspace), 0, "{lab}");
        let done = lab.line_in(&workspace, "exec truncate -s 100G d");
        assert_eq!((done.code, &done.json["limit"]), (153, &"file_size".into()), "{lab}: {done:?}");
        assert_eq!(std::fs::metadata(workspace.join("d")).unwrap().len(), 0, "{lab}");
    }
}

#[test]
fn time_on_a_processor_is_limited() {
    Lab::each(|lab| {
        let policy = lab.policy("[limits]\ncpu = \"1s\"\n");
        let spin = ["-c", "while :; do :; done"];
        let done = lab.run(&[&policy.each_ref().map(String::as_str)[..], &spin].concat());
        assert_eq!(done.json["limit"], "cpu", "{lab}: {done:?}");
        assert_eq!((done.code, &done.json["signal"]), (152, &24.into()), "{lab}: {done:?}");
        let spent = done.json["cost"]["cpu_ms"].as_f64().unwrap();
        assert!((500.0..2500.0).contains(&spent), "{lab}: {spent} ms");
    });
}

#[test]
fn ignoring_the_signal_of_the_processor_limit_helps_nobody() {
    let lab = Lab::usual();
    let policy = lab.policy("[limits]\ncpu = \"1s\"\n");
    let spin = ["--timeout", "20", "-c", "trap '' XCPU; while :; do :; done"];
    let done = lab.run(&[&policy.each_ref().map(String::as_str)[..], &spin].concat());
    assert_eq!((done.code, &done.json["limit"]), (137, &"cpu".into()), "{done:?}");
}

#[test]
fn open_files_are_limited() {
    for lab in Lab::all() {
        let policy = lab.policy("[limits]\nopen_files = 32\n");
        let open = "f = [open('/dev/null') for _ in range(100)]";
        let python = ["--", "/usr/bin/python3", "-c", open];
        let done = lab.run(&[&policy.each_ref().map(String::as_str)[..], &python].concat());
        assert_eq!(done.code, 1, "{lab}: {done:?}");
        assert!(done.names_limit("open_files"), "{lab}: {done:?}");
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
    Lab::each(|lab| {
        let end = |tree: &str| {
            let mark = Mark::new();
            let done = lab.run(&["--timeout", "1", "-c", &tree.replace("MARK", &mark.0)]);
            assert_eq!(mark.alive(), [0; 0], "{lab}: {tree}");
            assert_eq!(
                (done.code, &done.json["timed_out"]),
                (124, &true.into()),
                "{lab}: {done:?}"
            );
            assert!(done.took < Duration::from_secs(1) + SOON, "{lab}: {tree}: {:?}", done.took);
        };
        std::thread::scope(|scope| trees.map(|tree| scope.spawn(move || end(tree))).map(drop));
        assert_eq!(lab.scratch(), Vec::<PathBuf>::new(), "{lab}");
    });
}

#[test]
fn what_a_command_leaves_running_is_told_and_ended_at_once() {
    for lab in Lab::all() {
        let mark = Mark::new();
        let done = lab.line(&format!("setsid sleep {0} & sleep {0} & echo ok", mark.0));
        assert_eq!((done.code, done.stdout(), mark.alive()), (0, "ok\n", vec![]), "{lab}");
        assert_eq!(done.json["left_running"], 2, "{lab}: {done:?}");
        assert!(done.took < SOON, "{lab}: {:?}", done.took);
    }
}

#[test]
fn a_command_that_closes_its_output_goes_on() {
    for lab in Lab::all() {
        let done = lab.line("echo before; exec >&- 2>&-; sleep 0.2; touch after");
        assert_eq!((done.code, done.stdout()), (0, "before\n"), "{lab}: {done:?}");
        assert!(Path::new(&lab.workspace().join("after")).exists(), "{lab}");
    }
}
