//! The candidates that a command line names: lines, patches and prompts.

use std::io::Read as _;
use std::path::Path;

use carrel_domain::Code;
use carrel_trial::{MAX_CANDIDATES, MAX_PATCH_BYTES, Run};

use super::arguments::TryArguments;
use crate::error::{CliError, Result};

/// The runs of the candidates, and the patch or prompt of those that have one.
pub(super) type Candidates = (Vec<Run>, Vec<Option<Vec<u8>>>);

pub(super) fn read(arguments: &TryArguments) -> Result<Candidates> {
    let mut all: Vec<(Run, Option<Vec<u8>>)> = Vec::new();
    all.extend(arguments.runs.iter().map(|line| (Run::Command { line: line.clone() }, None)));
    for path in &arguments.patches {
        let bytes = read_patch(path)?;
        let name = path.display().to_string();
        all.push((Run::Patch { name }, Some(bytes)));
    }
    for prompt in &arguments.prompts {
        let line = arguments.agent.clone().unwrap_or_default();
        all.push((Run::Agent { line }, Some(prompt.clone().into_bytes())));
    }
    let given = all.len();
    match (given, arguments.candidates) {
        (0, _) => {
            let message = "a try needs a candidate: give --run, --patch, or --prompt with --agent";
            return Err(CliError::new(Code::Usage, message));
        }
        (1, Some(count)) => all = vec![all.remove(0); usize::from(count)],
        (_, Some(count)) if usize::from(count) != given => {
            let message = format!(
                "{given} runs, patches and prompts for {count} candidates; give one for each, or one for all"
            );
            return Err(CliError::new(Code::Usage, message));
        }
        _ if given > usize::from(MAX_CANDIDATES) => {
            let message = format!("a try has at most {MAX_CANDIDATES} candidates, not {given}");
            return Err(CliError::new(Code::Usage, message));
        }
        _ => {}
    }
    Ok(all.into_iter().unzip())
}

#[expect(clippy::disallowed_methods, reason = "the caller's own file, in no workspace")]
fn read_patch(path: &Path) -> Result<Vec<u8>> {
    let most = MAX_PATCH_BYTES as u64;
    let read = || {
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    };
    let failed = |error: std::io::Error| {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => Code::NotFound,
            _ => Code::Io,
        };
        let subject = format!("--patch {} cannot be read", path.display());
        CliError::of(code, &error).context(subject).at(path)
    };
    let bytes = read().map_err(failed)?;
    if bytes.len() as u64 > most {
        let message = format!("--patch {} has more than {most} bytes", path.display());
        return Err(CliError::new(Code::TooLarge, message).at(path));
    }
    Ok(bytes)
}
