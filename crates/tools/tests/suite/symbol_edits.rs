//! Changes of files by symbol: bodies, heads, insertions, deletions.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::TestEnvironment;

const SERVER: &str = "\
package main

// Server serves.
type Server struct{}

// Run starts it.
func (s *Server) Run() int {
\treturn 1
}

func (s *Server) Close() {}

func asm(x int) int
";

fn project() -> TestEnvironment {
    let test_env = TestEnvironment::new();
    test_env.put("server.go", SERVER);
    test_env
}

async fn read(test_env: &TestEnvironment, path: &str) {
    test_env.text("Read", json!({ "file_path": path })).await;
}

#[tokio::test]
async fn a_body_a_head_and_a_method_are_changed_by_name() {
    let test_env = project();
    read(&test_env, "server.go").await;
    let body = json!({ "file_path": "server.go", "function_name": "(*Server).Run", "new_body": "\n\treturn 2\n" });
    assert_eq!(
        test_env.text("edit_function_body", body).await,
        "edit_function_body: modified server.go at line 7\nServer::Run: +1 -1 lines\n"
    );
    let method = json!({
        "receiver_type": "Server", "method_name": "Run",
        "new_method": "func (s *Server) New() int { return 3 }",
    });
    test_env.text("insert_after_method", method).await;
    let head = json!({ "function_name": "Server.Close", "new_signature": "func (s *Server) Close() error" });
    let (code, text) = test_env
        .refusal(
            "change_function_signature",
            json!({
                "function_name": "Server.Close", "new_signature": "func (s *Server) Close( error",
            }),
        )
        .await;
    assert_eq!(code, "E_REPLACEMENT_INVALID", "{text}");
    test_env.text("change_function_signature", head).await;
    assert_eq!(
        test_env.get("server.go"),
        SERVER
            .replace("return 1\n}\n", "return 2\n}\n\nfunc (s *Server) New() int { return 3 }\n")
            .replace("Close() {}", "Close() error {}")
    );
}

#[tokio::test]
async fn a_declaration_without_a_body_is_refused_and_the_file_stays() {
    let test_env = project();
    read(&test_env, "server.go").await;
    let body = json!({ "function_name": "asm", "new_body": "return 1" });
    let (code, text) = test_env.refusal("edit_function_body", body).await;
    assert_eq!(code, "E_INVALID_ARGUMENTS", "{text}");
    assert!(text.contains("asm at line 13 is a declaration without a body"), "{text}");
    assert_eq!(test_env.get("server.go"), SERVER);
}

#[tokio::test]
async fn a_body_that_does_not_parse_or_leaves_its_function_is_refused() {
    let test_env = project();
    read(&test_env, "server.go").await;
    for body in ["\n\treturn 1 +\n", "\n\treturn 1\n}\n\nfunc Other() {\n"] {
        let call = json!({ "function_name": "Server.Run", "new_body": body });
        let (code, text) = test_env.refusal("edit_function_body", call).await;
        assert_eq!(code, "E_REPLACEMENT_INVALID", "{text}");
        assert!(text.starts_with("edit_function_body: server.go: replacement d"), "{text}");
    }
    assert_eq!(test_env.get("server.go"), SERVER);
}

#[tokio::test]
async fn a_file_that_was_not_read_is_refused_with_its_lines_and_then_known() {
    let test_env = project();
    let call = json!({ "function_name": "Server.Run", "new_body": "\n\treturn 5\n" });
    let (code, text) = test_env.refusal("edit_function_body", call.clone()).await;
    assert_eq!(code, "E_NOT_READ");
    assert!(text.contains("8\t\treturn 1\n"), "{text}");
    test_env.text("edit_function_body", call).await;
    assert!(test_env.get("server.go").contains("return 5"));
    // As another program would change it.
    test_env.put("server.go", SERVER);
    let call = json!({ "function_name": "Server.Run", "new_body": "\n\treturn 6\n" });
    let (code, _) = test_env.refusal("edit_function_body", call).await;
    assert_eq!(code, "E_CHANGED_SINCE_READ");
}

#[tokio::test]
async fn a_hash_stands_for_reading() {
    let test_env = project();
    let outline = test_env.call("outline", json!({ "path": "server.go" })).await;
    let hash = outline.structured["hash"].clone();
    let other = carrel_tools::Session::new("other");
    let call = |hash: Value| {
        let call = json!({ "function_name": "Server.Run", "new_body": "\n\treturn 5\n", "expected_hash": hash });
        test_env.call_as(&other, "edit_function_body", call)
    };
    assert!(call(json!("0000000000000000")).await.is_error);
    assert!(!call(hash).await.is_error);
}

#[tokio::test]
async fn symbols_are_replaced_inserted_and_deleted() {
    let test_env = TestEnvironment::new();
    test_env.put("a.py", "# One.\ndef one():\n    return 1\n\n\ndef two():\n    return one()\n");
    read(&test_env, "a.py").await;
    let replace = json!({ "symbol": "one", "new_text": "def one(x=0):\n    return 1 + x" });
    test_env.text("replace_symbol", replace).await;
    let before = json!({ "symbol": "two", "new_text": "def middle():\n    pass" });
    test_env.text("insert_before_symbol", before).await;
    let after = json!({ "symbol": "two", "new_text": "def last():\n    pass" });
    test_env.text("insert_after_symbol", after).await;
    assert_eq!(
        test_env.get("a.py"),
        "# One.\ndef one(x=0):\n    return 1 + x\n\n\ndef middle():\n    pass\n\n\n\
         def two():\n    return one()\n\n\ndef last():\n    pass\n"
    );
    let (code, text) = test_env.refusal("delete_symbol", json!({ "symbol": "one" })).await;
    assert_eq!(code, "E_SYMBOL_IN_USE");
    assert_eq!(
        text,
        "one is used at a.py:11; remove the uses, or pass force if they mean another one"
    );
    test_env.text("delete_symbol", json!({ "symbol": "middle" })).await;
    test_env.text("delete_symbol", json!({ "symbol": "one", "force": true })).await;
    assert_eq!(test_env.get("a.py"), "def two():\n    return one()\n\n\ndef last():\n    pass\n");
}

#[tokio::test]
async fn a_name_in_several_files_needs_the_file() {
    let test_env = TestEnvironment::new();
    test_env.put("a.py", "def run():\n    pass\n");
    test_env.put("b.py", "def run():\n    pass\n");
    let call = json!({ "function_name": "run", "new_body": "return 1" });
    let (code, text) = test_env.refusal("edit_function_body", call).await;
    assert_eq!(code, "E_SYMBOL_AMBIGUOUS");
    assert!(text.contains("a.py:1") && text.contains("b.py:1"), "{text}");
    read(&test_env, "b.py").await;
    let call = json!({ "function_name": "run", "new_body": "return 1", "file_path": "b.py" });
    test_env.text("edit_function_body", call).await;
    assert_eq!(test_env.get("b.py"), "def run():\n    return 1\n");
}

#[tokio::test]
async fn other_files_paths_outside_and_files_that_run_later_are_refused() {
    let test_env = project();
    test_env.put("notes.txt", "run\n");
    test_env.put(".git/hooks/pre-commit.py", "def run():\n    pass\n");
    for (path, expected) in [
        ("notes.txt", "E_UNSUPPORTED_LANGUAGE"),
        ("../x.py", "E_SANDBOX_VIOLATION"),
        ("gone.py", "E_NOT_FOUND"),
    ] {
        let call = json!({ "function_name": "run", "new_body": "return 1", "file_path": path });
        assert_eq!(test_env.refusal("edit_function_body", call).await.0, expected, "{path}");
    }
    let path = ".git/hooks/pre-commit.py";
    read(&test_env, path).await;
    let call = json!({ "function_name": "run", "new_body": "return 1", "file_path": path });
    assert_eq!(test_env.refusal("edit_function_body", call).await.0, "E_RUNS_LATER");
}

#[tokio::test]
async fn a_changed_head_lists_the_calls_that_no_longer_fit() {
    let test_env = TestEnvironment::new();
    test_env.put("shop.py", "def price(n):\n    return n\n\n\nprice(1)\n");
    test_env.put("cart.py", "from shop import price\n\nprice(1)\nprice(1, 2)\nprice(n=1)\n");
    test_env.put("more.py", "import shop\n\ntotal = map(shop.price, [])\n");
    read(&test_env, "shop.py").await;
    let head = json!({ "function_name": "price", "new_signature": "def price(n, tax)" });
    let answer = test_env.call("change_function_signature", head).await;
    let text = answer.text();
    assert!(
        text.ends_with(
            "2 call(s) no longer fit: cart.py:3, shop.py:5\n\
             cannot be told (keywords, spread arguments, no call): cart.py:5, more.py:3\n\
             1 call(s) fit\n"
        ),
        "{text}"
    );
    assert_eq!(answer.structured["calls"]["misfits"], json!(["cart.py:3", "shop.py:5"]));
    assert_eq!(answer.structured["calls"]["counted"], true);
}

#[tokio::test]
async fn a_language_whose_calls_are_not_known_has_all_uses_listed() {
    let test_env = TestEnvironment::new();
    test_env.put("a.lua", "function price(n)\n    return n\nend\n\nprice(1)\n");
    read(&test_env, "a.lua").await;
    let head = json!({ "function_name": "price", "new_signature": "function price(n, tax)" });
    let text = test_env.text("change_function_signature", head).await;
    assert!(text.ends_with("used at a.lua:5 (arguments were not counted)\n"), "{text}");
}
