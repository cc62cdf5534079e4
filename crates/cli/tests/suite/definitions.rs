//! The definitions of tools as a stock client receives them: groups, and what they cost.

use carrel_domain::ToolGroup;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::Run;
use crate::interfaces::{Stdin, ToolSession as _};
use crate::test_environment::TestEnvironment;

fn client(test_env: &TestEnvironment, options: &[&str]) -> Stdin {
    let mut command = test_env.carrel();
    command.args(["mcp", "--workspace"]).arg(test_env.workspace()).args(options);
    Stdin::start(command)
}

fn names(client: &mut Stdin) -> Vec<String> {
    client.tools().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_operator_chooses_groups_and_others_are_neither_listed_nor_callable() {
    let test_env = TestEnvironment::usual();
    let mut chosen = client(&test_env, &["--tools", "git,secrets"]);
    assert_eq!(names(&mut chosen), ["git", "git_inspect", "secret", "secrets_available"]);
    let answer = chosen.ask("tools/call", &json!({ "name": "Bash", "arguments": {} }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(
        answer["error"]["message"],
        "unknown tool `Bash`: it is in the group shell, which is not offered here; the operator chooses \
         the groups"
    );
    let usual = names(&mut client(&test_env, &[]));
    for tool in ["Read", "Bash", "run_tests", "git"] {
        assert!(usual.iter().any(|name| name == tool), "{tool}");
    }
    assert!(!usual.iter().any(|name| name.starts_with("secret")), "{usual:?}");
}

#[test]
fn a_word_that_is_no_group_is_refused_with_the_groups() {
    let test_env = TestEnvironment::usual();
    for (groups, expected) in [
        ("files,everything", "unknown tool group \"everything\"; the groups are files, shell, "),
        ("symbols", "unknown tool group \"symbols\"; the groups are "),
        ("network", "unknown tool group \"network\"; the groups are "),
    ] {
        for command in [&["mcp"][..], &["tool", "Read"]] {
            let run = Run::of({
                let mut program = test_env.carrel();
                program.args(command).args(["--tools", groups]);
                program
            });
            assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{groups}");
            assert!(run.stderr.contains(expected), "{}", run.stderr);
        }
    }
    let mut old = test_env.carrel();
    old.args(["mcp", "--toolset", "code"]);
    assert_eq!(Run::of(old).code, 2, "there is no second name for the option");
}

/// Bytes that stand for a token. Tokenizers of current models make between 4.2 and 4.5 bytes of JSON with
/// English words a token, so the budgets hold for them.
const TOKEN_BYTES: usize = 4;

/// The bytes of the result of `tools/list`, as the client received it.
fn bytes(client: &mut Stdin) -> usize {
    client.ask("tools/list", &json!({}))["result"].to_string().len()
}

#[test]
fn definitions_keep_within_their_budget() {
    let test_env = TestEnvironment::usual();
    // The rest of the budget of 4,500 tokens for the default set is for tools that are yet to come.
    let all = ToolGroup::ALL.map(ToolGroup::as_str).join(",");
    for (options, tokens) in
        [(&[][..], 3200), (&["--tools", "files,shell"], 1500), (&["--tools", &all], 7000)]
    {
        let bytes = bytes(&mut client(&test_env, options));
        assert!(bytes <= tokens * TOKEN_BYTES, "{options:?}: {bytes} bytes");
        assert!(
            bytes > tokens * TOKEN_BYTES / 2,
            "{options:?}: {bytes} bytes, so tighten the budget"
        );
    }
}

#[test]
fn a_stock_client_gets_no_words_that_its_model_cannot_use() {
    let test_env = TestEnvironment::usual();
    let listed = json!(client(&test_env, &[]).tools()).to_string();
    for word in [
        "outputSchema",
        "$schema",
        "\"title\"",
        "\"format\":",
        "\"minimum\"",
        "\"default\"",
        "null",
        "additionalProperties",
        "x-brief",
        "\"workspace\":",
        "\"workspaces\"",
    ] {
        // `format` is the name of a tool as well.
        assert!(!listed.contains(word), "{word}");
    }
}

#[test]
fn a_program_gets_every_argument_and_the_output_schemas_if_the_operator_says_so() {
    let test_env = TestEnvironment::usual();
    let full = client(&test_env, &["--definitions", "full"]).tools();
    let brief = client(&test_env, &[]).tools();
    assert!(full.len() > brief.len());
    for tool in &full {
        let name = &tool["name"];
        assert!(tool["outputSchema"].is_object() && tool["title"].is_string(), "{name}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        assert!(tool["inputSchema"]["properties"]["workspace"].is_object(), "{name}");
        let hints = tool["annotations"].as_object().unwrap();
        assert_eq!(hints.len(), 5, "{name}: {hints:?}");
    }
    for tool in &brief {
        let same = full.iter().find(|one| one["name"] == tool["name"]).unwrap();
        let arguments = tool["inputSchema"]["properties"].as_object().unwrap();
        for argument in arguments.keys() {
            assert!(same["inputSchema"]["properties"][argument].is_object(), "{argument}");
        }
        assert_eq!(tool["inputSchema"]["required"], same["inputSchema"]["required"]);
    }
}

#[test]
fn arguments_that_a_brief_definition_leaves_out_are_accepted_and_checked_as_strictly() {
    let test_env = TestEnvironment::usual();
    std::fs::write(test_env.workspace().join("a.txt"), "one\ntwo\nthree\n").unwrap();
    let mut client = client(&test_env, &[]);
    let around = json!({ "file_path": "a.txt", "around_line": 2, "context_lines": 0 });
    assert!(client.call("Read", around).ok().starts_with("2\ttwo\n"));
    for (arguments, expected) in [
        (json!({ "file_path": "a.txt", "around_line": -1 }), "around_line: invalid value"),
        (json!({ "file_path": "a.txt", "arround_line": 1 }), "did you mean `around_line`?"),
        (json!({ "file_path": "a.txt", "limit": -5 }), "limit: invalid value"),
    ] {
        let answer = client.call("Read", arguments);
        let (code, text) = answer.refused();
        assert_eq!(code, "E_INVALID_ARGUMENTS");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn the_workspace_is_an_argument_only_where_there_are_several() {
    let test_env = TestEnvironment::usual();
    let (one, other) = (test_env.workspace(), test_env.path("other"));
    std::fs::create_dir(&other).unwrap();
    let spec = format!("one={},other={}", one.display(), other.display());
    let mut command = test_env.carrel();
    command.args(["mcp", "--workspaces", &spec]);
    let tools = Stdin::start(command).tools();
    for tool in &tools {
        let argument = &tool["inputSchema"]["properties"]["workspace"];
        assert_eq!(argument["type"], "string", "{}", tool["name"]);
    }
    assert!(tools.iter().any(|tool| tool["name"] == "workspaces"), "how the names are found");
}

#[test]
fn hints_are_sent_where_a_client_would_assume_something_else() {
    let test_env = TestEnvironment::usual();
    let tools = client(&test_env, &["--tools", "default,secrets"]).tools();
    let hints = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool["annotations"].clone()
    };
    assert_eq!(hints("Read"), json!({ "readOnlyHint": true, "openWorldHint": false }));
    assert_eq!(hints("Write"), json!({ "idempotentHint": true, "openWorldHint": false }));
    assert_eq!(hints("Edit"), json!({ "openWorldHint": false }));
    assert_eq!(hints("Bash"), json!(null), "as the protocol assumes of a tool without hints");
    let secret =
        json!({ "destructiveHint": false, "idempotentHint": true, "openWorldHint": false });
    assert_eq!(hints("secret"), secret);
}
