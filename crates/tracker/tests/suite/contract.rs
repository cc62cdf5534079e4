//! What every tracker promises. The numbers are those of the acceptance list.

use std::time::Duration;

use carrel_domain::Secret;
use carrel_tracker::{Issue, IssueId, TrackerError, TrackerErrorKind};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::asana::Asana;
use crate::fake::Reply;
use crate::github::Github;
use crate::gitlab::Gitlab;
use crate::jira::Jira;
use crate::linear::Linear;
use crate::logs::heard;
use crate::records::{Provider, SECRET, config, ids, open, stage};

fn active<P: Provider>() -> Vec<String> {
    vec![P::STATES.0.to_owned()]
}

fn numbers<P: Provider>(issues: &[Issue]) -> Vec<String> {
    issues.iter().map(|issue| issue.identifier.clone()).collect()
}

fn expected<P: Provider>(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(P::identifier).collect()
}

async fn scope<P: Provider>() {
    let stage = stage::<P>(4).await;
    P::set_state(&mut stage.records_served().records[1], P::STATES.1);
    P::move_away(&mut stage.records_served().records[2]);
    let found = stage.tracker.by_states(&active::<P>()).await.unwrap();
    assert_eq!(numbers::<P>(&found), expected::<P>([1, 4]));
    // States are compared as the scheduler compares them.
    let shouted = vec![format!(" {} ", P::STATES.0.to_uppercase())];
    assert_eq!(stage.tracker.by_states(&shouted).await.unwrap(), found);
    let both = vec![P::STATES.0.to_owned(), P::STATES.1.to_owned()];
    assert_eq!(
        numbers::<P>(&stage.tracker.by_states(&both).await.unwrap()),
        expected::<P>([1, 2, 4])
    );
    let seen = stage.tracker.by_ids(&ids::<P>([4, 3, 2, 99])).await.unwrap();
    assert_eq!(numbers::<P>(&seen), expected::<P>([4, 2]));
}

async fn nothing_asked<P: Provider>() {
    let stage = stage::<P>(1).await;
    assert_eq!(stage.tracker.by_states(&[]).await.unwrap(), []);
    assert_eq!(stage.tracker.by_states(&["  ".to_owned()]).await.unwrap(), []);
    assert_eq!(stage.tracker.by_ids(&[]).await.unwrap(), []);
    assert_eq!(stage.tracker.by_ids(&[IssueId("no id of this tracker".into())]).await.unwrap(), []);
    assert_eq!(stage.fake.count(), 0);
}

async fn order<P: Provider>() {
    let stage = stage::<P>(303).await;
    let found = stage.tracker.by_states(&active::<P>()).await.unwrap();
    assert_eq!(numbers::<P>(&found), expected::<P>(1..=303));
    assert!(stage.fake.count() > 1);
    let backwards = stage.tracker.by_ids(&ids::<P>((1..=130).rev())).await.unwrap();
    assert_eq!(numbers::<P>(&backwards), expected::<P>((1..=130).rev()));
    let twice = stage.tracker.by_ids(&ids::<P>([2, 1, 2])).await.unwrap();
    assert_eq!(numbers::<P>(&twice), expected::<P>([2, 1]));
}

async fn nonsense<P: Provider>() {
    let stage = stage::<P>(1).await;
    P::spoil(&mut stage.records_served().records[0]);
    let found = stage.tracker.by_states(&active::<P>()).await.unwrap();
    let Issue {
        description,
        priority,
        branch_name,
        assignee_id,
        labels,
        blocked_by,
        created_at,
        updated_at,
        ..
    } = found[0].clone();
    assert_eq!((description, priority, branch_name, assignee_id), (None, None, None, None));
    assert_eq!((labels, blocked_by, created_at, updated_at), (vec![], vec![], None, None));
    assert_eq!(stage.tracker.by_ids(&ids::<P>([1])).await.unwrap(), found);
}

async fn malformed<P: Provider>() {
    let stage = stage::<P>(3).await;
    P::take_title(&mut stage.records_served().records[1]);
    let (found, said) = heard(stage.tracker.by_states(&active::<P>())).await;
    assert_eq!(numbers::<P>(&found.unwrap()), expected::<P>([1, 3]));
    assert!(said.contains("records=1") && said.contains("skipped records"), "{said}");
    let fault = stage.tracker.by_ids(&ids::<P>([1, 2, 3])).await.unwrap_err();
    assert_eq!(fault.kind, TrackerErrorKind::Response, "{fault}");
    assert_eq!(stage.tracker.by_ids(&ids::<P>([1, 3])).await.unwrap().len(), 2);
}

async fn snapshots<P: Provider>() {
    let stage = stage::<P>(3).await;
    let listed = stage.tracker.by_states(&active::<P>()).await.unwrap();
    assert_eq!(stage.tracker.by_ids(&ids::<P>(1..=3)).await.unwrap(), listed);
    let Issue {
        id, identifier, title, description, state, labels, dispatchable, created_at, ..
    } = listed[1].clone();
    assert_eq!(id.0, P::id(2));
    assert_eq!(identifier, P::identifier(2));
    assert_eq!(title, "Issue 2");
    assert_eq!(description.as_deref(), Some("What to do."));
    assert_eq!((state.as_str(), dispatchable), (P::STATES.0, true));
    assert_eq!(labels, ["bug"]);
    assert_eq!(created_at.unwrap().to_string(), "2024-01-15T10:30:00.000Z");
}

/// Asks both ways, with the same answer to the first request of each.
async fn faults<P: Provider>(reply: Reply) -> [TrackerError; 2] {
    let (one, other) = (stage::<P>(3).await, stage::<P>(3).await);
    one.fake.answer(0, reply.clone());
    let listed = one.tracker.by_states(&active::<P>()).await.unwrap_err();
    other.fake.answer(0, reply);
    let read = other.tracker.by_ids(&ids::<P>([1])).await.unwrap_err();
    let again = one.tracker.by_states(&active::<P>()).await;
    if listed.kind == TrackerErrorKind::RateLimited {
        assert_eq!(again.unwrap_err().kind, TrackerErrorKind::RateLimited);
        assert_eq!(one.fake.count(), 1, "it is left alone");
    } else {
        assert_eq!(again.unwrap().len(), 3, "what went wrong once is not remembered");
    }
    for fault in [&listed, &read] {
        assert!(!fault.message.contains(SECRET) && fault.message.len() < 700, "{fault}");
    }
    [listed, read]
}

async fn errors<P: Provider>() {
    let refused = json!({ "message": "no", "errors": [{ "message": "no" }] });
    for (reply, kind) in [
        (Reply::status(401, &refused), TrackerErrorKind::Secret),
        (Reply::status(403, &refused), TrackerErrorKind::Status(403)),
        (Reply::status(404, &refused), TrackerErrorKind::Status(404)),
        (Reply::status(500, &json!("?")), TrackerErrorKind::Status(500)),
        (Reply::status(503, &refused), TrackerErrorKind::Status(503)),
        (
            Reply::text(301, "").with("location", "http://127.0.0.1:1/"),
            TrackerErrorKind::Status(301),
        ),
        (Reply::status(304, &json!(null)), TrackerErrorKind::Status(304)),
        (Reply::text(200, "<html>"), TrackerErrorKind::Response),
        (Reply::text(200, "{\"data\""), TrackerErrorKind::Response),
        (Reply::text(200, ""), TrackerErrorKind::Response),
        (
            Reply::json(
                &json!({ "data": { "issues": 3, "repository": { "i1": 3 } }, "issues": {} }),
            ),
            TrackerErrorKind::Response,
        ),
        (Reply::json(&json!("text")), TrackerErrorKind::Response),
        (Reply::text(200, &"[".repeat(500)), TrackerErrorKind::Response),
        (Reply::Lose, TrackerErrorKind::Request),
        (Reply::Break, TrackerErrorKind::Request),
    ] {
        for fault in faults::<P>(reply.clone()).await {
            assert_eq!(fault.kind, kind, "{reply:?}: {fault}");
            assert_eq!(fault.retry_after, None);
        }
    }
}

async fn limits<P: Provider>() {
    let refused = json!({ "message": "slow down", "errors": [{ "message": "slow down" }] });
    let told = json!({ "message": "You have exceeded a secondary rate limit" });
    for (reply, seconds) in [
        (Reply::status(429, &refused).with("retry-after", "7"), 7),
        (Reply::status(429, &refused), 60),
        (Reply::status(403, &refused).with("retry-after", "8"), 8),
        (Reply::status(403, &told), 60),
        (Reply::status(503, &refused).with("Retry-After", "9"), 9),
        (Reply::status(429, &refused).with("x-ratelimit-reset", "1"), 1),
        (Reply::status(429, &refused).with("retry-after", "86400"), 3600),
    ] {
        for fault in faults::<P>(reply.clone()).await {
            assert_eq!(fault.kind, TrackerErrorKind::RateLimited, "{reply:?}: {fault}");
            assert_eq!(fault.retry_after, Some(Duration::from_secs(seconds)), "{reply:?}");
        }
    }
}

async fn loss_in_the_middle<P: Provider>() {
    let stage = stage::<P>(303).await;
    let pages = {
        stage.tracker.by_states(&active::<P>()).await.unwrap();
        stage.fake.count()
    };
    for page in 0..pages {
        for reply in [Reply::Lose, Reply::Break, Reply::text(200, "{")] {
            stage.fake.reset();
            stage.fake.answer(page, reply);
            stage.tracker.by_states(&active::<P>()).await.unwrap_err();
            assert_eq!(stage.fake.count(), page + 1, "nothing is asked after a failure");
        }
    }
    let found = stage.tracker.by_states(&active::<P>()).await.unwrap();
    assert_eq!(numbers::<P>(&found), expected::<P>(1..=303));
}

async fn secrets<P: Provider>() {
    let stage = stage::<P>(1).await;
    assert!(!format!("{:?}", stage.tracker).contains(SECRET));
    stage.tracker.by_states(&active::<P>()).await.unwrap();
    let sent = stage.fake.heard()[0].headers.clone();
    let shown: Vec<&String> = sent.values().collect();
    let told = format!("bad credentials: {shown:?} {SECRET}");
    let reply = Reply::status(400, &json!({ "message": told, "errors": [{ "message": told }] }));
    for fault in faults::<P>(reply).await {
        assert_eq!(fault.kind, TrackerErrorKind::Status(400));
        let value = sent.get("authorization").or(sent.get("private-token")).unwrap();
        let word = value.split(' ').next_back().unwrap();
        assert!(!fault.message.contains(word), "{fault}");
    }
}

fn configuration<P: Provider>() {
    let good = config::<P>("https://tracker.example");
    assert!(open(&good).is_ok());
    let changed = |name: &str, value: serde_json::Value| {
        let mut config = good.clone();
        config.provider.settings.insert(name.to_owned(), value);
        open(&config).map(|_| ()).unwrap_err()
    };
    let names: Vec<String> = good.provider.settings.keys().cloned().collect();
    for name in &names {
        let fault = changed(name, json!("  "));
        assert_eq!(
            (fault.kind, fault.message.contains(name)),
            (TrackerErrorKind::Config, true),
            "{fault}"
        );
    }
    let address = P::settings("https://tracker.example")
        .into_iter()
        .find(|(_, value)| value.starts_with("https"))
        .unwrap()
        .0;
    for value in [
        "http://tracker.example",
        "tracker.example",
        "ftp://x",
        "https://user:word@x",
        "https://x/?a=b",
    ] {
        let fault = changed(address, json!(value));
        assert_eq!(fault.kind, TrackerErrorKind::Config, "{value}: {fault}");
    }
    let mut bare = good.clone();
    bare.provider.secrets.clear();
    assert_eq!(open(&bare).unwrap_err().kind, TrackerErrorKind::Secret);
    let mut torn = good;
    torn.provider.secrets.insert(P::secret_name().to_owned(), Secret::new("a\nb: c"));
    let fault = open(&torn).map(|_| ());
    // Jira's is encoded, so that nothing can leave its line.
    assert!(fault.is_ok() || fault.unwrap_err().kind == TrackerErrorKind::Secret);
}

/// Reads a thousand issues, and counts the requests of both ways.
async fn thousand<P: Provider>() -> (usize, usize) {
    let stage = stage::<P>(1000).await;
    let listed = stage.tracker.by_states(&active::<P>()).await.unwrap();
    assert_eq!(numbers::<P>(&listed), expected::<P>(1..=1000));
    let for_list = stage.fake.count();
    stage.fake.reset();
    let read = stage.tracker.by_ids(&ids::<P>(1..=1000)).await.unwrap();
    assert_eq!(read, listed);
    (for_list, stage.fake.count())
}

/// A list that has not changed is not sent again, and one that has is.
async fn versions<P: Provider>() {
    assert!(P::VERSIONED);
    let stage = stage::<P>(150).await;
    let first = stage.tracker.by_states(&active::<P>()).await.unwrap();
    stage.fake.reset();
    assert_eq!(stage.tracker.by_states(&active::<P>()).await.unwrap(), first);
    assert!(stage.fake.heard().iter().all(|asked| asked.headers.contains_key("if-none-match")));
    P::set_state(&mut stage.records_served().records[149], P::STATES.1);
    let after = stage.tracker.by_states(&active::<P>()).await.unwrap();
    assert_eq!(numbers::<P>(&after), expected::<P>(1..=149));
}

async fn lost_cursor<P: Provider>() {
    let stage = stage::<P>(303).await;
    stage.records_served().hide_cursor = true;
    let fault = stage.tracker.by_states(&active::<P>()).await.unwrap_err();
    assert_eq!(fault.kind, TrackerErrorKind::Pagination, "{fault}");
}

async fn repeated_cursor<P: Provider>() {
    let stage = stage::<P>(600).await;
    stage.records_served().repeat_cursor = true;
    let fault = stage.tracker.by_states(&active::<P>()).await.unwrap_err();
    assert_eq!(fault.kind, TrackerErrorKind::Pagination, "{fault}");
    assert!(stage.fake.count() < 5, "{}", stage.fake.count());
}

macro_rules! contract {
    ($module:ident, $provider:ty, thousand: $thousand:expr, reference: $reference:expr) => {
        mod $module {
            use super::*;
            use pretty_assertions::assert_eq;

            #[tokio::test]
            async fn item_029_and_098_states_and_scope_hold() {
                scope::<$provider>().await;
            }

            #[tokio::test]
            async fn item_030_and_031_nothing_named_is_no_request() {
                nothing_asked::<$provider>().await;
            }

            #[tokio::test]
            async fn item_032_order_is_kept_across_pages() {
                order::<$provider>().await;
            }

            #[tokio::test]
            async fn item_034_nonsense_hides_no_issue() {
                nonsense::<$provider>().await;
            }

            #[tokio::test]
            async fn item_035_a_malformed_record_is_dropped_or_fails_the_read() {
                malformed::<$provider>().await;
            }

            #[tokio::test]
            async fn item_033_036_and_098_both_reads_tell_the_whole_issue() {
                snapshots::<$provider>().await;
            }

            #[tokio::test]
            async fn item_040_errors_have_distinct_kinds() {
                errors::<$provider>().await;
            }

            #[tokio::test]
            async fn item_040_limits_say_when_to_come_back() {
                limits::<$provider>().await;
            }

            #[tokio::test]
            async fn item_040_a_list_without_an_end_is_a_fault() {
                repeated_cursor::<$provider>().await;
            }

            #[test]
            fn item_010_and_040_settings_are_checked_before_anything_is_sent() {
                configuration::<$provider>();
            }

            #[tokio::test]
            async fn a_lost_page_makes_the_whole_list_worthless() {
                loss_in_the_middle::<$provider>().await;
            }

            #[tokio::test]
            async fn item_074_no_secret_is_shown() {
                secrets::<$provider>().await;
            }

            /// Requests for the list of a thousand issues, and for a thousand ids; and what the reference needs.
            #[tokio::test]
            async fn a_thousand_issues_cost_this_many_requests() {
                let (listed, read) = thousand::<$provider>().await;
                assert_eq!((listed, read), $thousand);
                let reference: (usize, usize) = $reference;
                assert!(listed <= reference.0 && read <= reference.1);
                assert!(listed + read < reference.0 + reference.1);
            }
        }
    };
}

contract!(linear, Linear, thousand: (10, 20), reference: (20, 20));
contract!(github, Github, thousand: (10, 10), reference: (11, 1000));
contract!(gitlab, Gitlab, thousand: (10, 10), reference: (11, 1000));
contract!(jira, Jira, thousand: (4, 10), reference: (10, 10));
contract!(asana, Asana, thousand: (10, 100), reference: (10, 1000));

#[tokio::test]
async fn item_040_a_missing_cursor_is_a_fault() {
    lost_cursor::<Linear>().await;
    lost_cursor::<Jira>().await;
    lost_cursor::<Asana>().await;
}

#[tokio::test]
async fn lists_that_have_not_changed_are_not_sent_again() {
    versions::<Github>().await;
    versions::<Gitlab>().await;
}
