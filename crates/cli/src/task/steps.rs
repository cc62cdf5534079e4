//! The file of `carrel task submit --file`: a list of steps, or a whole request. Fields that this version
//! does not know are passed on for the server to judge.

use std::io::{self, Read as _};
use std::path::Path;

use carrel_domain::Code;
use serde_json::{Map, Value};

use crate::error::{CliError, Result};

/// Bounds the file. The server accepts 32 MiB, and says so itself.
const MAX_FILE_BYTES: u64 = 33 << 20;

/// Reads a list of steps, or a whole request.
pub(super) fn read(path: &Path) -> Result<Map<String, Value>> {
    let shown = path.display();
    let text = text(path).map_err(|error| {
        let subject = format_args!("could not read the steps in {shown}");
        CliError::of(Code::Io, &error).context(subject).at(path)
    })?;
    parse(&text).map_err(|rule| CliError::new(Code::Usage, format!("{shown} {rule}")).at(path))
}

fn parse(text: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(text).map_err(|error| format!("is not JSON: {error}"))? {
        Value::Array(steps) => Ok(Map::from_iter([("steps".to_owned(), Value::Array(steps))])),
        // Any fields beside the steps are for the server to judge.
        Value::Object(fields) if fields.get("steps").is_some_and(Value::is_array) => Ok(fields),
        Value::Object(_) => Err("has no list `steps`".to_owned()),
        _ => Err("holds neither a list of steps nor a request".to_owned()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the caller's own file, in no workspace")]
fn text(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(path)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_file_holds_steps_or_a_request_with_them() {
        let step = json!({ "action": "shell", "command": "ls" });
        let list = parse(json!([step]).to_string().as_bytes()).unwrap();
        assert_eq!(list["steps"], json!([step]));
        let request = json!({ "steps": [step], "retry_failed": true, "priority": "low" });
        let read = parse(request.to_string().as_bytes()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), request);
        for text in ["", "{", "1", "{}", r#"{"steps": {}}"#, "[] []"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
