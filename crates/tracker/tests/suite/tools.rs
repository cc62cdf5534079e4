//! What agents may do with a tracker, and what they may not.

mod asana;
mod github;
mod gitlab;
mod jira;
mod linear;

use std::sync::Arc;

use carrel_tracker::{Issue, ToolReply, Tracker};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::asana::Asana;
use crate::fake::{Asked, Fake, Reply};
use crate::github::Github;
use crate::gitlab::Gitlab;
use crate::jira::Jira;
use crate::linear::Linear;
use crate::records::{Provider, SECRET, config, open};

/// A tracker, the issue at hand, and a server that says yes to everything but what it is told.
struct Bench {
    fake: Fake,
    tracker: Arc<dyn Tracker>,
    issue: Issue,
    tool: String,
}

async fn bench<P: Provider>() -> Bench {
    bench_with::<P>(|_| None).await
}

async fn bench_with<P: Provider>(
    answer: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static,
) -> Bench {
    let served =
        crate::records::TrackerRecords { records: vec![P::record(7)], ..Default::default() };
    let listed = Fake::start(move |asked| P::answer(&served, asked)).await;
    let states = [P::STATES.0.to_owned()];
    let reader = open(&config::<P>(&listed.address)).unwrap();
    let issue = reader.by_states(&states).await.unwrap().remove(0);
    let fake = Fake::start(move |asked| {
        answer(asked).unwrap_or_else(|| Reply::json(&json!({ "ok": true })))
    })
    .await;
    let tracker = open(&config::<P>(&fake.address)).unwrap();
    let tool = tracker.tools()[0].name.clone();
    Bench { fake, tracker, issue, tool }
}

impl Bench {
    async fn call(&self, arguments: Value) -> ToolReply {
        self.tracker.call(&self.issue, &self.tool, arguments).await
    }

    /// Uses the tool, and returns why that was refused.
    async fn refused(&self, arguments: Value) -> String {
        let reply = self.call(arguments.clone()).await;
        assert!(!reply.success, "{arguments} was let through");
        let told: Value = serde_json::from_str(&reply.output).unwrap();
        assert!(told["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{told}");
        told["error"]["code"].as_str().unwrap().to_owned()
    }

    /// Uses the tool, and returns the last request that was sent for it.
    async fn sent(&self, arguments: Value) -> Asked {
        let reply = self.call(arguments.clone()).await;
        assert!(reply.success, "{arguments}: {}", reply.output);
        self.fake.heard().pop().unwrap()
    }
}

fn get(path: &str) -> Value {
    json!({ "method": "GET", "path": path })
}

fn post(path: &str, body: Value) -> Value {
    let mut told = json!({ "method": "POST", "path": path });
    told["body"] = body;
    told
}

/// Holds refusals against what is expected. Nothing of them is sent.
async fn all_refused(bench: &Bench, calls: Vec<Value>) {
    for arguments in calls {
        let code = bench.refused(arguments.clone()).await;
        assert!(code == "out_of_scope" || code == "invalid_arguments", "{code}: {arguments}");
    }
    assert_eq!(bench.fake.count(), 0);
}

#[tokio::test]
async fn item_070_and_071_each_tracker_tells_of_its_own_tool() {
    async fn names<P: Provider>() -> Vec<String> {
        let bench = bench::<P>().await;
        let tools = bench.tracker.tools();
        assert!(tools.iter().all(|tool| tool.input_schema["additionalProperties"] == false));
        assert!(tools.iter().all(|tool| !tool.description.contains(SECRET)));
        tools.into_iter().map(|tool| tool.name).collect()
    }
    assert_eq!(names::<Linear>().await, ["linear_graphql"]);
    assert_eq!(names::<Github>().await, ["github_api"]);
    assert_eq!(names::<Gitlab>().await, ["gitlab_api"]);
    assert_eq!(names::<Jira>().await, ["jira_rest"]);
    assert_eq!(names::<Asana>().await, ["asana_api"]);
}

async fn failures<P: Provider>(arguments: Value) {
    let bench = bench::<P>().await;
    bench.fake.answer(0, Reply::Lose);
    assert_eq!(bench.refused(arguments.clone()).await, "tracker_request");

    let echo = json!({ "message": format!("bad credentials {SECRET}") });
    bench.fake.answer(0, Reply::status(401, &echo));
    let reply = bench.call(arguments.clone()).await;
    let told: Value = serde_json::from_str(&reply.output).unwrap();
    assert_eq!((reply.success, &told["status"]), (false, &json!(401)));
    assert_eq!(told["body"]["message"], "bad credentials ***");

    bench.fake.answer(0, Reply::text(200, &"x".repeat(3_000_000)));
    let reply = bench.call(arguments.clone()).await;
    let told: Value = serde_json::from_str(&reply.output).unwrap();
    assert_eq!(
        (&told["body"]["truncated"], &told["body"]["bytes"]),
        (&json!(true), &json!(3_000_000))
    );
    assert!(reply.output.len() < 300_000);

    bench.fake.answer(0, Reply::text(301, "").with("location", "http://127.0.0.1:1/"));
    assert!(!bench.call(arguments.clone()).await.success);

    let reply = bench.tracker.call(&bench.issue, "other_tool", json!({})).await;
    let told: Value = serde_json::from_str(&reply.output).unwrap();
    assert_eq!((reply.success, &told["error"]["supportedTools"]), (false, &json!([bench.tool])));

    bench.fake.answer(0, Reply::status(429, &json!({})).with("retry-after", "5"));
    let told: Value = serde_json::from_str(&bench.call(arguments.clone()).await.output).unwrap();
    assert_eq!(told["retryAfterSeconds"], 5);
    let asked = bench.fake.count();
    assert_eq!(bench.refused(arguments).await, "tracker_rate_limited");
    assert_eq!(bench.fake.count(), asked, "it is left alone");
}

#[tokio::test]
async fn item_074_to_076_failures_are_structured_and_show_no_secret() {
    failures::<Linear>(json!("{ viewer { id } }")).await;
    failures::<Github>(get("/repos/acme/web/issues")).await;
    failures::<Gitlab>(get("/projects/:id/issues")).await;
    failures::<Jira>(get("/rest/api/3/issue/WEB-7")).await;
    failures::<Asana>(get("/tasks/{task_gid}")).await;
}

#[tokio::test]
async fn a_reply_says_whether_the_call_changed_the_tracker() {
    async fn changed<P: Provider>(arguments: Value) -> (bool, bool) {
        let bench = bench::<P>().await;
        let reply = bench.call(arguments.clone()).await;
        assert!(reply.success, "{arguments}: {}", reply.output);
        bench.fake.answer(0, Reply::status(422, &json!({})));
        let refused = bench.call(arguments).await;
        (reply.changed, refused.success || refused.changed)
    }
    let comment = post("/repos/acme/web/issues/7/comments", json!({ "body": "Done." }));
    assert_eq!(changed::<Github>(comment).await, (true, false));
    assert_eq!(changed::<Github>(get("/repos/acme/web/issues")).await, (false, false));
    let search = post("/rest/api/3/search/jql", json!({ "maxResults": 5 }));
    assert_eq!(changed::<Jira>(search).await, (false, false), "a search only reads");
    let linked =
        "mutation { attachmentLinkURL(issueId: \"WEB-7\", url: \"https://x\") { success } }";
    assert_eq!(changed::<Linear>(json!(linked)).await, (true, false));
    assert_eq!(changed::<Linear>(json!("{ viewer { id } }")).await, (false, false));
}
