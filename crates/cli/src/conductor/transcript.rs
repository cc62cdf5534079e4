//! `carrel conductor transcript`: the transcript of a run, one line for each event.

use carrel_client::WorkspaceClient;
use serde_json::{Value, json};

use crate::error::Result;
use crate::output::{self, Format};

const SHOWN_CHARS: usize = 500;

/// Prints the transcript of a run of an issue; of the latest one if `run` is none.
pub(super) async fn print(
    client: &WorkspaceClient,
    issue: &str,
    run: Option<u64>,
    format: Format,
) -> Result<()> {
    let run = match run {
        Some(run) => Some(run),
        None => client.conductor_runs(issue).await?["runs"][0]["run"].as_u64(),
    };
    let Some(run) = run else {
        output::note(&format!("{issue} has not been worked on yet"));
        return Ok(());
    };
    let text = client.transcript(issue, run).await?;
    match format {
        Format::Json => output::write(&text),
        Format::Text => {
            let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            lines.map(event_line).try_for_each(|line| output::line(&line))
        }
    }
}

fn event_line(line: &[u8]) -> String {
    let Ok(line) = serde_json::from_slice::<Value>(line) else {
        return String::from_utf8_lossy(line).into_owned();
    };
    let at = line["at"].as_str().unwrap_or("-");
    let event = line["event"].as_str().unwrap_or("-");
    let said = line["said"].as_object().map(|said| {
        let words = ["message", "text"].into_iter().find_map(|name| said.get(name)?.as_str());
        let kind = said.get("kind").or_else(|| said.get("event")).and_then(Value::as_str);
        match (kind, words) {
            (Some(kind), Some(words)) => format!("{kind}: {words}"),
            (Some(kind), None) => kind.to_owned(),
            (None, _) => json!(said).to_string(),
        }
    });
    let plain = ["text", "message", "error", "workspace", "outcome"]
        .into_iter()
        .find_map(|name| line[name].as_str())
        .map(str::to_owned);
    let words = said.or(plain).unwrap_or_default();
    let shown: String = words.chars().take(SHOWN_CHARS).collect();
    format!("{at}  {event}  {shown}").trim_end().to_owned()
}
