//! Groups of tools: each tool in one, and the operator's choice among them.

use std::collections::BTreeMap;

use carrel_tools::{ToolGroup, ToolSelection, definitions};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::test_environment::{Setting, TestEnvironment};

fn names(selection: ToolSelection) -> Vec<&'static str> {
    definitions(selection).map(|tool| tool.about.name).collect()
}

#[test]
fn every_group_has_tools_and_every_tool_one_group() {
    let by_group = ToolGroup::ALL.map(|group| (group.as_str(), names(ToolSelection::of(&[group]))));
    let expected = BTreeMap::from([
        ("files", "Read Write Edit MultiEdit ApplyPatch LS Glob Grep Move Delete workspaces"),
        ("shell", "Bash BashOutput KillShell watch_process watch_process_events shell_run"),
        (
            "verify",
            "profile run_tests run_lint run_typecheck run_failing_tests last_test_failures run_script \
             format install",
        ),
        ("git", "git git_inspect"),
        (
            "code",
            "render_mermaid render_dot tests_covering outline read_symbol find_definition find_references find_implementations hover diagnostics rename_symbol search_code code_scan code_edit repo_map \
             edit_function_body change_function_signature insert_after_method replace_symbol \
             insert_before_symbol insert_after_symbol delete_symbol",
        ),
        (
            "snapshot",
            "snapshot_create snapshot_list snapshot_diff snapshot_restore snapshot_delete undo undo_list undo_restore \
              fork fork_diff fork_promote fork_end try",
        ),
        ("secrets", "secret secrets_available"),
        (
            "workspace",
            "workspace_read_file workspace_write_file workspace_list_dir workspace_grep workspace_exec \
             workspace_git",
        ),
    ]);
    for (group, tools) in by_group {
        assert_eq!(tools.join(" "), expected[group], "{group}");
    }
}

#[test]
fn the_default_set_is_files_shell_verify_git_and_a_few_others() {
    let groups = [ToolGroup::Files, ToolGroup::Shell, ToolGroup::Verify, ToolGroup::Git];
    let mut expected = names(ToolSelection::of(&groups));
    expected.extend(["outline", "read_symbol", "find_references", "rename_symbol", "undo"]);
    let mut offered = names(ToolSelection::DEFAULT);
    expected.sort_unstable();
    offered.sort_unstable();
    assert_eq!(offered, expected);
}

#[tokio::test]
async fn a_tool_of_another_group_is_refused_with_the_name_of_its_group() {
    let tools = ToolSelection::of(&[ToolGroup::Files]);
    let test_env = TestEnvironment::with(Setting { tools, ..Setting::default() });
    let (code, text) = test_env.refusal("Bash", json!({ "command": "true" })).await;
    assert_eq!(code, "E_UNKNOWN_TOOL");
    assert_eq!(
        text,
        "unknown tool `Bash`: it is in the group shell, which is not offered here; the operator chooses \
         the groups"
    );
    let (_, text) = test_env.refusal("Raed", json!({})).await;
    assert_eq!(text, "unknown tool `Raed`; did you mean `Read`?", "of those that are offered");
}
