use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use carrel_agent::{FailureKind, Tools};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::lab::{Lab, Notes, Opened, SOON, command};

/// What the scripts of these tests speak to a relay with.
const WORDS: &str = r#"
coproc RELAY { exec carrel-agent-spawner mcp; }
say() { printf '%s\n' "$1" >&"${RELAY[1]}"; }
hear() { read -r line <&"${RELAY[0]}"; printf '%s\n' "$line" >> answers; }
call() { say "{\"id\":$1,\"method\":\"tools/call\",\"params\":{\"name\":\"$2\",\"arguments\":{}}}"; }
"#;

async fn open(lab: &Lab, notes: &Arc<Notes>, script: &str) -> Opened {
    let tools: Arc<dyn Tools> = Arc::<Notes>::clone(notes);
    lab.open_with(&command(&format!("{WORDS}{script}"), ""), tools, None).await.unwrap()
}

fn answers(lab: &Lab) -> Vec<Value> {
    lab.read("answers").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until as many calls wait.
async fn until_waiting(notes: &Notes, count: usize) {
    let waiting = async {
        while notes.waiting.load(Ordering::SeqCst) != count {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(SOON, waiting).await.expect("they wait");
}

#[tokio::test]
async fn a_long_call_holds_up_nothing_and_can_be_cancelled() {
    let (lab, notes) = (Lab::new().await, Arc::new(Notes::default()));
    let cancel = r#"'{"method":"notifications/cancelled","params":{"requestId":1}}'"#;
    let script = format!(
        r#"call 1 wait; say '{{"id":2,"method":"ping"}}'; hear; call 3 note; hear
        say {cancel}; call 4 note; hear"#
    );
    let mut opened = open(&lab, &notes, &script).await;
    opened.session.turn("").await.unwrap();
    opened.close().await;
    let ids: Vec<Value> = answers(&lab).into_iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(2), json!(3), json!(4)], "what is cancelled is not answered");
    assert_eq!(notes.waited.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn tools_end_when_the_session_is_stopped() {
    let (lab, notes) = (Lab::new().await, Arc::new(Notes::default()));
    let mut opened = open(&lab, &notes, "call 1 wait; hear; sleep 1000").await;
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
async fn tools_end_when_nobody_waits_for_them_any_more() {
    let (lab, notes) = (Lab::new().await, Arc::new(Notes::default()));
    let script =
        "call 1 wait; until test -e go; do sleep 0.01; done; kill -9 $RELAY_PID; sleep 1000";
    let mut opened = open(&lab, &notes, script).await;
    let stop = opened.stop.clone();
    let stopping = async {
        until_waiting(&notes, 1).await;
        std::fs::write(lab.inside("go"), "").unwrap();
        until_waiting(&notes, 0).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(opened.session.turn(""), stopping);
    assert_eq!(ended.unwrap_err().kind, FailureKind::Stopped);
    opened.close().await;
}

#[tokio::test]
async fn what_was_asked_before_the_input_ended_is_still_answered() {
    let (lab, notes) = (Lab::new().await, Arc::new(Notes::default()));
    let script = r#"printf '{"id":7,"method":"tools/call","params":{"name":"note"}}\n' | carrel-agent-spawner mcp > answers"#;
    let tools: Arc<dyn Tools> = Arc::<Notes>::clone(&notes);
    let mut opened = lab.open_with(&command(script, ""), tools, None).await.unwrap();
    opened.session.turn("").await.unwrap();
    opened.close().await;
    assert_eq!(answers(&lab)[0]["id"], 7);
}

#[tokio::test]
async fn only_some_tools_run_at_once() {
    let (lab, notes) = (Lab::new().await, Arc::new(Notes::default()));
    let script = "for id in 1 2 3 4 5 6 7 8 9 10; do call $id wait; done; sleep 1000";
    let mut opened = open(&lab, &notes, script).await;
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
