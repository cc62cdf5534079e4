//! Other queues, each driven by a script in its own language.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use super::{Measured, SUBMITTERS};
use crate::Fault;
use crate::measure::Samples;
use crate::sandbox::installed;

/// Where they are installed. Not with the scratch files: they are fetched once.
const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench-clients");
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers");

/// The releases that are measured.
const NODE_PACKAGES: [&str; 2] = ["bullmq@6.7.0", "ioredis@6.0.0"];
const PYTHON_PACKAGES: [&str; 4] =
    ["celery==5.7.0", "procrastinate==3.10.0", "psycopg[binary]==3.3.8", "redis==8.1.0"];

/// What a script prints.
#[derive(Deserialize)]
struct Printed {
    micros: Vec<f64>,
    per_second: f64,
}

/// The servers that they use, the same as Carrel does.
pub(super) struct Servers<'a> {
    pub(super) redis: &'a str,
    pub(super) database: &'a str,
}

/// A queue that others use.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    BullMq,
    Celery,
    Procrastinate,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::BullMq, Self::Celery, Self::Procrastinate];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::BullMq => "BullMQ on Redis",
            Self::Celery => "Celery on Redis",
            Self::Procrastinate => "procrastinate on PostgreSQL",
        }
    }

    fn script(self) -> &'static str {
        match self {
            Self::BullMq => "bullmq.mjs",
            Self::Celery => "with_celery.py",
            Self::Procrastinate => "with_procrastinate.py",
        }
    }

    /// Finds the interpreter, and installs what the script needs.
    fn interpreter(self) -> Result<PathBuf, Fault> {
        match self {
            Self::BullMq => with_node(),
            Self::Celery | Self::Procrastinate => with_python(),
        }
    }

    /// Measures it: one job after the other, then many at once.
    pub(super) fn measure(
        self,
        servers: &Servers<'_>,
        rounds: usize,
        all: usize,
    ) -> Result<Measured, Fault> {
        let mut command = Command::new(self.interpreter()?);
        command.arg(Path::new(SCRIPTS).join(self.script()));
        command.args([rounds, all, SUBMITTERS].map(|number| number.to_string()));
        command.env("REDIS_URL", servers.redis).env("DATABASE_URL", servers.database);
        command.env("PEERS", CLIENTS).env("PYTHONDONTWRITEBYTECODE", "1").current_dir(SCRIPTS);
        let printed: Printed = serde_json::from_slice(&run(command)?)?;
        let times = printed.micros.into_iter().map(|micros| Duration::from_secs_f64(micros / 1e6));
        Ok(Measured { times: Samples::new(times.collect()), per_second: printed.per_second })
    }
}

fn with_node() -> Result<PathBuf, Fault> {
    let node = installed("node").ok_or("node is not installed")?;
    if !is_installed("queues.npm", &NODE_PACKAGES) {
        let npm = installed("npm").ok_or("npm is not installed")?;
        std::fs::create_dir_all(CLIENTS)?;
        // Without a manifest of its own, npm would look for one in the directories above.
        let manifest = Path::new(CLIENTS).join("package.json");
        if !manifest.exists() {
            std::fs::write(manifest, "{\"private\":true}\n")?;
        }
        let mut command = Command::new(npm);
        command.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]);
        run_in_clients(command, &NODE_PACKAGES)?;
        remember("queues.npm", &NODE_PACKAGES)?;
    }
    Ok(node)
}

fn with_python() -> Result<PathBuf, Fault> {
    let python = Path::new(CLIENTS).join("python/bin/python");
    if !is_installed("queues.pip", &PYTHON_PACKAGES) {
        let system = installed("python3").ok_or("python3 is not installed")?;
        std::fs::create_dir_all(CLIENTS)?;
        let mut command = Command::new(system);
        command.args(["-m", "venv", "python"]);
        run_in_clients(command, &[])?;
        let mut command = Command::new(&python);
        command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        run_in_clients(command, &PYTHON_PACKAGES)?;
        remember("queues.pip", &PYTHON_PACKAGES)?;
    }
    Ok(python)
}

/// Tells whether these were installed to the end.
fn is_installed(list: &str, packages: &[&str]) -> bool {
    let noted = std::fs::read_to_string(Path::new(CLIENTS).join(list));
    noted.is_ok_and(|noted| noted == packages.join("\n"))
}

fn remember(list: &str, packages: &[&str]) -> Result<(), Fault> {
    Ok(std::fs::write(Path::new(CLIENTS).join(list), packages.join("\n"))?)
}

fn run_in_clients(mut command: Command, more: &[&str]) -> Result<(), Fault> {
    command.args(more).current_dir(CLIENTS);
    run(command).map(|_| ())
}

fn run(mut command: Command) -> Result<Vec<u8>, Fault> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
}
