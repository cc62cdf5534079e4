//! Processes as a test sees them from outside.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use carrel_exec::CommandSpec;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{until, variable};

const MARK: &str = "CARREL_TEST_MARK";

/// A variable that every process of a command inherits, whatever it does to escape.
#[derive(Clone, Debug)]
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn named(name: &str) -> Self {
        Self(name.to_owned())
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    pub(crate) fn put_on(&self, mut spec: CommandSpec) -> CommandSpec {
        spec.environment.push(variable(MARK, &self.0));
        spec
    }

    /// Returns the running processes that carry the mark.
    pub(crate) fn alive(&self) -> Vec<i32> {
        let wanted = format!("{MARK}={}", self.0);
        let carries = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        };
        pids().filter(carries).collect()
    }

    pub(crate) async fn until_alive(&self, count: usize) {
        until(&format!("{count} processes run"), || self.alive().len() >= count).await;
    }

    pub(crate) async fn until_gone(&self) {
        until("no process is left", || self.alive().is_empty()).await;
    }
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
}

/// Returns the parent of a process, if it exists.
pub(crate) fn parent_of(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

/// Returns all children of a process, zombies included.
pub(crate) fn children_of(parent: i32) -> Vec<i32> {
    pids().filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

pub(crate) fn this_process() -> i32 {
    std::process::id().cast_signed()
}

/// Returns the number of open descriptors, if this user may know it.
pub(crate) fn descriptors_of(pid: i32) -> Option<usize> {
    Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count())
}

pub(crate) fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}
