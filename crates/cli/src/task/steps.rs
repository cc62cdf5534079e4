//! The file of `carrel task submit --file`: a list of steps, or a whole request. Fields that this version
//! does not know are passed on for the server to judge.

use std::io::{self, Read as _};
use std::path::Path;

use serde_json::{Map, Value};

use crate::error::CliError;

/// Bounds the file. The server accepts 32 MiB, and says so itself.
const MAX_FILE_BYTES: u64 = 33 << 20;

/// Reads a list of steps, or a whole request.
pub(super) fn read(path: &Path) -> Result<Map<String, Value>, CliError> {
    let invalid = |rule: String| CliError::Steps { path: path.display().to_string(), rule };
    let text = text(path)
        .map_err(|source| CliError::StepsFile { path: path.display().to_string(), source })?;
    parse(&text).map_err(invalid)
}

fn parse(text: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(text).map_err(|error| format!("is not JSON: {error}"))? {
        Value::Array(steps) => Ok(Map::from_iter([("steps".to_owned(), Value::Array(steps))])),
        Value::Object(fields) => of_request(fields),
        _ => Err("holds neither a list of steps nor a request".to_owned()),
    }
}

/// Accepts any fields beside the steps: the server judges them.
fn of_request(fields: Map<String, Value>) -> Result<Map<String, Value>, String> {
    match fields.get("steps") {
        Some(Value::Array(_)) => Ok(fields),
        _ => Err("has no list `steps`".to_owned()),
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
