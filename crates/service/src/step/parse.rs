//! Checks of the steps of a request.

use carrel_wire::limits::{MAX_STEP_COMMAND_BYTES, MAX_STEP_CREDENTIALS, MAX_STEP_TEXT_BYTES};
use carrel_wire::{STEP_ACTIONS, StepRequest};

use super::{Action, Step};
use crate::credentials::check_credential_name;
use crate::repository::check_branch;
use crate::request::InvalidRequest;

/// Checks every text, also of fields that the action does not use, since all are stored.
fn check_texts(request: &StepRequest) -> Result<(), InvalidRequest> {
    for (field, value, longest) in [
        ("command", &request.command, MAX_STEP_COMMAND_BYTES),
        ("repo", &request.repo, MAX_STEP_TEXT_BYTES),
        ("repo_name", &request.repo_name, MAX_STEP_TEXT_BYTES),
        ("path", &request.path, MAX_STEP_TEXT_BYTES),
        ("tool", &request.tool, MAX_STEP_TEXT_BYTES),
        ("cwd", &request.cwd, MAX_STEP_TEXT_BYTES),
    ] {
        let Some(value) = value else { continue };
        if value.len() > longest {
            let rule = format!("is longer than {longest} bytes");
            return Err(InvalidRequest::new(field, rule));
        }
        if value.contains('\0') {
            return Err(InvalidRequest::new(field, "contains a NUL byte"));
        }
    }
    if request.credentials.len() > MAX_STEP_CREDENTIALS {
        let rule = format!("are at most {MAX_STEP_CREDENTIALS}");
        return Err(InvalidRequest::new("credentials", rule));
    }
    for (index, name) in request.credentials.iter().enumerate() {
        check_credential_name(&format!("credentials[{index}]"), name)?;
    }
    let branch = request.branch.as_deref().filter(|branch| !branch.trim().is_empty());
    branch.map_or(Ok(()), check_branch)
}

/// Returns the step that a request describes. `index` is its position in the task, counted from 0.
pub(crate) fn parse_step(request: &StepRequest, index: usize) -> Result<Step, InvalidRequest> {
    let parsed = check_texts(request).and_then(|()| parse_action(request));
    let action = parsed.map_err(|error| error.in_step(index))?;
    if request.timeout == Some(0) {
        let error = InvalidRequest::new("timeout", "is a number of seconds above 0");
        return Err(error.in_step(index));
    }
    Ok(Step {
        action,
        action_name: request.action.clone(),
        cwd: request.cwd.clone(),
        timeout: request.timeout,
        description: request.description.clone(),
        on_error: request.on_error.unwrap_or_default(),
        network: request.network,
        credentials: request.credentials.clone(),
    })
}

fn parse_action(request: &StepRequest) -> Result<Action, InvalidRequest> {
    let missing =
        |field: &str| InvalidRequest::new(field, format!("is required for `{}`", request.action));
    let text = |field: &str, value: &Option<String>| {
        value.clone().filter(|value| !value.is_empty()).ok_or_else(|| missing(field))
    };
    let path = || text("path", &request.path);
    let branch = request.branch.clone().filter(|branch| !branch.trim().is_empty());
    Ok(match request.action.as_str() {
        "execute_command" | "shell" => {
            Action::Command { command: text("command", &request.command)? }
        }
        "git_clone" => Action::GitClone {
            repo: text("repo", &request.repo)?,
            branch,
            shallow: request.shallow.unwrap_or(true),
        },
        "git_pull" => Action::GitPull { repo_name: text("repo_name", &request.repo_name)?, branch },
        "read_file" => Action::ReadFile { path: path()? },
        "write_file" => {
            let content = request.content.clone();
            Action::WriteFile { path: path()?, content: content.ok_or_else(|| missing("content"))? }
        }
        "list_directory" => {
            Action::ListDirectory { path: path().unwrap_or_else(|_| ".".to_owned()) }
        }
        "create_directory" => Action::CreateDirectory { path: path()? },
        "tool" => Action::Tool {
            name: text("tool", &request.tool)?,
            arguments: request.arguments.clone().unwrap_or_default(),
        },
        _ => {
            let known = STEP_ACTIONS.join(", ");
            let word: String = request.action.chars().take(40).collect();
            let rule = format!("is unknown: {word:?}; known are {known}");
            return Err(InvalidRequest::new("action", rule));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use pretty_assertions::assert_eq;
    use schemars::generate::SchemaSettings;
    use serde_json::{Value, json};

    fn example(field: &str) -> &'static str {
        match field {
            "repo" => "https://github.com/a/b",
            "repo_name" => "b",
            _ => "x",
        }
    }

    fn read(step: Value) -> Result<(), String> {
        let step: StepRequest = serde_json::from_value(step).map_err(|error| error.to_string())?;
        parse_step(&step, 0).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_step_without_a_time_gets_all_that_is_left_to_its_task() {
        let left = Duration::from_mins(15);
        for (own, expected) in [(Value::Null, 900), (json!(30), 30), (json!(1000), 900)] {
            let step = json!({ "action": "shell", "command": "ls", "timeout": own });
            let step = parse_step(&serde_json::from_value(step).unwrap(), 0).unwrap();
            assert_eq!(step.time_within(left), Duration::from_secs(expected), "{own}");
        }
    }

    #[test]
    fn each_action_needs_what_the_schema_says_and_no_more() {
        let settings = SchemaSettings::draft2020_12().for_deserialize();
        let schema = settings.into_generator().into_root_schema_for::<StepRequest>().to_value();
        let alternatives = schema["anyOf"].as_array().unwrap();
        assert_eq!(alternatives.len(), STEP_ACTIONS.len());
        for alternative in alternatives {
            let action = &alternative["properties"]["action"]["const"];
            let required = alternative["required"].as_array().unwrap().iter();
            let needed: Vec<_> =
                required.filter_map(Value::as_str).filter(|name| *name != "action").collect();
            let mut step = json!({ "action": action });
            for field in &needed {
                step[field] = json!(example(field));
            }
            assert_eq!(read(step.clone()), Ok(()), "{action}");
            for field in needed {
                let mut without = step.clone();
                without.as_object_mut().unwrap().remove(field);
                assert!(read(without).is_err(), "{action} without {field}");
            }
        }
    }
}
