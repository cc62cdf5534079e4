//! Changes of files behind the back of servers: by `git checkout`, of project files, of ignored files, of many at once.

use std::path::PathBuf;
use std::process::Command;

use carrel_lsp::{FileOperation, Target};
use pretty_assertions::assert_eq;

use crate::test_environment::{TestEnvironment, answered, shown};

fn git(env: &TestEnvironment, arguments: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let ran = Command::new("git")
        .args(identity)
        .args(arguments)
        .current_dir(env.path(""))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[tokio::test]
async fn a_checkout_is_seen_by_the_next_query() {
    let env = TestEnvironment::new("typescript");
    let before = [
        "src/cart.ts:1:18",
        "src/cart.ts:7:62",
        "src/main.ts:2:10",
        "src/main.ts:6:29",
        "src/prices.ts:6:17",
    ];
    git(&env, &["init", "-q"]);
    git(&env, &["add", "-A"]);
    git(&env, &["commit", "-qm", "one"]);
    let definition = ("src/prices.ts", "function |withTax");
    assert_eq!(env.references(definition.0, definition.1).await, before);
    git(&env, &["checkout", "-qb", "other"]);
    env.replace("src/cart.ts", "withTax(price)", "price + withTax(price)");
    env.put("src/more.ts", "import { withTax } from './prices.js';\nwithTax(1);\n");
    git(&env, &["add", "-A"]);
    git(&env, &["commit", "-qm", "two"]);
    let after = [
        "src/cart.ts:1:18",
        "src/cart.ts:7:70",
        "src/main.ts:2:10",
        "src/main.ts:6:29",
        "src/more.ts:1:10",
        "src/more.ts:2:1",
        "src/prices.ts:6:17",
    ];
    assert_eq!(env.references(definition.0, definition.1).await, after);
    git(&env, &["checkout", "-q", "-"]);
    assert_eq!(env.references(definition.0, definition.1).await, before);
    git(&env, &["checkout", "-q", "-"]);
    assert_eq!(env.references(definition.0, definition.1).await, after);
    env.close().await;
}

#[tokio::test]
async fn a_document_that_gets_shorter_has_none_of_its_old_lines() {
    let definition = ("src/prices.ts", "function |withTax");
    let envs = [
        TestEnvironment::new("typescript"),
        TestEnvironment::without_program("typescript", "typescript-language-server"),
    ];
    for env in envs {
        let (short, path) = (env.text(definition.0), definition.0);
        let before = env.references(path, definition.1).await;
        let more = "export function more(): number {\n  return withTax(1);\n}\n".repeat(2);
        // The end is neither a line's beginning nor a single code unit away from it, and a line ends unusually.
        env.put(path, &format!("{short}{more}// \u{1d49c}\u{2028}// \u{1d49c} more"));
        assert_eq!(env.references(path, definition.1).await.len(), before.len() + 2);
        env.put(path, &short);
        assert_eq!(env.references(path, definition.1).await, before);
        assert_eq!(env.problems(path).await, Vec::<String>::new());
        env.close().await;
    }
}

#[tokio::test]
async fn a_changed_project_file_makes_a_new_server() {
    let env = TestEnvironment::new("typescript");
    env.put("src/loose.ts", "export function f(x) { return x; }\n");
    assert_eq!(env.problems("src/loose.ts").await, ["1 Error 7006"]);
    env.replace("tsconfig.json", "\"strict\": true", "\"strict\": false");
    assert_eq!(env.problems("src/loose.ts").await, Vec::<String>::new());
    env.close().await;
}

#[tokio::test]
async fn a_change_elsewhere_changes_the_problems_of_a_file() {
    for (project, path, elsewhere, old, new, problem) in [
        (
            "python",
            "shop/cart.py",
            "shop/prices.py",
            "price: int) -> int",
            "price: str) -> int",
            "9 Error invalid-argument-type",
        ),
        (
            "go",
            "main.go",
            "shapes/shape.go",
            "\tArea() float64",
            "\tSize() float64",
            "10 Error InvalidIfaceAssign",
        ),
        (
            "typescript",
            "src/cart.ts",
            "src/prices.ts",
            "(price: number)",
            "(price: string)",
            "7 Error 2345",
        ),
    ] {
        let env = TestEnvironment::new(project);
        assert_eq!(env.problems(path).await, Vec::<String>::new());
        env.replace(elsewhere, old, new);
        assert_eq!(env.problems(path).await, [problem]);
        env.replace(elsewhere, new, old);
        assert_eq!(env.problems(path).await, Vec::<String>::new());
        env.close().await;
    }
}

#[tokio::test]
async fn a_header_changes_the_problems_of_what_includes_it() {
    let env = TestEnvironment::new("c");
    assert_eq!(env.problems("main.c").await, Vec::<String>::new());
    env.replace("prices.h", "int with_tax(int price);", "int with_tax(int price, int tax);");
    assert_eq!(env.problems("main.c").await, ["7 Error typecheck_call_too_few_args"]);
    env.replace("prices.h", "int with_tax(int price, int tax);", "int with_tax(int price);");
    assert_eq!(env.problems("main.c").await, Vec::<String>::new());
    env.close().await;
}

#[tokio::test]
async fn many_changes_at_once_are_seen_as_one_is() {
    let env = TestEnvironment::new("python");
    let definition = ("shop/prices.py", "def |with_tax");
    assert_eq!(env.references(definition.0, definition.1).await.len(), 5);
    for number in 0..150 {
        env.put(&format!("shop/m{number}.py"), "import shop.prices\nx = shop.prices.with_tax(1)\n");
    }
    assert_eq!(env.references(definition.0, definition.1).await.len(), 155);
    for number in 0..90 {
        env.put(&format!("shop/m{number}.py"), "x = 1\n");
    }
    assert_eq!(env.references(definition.0, definition.1).await.len(), 65);
    for number in 0..90 {
        env.put(
            &format!("shop/m{number}.py"),
            "import shop.prices\n\nx = shop.prices.with_tax(1)\n",
        );
    }
    assert_eq!(env.references(definition.0, definition.1).await.len(), 155);
    env.close().await;
}

#[tokio::test]
async fn a_file_that_ignore_rules_hide_is_seen_as_it_is() {
    let env = TestEnvironment::new("python");
    env.put(".gitignore", "generated.py\n");
    env.put("generated.py", "def f(): ...\nf()\n");
    assert_eq!(env.definition("generated.py", "\n|f()").await, ["generated.py:1:5"]);
    env.put("generated.py", "\n\ndef f(): ...\nf()\n");
    assert_eq!(env.definition("generated.py", "...\n|f()").await, ["generated.py:3:5"]);
    env.put("user.py", "from generated import f\n");
    env.put("generated.py", "def g(): ...\ndef f(): ...\n");
    assert_eq!(env.definition("user.py", "import |f").await, ["generated.py:2:5"]);
    env.close().await;
}

#[tokio::test]
async fn a_definition_outside_is_named_and_not_read() {
    let env = TestEnvironment::new("go");
    assert_eq!(env.definition("main.go", "fmt.|Println").await, ["outside print.go"]);
    env.close().await;
}

#[tokio::test]
async fn a_new_path_of_a_file_changes_what_imports_it() {
    let env = TestEnvironment::new("typescript");
    let moves = [(PathBuf::from("src/prices.ts"), PathBuf::from("src/tax.ts"))];
    let change = answered(env.servers.rename_files(&env.context, &moves).await).value;
    assert_eq!(change.operations, Vec::<FileOperation>::new());
    env.apply(&change);
    std::fs::rename(env.path("src/prices.ts"), env.path("src/tax.ts")).unwrap();
    assert!(env.text("src/cart.ts").contains("from \"./tax.js\""), "{}", env.text("src/cart.ts"));
    assert_eq!(env.definition("src/main.ts", " + |withTax(").await, ["src/tax.ts:6:17"]);
    env.close().await;
}

#[tokio::test]
async fn an_answer_without_a_build_description_says_that_it_may_lack_something() {
    let env = TestEnvironment::new("c");
    let target = env.at("main.c", "+ |with_tax(5");
    let answer = answered(env.servers.references(&env.context, &target, true).await);
    assert!(shown(answer.value).contains(&"main.c:7:29".to_owned()));
    let reason = answer.incomplete.unwrap_or_default();
    assert!(reason.starts_with("there is no compile_commands.json"), "{reason}");
    env.close().await;
}

#[tokio::test]
async fn an_index_whose_end_was_not_reported_is_no_complete_one() {
    let env = TestEnvironment::new("c");
    // There is a description of the build, and clangd cannot read it.
    env.put("compile_commands.json", "{ no list");
    let target = env.at("main.c", "+ |with_tax(5");
    let answer = answered(env.servers.references(&env.context, &target, true).await);
    let reason = answer.incomplete.unwrap_or_default();
    assert!(reason.starts_with("the server has not reported that it has read"), "{reason}");
    let answer = answered(env.servers.definition(&env.context, &target).await);
    assert!(answer.incomplete.is_some(), "the declaration stands for the definition");
    env.close().await;
}

#[tokio::test]
async fn uses_inside_of_macros_are_found_after_changes_of_another_crate() {
    let env = TestEnvironment::new("rust");
    let tests = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn two() {\n        let one = crate::Rectangle { width: 1.0, height: 1.0 };\n        assert_eq!(crate::doubled(&one), 2.0);\n    }\n}\n";
    env.put("src/lib.rs", &format!("{}\n{tests}", env.text("src/lib.rs")));
    env.put("tests/more.rs", "#[test]\nfn more() {}\n");
    let definition = ("src/lib.rs", "pub fn |doubled");
    let before = env.references(definition.0, definition.1).await;
    assert_eq!(before.len(), 6, "{before:?}");
    let callers = env.callers(definition.0, definition.1).await;
    assert_eq!(callers.len(), 3, "{callers:?}");
    env.put("tests/more.rs", "#[test]\nfn even_more() {}\n");
    env.put("src/circle.rs", &format!("// Moved.\n{}", env.text("src/circle.rs")));
    assert_eq!(env.callers(definition.0, definition.1).await.len(), 3);
    assert_eq!(env.references(definition.0, definition.1).await.len(), 6);
    let change = env.rename(definition.0, definition.1, "two_times").await;
    assert_eq!(change.files.iter().map(|file| file.edits.len()).sum::<usize>(), 6);
    env.close().await;
}

#[tokio::test]
async fn a_module_in_a_file_of_its_own_is_renamed_with_the_file() {
    let env = TestEnvironment::new("rust");
    let target = env.at("src/lib.rs", "pub mod |circle");
    let answer = answered(env.servers.rename(&env.context, &target, "disc").await);
    let rename = FileOperation::Rename { from: "src/circle.rs".into(), to: "src/disc.rs".into() };
    assert_eq!(answer.value.operations, [rename]);
    assert_eq!(answer.value.files.len(), 1);
    let nothing = Target::new("src/lib.rs", 0);
    let refused = env.servers.rename(&env.context, &nothing, "x").await.unwrap_err();
    assert!(refused.to_string().starts_with("rust-analyzer refuses: "), "{refused}");
    env.close().await;
}

#[tokio::test]
async fn a_module_that_comes_and_goes_needs_no_new_server() {
    let env = TestEnvironment::new("rust");
    let definition = ("src/lib.rs", "pub fn |doubled");
    let before = env.references(definition.0, definition.1).await;
    let processes = env.processes();
    let library = env.text("src/lib.rs");
    env.put("src/more.rs", "pub fn more(r: &crate::Rectangle) { crate::doubled(r); }\n");
    env.put("src/lib.rs", &library.replace("pub mod circle;", "pub mod circle; mod more;"));
    let with_module = env.references(definition.0, definition.1).await;
    assert_eq!(with_module.len(), before.len() + 1);
    assert!(with_module.contains(&"src/more.rs:1:44".to_owned()), "{with_module:?}");
    std::fs::remove_file(env.path("src/more.rs")).unwrap();
    assert_eq!(env.references(definition.0, definition.1).await, before);
    env.put("src/lib.rs", &library);
    assert_eq!(env.references(definition.0, definition.1).await, before);
    // Commands that it runs for the project come and go.
    assert!(env.processes().iter().any(|process| processes.contains(process)));
    env.close().await;
}

#[tokio::test]
async fn dependencies_that_are_missing_make_answers_incomplete() {
    let env = TestEnvironment::new("rust");
    assert!(env.references("src/lib.rs", "pub fn |doubled").await.len() == 5);
    env.put(
        "Cargo.toml",
        &format!("{}\n[dependencies]\nmissing = \"1\"\n", env.text("Cargo.toml")),
    );
    let target = env.at("src/lib.rs", "pub fn |doubled");
    let answer = answered(env.servers.references(&env.context, &target, true).await);
    let reason = answer.incomplete.unwrap_or_default();
    assert!(reason.contains("missing"), "{reason}");
    env.close().await;

    let env = TestEnvironment::new("go");
    env.put("go.mod", &format!("{}\nrequire example.org/missing v1.0.0\n", env.text("go.mod")));
    env.put("more.go", "package main\n\nimport \"example.org/missing\"\n\nvar _ = missing.X\n");
    let target = env.at("main.go", "shapes.|Doubled(");
    let answer = answered(env.servers.definition(&env.context, &target).await);
    let reason = answer.incomplete.unwrap_or_default();
    assert!(reason.contains("example.org/missing"), "{reason}");
    assert_eq!(shown(answer.value), ["shapes/shape.go:10:6"]);
    env.close().await;
}
