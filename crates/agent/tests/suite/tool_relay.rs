use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use carrel_agent::{FailureKind, ToolCall, ToolResult, Tools};
use carrel_domain::Tier;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{DEADLINE, Notes, Opened, TestEnvironment, command};

/// What the scripts of these tests speak to a relay with.
const WORDS: &str = r#"
coproc RELAY { exec carrel-agent-spawner mcp; }
say() { printf '%s\n' "$1" >&"${RELAY[1]}"; }
hear() { read -r line <&"${RELAY[0]}"; printf '%s\n' "$line" >> answers; }
call() { say "{\"id\":$1,\"method\":\"tools/call\",\"params\":{\"name\":\"$2\",\"arguments\":{}}}"; }
"#;

async fn open(test_env: &TestEnvironment, notes: &Arc<Notes>, script: &str) -> Opened {
    let tools: Arc<dyn Tools> = Arc::<Notes>::clone(notes);
    test_env.open_with(&command(&format!("{WORDS}{script}"), ""), tools, None).await.unwrap()
}

fn answers(test_env: &TestEnvironment) -> Vec<Value> {
    test_env.read("answers").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until as many calls wait.
async fn until_waiting(notes: &Notes, count: usize) {
    let waiting = async {
        while notes.waiting.load(Ordering::SeqCst) != count {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("they wait");
}

#[tokio::test]
async fn a_long_call_holds_up_nothing_and_can_be_cancelled() {
    let (test_env, notes) = (TestEnvironment::new().await, Arc::new(Notes::default()));
    let cancel = r#"'{"method":"notifications/cancelled","params":{"requestId":1}}'"#;
    let script = format!(
        r#"call 1 wait; say '{{"id":2,"method":"ping"}}'; hear; call 3 note; hear
        say {cancel}; call 4 note; hear"#
    );
    let mut opened = open(&test_env, &notes, &script).await;
    opened.session.turn("").await.unwrap();
    opened.close().await;
    let ids: Vec<Value> =
        answers(&test_env).into_iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(2), json!(3), json!(4)], "what is cancelled is not answered");
    assert_eq!(notes.waited.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_agent_under_another_user_reaches_its_tools() {
    for tier in [Tier::Full, Tier::Landlock] {
        let Some(test_env) = TestEnvironment::given_away(tier).await else { return };
        let notes = Arc::new(Notes::default());
        let mut opened = open(&test_env, &notes, "call 1 note; hear; id -u > user").await;
        opened.session.turn("").await.unwrap();
        opened.close().await;
        assert_ne!(test_env.read("user").trim(), "0");
        let answers = answers(&test_env);
        let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
        assert_eq!(ids, [&json!(1)], "{tier:?}");
    }
}

#[tokio::test]
async fn the_socket_of_a_session_cannot_be_listed() {
    use std::os::unix::fs::MetadataExt as _;
    let (test_env, notes) = (TestEnvironment::new().await, Arc::new(Notes::default()));
    let mut opened =
        open(&test_env, &notes, "echo $CARREL_TOOLS > socket; call 1 wait; hear").await;
    let socket = test_env.inside("socket");
    let stop = opened.stop.clone();
    let looking = async {
        until_waiting(&notes, 1).await;
        let socket = std::path::PathBuf::from(std::fs::read_to_string(socket).unwrap().trim());
        let directory = socket.parent().unwrap();
        let name = socket.file_name().unwrap().to_str().unwrap().to_owned();
        let known = std::fs::read_to_string("/proc/net/unix").unwrap();
        assert!(known.contains(directory.to_str().unwrap()), "{known}");
        let found = (directory.metadata().unwrap().mode(), name.len(), known.contains(&name));
        stop.cancel();
        found
    };
    let (_, (mode, name, is_known)) = tokio::join!(opened.session.turn(""), looking);
    opened.close().await;
    let is_root = rustix::process::geteuid().is_root();
    let expected = if is_root { (0o711, 32, false) } else { (0o700, 6, true) };
    assert_eq!((mode & 0o777, name, is_known), expected);
}

#[tokio::test]
async fn tools_end_when_the_session_is_stopped() {
    let (test_env, notes) = (TestEnvironment::new().await, Arc::new(Notes::default()));
    let mut opened = open(&test_env, &notes, "call 1 wait; hear; sleep 1000").await;
    let stop = opened.stop.clone();
    let stopping = async {
        until_waiting(&notes, 1).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(opened.session.turn(""), stopping);
    assert_eq!(ended.unwrap_err().kind, FailureKind::Stopped);
    opened.close().await;
    assert_eq!(notes.waited.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn tools_end_when_their_relay_disconnects() {
    let (test_env, notes) = (TestEnvironment::new().await, Arc::new(Notes::default()));
    let script =
        "call 1 wait; until test -e go; do sleep 0.01; done; kill -9 $RELAY_PID; sleep 1000";
    let mut opened = open(&test_env, &notes, script).await;
    let stop = opened.stop.clone();
    let stopping = async {
        until_waiting(&notes, 1).await;
        std::fs::write(test_env.inside("go"), "").unwrap();
        until_waiting(&notes, 0).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(opened.session.turn(""), stopping);
    assert_eq!(ended.unwrap_err().kind, FailureKind::Stopped);
    opened.close().await;
}

#[tokio::test]
async fn what_was_asked_before_the_input_ended_is_still_answered() {
    let (test_env, notes) = (TestEnvironment::new().await, Arc::new(Notes::default()));
    let script = r#"printf '{"id":7,"method":"tools/call","params":{"name":"note"}}\n' | carrel-agent-spawner mcp > answers"#;
    let tools: Arc<dyn Tools> = Arc::<Notes>::clone(&notes);
    let mut opened = test_env.open_with(&command(script, ""), tools, None).await.unwrap();
    opened.session.turn("").await.unwrap();
    opened.close().await;
    assert_eq!(answers(&test_env)[0]["id"], 7);
}

#[tokio::test]
async fn only_some_tools_run_at_once() {
    let (test_env, notes) = (TestEnvironment::new().await, Arc::new(Notes::default()));
    let script = "for id in 1 2 3 4 5 6 7 8 9 10; do call $id wait; done; sleep 1000";
    let mut opened = open(&test_env, &notes, script).await;
    let stop = opened.stop.clone();
    let stopping = async {
        until_waiting(&notes, 8).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(notes.waiting.load(Ordering::SeqCst), 8);
        stop.cancel();
    };
    let (_, ()) = tokio::join!(opened.session.turn(""), stopping);
    opened.close().await;
    assert_eq!(notes.waited.load(Ordering::SeqCst), 8, "those that have not begun never do");
}

/// A tool that says how far it is, and whom it works for.
#[derive(Debug)]
struct Talkative;

#[async_trait::async_trait]
impl Tools for Talkative {
    fn list(&self) -> Vec<Value> {
        vec![json!({ "name": "count", "description": "", "inputSchema": {} })]
    }

    async fn call(&self, call: ToolCall) -> ToolResult {
        if let Some(progress) = &call.progress {
            progress.report(1.0, Some(2.0), "half");
            progress.report(2.0, None, "all");
        }
        let facts = Some(json!({ "client": call.client }));
        ToolResult { facts, ..ToolResult::done("counted") }
    }
}

#[tokio::test]
async fn progress_and_facts_of_a_tool_are_handed_on() {
    let test_env = TestEnvironment::new().await;
    let script = r#"say '{"id":1,"method":"initialize","params":{"clientInfo":{"name":"me"}}}'; hear
    say '{"id":2,"method":"tools/call","params":{"name":"count","_meta":{"progressToken":"p"}}}'; hear; hear; hear
    call 3 count; hear"#;
    let yaml = command(&format!("{WORDS}{script}"), "");
    let mut opened = test_env.open_with(&yaml, Arc::new(Talkative), None).await.unwrap();
    opened.session.turn("").await.unwrap();
    opened.close().await;
    let result = json!({
        "content": [{ "type": "text", "text": "counted" }],
        "structuredContent": { "client": "me" },
        "isError": false,
    });
    let progress = |params: Value| json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
    let half = json!({ "progressToken": "p", "progress": 1.0, "total": 2.0, "message": "half" });
    let all = json!({ "progressToken": "p", "progress": 2.0, "message": "all" });
    assert_eq!(
        answers(&test_env)[1..],
        [
            progress(half),
            progress(all),
            json!({ "jsonrpc": "2.0", "id": 2, "result": result }),
            json!({ "jsonrpc": "2.0", "id": 3, "result": result }),
        ]
    );
}

#[tokio::test]
async fn one_client_too_many_gets_an_error() {
    let (test_env, notes) = (TestEnvironment::new().await, Arc::new(Notes::default()));
    let script = r#"
    for number in $(seq 16); do
        coproc HELD { exec carrel-agent-spawner mcp; }
        echo '{"id":0,"method":"ping"}' >&"${HELD[1]}"; read -r line <&"${HELD[0]}"
        eval "exec $((20 + 2 * number))<&${HELD[0]} $((21 + 2 * number))>&${HELD[1]}"
    done
    carrel-agent-spawner mcp </dev/null > answers"#;
    let yaml = command(script, "");
    let mut opened = test_env.open_with(&yaml, notes as Arc<dyn Tools>, None).await.unwrap();
    let _ = opened.session.turn("").await;
    opened.close().await;
    let refusal = &answers(&test_env)[0]["error"]["message"];
    assert_eq!(
        *refusal,
        json!("16 clients use the tools of this session already; end one of them")
    );
}

#[test]
fn what_a_carrel_that_was_killed_left_of_its_sockets_goes() {
    let temporary = tempfile::tempdir().unwrap();
    let made = |name: &str| {
        let path = temporary.path().join(name);
        std::fs::create_dir(&path).unwrap();
        (std::os::unix::net::UnixListener::bind(path.join("socket")).unwrap(), path)
    };
    let (left, dead) = made("carrel-tools-1");
    drop(left);
    let (_listening, alive) = made("carrel-tools-2");
    let (other, foreign) = made("something-else");
    drop(other);
    let new = temporary.path().join("carrel-tools-3");
    std::fs::create_dir(&new).unwrap();
    std::os::unix::fs::symlink(&foreign, temporary.path().join("carrel-tools-4")).unwrap();
    carrel_agent::remove_stale_sockets(temporary.path());
    assert_eq!((dead.exists(), alive.exists(), new.exists()), (false, true, true));
    assert!(foreign.join("socket").exists(), "a link is not followed");
}
