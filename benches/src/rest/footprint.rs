//! What the service takes up when nobody uses it.

use std::time::{Duration, Instant};

use super::Service;
use super::client::Client;
use crate::Fault;
use crate::ground::Ground;
use crate::measure::alone;
use crate::report::{Budget, Row};

const READY: Duration = Duration::from_millis(50);
const MEMORY: u64 = 20_000_000;
const PROGRAM: u64 = 42_000_000;

/// Until nothing of the start is going on any more.
const AT_REST: Duration = Duration::from_secs(2);

pub(super) fn rows(ground: &Ground, service: &Service) -> Result<Vec<Row>, Fault> {
    let start = || {
        let begun = Instant::now();
        let server = service.start(&[])?;
        let mut client = Client::connect(service, &server)?;
        client.send("GET", "/readyz", None)?;
        let elapsed = begun.elapsed();
        drop(server);
        Ok(elapsed)
    };
    let started = alone(ground.pace.starts, start)?;
    let server = service.start(&[])?;
    std::thread::sleep(AT_REST);
    let memory = server.resident_bytes()?;
    let program = std::fs::metadata(&service.program)?.len();
    Ok(vec![
        Row::alone(
            "`carrel serve`, start → ready; a token is made as well",
            started,
            "–",
            Budget::Time(READY),
        ),
        Row::size("`carrel serve`, memory at rest", memory, MEMORY),
        Row::size("the program", program, PROGRAM),
    ])
}
