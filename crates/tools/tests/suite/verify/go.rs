//! Go: its own tests, vet and gofmt.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::machine::{bare, with_go};
use super::{could_not_run, counts, section, verdict};
use crate::test_environment::TestEnvironment;

const ADD: &str = "package probe\n\n// Add adds.\nfunc Add(a, b int) int {\n\treturn a + b\n}\n";
const TESTS: &str = "package probe\n\nimport \"testing\"\n\nfunc TestAdds(t *testing.T) {\n\tif got := Add(1, 2); got != 3 {\n\t\tt.Errorf(\"Add(1, 2) = %d, want 3\", got)\n\t}\n}\n\nfunc TestAddsNothing(t *testing.T) {\n\tif Add(0, 0) != 0 {\n\t\tt.Fatal(\"not nothing\")\n\t}\n}\n";

fn project(test_env: &TestEnvironment) {
    test_env.put("go.mod", "module example.com/probe\n\ngo 1.19\n");
    test_env.put("add.go", ADD);
    test_env.put("add_test.go", TESTS);
}

#[tokio::test(flavor = "multi_thread")]
async fn go_tests_pass_fail_are_rerun_and_are_not_built() {
    let test_env = with_go();
    project(&test_env);
    let passed = test_env.call("run_tests", json!({})).await;
    assert_eq!(verdict(&passed), "passed", "{}", passed.text());
    assert_eq!(counts(&passed), [2, 0, 0, 0], "{}", passed.text());

    test_env.put("add.go", ADD.replace("a + b", "a - b"));
    let failed = test_env.call("run_tests", json!({})).await;
    assert_eq!(verdict(&failed), "failed", "{}", failed.text());
    assert_eq!(
        section(&failed)["failures"],
        json!([{ "name": "example.com/probe/TestAdds", "file": "add_test.go", "line": 7 }])
    );
    assert!(failed.text().contains("   Add(1, 2) = -1, want 3\n"), "{}", failed.text());
    test_env.put("add.go", ADD);
    let rerun = test_env.call("run_failing_tests", json!({})).await;
    assert_eq!(counts(&rerun), [1, 0, 0, 0], "only the one that failed: {}", rerun.text());

    let broken = [
        ("a + b", "a + c", "add.go:5:13:error: undefined: c\n"),
        ("a, b int", "a, b int int", "add.go:4:19:error: syntax error: "),
        (
            "// Add",
            "import _ \"example.com/nowhere\"\n\n// Add",
            "add.go:3:8:error: no required module provides package example.com/nowhere",
        ),
    ];
    for (old, new, finding) in broken {
        test_env.put("add.go", ADD.replace(old, new));
        let answer = test_env.call("run_tests", json!({})).await;
        assert_eq!(verdict(&answer), "failed", "{}", answer.text());
        assert!(section(&answer)["build_errors"].as_u64().unwrap() > 0, "{}", answer.text());
        assert!(answer.text().contains(finding), "{}", answer.text());
    }
    test_env.put(
        "add.go",
        ADD.replace("return a", "os.Exit(0)\n\treturn a")
            .replace("// Add", "import \"os\"\n\n// Add"),
    );
    let ended = test_env.call("run_tests", json!({})).await;
    assert_eq!(verdict(&ended), "failed", "{}", ended.text());
    assert!(ended.text().contains("unexpected call to os.Exit(0) during test"), "{}", ended.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn vet_checks_and_gofmt_formats() {
    let test_env = with_go();
    project(&test_env);
    for tool in ["run_lint", "run_typecheck"] {
        let clean = test_env.call(tool, json!({})).await;
        assert_eq!(verdict(&clean), "passed", "{}", clean.text());
        assert!(clean.text().starts_with("0 findings\n"), "{}", clean.text());
    }
    test_env.put("add_test.go", TESTS.replace("%d", "%s"));
    for tool in ["run_lint", "run_typecheck"] {
        let found = test_env.call(tool, json!({})).await;
        assert_eq!(verdict(&found), "failed", "{}", found.text());
        let finding = &section(&found)["findings"][0];
        assert_eq!((&finding["file"], &finding["line"]), (&json!("add_test.go"), &json!(7)));
        assert!(
            found.text().contains("format %s has arg got of wrong type int"),
            "{}",
            found.text()
        );
    }
    test_env.put("add_test.go", TESTS.replace("\t\tt.", "  t."));
    let checked = test_env.call("format", json!({ "check": true })).await;
    assert_eq!(section(&checked)["verdict"], "failed", "{}", checked.text());
    assert!(checked.text().contains("\nadd_test.go\n"), "{}", checked.text());
    let mended = test_env.call("format", json!({})).await;
    assert_eq!(section(&mended)["verdict"], "passed", "{}", mended.text());
    assert_eq!(test_env.get("add_test.go"), TESTS);
    let clean = test_env.call("format", json!({ "check": true })).await;
    assert_eq!(section(&clean)["verdict"], "passed", "{}", clean.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_without_go_could_not_run() {
    let test_env = bare();
    project(&test_env);
    for (tool, missing) in
        [("run_tests", "go"), ("run_lint", "go"), ("run_typecheck", "go"), ("format", "gofmt")]
    {
        let answer = test_env.call(tool, json!({})).await;
        let reason = format!("{missing} is not installed; install Go on this machine");
        assert_eq!(could_not_run(&answer), reason, "{tool}");
    }
}
