//! Commands over HTTP.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Service;
use super::client::Client;
use crate::Fault;
use crate::crowd::calls_per_second;
use crate::ground::Ground;
use crate::measure::{alone, interleave, timed};
use crate::report::{Budget, Row};
use crate::server::Server;

const CLIENTS: usize = 8;
const EXEC: Duration = Duration::from_millis(3);
const LEAST_COMMANDS_PER_SECOND: f64 = 800.0;
const FIRST_COMMAND: Duration = Duration::from_millis(10);
const AT_ONCE: usize = 100;
const ALL_AT_ONCE: Duration = Duration::from_millis(500);

pub(super) fn rows(ground: &Ground, service: &Service, server: &Server) -> Result<Vec<Row>, Fault> {
    let mut client = Client::connect(service, server)?;
    let workspace = client.new_workspace()?;
    let request = exec(&client, &workspace);
    Ok(vec![
        one_by_one(ground, &mut client, &request)?,
        by_several(ground, &client, &request)?,
        first_commands(ground, &mut client)?,
        first_commands_at_once(ground, &client)?,
    ])
}

fn exec(client: &Client, workspace: &str) -> Vec<u8> {
    let path = format!("/api/workspaces/{workspace}/exec");
    client.request("POST", &path, Some(&json!({ "command": "true" })))
}

fn run_plainly() -> Result<(), Fault> {
    let output =
        Command::new("/bin/bash").args(["-c", "true"]).env_clear().stdin(Stdio::null()).output()?;
    if output.status.success() { Ok(()) } else { Err("the plain command failed".into()) }
}

fn one_by_one(ground: &Ground, client: &mut Client, request: &[u8]) -> Result<Row, Fault> {
    let run = || {
        let time = client.time(request)?;
        succeeded(client)?;
        Ok(time)
    };
    let pair = interleave(ground.pace.slow, || timed(run_plainly), run)?;
    let work = "`true` over REST, sandbox included; plain is `bash -c true`";
    Ok(Row::new(work, pair, Budget::Time(EXEC)))
}

fn succeeded(client: &Client) -> Result<(), Fault> {
    let answer: serde_json::Value = serde_json::from_slice(client.body())?;
    if answer["exit_code"] == 0 { Ok(()) } else { Err(format!("not run: {answer}").into()) }
}

fn by_several(ground: &Ground, client: &Client, request: &[u8]) -> Result<Row, Fault> {
    let mut callers = client.crowd(CLIENTS, request)?;
    calls_per_second(&mut callers, ground.pace.slow / 10)?;
    let carrel = calls_per_second(&mut callers, ground.pace.slow)?;
    let plain = plain_per_second(ground.pace.slow)?;
    let work = format!("`true` over REST of {CLIENTS} clients; plain is `bash -c true` by as many");
    Ok(Row::rate(work, plain, carrel, Budget::Rate(LEAST_COMMANDS_PER_SECOND)))
}

fn plain_per_second(each: usize) -> Result<f64, Fault> {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let run = || (0..each).try_for_each(|_| run_plainly());
        let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(run)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "it panicked")?)
    })?;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand commands")]
    let all = (CLIENTS * each) as f64;
    Ok(all / begun.elapsed().as_secs_f64())
}

fn first_command(client: &mut Client) -> Result<(), Fault> {
    let workspace = client.new_workspace()?;
    let request = exec(client, &workspace);
    client.time(&request)?;
    succeeded(client)
}

fn first_commands(ground: &Ground, client: &mut Client) -> Result<Row, Fault> {
    let times = alone(ground.pace.slow, || timed(|| first_command(client)))?;
    let work = "make a workspace over REST and run the first command";
    Ok(Row::alone(work, times, "–", Budget::Time(FIRST_COMMAND)))
}

fn first_commands_at_once(ground: &Ground, client: &Client) -> Result<Row, Fault> {
    let times = alone(ground.pace.trees, || {
        let mut clients =
            (0..AT_ONCE).map(|_| client.another()).collect::<Result<Vec<_>, Fault>>()?;
        timed(|| {
            std::thread::scope(|scope| {
                let threads: Vec<_> = clients
                    .iter_mut()
                    .map(|client| scope.spawn(move || first_command(client)))
                    .collect();
                threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "panicked")?)
            })
        })
    })?;
    let work = format!("the same, {AT_ONCE} workspaces at once, until the last");
    Ok(Row::alone(work, times, "–", Budget::Time(ALL_AT_ONCE)))
}
