//! The life of servers: started when needed, replaced when they end, ended when idle or with their workspace.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use carrel_config::{LanguageServerPolicy, ServerEntry, ServerReadiness};
use carrel_domain::ByteSize;
use carrel_lsp::{LanguageServers, QueryError, Reply, Target};
use pretty_assertions::assert_eq;

use crate::test_environment::{ANSWER_TIME, TestEnvironment, answered, shown};

const USED: (&str, &str) = ("shop/main.py", ", |with_tax(5");

/// Waits until a condition holds.
async fn until(mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(ANSWER_TIME, waiting).await.expect("it never came to that");
}

/// Puts a program in the place of ty into the project.
fn put_program(env: &TestEnvironment, script: &str) {
    env.put(".venv/bin/ty", script);
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(env.path(".venv/bin/ty"), mode).unwrap();
}

#[tokio::test]
async fn an_idle_server_is_ended_and_the_next_query_has_a_new_one() {
    let options =
        LanguageServerPolicy { idle: Duration::from_secs(1), ..LanguageServerPolicy::default() };
    let env = TestEnvironment::with("python", options, |_| {});
    let (path, piece) = USED;
    assert_eq!(env.definition(path, piece).await, ["shop/prices.py:6:5"]);
    until(|| env.servers.running().is_empty() && env.processes().is_empty()).await;
    let workspace = env.context.workspace.path();
    assert_eq!(env.servers.take_notices(workspace), Vec::<String>::new());
    assert_eq!(env.definition(path, piece).await, ["shop/prices.py:6:5"]);
    assert_eq!(env.servers.running(), [("ty", env.path(""))]);
    let notice = "ty was ended after 1s without a question, and starts again";
    assert_eq!(env.servers.take_notices(workspace), [notice]);
    assert_eq!(env.servers.take_notices(workspace), Vec::<String>::new());
    env.close().await;
}

#[tokio::test]
async fn dropping_the_servers_leaves_no_process() {
    let env = TestEnvironment::new("python");
    let (path, piece) = USED;
    env.definition(path, piece).await;
    assert!(!env.processes().is_empty());
    let TestEnvironment { servers, .. } = &env;
    assert_eq!(servers.running().len(), 1);
    let env = env.without_servers();
    until(|| env.processes().is_empty()).await;
}

#[tokio::test]
async fn a_query_without_time_leaves_the_start_to_the_next_one() {
    let mut env = TestEnvironment::new("go");
    env.context.time = Duration::from_millis(1);
    let target = env.at("main.go", "shapes.|Doubled(");
    let reply = env.servers.definition(&env.context, &target).await.unwrap();
    assert!(matches!(&reply, Reply::NotReady(_)), "{reply:?}");
    env.context.time = ANSWER_TIME;
    assert_eq!(env.definition("main.go", "shapes.|Doubled(").await, ["shapes/shape.go:10:6"]);
    env.close().await;
}

#[tokio::test]
async fn a_missing_server_is_named_with_the_way_to_get_it() {
    let env = TestEnvironment::new("python");
    env.put("a.lua", "local x = 1\n");
    let missing = env.servers.diagnostics(&env.context, Path::new("a.lua")).await.unwrap_err();
    let expected = "no language server for lua is installed; install one of these where commands find it, or in \
                    the project: lua-language-server (https://luals.github.io, with lua-language-server on PATH)";
    assert_eq!(missing.to_string(), expected);
    let unknown = env.servers.diagnostics(&env.context, Path::new("a.json")).await.unwrap_err();
    assert!(matches!(&unknown, QueryError::NoLanguage { .. }), "{unknown}");
    assert!(
        LanguageServers::knows(Path::new("a.lua")) && !LanguageServers::knows(Path::new("a.json"))
    );
}

#[tokio::test]
async fn a_server_that_keeps_ending_is_given_up_with_its_last_words() {
    let env = TestEnvironment::new("python");
    put_program(&env, "#!/bin/sh\necho no such feature >&2\nexit 3\n");
    let target = env.at(USED.0, USED.1);
    let mut errors = Vec::new();
    for _ in 0..5 {
        let error = env.servers.definition(&env.context, &target).await.unwrap_err();
        errors.push(error.to_string());
    }
    let once = "ty could not be started: it exited with status 3; its last output: no such feature; to install it: \
                pip install ty";
    let given_up = "ty has ended 4 times within 5 minutes and is not started again before that time is over; at \
                    last: it exited with status 3; its last output: no such feature";
    assert_eq!(errors, [once, once, once, once, given_up]);
}

#[tokio::test]
async fn a_server_that_reaches_its_memory_limit_says_so() {
    let env = TestEnvironment::with("python", LanguageServerPolicy::default(), |policy| {
        policy.limits.session_memory = ByteSize::mib(64);
    });
    put_program(&env, "#!/bin/sh\nexec python3 -c 'x = [b\"x\" * 2**20 for _ in range(200)]'\n");
    let target = env.at(USED.0, USED.1);
    let error = env.servers.definition(&env.context, &target).await.unwrap_err().to_string();
    let expected =
        "ty reached its memory limit of 64.0 MiB; raise limits.session_memory in policy.toml";
    assert!(error.contains(expected), "{error}");
}

#[tokio::test]
async fn a_server_that_floods_or_garbles_its_output_is_an_error() {
    let env = TestEnvironment::new("python");
    let target = env.at(USED.0, USED.1);
    put_program(&env, "#!/bin/sh\nexec yes\n");
    let error = env.servers.definition(&env.context, &target).await.unwrap_err().to_string();
    assert!(error.contains("ty could not be started"), "{error}");
    put_program(
        &env,
        "#!/bin/sh\nprintf 'Content-Length: 99999999999\\r\\n\\r\\n'\nexec sleep 1000\n",
    );
    let error = env.servers.definition(&env.context, &target).await.unwrap_err().to_string();
    assert!(error.contains("99999999999 bytes"), "{error}");
    until(|| env.processes().is_empty()).await;
}

#[tokio::test]
async fn the_server_that_was_used_least_recently_makes_room() {
    let options = LanguageServerPolicy { most: 1, ..LanguageServerPolicy::default() };
    let env = TestEnvironment::with("python", options, |_| {});
    env.definition(USED.0, USED.1).await;
    env.put("other/pyproject.toml", "[project]\nname = 'other'\nversion = '1'\n");
    env.put("other/a.py", "def f(): ...\nf()\n");
    assert_eq!(env.definition("other/a.py", "\n|f()").await, ["other/a.py:1:5"]);
    assert_eq!(env.servers.running().len(), 1);
    assert_eq!(env.definition(USED.0, USED.1).await, ["shop/prices.py:6:5"]);
    env.close().await;
}

#[tokio::test]
async fn the_limits_hold_for_all_servers_of_a_process_together() {
    let two = LanguageServerPolicy { most: 2, ..LanguageServerPolicy::default() };
    // ty is expected to take 256 MiB.
    let little =
        LanguageServerPolicy { memory: ByteSize::mib(600), ..LanguageServerPolicy::default() };
    for policy in [two, little] {
        let envs = [(); 3].map(|()| TestEnvironment::with("python", policy.clone(), |_| {}));
        let running = || envs.each_ref().map(|env| env.servers.running().len());
        for env in &envs {
            assert_eq!(env.definition(USED.0, USED.1).await, ["shop/prices.py:6:5"]);
        }
        assert_eq!(running(), [0, 1, 1]);
        envs[1].definition(USED.0, USED.1).await;
        envs[0].definition(USED.0, USED.1).await;
        assert_eq!(running(), [1, 1, 0]);
        let [first, ..] = &envs;
        let notices = first.servers.take_notices(first.context.workspace.path());
        assert_eq!(notices, ["ty was ended to make room for ty, and starts again"]);
        for env in envs {
            env.close().await;
        }
    }
}

#[tokio::test]
async fn a_pool_of_its_own_has_limits_of_its_own() {
    let policy = LanguageServerPolicy { most: 1, ..LanguageServerPolicy::default() };
    let env = TestEnvironment::with("python", policy.clone(), |_| {});
    let other = TestEnvironment::with("python", policy.clone(), |_| {});
    let apart = LanguageServers::in_pool(policy, Arc::default());
    env.definition(USED.0, USED.1).await;
    let target = other.at(USED.0, USED.1);
    answered(apart.definition(&other.context, &target).await);
    assert_eq!((env.servers.running().len(), apart.running().len()), (1, 1));
    apart.close().await;
    env.close().await;
}

#[tokio::test]
async fn an_operator_names_a_server_and_a_workspace_cannot() {
    let entry = ServerEntry {
        name: "own-python".into(),
        languages: Some(vec!["python".into()]),
        command: Some(vec!["ty".into(), "server".into()]),
        roots: Some(vec!["pyproject.toml".into()]),
        readiness: Some(ServerReadiness::Requests),
        ..ServerEntry::default()
    };
    let policy = LanguageServerPolicy { servers: vec![entry], ..LanguageServerPolicy::default() };
    let env = TestEnvironment::with("python", policy, |_| {});
    // A project that has a program of this name, and a file with settings, changes nothing.
    put_program(&env, "#!/bin/sh\ntouch /tmp/ran\nexit 1\n");
    let settings =
        "[language_servers.servers.other]\nlanguages = ['python']\ncommand = ['/bin/false']\n";
    env.put("carrel.toml", settings);
    env.put("policy.toml", settings);
    let target = env.at(USED.0, USED.1);
    let answer = answered(env.servers.definition(&env.context, &target).await);
    assert_eq!((answer.server, answer.incomplete), ("own-python", None));
    assert_eq!(shown(answer.value), ["shop/prices.py:6:5"]);
    assert_eq!(env.servers.running(), [("own-python", env.path(""))]);
    env.close().await;
}

#[tokio::test]
async fn a_directory_of_the_policy_comes_before_the_path() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("ty");
    std::fs::write(&program, "#!/bin/sh\necho of the operator >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let top = std::fs::canonicalize(directory.path()).unwrap();
    std::fs::set_permissions(&top, std::fs::Permissions::from_mode(0o755)).unwrap();
    let programs = vec![top.clone()];
    let policy = LanguageServerPolicy { programs, ..LanguageServerPolicy::default() };
    let env = TestEnvironment::with("python", policy, |policy| policy.readable.push(top));
    let target = env.at(USED.0, USED.1);
    let error = env.servers.definition(&env.context, &target).await.unwrap_err();
    assert!(error.to_string().contains("of the operator"), "{error}");
}

#[tokio::test]
async fn queries_of_many_sessions_take_turns() {
    let env = TestEnvironment::new("python");
    let target = env.at(USED.0, USED.1);
    let ask =
        || async { shown(answered(env.servers.definition(&env.context, &target).await).value) };
    let (a, b, c, d) = tokio::join!(ask(), ask(), ask(), ask());
    for found in [a, b, c, d] {
        assert_eq!(found, ["shop/prices.py:6:5"]);
    }
    assert_eq!(env.servers.running().len(), 1);
    env.close().await;
}

#[tokio::test]
async fn a_server_writes_nothing_into_the_tree_and_its_end_undoes_nothing() {
    let env = TestEnvironment::new("rust");
    let top = env.context.workspace.path().to_owned();
    let before = crate::test_environment::tree(&top);
    env.definition("src/report.rs", "= |doubled(rect").await;
    assert_eq!(crate::test_environment::tree(&top), before);
    // An operator installs a hook while the server runs.
    env.put(".git/hooks/post-commit", "#!/bin/sh\n");
    env.servers.close_workspace(&top).await;
    assert_eq!(env.text(".git/hooks/post-commit"), "#!/bin/sh\n");
}

#[tokio::test]
async fn a_position_or_file_that_does_not_exist_is_an_error_that_names_it() {
    let env = TestEnvironment::new("python");
    let beyond = Target::new("shop/cart.py", 10_000);
    let error = env.servers.definition(&env.context, &beyond).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "shop/cart.py has 215 bytes, and the position is byte 10000; read the file again"
    );
    let missing = Target::new("shop/none.py", 0);
    let error = env.servers.definition(&env.context, &missing).await.unwrap_err();
    assert!(error.to_string().contains("shop/none.py"), "{error}");
    let content = carrel_lsp::ContentHash::of(env.text("shop/cart.py").as_bytes());
    let target = Target::new("shop/cart.py", 0).in_content(content);
    answered(env.servers.definition(&env.context, &target).await);
    env.replace("shop/cart.py", "class Cart", "# More.\nclass Cart");
    let error = env.servers.definition(&env.context, &target).await.unwrap_err();
    let changed = "shop/cart.py has changed since the position was found; read the file again";
    assert_eq!(error.to_string(), changed);
    std::fs::write(env.path("latin.py"), b"x = '\xff'\n").unwrap();
    let latin = Target::new("latin.py", 0);
    let error = env.servers.definition(&env.context, &latin).await.unwrap_err();
    assert!(error.to_string().contains("latin.py is not UTF-8"), "{error}");
    env.close().await;
}
