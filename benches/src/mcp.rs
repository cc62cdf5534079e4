//! The tools through a endpoint: `carrel mcp` as a program of its own, over stdio and over HTTP.

mod http;
mod lines;
mod memory;
mod message;
mod over_http;
mod over_stdio;
mod program;
mod rate;
mod reference;
mod small_calls;

use std::time::Duration;

use crate::Fault;
use crate::corpus::Corpus;
use crate::ground::Ground;
use crate::report::{Budget, Row};
use crate::sandbox::beside;
use program::Carrel;

/// What the design promises for reading a large file through either endpoint.
const READ_LIMIT: Duration = Duration::from_micros(400);

/// The size of files that are edited through a endpoint. There is one for each client: a file has to be
/// read again after somebody else changed it.
const EDITED_BYTES: usize = 101_000;

pub(crate) fn rows(ground: &Ground, corpus: &Corpus) -> Result<Vec<Row>, Fault> {
    let Some(program) = beside("carrel") else {
        let why = "carrel is not built beside this program";
        return Ok(vec![Row::left_out("`carrel mcp`, all rows", why, Budget::None)]);
    };
    let carrel = Carrel::new(ground, corpus, program)?;
    let mut rows = over_stdio::rows(ground, corpus, &carrel)?;
    rows.extend(small_calls::rows(ground, &carrel)?);
    let server = carrel.over_http()?;
    rows.extend(over_http::rows(ground, corpus, &server)?);
    rows.extend(rate::rows(ground, &server)?);
    drop(server);
    rows.push(memory::row(ground, corpus, &carrel)?);
    Ok(rows)
}
