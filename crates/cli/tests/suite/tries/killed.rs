//! Tries whose process is killed or interrupted, and what the next one makes of them.

use std::process::Stdio;
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{Project, RUNS, VERIFY};
use crate::test_environment::{Done, Mark, TestEnvironment};

/// The points between two steps at which the program is killed.
const POINTS: [&str; 8] =
    ["named", "forked", "in-run", "ran", "in-verification", "verified", "promoting", "promoted"];

#[test]
fn a_try_that_is_killed_at_any_point_has_the_same_result_when_it_is_taken_up() {
    for point in POINTS {
        Project::each(|project| kill_and_take_up(project, point));
    }
    for point in ["forked", "in-run", "verified", "promoting", "promoted"] {
        Project::each_in("landlock", |project| kill_and_take_up(project, point));
    }
}

#[test]
fn a_promotion_is_known_to_be_done_where_the_base_had_a_snapshot_before() {
    for tier in ["full", "landlock"] {
        Project::each_in(tier, |project| {
            let made = project.tool("X", "snapshot_create", &json!({ "name": "as-it-was" }));
            assert_eq!(made.code, 0, "{}: {made:?}", project.test_env);
            kill_and_take_up(project, "promoted");
        });
    }
}

fn kill_and_take_up(project: &Project, point: &str) {
    let test_env = &project.test_env;
    let id = project.killed_at(point, &Project::usual(&["--promote", "best"]));
    let done = project.carrel_try(&["--resume", &id]);
    assert_eq!(done.code, 0, "{test_env}: {point}: {done:?}");
    project.assert_promoted(&done.json, point);
    project.assert_work_is_kept(&done.json, point);
    // A try that is over is not worked on again.
    let again = project.carrel_try(&["--resume", &id]);
    assert_eq!(again.json, done.json, "{test_env}: {point}");
}

#[test]
fn candidates_whose_forks_are_lost_run_again() {
    Project::each(|project| {
        for point in ["verified", "promoting"] {
            lose_forks(project, point);
        }
    });
}

/// Kills a try at a point, takes its forks away as a restart of the machine does, and takes it up.
fn lose_forks(project: &Project, point: &str) {
    let test_env = &project.test_env;
    let arguments = Project::usual(&["--promote", "best", "--parallel", "1"]);
    let id = project.killed_at(point, &arguments);
    for fork in project.layers() {
        let boot = project.root().join(".carrel/forks").join(&fork).join("boot");
        std::fs::write(&boot, "00000000-0000-0000-0000-000000000000\n").unwrap();
    }
    let done = project.carrel_try(&["--resume", &id]);
    assert_eq!(done.code, 0, "{test_env}: {point}: {done:?}");
    project.assert_promoted(&done.json, point);
    let restore = json!({ "name": done.json["outcome"]["before"] });
    assert_eq!(project.tool("X", "snapshot_restore", &restore).code, 0, "{test_env}: {point}");
    assert_eq!(project.carrel_try(&["rm", &id]).code, 0, "{test_env}: {point}");
}

#[test]
fn a_candidate_whose_runs_end_the_process_three_times_is_disqualified() {
    let project = Project::new(TestEnvironment::usual());
    let arguments = ["X", "--run", RUNS[2], "--verify", VERIFY, "--promote", "best"];
    let id = project.killed_at("in-run", &arguments);
    project.killed_at_again("in-run", &id);
    project.killed_at_again("in-run", &id);
    let done = project.carrel_try(&["--resume", &id]);
    assert_eq!(done.code, 3, "{done:?}");
    assert_eq!(done.json["candidates"][0]["disqualified"]["reason"], "broken", "{done:?}");
    assert_eq!(project.keys(), ["X"]);
}

#[test]
fn one_process_at_a_time_works_on_a_try_and_an_interrupt_leaves_it_to_the_next() {
    Project::each(|project| {
        let test_env = &project.test_env;
        let mark = Mark::new();
        let slow = format!("sleep {}", mark.0);
        let arguments = ["X", "--run", RUNS[2], "--run", &slow, "--verify", VERIFY];
        let mut command = project.command(&arguments);
        let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        crate::eventually("the candidates run", || !mark.alive().is_empty());
        let id = project.tries().remove(0);
        for arguments in [["--resume", &id], ["rm", &id]] {
            let refused = project.carrel_try(&arguments);
            assert_eq!(refused.error()["code"], "E_WORKSPACE_BUSY", "{test_env}: {refused:?}");
        }
        let process = rustix::process::Pid::from_raw(i32::try_from(running.id()).unwrap()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
        let ended = running.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(130), "{test_env}: {ended:?}");
        assert!(
            String::from_utf8_lossy(&ended.stderr).contains("--resume"),
            "{test_env}: {ended:?}"
        );
        assert_eq!(mark.alive(), [0; 0], "{test_env}");
        let removed = project.carrel_try(&["rm", &id]);
        assert_eq!(removed.code, 0, "{test_env}: {removed:?}");
        assert_eq!(project.keys(), ["X"], "{test_env}");
        project.line("X", "echo thawed > thawed");
    });
}

#[test]
fn the_forks_of_a_try_that_is_worked_on_do_not_expire() {
    Project::each(|project| {
        let test_env = &project.test_env;
        let mark = Mark::new();
        let slow = format!("sleep {}", mark.0);
        let arguments = ["X", "--run", RUNS[2], "--run", &slow, "--verify", VERIFY];
        let mut command = project.command(&[&arguments[..], &["--promote", "best"]].concat());
        let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let judged = || {
            let listed = project.carrel_try(&["ls"]).json;
            listed["tries"][0]["judged"] == 1 && !mark.alive().is_empty()
        };
        crate::eventually("one candidate is judged", judged);
        std::thread::sleep(Duration::from_millis(1100));
        let [_, policy] = test_env.policy("[forks]\nidle = \"1s\"\n");
        let mut command = test_env.carrel();
        command.env("CARREL_POLICY", policy).args(["workspace", "gc", "--json", "--root"]);
        let done = Done::of({
            command.arg(project.root());
            command
        });
        assert_eq!(done.code, 0, "{test_env}: {done:?}");
        assert_eq!(done.json["expired_forks"], json!([]), "{test_env}: {done:?}");
        for process in mark.alive() {
            let process = rustix::process::Pid::from_raw(process).unwrap();
            rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
        }
        let ended = running.wait_with_output().unwrap();
        let record: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert_eq!(record["outcome"]["kind"], "promoted", "{test_env}: {record:#}");
        assert_eq!(record["outcome"]["candidate"], 1, "{test_env}: {record:#}");
    });
}

#[test]
fn a_try_that_is_killed_at_random_moments_has_the_same_result_when_it_is_taken_up() {
    let rounds = if crate::test_environment::is_soak() { 50 } else { 4 };
    Project::each(|project| {
        let test_env = &project.test_env;
        for round in 0..rounds {
            let mut killed = 0;
            let mut arguments: Vec<String> =
                Project::usual(&["--promote", "best"]).into_iter().map(str::to_owned).collect();
            let done = loop {
                let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let mut command = project.command(&words);
                // A candidate whose run is killed three times is disqualified.
                if killed == 2 {
                    break Done::of(command);
                }
                command.stdout(Stdio::null()).stderr(Stdio::null());
                let mut running = command.spawn().unwrap();
                std::thread::sleep(Duration::from_millis(fastrand::u64(50..1500)));
                running.kill().unwrap();
                running.wait().unwrap();
                killed += 1;
                if let Some(id) = project.tries().first() {
                    arguments = vec!["--resume".to_owned(), id.clone()];
                }
            };
            assert_eq!(done.code, 0, "{test_env}: {done:?}");
            project.assert_promoted(&done.json, &format!("round {round}"));
            let id = done.json["id"].as_str().unwrap();
            let restore = json!({ "name": done.json["outcome"]["before"] });
            assert_eq!(project.tool("X", "snapshot_restore", &restore).code, 0, "{test_env}");
            assert_eq!(project.carrel_try(&["rm", id]).code, 0, "{test_env}");
            assert_eq!(project.tries(), [""; 0], "{test_env}");
        }
    });
}

#[test]
fn a_base_that_changed_meanwhile_is_not_overwritten_and_the_forks_stay() {
    Project::each(|project| {
        let test_env = &project.test_env;
        let id = project.killed_at("promoting", &Project::usual(&["--promote", "best"]));
        std::fs::write(project.path.join("test_calc.py"), "by an editor\n").unwrap();
        let done = project.carrel_try(&["--resume", &id]);
        assert_eq!(done.code, 4, "{test_env}: {done:?}");
        let outcome = &done.json["outcome"];
        assert_eq!(outcome["kind"], "not_promoted", "{test_env}: {done:?}");
        assert_eq!(outcome["code"], "E_FORK_CONFLICT", "{test_env}: {done:?}");
        assert!(outcome["message"].to_string().contains("test_calc.py"), "{test_env}: {done:?}");
        assert_eq!(project.keys().len(), 4, "{test_env}");
        assert_eq!(project.line("X", "cat test_calc.py"), "by an editor\n", "{test_env}");
    });
}
