//! `carrel serve` as a program of its own, over HTTP.

mod client;
mod events;
mod files;
mod footprint;
mod work;

use std::path::PathBuf;
use std::process::Command;

use crate::Fault;
use crate::ground::Ground;
use crate::report::{Budget, Row};
use crate::sandbox::beside;
use crate::server::Server;

pub(crate) use client::Client;

pub(crate) fn rows(ground: &Ground) -> Result<Vec<Row>, Fault> {
    let Some(program) = beside("carrel") else {
        let why = "carrel is not built beside this program";
        return Ok(vec![Row::left_out("`carrel serve`, all rows", why, Budget::None)]);
    };
    let service = Service { program, data: ground.directory("service")? };
    let mut rows = footprint::rows(ground, &service)?;
    let server = service.start(&[])?;
    rows.extend(work::rows(ground, &service, &server)?);
    rows.extend(files::rows(ground, &service, &server)?);
    drop(server);
    rows.extend(events::rows(ground, &service)?);
    Ok(rows)
}

/// The release program, and the directory that it keeps everything in.
pub(crate) struct Service {
    pub(crate) program: PathBuf,
    pub(crate) data: PathBuf,
}

impl Service {
    /// Starts it on a free port.
    pub(crate) fn start(&self, variables: &[(&str, &str)]) -> Result<Server, Fault> {
        let mut command = Command::new(&self.program);
        command.args(["serve", "--bind", "127.0.0.1:0", "--data"]).arg(&self.data);
        // More than one workspace may send in earnest, so that its speed is measured and not its limit.
        command.env("CARREL_RATE_LIMIT", "1000000").envs(variables.iter().copied());
        Server::start(command)
    }

    /// Returns a token for all workspaces.
    fn token(&self) -> Result<String, Fault> {
        let mut command = Command::new(&self.program);
        command.args(["token", "new", "--all", "--scope", "read,write,exec,admin", "--data"]);
        let output = command.arg(&self.data).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}
