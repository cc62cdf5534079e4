//! `kill -9` of the server at random moments while tasks run, with clients that never give up.
//!
//! `CARREL_KILL_ROUNDS` sets how many moments, `CARREL_SOAK` makes it a thousand tasks and
//! `CARREL_SEED` repeats the moments of an earlier run.

/// The same with several processes, and with the death of what they share.
mod scaled;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use serde_json::json;

use super::test_environment::{Client, Event, Service, assert_whole, events};
use crate::eventually;
use crate::test_environment::{descendants, is_soak};

/// How many workspaces the tasks are of.
const TENANTS: usize = 4;

/// How many clients submit, and how many read events.
const CLIENTS: usize = 4;

/// The longest time between two kills, in milliseconds.
const MOST_QUIET: u64 = 700;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// A task that the server said it would run.
#[derive(Clone, Debug)]
struct Promise {
    id: String,
    tenant: usize,
    /// Where its commands leave a line.
    file: String,
}

/// What all clients share while servers come and go.
struct Scenario {
    clients: Vec<Client>,
    address: RwLock<SocketAddr>,
    promises: Mutex<Vec<Promise>>,
    submitted: AtomicUsize,
    tasks: usize,
    /// How long a client waits between two tasks, so that the last comes about with the last kill.
    pause: Duration,
    seed: u64,
}

impl Scenario {
    fn new(
        clients: Vec<Client>,
        address: SocketAddr,
        tasks: usize,
        rounds: u64,
        seed: u64,
    ) -> Self {
        let per_client = u32::try_from(tasks / CLIENTS).unwrap();
        Self {
            clients,
            address: RwLock::new(address),
            promises: Mutex::default(),
            submitted: AtomicUsize::new(0),
            tasks,
            pause: Duration::from_millis(rounds * MOST_QUIET / 2) / per_client,
            seed,
        }
    }

    /// Lets clients submit and read while something else happens, and returns what the readers heard.
    fn play(&self, kill: impl FnOnce()) -> BTreeMap<String, Vec<Event>> {
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                let mut random =
                    fastrand::Rng::with_seed(self.seed.wrapping_add(1 + number as u64));
                scope.spawn(move || self.submit(&mut random));
            }
            let readers: Vec<_> =
                (0..CLIENTS).map(|reader| scope.spawn(move || self.read(reader))).collect();
            kill();
            readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
        })
    }

    fn client(&self, tenant: usize) -> Client {
        Client { address: *self.address.read().unwrap(), ..self.clients[tenant].clone() }
    }

    /// Submits tasks until all are acknowledged. A client that hears nothing asks again with its key.
    fn submit(&self, random: &mut fastrand::Rng) {
        loop {
            let number = self.submitted.fetch_add(1, Ordering::Relaxed);
            if number >= self.tasks {
                return;
            }
            let (tenant, file) = (number % TENANTS, format!("effects/{number}"));
            let pause = random.u32(1..60);
            let line = format!(
                "mkdir -p effects; echo begun >> {file}; sleep 0.{pause:02}; echo done >> {file}"
            );
            let body = json!({
                "steps": [{ "action": "shell", "command": line }],
                "max_attempts": 10,
                "idempotency_key": format!("task {number}"),
            });
            let id = self.promised(tenant, body.to_string().as_bytes());
            self.promises.lock().unwrap().push(Promise { id, tenant, file });
            std::thread::sleep(self.pause.mul_f64(random.f64() * 2.0));
        }
    }

    fn promised(&self, tenant: usize, body: &[u8]) -> String {
        loop {
            match self.client(tenant).try_send("/api/tasks/submit", &[], Some(body)) {
                Ok(reply) if reply.status == 200 => {
                    return reply.json()["task_id"].as_str().unwrap().to_owned();
                }
                // Full, or without its database for the moment.
                Ok(reply) => assert!(matches!(reply.status, 429 | 503), "{reply:?}"),
                Err(_) => {}
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Reads the events of every n-th task in short glances until all of them are over.
    fn read(&self, reader: usize) -> BTreeMap<String, Vec<Event>> {
        let mut seen = BTreeMap::<String, Vec<Event>>::new();
        let deadline = Instant::now() + Duration::from_mins(if is_soak() { 30 } else { 2 });
        loop {
            let promises = self.promises.lock().unwrap().clone();
            let mine = promises.iter().skip(reader).step_by(CLIENTS);
            let open: Vec<_> = mine
                .filter(|promise| !seen.get(&promise.id).is_some_and(|seen| is_over(seen)))
                .collect();
            if open.is_empty() && promises.len() == self.tasks {
                return seen;
            }
            assert!(
                Instant::now() < deadline,
                "seed {}: {} tasks never end",
                self.seed,
                open.len()
            );
            for promise in &open {
                let events = seen.entry(promise.id.clone()).or_default();
                let header = format!("Last-Event-ID: {}", events.len());
                let path = format!("/api/tasks/{}/events", promise.id);
                let words = ["--header", &header, "--max-time", "0.2"];
                let text = self.client(promise.tenant).read_some(&path, &words);
                events.extend(super::test_environment::events(&text));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn is_over(events: &[Event]) -> bool {
    events.last().is_some_and(Event::is_last)
}

#[test]
fn nothing_that_was_acknowledged_is_lost_by_a_kill_at_any_moment() {
    let seed = number("CARREL_SEED").unwrap_or_else(|| fastrand::u64(..));
    eprintln!("CARREL_SEED={seed}");
    let rounds = number("CARREL_KILL_ROUNDS").unwrap_or(4);
    let tasks = if is_soak() { 1000 } else { 20 };
    let mut service = Service::start_with(&[("WORKER_CONCURRENCY", "4")]);
    let clients = (0..TENANTS).map(|_| service.client()).collect();
    let scenario = Scenario::new(clients, service.address, tasks, rounds, seed);
    let (mut killed_with_work, mut random) = (0, fastrand::Rng::with_seed(seed));
    let told_by_task = scenario.play(|| {
        for _ in 0..rounds {
            std::thread::sleep(Duration::from_millis(random.u64(20..MOST_QUIET)));
            let below = descendants(service.server.pid());
            service.kill();
            // The spawner is one; what is more runs for a task.
            killed_with_work += usize::from(below.len() > 1);
            eventually("nothing of the killed server is left", || {
                below.iter().all(|process| !process.still_runs())
            });
            service.begin_again();
            *scenario.address.write().unwrap() = service.address;
        }
    });
    let again = scenario.check(&told_by_task);
    eprintln!(
        "{rounds} kills, {killed_with_work} of them with tasks running, {again} tasks begun again"
    );
    assert!(killed_with_work > 0 && again > 0, "seed {seed}: no moment that matters was hit");
}

impl Scenario {
    /// Sees that nothing was lost, doubled or told differently. Returns how many tasks were begun again.
    fn check(&self, told_by_task: &BTreeMap<String, Vec<Event>>) -> usize {
        let (seed, promises) = (self.seed, self.promises.lock().unwrap().clone());
        assert_eq!((promises.len(), told_by_task.len()), (self.tasks, self.tasks), "seed {seed}");
        for promise in &promises {
            let client = self.client(promise.tenant);
            let told = &told_by_task[&promise.id];
            assert_whole(told);
            let task = client.task(&promise.id);
            let status = told.last().unwrap().status().unwrap();
            assert_eq!(task["status"], status, "seed {seed}: {task}");
            assert!(matches!(status, "completed" | "dead"), "seed {seed}: {task}");
            assert_eq!(task["last_event"], told.len(), "seed {seed}: {task}");
            assert_in_order(told);
            let effects = client.read(&promise.file).expect(200);
            let effects = effects["content"].as_str().unwrap();
            let begun = effects.matches("begun").count();
            assert!(begun >= 1 && begun <= attempts(told), "seed {seed}: {effects} {told:?}");
            assert!(status != "completed" || effects.contains("done"), "seed {seed}: {effects}");
        }
        // Nor is anything of an attempt left in the workspaces.
        if told_by_task.values().all(|told| told.last().unwrap().status() == Some("completed")) {
            for tenant in 0..TENANTS {
                assert_eq!(self.client(tenant).run("ls tasks"), "", "seed {seed}");
            }
        }
        // What was told stays told: a reader that comes now hears the same.
        for promise in promises.iter().take(20) {
            let again = self.client(promise.tenant).events(&promise.id, 0);
            assert_eq!(again, told_by_task[&promise.id]);
        }
        told_by_task.values().filter(|told| attempts(told) > 1).count()
    }
}

fn attempts(told: &[Event]) -> usize {
    told.iter().filter(|event| event.status() == Some("running")).count()
}

/// A task waits, runs, and either ends or waits again.
fn assert_in_order(told: &[Event]) {
    let statuses: Vec<_> = told.iter().filter_map(Event::status).collect();
    for (index, status) in statuses.iter().enumerate() {
        let expected = index % 2 == 0;
        let last = index + 1 == statuses.len();
        assert!((*status == "queued") == (expected && !last), "{statuses:?}");
        assert!((*status == "running") == (!expected && !last), "{statuses:?}");
    }
}

#[test]
fn a_submission_killed_at_any_moment_is_made_once_by_its_key() {
    let mut service = Service::start();
    let client = service.client();
    client.run("true");
    let body = json!({
        "steps": [{ "action": "shell", "command": "echo x >> once" }],
        "idempotency_key": "k",
        "max_attempts": 10,
    });
    let text = body.to_string();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..3 {
        let client = Client { address: service.address, ..client.clone() };
        let path = "/api/tasks/submit";
        let asking = std::thread::spawn({
            let text = text.clone();
            move || client.try_send(path, &[], Some(text.as_bytes()))
        });
        std::thread::sleep(Duration::from_millis(random.u64(0..30)));
        service.kill();
        let _ = asking.join().unwrap();
        service.begin_again();
    }
    let client = Client { address: service.address, ..client };
    let id = client.submit(&body);
    client.finished(&id);
    assert_eq!(client.get("/api/tasks").expect(200)["total"], 1);
    assert_eq!(
        events(&client.get(&format!("/api/tasks/{id}/events")).body).first().unwrap().number,
        1
    );
}
