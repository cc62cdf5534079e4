//! Prompts: requests that a person starts by name, written for the tools of this server.
//!
//! A prompt is offered if the tools that it names are.

use carrel_tools::Registry;
use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, JsonObject, ListPromptsResult, Prompt, PromptArgument,
    PromptMessage, Role,
};
use serde_json::Value;

/// Bytes of one argument, which becomes a part of the text.
const MAX_ARGUMENT_BYTES: usize = 4 * 1024;

struct Template {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// Name and description; all are optional.
    arguments: &'static [(&'static str, &'static str)],
    tools: &'static [&'static str],
    text: fn(&Arguments<'_>) -> String,
}

/// The arguments of a request.
struct Arguments<'a>(Option<&'a JsonObject>);

impl Arguments<'_> {
    /// Returns an argument that is not empty.
    fn get(&self, name: &str) -> Option<&str> {
        let text = self.0?.get(name)?.as_str()?.trim();
        (!text.is_empty()).then_some(text)
    }
}

const TEMPLATES: [Template; 2] = [
    Template {
        name: "review",
        title: "Review changes",
        description: "Review the changes of the work tree, or of a branch against another",
        arguments: &[
            ("base", "The branch or commit to compare with; the last commit by default"),
            ("path", "Only changes below this path"),
            ("focus", "The concern to look at first, such as security or tests"),
        ],
        tools: &["git_inspect", "Read", "Grep"],
        text: review,
    },
    Template {
        name: "fix-failing-tests",
        title: "Fix failing tests",
        description: "Run the tests, find the cause of each failure, and fix it",
        arguments: &[
            ("path", "Only the tests of this file or directory"),
            ("name", "Only tests whose name contains this"),
            ("workspace", "The workspace, if there are several"),
        ],
        tools: &["run_tests", "run_failing_tests", "Read", "Edit"],
        text: fix_failing_tests,
    },
];

fn review(arguments: &Arguments<'_>) -> String {
    let base = arguments.get("base").map_or_else(
        || "Get the changes with git_inspect: operation status, then diff.".to_owned(),
        |base| {
            format!(
                "Get the changes since {base} with git_inspect: operation diff, words [\"{base}\"]."
            )
        },
    );
    let path = arguments.get("path").map_or(String::new(), |path| format!(" Only {path} matters."));
    let focus =
        arguments.get("focus").map_or(String::new(), |focus| format!(" Look at {focus} first."));
    format!(
        "Review the changes in this workspace and change nothing. {base}{path}{focus}\n\
         Read the files around each change, and search with Grep for callers of what changed. Report each \
         finding with file, line, the failure that it leads to and a fix, the worst first. Leave out style that \
         the project's formatter decides. Say so if there is nothing to report."
    )
}

fn fix_failing_tests(arguments: &Arguments<'_>) -> String {
    let words: Vec<_> = ["workspace", "path", "name"]
        .into_iter()
        .filter_map(|name| Some(format!("{name} {:?}", arguments.get(name)?)))
        .collect();
    let with = if words.is_empty() { String::new() } else { format!(" with {}", words.join(", ")) };
    format!(
        "Make the failing tests of this workspace pass. Call run_tests{with}. If the verdict is could_not_run, \
         say why and stop. If the sandbox denied something, say so before you blame the code.\n\
         For each failure read the test and the code under test, name the cause in one sentence, and fix the \
         cause with Edit. Do not delete, skip or weaken a test, unless the test itself is wrong; then say why. \
         Call run_failing_tests after each fix, and run_tests at the end. Report each failure, its cause \
         and its fix."
    )
}

fn offered(registry: &Registry) -> impl Iterator<Item = &'static Template> {
    TEMPLATES.iter().filter(|template| template.tools.iter().all(|tool| registry.has(tool)))
}

pub(super) fn list(registry: &Registry) -> ListPromptsResult {
    let prompt = |template: &Template| {
        let arguments = template.arguments.iter().map(|(name, description)| {
            PromptArgument::new(*name).with_description(*description).with_required(false)
        });
        Prompt::new(template.name, Some(template.description), Some(arguments.collect()))
            .with_title(template.title)
    };
    ListPromptsResult::with_all_items(offered(registry).map(prompt).collect())
}

pub(super) fn get(
    registry: &Registry,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let found = offered(registry).find(|template| template.name == request.name);
    let template = found.ok_or_else(|| {
        let names: Vec<_> = offered(registry).map(|template| template.name).collect();
        let message = format!("unknown prompt {:?}; there are: {}", request.name, names.join(", "));
        ErrorData::invalid_params(message, None)
    })?;
    let given = request.arguments.iter().flatten();
    for (name, value) in given {
        check_argument(template, name, value)?;
    }
    let arguments = Arguments(request.arguments.as_ref());
    let message = PromptMessage::new_text(Role::User, (template.text)(&arguments));
    Ok(GetPromptResult::new(vec![message]).with_description(template.description))
}

fn check_argument(template: &Template, name: &str, value: &Value) -> Result<(), ErrorData> {
    let prompt = template.name;
    if !template.arguments.iter().any(|(known, _)| *known == name) {
        let known: Vec<_> = template.arguments.iter().map(|(known, _)| *known).collect();
        let message = format!(
            "unknown argument {name:?} of prompt {prompt}; there are: {}",
            known.join(", ")
        );
        return Err(ErrorData::invalid_params(message, None));
    }
    if value.as_str().is_none_or(|text| text.len() > MAX_ARGUMENT_BYTES) {
        let message = format!(
            "argument {name} of prompt {prompt} has to be a text of at most {MAX_ARGUMENT_BYTES} bytes"
        );
        return Err(ErrorData::invalid_params(message, None));
    }
    Ok(())
}
