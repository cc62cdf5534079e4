use std::time::{Duration, Instant};

use carrel_testkit::servers::PostgresServer;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::{ConductorFixture, Running};
use crate::Run;

const AGENT: &str =
    "agent:\n  kind: command\n  max_turns: 1\n  sandbox: {writable: [OUTSIDE]}\n  command: ";

const CLOSING: &str = "hooks:\n  after_run: |\n    env > OUTSIDE/hook\n    \"$CARREL\" issue comment \"$CARREL_ISSUE_IDENTIFIER\" worked --author hook &&\n    \"$CARREL\" issue move \"$CARREL_ISSUE_IDENTIFIER\" Done\n";

/// How long a start may take to be refused, and a killed server to be noticed.
const SECONDS: Duration = Duration::from_secs(20);

struct Server {
    runtime: Runtime,
    postgres: PostgresServer,
}

impl Server {
    fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let postgres = runtime.block_on(PostgresServer::start_durable());
        Self { runtime, postgres }
    }

    fn restart(&mut self) {
        self.runtime.block_on(self.postgres.restart());
    }

    /// Breaks the connections that hold a scope, as a network does.
    fn cut(&self) {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'";
        self.ask(cut);
    }

    /// Who was the last to take the issues.
    fn holder(&self) -> String {
        self.ask("SELECT holder FROM conductor_tenures").remove(0)
    }

    fn ask(&self, question: &str) -> Vec<String> {
        self.runtime.block_on(async {
            let client = self.postgres.client().await.unwrap();
            let rows = client.query(question, &[]).await.unwrap();
            rows.iter().map(|row| row.try_get(0).unwrap_or_default()).collect()
        })
    }

    fn fixture(&self, lines: &str) -> ConductorFixture {
        ConductorFixture::with(lines).on(&self.postgres.url())
    }
}

fn shown(fixture: &ConductorFixture, issue: &str) -> Value {
    let run = Run::of(fixture.command(&["issue", "show", issue, "--json"]));
    serde_json::from_str(&run.stdout).expect(&run.stderr)
}

#[test]
fn an_issue_is_worked_off_and_its_hook_moves_it_without_knowing_where_it_is() {
    let server = Server::start();
    let fixture = server.fixture(&format!("{CLOSING}{AGENT}env > OUTSIDE/agent; echo done > work"));
    fixture.issue("one");
    let run = fixture.once();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let issue = shown(&fixture, "CAR-1");
    assert_eq!(
        (&issue["state"], &issue["comments"][0]["author"]),
        (&json!("Done"), &json!("hook"))
    );
    for who in ["hook", "agent"] {
        let seen = fixture.notes(who);
        assert!(!seen.is_empty() && !seen.contains("DATABASE_URL"), "{who}: {seen}");
    }
    assert!(!fixture.fixture.path("data/carrel.db").exists());
    // Another machine sees the same issues, and numbers go on.
    let other = server.fixture(AGENT);
    other.issue("two");
    assert_eq!(fixture.state("CAR-2"), "Todo");
    let run = Run::of(fixture.command(&["check", "--json"]));
    assert_eq!(serde_json::from_str::<Value>(&run.stdout).unwrap()["kept_in"], "database");
}

#[test]
fn whoever_forgets_the_address_gets_no_second_set_of_issues() {
    let server = Server::start();
    let fixture = server.fixture(&format!("{AGENT}sleep 100"));
    fixture.issue("one");
    let running = fixture.start();
    running.until("the agent works", || {
        fixture.state("CAR-1") == "Todo" && fixture.workspace("CAR-1").exists()
    });
    let forgetful = |arguments: &[&str]| {
        let mut command = fixture.command(arguments);
        command.env_remove("DATABASE_URL");
        Run::of(command)
    };
    let run = forgetful(&["issue", "ls", "--json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("CAR-1"), "{}", run.stdout);
    assert_eq!(running.end(), 0);
    let run = forgetful(&["issue", "new", "--title", "two", "--json"]);
    assert_eq!((run.code, &run.error()["code"]), (1, &json!("E_STORE_UNAVAILABLE")));
    assert!(run.stderr.contains("DATABASE_URL"), "{}", run.stderr);
    assert!(!fixture.fixture.path("data/carrel.db").exists());
    // With another key nothing is answered.
    let running = fixture.start();
    running.until("it listens", || forgetful(&["issue", "ls"]).code == 0);
    std::fs::write(fixture.fixture.path("data/conductor/issues.key"), "0".repeat(64)).unwrap();
    let run = forgetful(&["issue", "ls"]);
    assert!(run.code == 1 && run.stderr.contains("key"), "{}", run.stderr);
    assert_eq!(running.end(), 0);
}

#[test]
fn a_second_conductor_is_refused_until_the_first_is_killed() {
    let server = Server::start();
    let lines = format!("{AGENT}echo $CARREL_ISSUE_IDENTIFIER >> OUTSIDE/starts; sleep 100");
    let (first, second) = (server.fixture(&lines), server.fixture(&lines));
    first.issue("one");
    let mut running = first.start();
    running.until("the agent works", || first.notes("starts") == "CAR-1\n");
    let begun = Instant::now();
    for once in [true, false] {
        let arguments: &[&str] =
            if once { &["run", "--once", "--json"] } else { &["run", "--json"] };
        let refused = Run::of(second.command(arguments));
        assert_eq!((refused.code, &refused.error()["code"]), (1, &json!("E_WORKSPACE_BUSY")));
        let holder = format!("process {} on ", running.child.id());
        assert!(refused.stderr.contains(&holder), "{holder}: {}", refused.stderr);
    }
    assert!(begun.elapsed() < SECONDS, "{:?}", begun.elapsed());
    running.child.kill().unwrap();
    running.wait();
    let mut next = second.start();
    next.until("the agent works there", || second.notes("starts") == "CAR-1\n");
    assert_eq!(first.notes("starts"), "CAR-1\n");
    next.child.kill().unwrap();
    next.wait();
}

#[test]
fn a_conductor_whose_issues_were_taken_over_ends_with_its_agents() {
    let server = Server::start();
    let lines = format!("{AGENT}exec 9> OUTSIDE/lock; flock 9; echo up > OUTSIDE/up; sleep 100");
    let (first, second) = (server.fixture(&lines), server.fixture(&lines));
    first.issue("one");
    let mut running = first.start();
    running.until("the agent works", || !first.notes("up").is_empty());
    let next = second.start();
    let holder = format!("process {} on ", next.child.id());
    next.until("the second one has them", || {
        server.cut();
        server.holder().starts_with(&holder)
    });
    assert_eq!(running.wait(), 1, "{}", running.log());
    let log = running.log();
    assert!(log.contains("has taken over") && log.contains(&next.child.id().to_string()), "{log}");
    // It held its lock as long as anything of it lived.
    std::fs::File::open(first.fixture.path("outside/lock")).unwrap().try_lock().unwrap();
    next.until("the agent works there", || !second.notes("up").is_empty());
    assert_eq!(next.end(), 0);
}

#[test]
fn a_database_that_is_away_is_waited_for_and_short_commands_say_so() {
    let mut server = Server::start();
    let fixture = server.fixture(&format!("{CLOSING}{AGENT}echo done > work"));
    fixture.issue("one");
    server.postgres.kill();
    let begun = Instant::now();
    let run = Run::of(fixture.command(&["issue", "new", "--title", "two", "--json"]));
    assert_eq!((run.code, &run.error()["code"]), (1, &json!("E_STORE_UNAVAILABLE")));
    assert!(begun.elapsed() < SECONDS && !run.stderr.contains("secret"), "{}", run.stderr);
    let warned = Run::of(fixture.command(&["check", "--json"]));
    let told: Value = serde_json::from_str(&warned.stdout).expect(&warned.stderr);
    assert!(told["warnings"][0].as_str().unwrap().contains("DATABASE_URL"), "{told}");
    let running = fixture.start();
    running.until("it says what it waits for", || running.log().contains("trying again"));
    server.restart();
    running.until("the issue is done", || fixture.state("CAR-1") == "Done");
    assert_eq!(running.end(), 0);
}

/// Agents that hold a lock while anything of them lives, and say so if another does.
const CAREFUL: &str = "hooks:\n  after_run: '\"$CARREL\" issue move \"$CARREL_ISSUE_IDENTIFIER\" Done'\nagent:\n  kind: command\n  max_turns: 1\n  max_concurrent_agents: 3\n  sandbox: {writable: [OUTSIDE]}\n  command: |\n    exec 9> OUTSIDE/$CARREL_ISSUE_IDENTIFIER.lock\n    flock -n 9 || echo $CARREL_ISSUE_IDENTIFIER >> OUTSIDE/doubled\n    date +%N > work\n    sleep 0.3";

#[test]
fn nothing_is_doubled_or_lost_when_conductor_and_database_are_killed_by_turns() {
    const ISSUES: usize = 8;
    let mut server = Server::start();
    let fixture = server.fixture(CAREFUL);
    for number in 1..=ISSUES {
        fixture.issue(&number.to_string());
    }
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let rounds = if std::env::var_os("CARREL_SOAK").is_some() { 20 } else { 4 };
    let mut running = fixture.start();
    let begun = |running: &Running| running.log().matches("works off the issues").count();
    let mut starts = 1;
    for round in 0..rounds {
        std::thread::sleep(Duration::from_millis(random.u64(50..900)));
        // A start is not repeated if the database goes away after it was found; an operator sees its error.
        if round % 2 == 0 {
            running.until("it has begun", || begun(&running) == starts);
        }
        assert!(running.child.try_wait().unwrap().is_none(), "{}", running.log());
        if round % 2 == 0 {
            server.postgres.kill();
            std::thread::sleep(Duration::from_millis(random.u64(0..300)));
            server.restart();
        } else {
            running.child.kill().unwrap();
            running.wait();
            starts = begun(&running) + 1;
            running = fixture.start();
        }
        assert_eq!(fixture.notes("doubled"), "", "round {round}");
    }
    // A database that was killed may still refuse connections while it starts up.
    let done = |number: usize| {
        fixture.state_or_error(&format!("CAR-{number}")).is_ok_and(|state| state == "Done")
    };
    running.until("all is done", || (1..=ISSUES).all(done));
    running.until("no workspace is left", || {
        (1..=ISSUES).all(|number| !fixture.workspace(&format!("CAR-{number}")).exists())
    });
    let log = running.log();
    assert_eq!(running.end(), 0, "{log}");
    assert_eq!(fixture.notes("doubled"), "");
}
