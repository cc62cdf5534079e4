//! Commands in the background.

use std::time::{Duration, Instant};

use carrel_domain::{ByteSize, Code, Coded};
use carrel_exec::{
    CaptureLimits, CommandSpec, Cursor, ExitStatus, Job, JobError, JobId, JobLimits, JobStatus,
    Jobs, LogFile, Outcome, Output, Owner, Spawner, Stop, TerminalError, WakeReason,
};
use pretty_assertions::assert_eq;

use crate::processes::Mark;
use crate::support::{directory, shell, spawner, until};
use crate::typist::at_terminal;

/// Starts a process in a session of its own that is deaf to `TERM`, and waits for it.
const STUBBORN: &str = "setsid sh -c 'trap \"\" TERM; sleep 1000; sleep 1000' & echo ready; wait";

/// The processes of [`STUBBORN`]: two shells and `sleep`.
const STUBBORN_COUNT: usize = 3;

/// Longer than any test takes.
const LONG: Duration = Duration::from_mins(1);

const SMALL: JobLimits = JobLimits {
    running: 3,
    running_per_owner: 2,
    ended: 3,
    ended_per_owner: 2,
    lifetime: Duration::from_mins(10),
};

fn owner(name: &str) -> Owner {
    Owner::new(name)
}

async fn start(jobs: &Jobs, spawner: &Spawner, of: &str, spec: CommandSpec) -> Job {
    let place = jobs.reserve(owner(of)).unwrap();
    let log = Some(LogFile { file: None, limit: ByteSize::mib(1) });
    let running = spawner.spawn(CommandSpec { log, ..spec }).await.unwrap();
    place.start("a job", running).unwrap()
}

/// Starts a job and waits until it is over.
async fn run(jobs: &Jobs, spawner: &Spawner, of: &str, script: &str) -> Job {
    let job = start(jobs, spawner, of, shell(script)).await;
    job.ended().await;
    job
}

async fn text(job: &Job) -> String {
    job.read(Cursor::START, usize::MAX).await.unwrap().to_text().0
}

fn outcome(status: JobStatus) -> Outcome {
    match status {
        JobStatus::Ended(outcome) => Outcome::clone(&outcome),
        other => panic!("{other:?}"),
    }
}

fn ids(jobs: &[Job]) -> Vec<JobId> {
    jobs.iter().map(Job::id).collect()
}

#[tokio::test]
async fn a_job_runs_by_itself_and_can_be_read_after_its_end() {
    let (jobs, spawner) = (Jobs::default(), spawner());
    let output = Output::Separate { stdout: CaptureLimits::STDOUT, stderr: CaptureLimits::STDERR };
    let spec = CommandSpec { output, ..shell("echo out; sleep 0.1; echo err >&2; exit 3") };
    let job = start(&jobs, &spawner, "a", spec).await;
    assert_eq!((job.status(), job.name()), (JobStatus::Running, "a job"));
    let outcome = outcome(job.ended().await);
    assert_eq!((outcome.end, outcome.stop), (ExitStatus::Exited(3), None));
    assert_eq!((outcome.stdout.head, outcome.stderr.head), (b"out\n".into(), b"err\n".into()));
    let again = jobs.get(job.id().to_string().parse().unwrap()).unwrap();
    let chunk = again.read(Cursor(4), 100).await.unwrap();
    assert_eq!((chunk.bytes, chunk.next, chunk.end), (b"err\n".into(), Cursor(8), true));
    assert_eq!(again.elapsed(), outcome.wall);
}

#[tokio::test]
async fn a_wait_returns_on_output_on_the_end_and_when_its_time_has_passed() {
    let workspace = tempfile::tempdir().unwrap();
    let script = "
        until [ -e 1 ]; do sleep 0.01; done; echo one
        until [ -e 2 ]; do sleep 0.01; done";
    let (jobs, spawner) = (Jobs::default(), spawner());
    let spec = CommandSpec { directory: directory(workspace.path()).into(), ..shell(script) };
    let job = start(&jobs, &spawner, "a", spec).await;
    let go = |name: &str| std::fs::write(workspace.path().join(name), "").unwrap();
    let begun = Instant::now();

    let soon = Duration::from_millis(50);
    assert_eq!(job.wait(Cursor::START, soon).await.unwrap(), WakeReason::Timeout);
    let (wake, ()) = tokio::join!(job.wait(Cursor::START, LONG), async { go("1") });
    assert_eq!((wake.unwrap(), job.log_end()), (WakeReason::Output, Cursor(4)));
    assert_eq!(job.wait(Cursor::START, LONG).await.unwrap(), WakeReason::Output);
    assert_eq!(job.wait(Cursor(4), soon).await.unwrap(), WakeReason::Timeout);
    let (wake, ()) = tokio::join!(job.wait(Cursor(4), LONG), async { go("2") });
    assert_eq!(wake.unwrap(), WakeReason::Ended);
    assert!(outcome(job.status()).succeeded());
    assert_eq!(job.wait(Cursor(4), LONG).await.unwrap(), WakeReason::Ended);
    assert!(job.wait(Cursor(5), LONG).await.is_err());
    assert!(begun.elapsed() < LONG);
}

#[tokio::test]
async fn the_last_part_comes_with_the_outcome() {
    let (jobs, spawner) = (Jobs::default(), spawner());
    for _ in 0..20 {
        let job = start(&jobs, &spawner, "a", shell("echo x")).await;
        while !job.read(Cursor::START, 100).await.unwrap().end {
            tokio::task::yield_now().await;
        }
        assert!(outcome(job.status()).succeeded());
    }
}

#[tokio::test]
async fn killing_a_job_ends_everything_it_started() {
    let (jobs, spawner, mark) = (Jobs::default(), spawner(), Mark::new());
    let job = start(&jobs, &spawner, "a", mark.put_on(shell(STUBBORN))).await;
    mark.until_alive(STUBBORN_COUNT).await;
    until("it is ready", || job.log_end() == Cursor(6)).await;
    let killed = outcome(job.kill().await);
    assert_eq!(mark.alive(), [0; 0]);
    assert_eq!((killed.stop, text(&job).await.as_str()), (Some(Stop::Cancelled), "ready\n"));
    assert_eq!(job.kill().await, job.status());
}

#[tokio::test]
async fn a_job_has_a_deadline_and_never_outlives_the_lifetime() {
    let lifetime = Duration::from_millis(200);
    let (jobs, spawner) = (Jobs::new(JobLimits { lifetime, ..SMALL }), spawner());
    for deadline in [None, Some(LONG)] {
        let job =
            start(&jobs, &spawner, "a", CommandSpec { deadline, ..shell("sleep 1000") }).await;
        assert!(outcome(job.ended().await).timed_out());
    }
}

#[tokio::test]
async fn a_dropped_registry_kills_every_job() {
    let (jobs, spawner, mark) = (Jobs::default(), spawner(), Mark::new());
    let first = start(&jobs, &spawner, "a", mark.put_on(shell(STUBBORN))).await;
    let second = start(&jobs, &spawner, "b", mark.put_on(shell(STUBBORN))).await;
    mark.until_alive(2 * STUBBORN_COUNT).await;
    until("both are ready", || [&first, &second].iter().all(|job| job.log_end() == Cursor(6)))
        .await;
    drop(jobs);
    mark.until_gone().await;
    assert_eq!((first.ended().await, second.kill().await), (JobStatus::Lost, JobStatus::Lost));
    assert_eq!(first.wait(Cursor(6), LONG).await.unwrap(), WakeReason::Ended);
    assert_eq!(text(&second).await, "ready\n");
}

#[tokio::test]
async fn killing_one_job_spares_the_others_and_stopping_all_spares_none() {
    let (jobs, spawner) = (Jobs::default(), spawner());
    let mut started = Vec::new();
    for of in ["a", "b", "a"] {
        started.push(start(&jobs, &spawner, of, shell("sleep 1000")).await);
    }
    started[1].kill().await;
    let left = [started[0].id(), started[2].id()];
    assert_eq!(ids(&jobs.stop_all().await), left);
    assert_eq!(ids(&jobs.stop_all().await), []);
    assert_eq!(ids(&jobs.list()), ids(&started), "in the order of their start");
    for job in jobs.list() {
        assert_eq!(outcome(job.status()).stop, Some(Stop::Cancelled));
    }
}

#[tokio::test]
async fn only_so_many_jobs_run_and_a_refusal_says_how_many() {
    let (jobs, spawner) = (Jobs::new(SMALL), spawner());
    let first = start(&jobs, &spawner, "a", shell("sleep 1000")).await;
    let place = jobs.reserve(owner("a")).unwrap();
    let refused = jobs.reserve(owner("a")).unwrap_err();
    assert_eq!(refused.code(), Code::TooManyJobs);
    let expected = "you already have 2 running jobs; one has to end before another starts";
    assert_eq!(refused.to_string(), expected);

    let other = jobs.reserve(owner("b")).unwrap();
    let refused = jobs.reserve(owner("c")).unwrap_err();
    let expected = "already 3 jobs are running; one has to end before another starts";
    assert_eq!(refused.to_string(), expected);

    // Those that somebody waits for have places of their own, as many.
    let awaited = [owner("a"), owner("a")].map(|owner| jobs.reserve_awaited(owner).unwrap());
    assert_eq!(jobs.reserve_awaited(owner("a")).unwrap_err().code(), Code::TooManyJobs);
    drop(awaited);

    // A place that was not used is free again, and so is that of a job that ended.
    drop(place);
    jobs.reserve(owner("a")).unwrap();
    first.kill().await;
    let (_one, _two) = (jobs.reserve(owner("a")).unwrap(), jobs.reserve(owner("a")).unwrap());
    drop(other);
    assert_eq!(ids(&jobs.list()), [first.id()]);
}

#[tokio::test]
async fn the_jobs_that_ended_first_are_forgotten_first() {
    let (jobs, spawner) = (Jobs::new(SMALL), spawner());
    let long = start(&jobs, &spawner, "a", shell("echo long; sleep 1000")).await;
    let mut short = Vec::new();
    for _ in 0..3 {
        short.push(run(&jobs, &spawner, "a", "true").await.id());
    }
    assert_eq!(ids(&jobs.list()), [long.id(), short[1], short[2]]);
    until("it has printed", || long.log_end() == Cursor(5)).await;
    long.kill().await;
    assert_eq!(ids(&jobs.list()), [long.id(), short[2]]);
    for of in ["b", "c"] {
        short.push(run(&jobs, &spawner, of, "true").await.id());
    }
    assert_eq!(ids(&jobs.list()), [long.id(), short[3], short[4]]);
    short.push(run(&jobs, &spawner, "d", "true").await.id());
    assert_eq!(ids(&jobs.list()), short[3..]);
    assert!(matches!(jobs.get(long.id()), Err(JobError::NotFound { .. })));
    assert_eq!(text(&long).await, "long\n");
}

#[tokio::test]
async fn a_job_of_another_owner_is_not_found() {
    let (jobs, spawner) = (Jobs::default(), spawner());
    let job = run(&jobs, &spawner, "a", "true").await;
    assert_eq!(jobs.get_of(&owner("a"), job.id()).unwrap().id(), job.id());
    let missing: JobId = "job_00000000000000000000000009".parse().unwrap();
    for (of, id) in [("b", job.id()), ("a", missing)] {
        let error = jobs.get_of(&owner(of), id).unwrap_err();
        assert_eq!(
            (error.code(), error.to_string()),
            (Code::JobNotFound, format!("no such job: {id}"))
        );
    }
}

#[tokio::test]
async fn a_command_without_a_log_is_refused_and_killed() {
    let (jobs, spawner, mark) = (Jobs::default(), spawner(), Mark::new());
    let place = jobs.reserve(owner("a")).unwrap();
    let running = spawner.spawn(mark.put_on(shell(STUBBORN))).await.unwrap();
    assert!(matches!(place.start("x", running), Err(JobError::NoLog)));
    mark.until_gone().await;
    assert_eq!(jobs.list().len(), 0);
}

#[tokio::test]
async fn a_job_that_prints_more_than_its_log_takes_goes_on() {
    let (jobs, spawner) = (Jobs::default(), spawner());
    let job = run(&jobs, &spawner, "a", "head -c 5000000 /dev/zero").await;
    let outcome = outcome(job.status());
    assert!(outcome.succeeded() && outcome.stdout.total_bytes == 5_000_000);
    assert!(job.read(job.log_end(), 1).await.unwrap().truncated);
}

#[tokio::test]
async fn a_job_with_a_terminal_reads_what_is_typed_there() {
    let (jobs, spawner) = (Jobs::default(), spawner());
    let job = start(&jobs, &spawner, "a", at_terminal(shell("cat"))).await;
    let terminal = job.terminal().unwrap();
    terminal.write(b"hello\n\x04").await.unwrap();
    assert!(outcome(job.ended().await).succeeded());
    assert_eq!(text(&job).await, "hello\r\nhello\r\n");
    assert!(matches!(terminal.write(b"x").await, Err(TerminalError::Over)));
    assert!(run(&jobs, &spawner, "a", "true").await.terminal().is_none());
}
