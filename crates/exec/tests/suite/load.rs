//! Many commands, and commands that fork a lot.

use std::sync::Arc;
use std::time::Duration;

use carrel_domain::ByteSize;
use carrel_exec::{CommandSpec, ExceededLimit, ExitStatus, SampledLimits, Spawner, Stop};
use pretty_assertions::assert_eq;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::processes::{Mark, children_of, descriptors_of, this_process};
use crate::support::{command, shell, spawner, until};

async fn run_true(spawner: Spawner) {
    let spec = command(&["true"]);
    assert!(spawner.run(spec, &CancellationToken::new()).await.unwrap().succeeded());
}

#[tokio::test]
async fn a_thousand_starts_fifty_at_a_time_leave_no_descriptor_and_no_zombie() {
    let spawner = spawner();
    run_true(spawner.clone()).await;
    let process = children_of(this_process())[0];
    let descriptors = || (descriptors_of(this_process()), descriptors_of(process));
    until("the first init is gone", || children_of(process).is_empty()).await;
    let before = descriptors();
    let slots = Arc::new(Semaphore::new(50));
    let mut commands = JoinSet::new();
    for _ in 0..1000 {
        let slot = Arc::clone(&slots).acquire_owned().await.unwrap();
        let spawner = spawner.clone();
        commands.spawn(async move {
            run_true(spawner).await;
            drop(slot);
        });
    }
    commands.join_all().await;
    until("the last init is gone", || children_of(process).is_empty()).await;
    assert_eq!((descriptors(), children_of(this_process())), (before, vec![process]));
}

#[tokio::test]
async fn a_command_that_keeps_forking_is_ended_by_its_deadline() {
    // Runners that start a successor and exit, so that no process id lives long, among sleepers;
    // all deaf to `TERM`.
    let script = "
        trap '' TERM
        export RUN='sh -c \"$RUN\" &'
        for i in 1 2 3 4 5 6 7 8; do sh -c \"$RUN\"; done
        i=0; while [ $i -lt 60 ]; do setsid sleep 1000 & i=$((i+1)); done
        sleep 1000";
    let mark = Mark::new();
    let deadline = Duration::from_secs(1);
    let spec = CommandSpec { deadline: Some(deadline), ..shell(script) };
    let outcome = spawner().run(mark.put_on(spec), &CancellationToken::new()).await.unwrap();
    assert_eq!((outcome.stop, mark.alive()), (Some(Stop::Deadline), vec![]));
    assert!(outcome.wall < Duration::from_secs(10), "{:?}", outcome.wall);
}

#[tokio::test]
async fn a_storm_of_forks_that_its_command_left_behind_is_ended() {
    let script = "
        trap '' TERM
        export RUN='sh -c \"$RUN\" &'
        for i in 1 2 3 4 5 6 7 8; do sh -c \"$RUN\"; done";
    let mark = Mark::new();
    let outcome =
        spawner().run(mark.put_on(shell(script)), &CancellationToken::new()).await.unwrap();
    assert_eq!((outcome.end, mark.alive()), (ExitStatus::Exited(0), vec![]));
}

#[tokio::test]
async fn a_tree_that_uses_too_much_is_killed_where_no_group_limits_it() {
    let many = "for i in $(seq 40); do sleep 1000 & done; sleep 1000";
    let much = "python3 -c 'x = bytearray(96 << 20); import time; time.sleep(1000)' & \
                python3 -c 'x = bytearray(96 << 20); import time; time.sleep(1000)'; sleep 1000";
    let (memory, processes) = (Some(ByteSize::mib(128)), Some(20));
    let hidden = "python3 -c '
import os, time
file = os.open(\".\", os.O_TMPFILE | os.O_RDWR)
os.write(file, bytes(8 << 20)); os.fsync(file)
time.sleep(1000)'";
    let shared = "python3 -c '
import mmap, time
x = mmap.mmap(-1, 192 << 20); x.write(bytes(192 << 20))
time.sleep(1000)'";
    let disk = Some(ByteSize::mib(4));
    for (script, sampled, excess) in [
        (hidden, SampledLimits { disk, ..SampledLimits::default() }, ExceededLimit::Disk),
        (shared, SampledLimits { memory, ..SampledLimits::default() }, ExceededLimit::Memory),
        (many, SampledLimits { processes, ..SampledLimits::default() }, ExceededLimit::Processes),
        (much, SampledLimits { memory, ..SampledLimits::default() }, ExceededLimit::Memory),
    ] {
        let deadline = Some(Duration::from_mins(1));
        let spec = CommandSpec { sampled, deadline, ..shell(script) };
        let outcome = spawner().run(spec, &CancellationToken::new()).await.unwrap();
        assert_eq!((outcome.excess, outcome.stop), (Some(excess), None));
        assert_eq!(outcome.end, ExitStatus::Signaled(9));
    }
}

#[tokio::test]
async fn memory_that_processes_share_is_counted_once() {
    let script = "python3 -c '
import os, time
x = bytearray(64 << 20)
for _ in range(4): os.fork()
time.sleep(0.5)'";
    let sampled = SampledLimits { memory: Some(ByteSize::mib(160)), ..SampledLimits::default() };
    let spec = CommandSpec { sampled, ..shell(script) };
    let outcome = spawner().run(spec, &CancellationToken::new()).await.unwrap();
    // Four forks make sixteen processes, which share the array.
    assert_eq!((outcome.excess, outcome.end), (None, ExitStatus::Exited(0)));
}
